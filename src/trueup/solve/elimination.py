"""In which order the blocks of an interior-point system are eliminated, and where."""

from __future__ import annotations

import numpy as np

from trueup._validate import Ints
from trueup.solve._elimination import Plan, eliminate, place_targets


def plan_elimination(size: Ints, pairs: tuple[Ints, Ints], most: int) -> Plan | None:
    """Plan for blocks that meet in the given pairs; None if the core would be large."""
    n = len(size)
    adjacent = np.zeros((n, n), dtype=np.bool_)
    adjacent[pairs] = adjacent[pairs[::-1]] = True
    order, start, listed, n_core = eliminate(size, adjacent, most)
    if n_core < 0:
        return None
    plan = _laid_out(size, order, start, listed, int(n_core))
    starts, target = place_targets(plan)
    return plan._replace(target_start=starts, target=target)


def _laid_out(size: Ints, order: Ints, start: Ints, listed: Ints, n_core: int) -> Plan:
    """Where diagonal blocks, panels and the core stand in one flat array."""
    n, rank = len(size), _rank(len(size), order)
    owner = np.repeat(np.arange(len(order)), np.diff(start))
    neighbour = listed[np.lexsort((listed, rank[listed], owner))]
    before = np.append(0, np.cumsum(size[neighbour]))
    width = np.zeros(n, dtype=np.int64)
    width[order] = before[start[1:]] - before[start[:-1]]
    in_core = rank == n
    core_at = np.where(in_core, np.cumsum(size * in_core) - size * in_core, -1)
    room = size[order] * (size[order] + width[order])
    address = np.append(0, np.cumsum(room))
    core, pivot, panel = int(address[-1]), np.zeros_like(size), np.full(n, -1)
    pivot[order] = address[:-1]
    panel[order] = address[:-1] + size[order] ** 2
    pivot[in_core] = core + core_at[in_core] * (n_core + 1)
    width[in_core] = n_core
    none = np.zeros(0, dtype=np.int64)
    return Plan(
        size=size,
        first=np.cumsum(size) - size,
        order=order,
        start=start,
        neighbour=neighbour,
        column=before[:-1] - before[start[:-1]][owner],
        width=width,
        pivot=pivot,
        panel=panel,
        target_start=none,
        target=none,
        core_at=core_at,
        core=core,
        n_core=n_core,
        n_entries=core + n_core**2,
    )


def _rank(n: int, order: Ints) -> Ints:
    """(blocks,) place in the order of elimination; the number of blocks in the core."""
    rank = np.full(n, n)
    rank[order] = np.arange(len(order))
    return rank


def stride_of(plan: Plan) -> Ints:
    """(blocks,) step from one row of a diagonal block to the next."""
    return np.where(plan.core_at >= 0, plan.n_core, plan.size)


def meeting(plan: Plan, a: Ints, b: Ints) -> tuple[Ints, Ints, Ints]:
    """Address where two blocks meet, and its strides along the first and the second."""
    n = len(plan.size)
    rank = _rank(n, plan.order)
    earlier = rank[a] <= rank[b]
    first, second = np.where(earlier, a, b), np.where(earlier, b, a)
    outside = rank[first] < n
    # Pairs in the core are not listed; the last key catches those after all others.
    listed = np.repeat(plan.order, np.diff(plan.start)) * n + plan.neighbour
    keys, column = np.append(listed, n * n), np.append(plan.column, 0)
    by_key = np.argsort(keys)
    place = by_key[np.searchsorted(keys, first * n + second, sorter=by_key)]
    in_panel = plan.panel[first] + column[place]
    at_a, at_b = plan.core_at[a], plan.core_at[b]
    high, low = np.maximum(at_a, at_b), np.minimum(at_a, at_b)
    in_core = plan.core + high * plan.n_core + low
    address = np.where(outside, in_panel, in_core)
    a_is_row = np.where(outside, first == a, at_a >= at_b)
    across = np.where(outside, plan.width[first], plan.n_core)
    return address, np.where(a_is_row, across, 1), np.where(a_is_row, 1, across)
