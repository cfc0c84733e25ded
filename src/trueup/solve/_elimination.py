"""Compiled factorisation of the interior-point system: sparse blocks, then a core.

The unknowns come in blocks, one for the slopes of each primary cell and one for the
multipliers of each reference cell; two blocks meet where a pair of reports occurs.
Blocks with few neighbours are eliminated first, while that is cheaper than keeping
them; what remains is factorised as one dense matrix. On small sparse tables hardly
anything remains, on full ones the side with fewer unknowns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.solve._dense import solve_core
from trueup.solve._jit import entry, inner

_SPEED = 0.36
"""Eliminate a block while its neighbours are fewer than this share of what remains: a
dense factorisation does about fifteen times the arithmetic in the same time."""
_NO_PIVOT = 1e-14
"""Pivots this small beside the diagonal are directions without curvature."""


class Plan(NamedTuple):
    """The order of elimination and where everything is kept in one flat array."""

    size: Ints
    """(blocks,) unknowns."""
    first: Ints
    """(blocks,) first unknown."""
    order: Ints
    """(eliminated,) blocks in the order of elimination."""
    start: Ints
    """(eliminated + 1,) first neighbour."""
    neighbour: Ints
    """Blocks, those of the core last."""
    column: Ints
    """First column of the neighbour in the panel."""
    width: Ints
    """(blocks,) columns of the panel; of the core for blocks in it."""
    pivot: Ints
    """(blocks,) address of the diagonal block."""
    panel: Ints
    """(blocks,) address of the panel; -1 for blocks of the core."""
    target_start: Ints
    target: Ints
    """Addresses updated by an elimination outside the core, pair by pair."""
    core_at: Ints
    """(blocks,) first row in the core; -1 where eliminated."""
    core: int
    """Address of the core."""
    n_core: int
    n_entries: int


@entry
def eliminate(size: Ints, adjacent: Bools, most: int) -> tuple[Ints, Ints, Ints, int]:
    """Order blocks by least degree; stop where the rest is dense enough.

    Returns the order, where the neighbours of each begin, the neighbours, and how many
    unknowns remain; ``adjacent`` is filled in. Stops early with -1 when more than
    ``most`` unknowns would remain.
    """
    n = len(size)
    degree = np.zeros(n, dtype=np.int64)
    for a in range(n):
        for b in range(n):
            degree[a] += size[b] * adjacent[a, b]
    order = np.empty(n, dtype=np.int64)
    start = np.zeros(n + 1, dtype=np.int64)
    found = np.empty(n, dtype=np.int64)
    listed = np.empty(64 * n, dtype=np.int64)
    gone = np.zeros(n, dtype=np.bool_)
    remaining, n_gone, n_listed = size.sum(), 0, 0
    while n_gone < n:
        best = _least(degree, gone)
        if degree[best] > _SPEED * remaining:
            break
        gone[best] = True
        n_found = _join_neighbours(adjacent, gone, best, size, degree, found)
        while n_listed + n_found > len(listed):
            listed = np.append(listed, np.empty_like(listed))
        listed[n_listed : n_listed + n_found] = found[:n_found]
        order[n_gone] = best
        n_gone += 1
        n_listed += n_found
        start[n_gone] = n_listed
        remaining -= size[best]
    if remaining > most:
        remaining = -1
    return order[:n_gone], start[: n_gone + 1], listed[:n_listed], remaining


@inner
def _least(degree: Ints, gone: Bools) -> int:
    best = -1
    for a in range(len(degree)):
        if not gone[a] and (best < 0 or degree[a] < degree[best]):
            best = a
    return best


@inner
def _join_neighbours(
    adjacent: Bools, gone: Bools, best: int, size: Ints, degree: Ints, found: Ints
) -> int:
    """Make the neighbours of an eliminated block adjacent to each other."""
    n_found = 0
    for b in range(len(size)):
        if adjacent[best, b] and not gone[b]:
            found[n_found] = b
            n_found += 1
    for i in range(n_found):
        a = found[i]
        degree[a] -= size[best]
        for k in range(n_found):
            b = found[k]
            if b != a and not adjacent[a, b]:
                adjacent[a, b] = True
                degree[a] += size[b]
    return n_found


@entry
def place_targets(plan: Plan) -> tuple[Ints, Ints]:
    """Where eliminating each block adds to other blocks outside the core."""
    starts = np.zeros(len(plan.order) + 1, dtype=np.int64)
    for v in range(len(plan.order)):
        n = plan.start[v + 1] - plan.start[v]
        outside = 0
        for k in range(plan.start[v], plan.start[v + 1]):
            outside += plan.core_at[plan.neighbour[k]] < 0
        starts[v + 1] = starts[v] + outside * n - outside * (outside - 1) // 2
    target = np.empty(starts[-1], dtype=np.int64)
    rank = np.full(len(plan.size), -1, dtype=np.int64)
    column_of = np.zeros(len(plan.size), dtype=np.int64)
    for v in range(len(plan.order)):
        rank[plan.order[v]] = v
    for v in range(len(plan.order)):
        at = starts[v]
        for i in range(plan.start[v], plan.start[v + 1]):
            a = plan.neighbour[i]
            if plan.core_at[a] >= 0:
                break
            for k in range(plan.start[rank[a]], plan.start[rank[a] + 1]):
                column_of[plan.neighbour[k]] = plan.column[k]
            target[at] = plan.pivot[a]
            at += 1
            for k in range(i + 1, plan.start[v + 1]):
                target[at] = plan.panel[a] + column_of[plan.neighbour[k]]
                at += 1
    return starts, target


@inner
def factorise(plan: Plan, matrix: Floats) -> None:
    """Eliminate all blocks outside the core, in place; the core is left updated."""
    core_row = np.empty(plan.n_core, dtype=np.int64)
    row = np.empty(plan.n_core)
    for v in range(len(plan.order)):
        block = plan.order[v]
        n, width = plan.size[block], plan.width[block]
        panel = plan.panel[block]
        factorise_block(matrix, plan.pivot[block], n, panel, width)
        _update_outside(plan, matrix, v, n, panel, width)
        n_core, first = 0, width
        for k in range(plan.start[v], plan.start[v + 1]):
            b = plan.neighbour[k]
            if plan.core_at[b] >= 0:
                first = min(first, plan.column[k])
                for i in range(plan.size[b]):
                    core_row[n_core] = plan.core_at[b] + i
                    n_core += 1
        _update_core(
            matrix,
            plan.core,
            plan.n_core,
            core_row,
            row,
            n_core,
            n,
            panel + first,
            width,
        )


@inner
def factorise_block(matrix: Floats, pivot: int, n: int, panel: int, width: int) -> None:
    """Factorise a diagonal block and divide its panel; the diagonal keeps inverses."""
    for k in range(n):
        at = pivot + k * n
        whole = matrix[at + k]
        for i in range(k):
            factor = matrix[at + i]
            for j in range(i):
                factor -= matrix[at + j] * matrix[pivot + i * n + j]
            factor *= matrix[pivot + i * n + i]
            matrix[at + i] = factor
        left = whole
        for i in range(k):
            left -= matrix[at + i] ** 2
        inverse = 1.0 / np.sqrt(left) if left > _NO_PIVOT * whole else 0.0
        matrix[at + k] = inverse
        line = panel + k * width
        for i in range(k):
            factor, other = matrix[at + i], panel + i * width
            for c in range(width):
                matrix[line + c] -= factor * matrix[other + c]
        for c in range(width):
            matrix[line + c] *= inverse


@inner
def _update_outside(
    plan: Plan, matrix: Floats, v: int, n: int, panel: int, width: int
) -> None:
    at = plan.target_start[v]
    for i in range(plan.start[v], plan.start[v + 1]):
        a = plan.neighbour[i]
        if plan.core_at[a] >= 0:
            break
        for k in range(i, plan.start[v + 1]):
            b = plan.neighbour[k]
            stride = plan.size[a] if k == i else plan.width[a]
            to = plan.target[at]
            at += 1
            for p in range(plan.size[a]):
                for q in range(plan.size[b]):
                    total = 0.0
                    for r in range(n):
                        line = panel + r * width
                        total += (
                            matrix[line + plan.column[i] + p]
                            * matrix[line + plan.column[k] + q]
                        )
                    matrix[to + p * stride + q] -= total


@inner
def _update_core(
    matrix: Floats,
    core: int,
    n_core: int,
    core_row: Ints,
    row: Floats,
    n_columns: int,
    n: int,
    panel: int,
    width: int,
) -> None:
    """Subtract the panel's outer product from the lower triangle of the core."""
    for i in range(n_columns):
        for k in range(i + 1):
            row[k] = 0.0
        for r in range(n):
            line = panel + r * width
            factor = matrix[line + i]
            for k in range(i + 1):
                row[k] += factor * matrix[line + k]
        to = core + core_row[i] * n_core
        for k in range(i + 1):
            matrix[to + core_row[k]] -= row[k]


@inner
def solve_factorised(plan: Plan, matrix: Floats, tiles: Floats, x: Floats) -> None:
    """Solve in place; ``tiles`` hold the factor of the core."""
    core = np.zeros(plan.n_core)
    for b in range(len(plan.size)):
        if plan.core_at[b] >= 0:
            for i in range(plan.size[b]):
                core[plan.core_at[b] + i] = x[plan.first[b] + i]
    for v in range(len(plan.order)):
        _forward(plan, matrix, v, x, core)
    solve_core(tiles, plan.n_core, core)
    for b in range(len(plan.size)):
        if plan.core_at[b] >= 0:
            for i in range(plan.size[b]):
                x[plan.first[b] + i] = core[plan.core_at[b] + i]
    for v in range(len(plan.order) - 1, -1, -1):
        _backward(plan, matrix, v, x)


@inner
def _forward(plan: Plan, matrix: Floats, v: int, x: Floats, core: Floats) -> None:
    block = plan.order[v]
    n, width, first = plan.size[block], plan.width[block], plan.first[block]
    for k in range(n):
        at = plan.pivot[block] + k * n
        value = x[first + k]
        for i in range(k):
            value -= matrix[at + i] * x[first + i]
        value *= matrix[at + k]
        x[first + k] = value
        line = plan.panel[block] + k * width
        for j in range(plan.start[v], plan.start[v + 1]):
            b, column = plan.neighbour[j], line + plan.column[j]
            if plan.core_at[b] >= 0:
                for i in range(plan.size[b]):
                    core[plan.core_at[b] + i] -= matrix[column + i] * value
            else:
                for i in range(plan.size[b]):
                    x[plan.first[b] + i] -= matrix[column + i] * value


@inner
def _backward(plan: Plan, matrix: Floats, v: int, x: Floats) -> None:
    block = plan.order[v]
    n, width, first = plan.size[block], plan.width[block], plan.first[block]
    for k in range(n - 1, -1, -1):
        line = plan.panel[block] + k * width
        value = x[first + k]
        for j in range(plan.start[v], plan.start[v + 1]):
            b, column = plan.neighbour[j], line + plan.column[j]
            for i in range(plan.size[b]):
                value -= matrix[column + i] * x[plan.first[b] + i]
        for i in range(k + 1, n):
            value -= matrix[plan.pivot[block] + i * n + k] * x[first + i]
        x[first + k] = value * matrix[plan.pivot[block] + k * n + k]
