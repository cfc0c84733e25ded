"""Compiled: Newton systems of a proximal step, reduced to the multipliers.

The curvature couples slopes of one primary cell with each other, multipliers of one
reference cell with each other, and the two kinds through the rows in play. Solving for
the slopes cell by cell leaves a system in the multipliers, on which conjugate gradients
need half as many products, each as cheap as before.
"""

from __future__ import annotations

from typing import NamedTuple

from trueup._validate import Floats, Ints
from trueup.solve._curvature import Active
from trueup.solve._elimination import factorise_block
from trueup.solve._jit import inner
from trueup.solve._newton import Point
from trueup.solve._prox import Atoms, Tilted

_MOST_PRODUCTS = 500


class Blocks(NamedTuple):
    """Slopes by primary cell, multipliers by reference cell, and room for both."""

    usable: bool
    """Whether every row has moments of one reference cell only."""
    slot_cell: Ints
    moment_cell: Ints
    slot_first: Ints
    """(primary cells,) first slope, number of them, and address of their block."""
    slot_size: Ints
    slot_at: Ints
    moment_first: Ints
    moment_size: Ints
    moment_at: Ints
    slot_matrix: Floats
    """Curvature between slopes of a cell, factorised."""
    moment_matrix: Floats
    moment_factor: Floats
    vectors: Floats
    """(5, larger of slopes and multipliers)."""


@inner
def solve_reduced(
    active: Active,
    n_rows: int,
    atoms: Atoms,
    tilted: Tilted,
    at: Point,
    sigma: float,
    blocks: Blocks,
    damping: Floats,
    gradient: Floats,
    step: Floats,
    tolerance: float,
) -> None:
    """Solve the Newton system roughly: step = curvature^-1 gradient."""
    n_slots = len(blocks.slot_cell)
    _assemble(active, n_rows, atoms, tilted, at, sigma, blocks, damping)
    slopes, residual = blocks.vectors[0], blocks.vectors[1]
    for i in range(n_slots):
        slopes[i] = gradient[i]
    _solve_slots(blocks, slopes)
    for m in range(len(blocks.moment_cell)):
        residual[m] = 0.0
    _to_moments(active, n_rows, sigma, slopes, residual)
    for m in range(len(blocks.moment_cell)):
        residual[m] = gradient[n_slots + m] - residual[m]
    _conjugate_gradients(active, n_rows, at, sigma, blocks, step[n_slots:], tolerance)
    for i in range(n_slots):
        step[i] = 0.0
    _to_slots(active, n_rows, sigma, step[n_slots:], step)
    for i in range(n_slots):
        step[i] = gradient[i] - step[i]
    _solve_slots(blocks, step)


@inner
def _conjugate_gradients(
    active: Active,
    n_rows: int,
    at: Point,
    sigma: float,
    blocks: Blocks,
    step: Floats,
    tolerance: float,
) -> None:
    """Step of the multipliers, for the residual that the blocks hold."""
    n = len(blocks.moment_cell)
    residual, direction = blocks.vectors[1], blocks.vectors[2]
    image, better = blocks.vectors[3], blocks.vectors[4]
    size = _precondition(blocks, residual, better, n)
    for m in range(n):
        step[m] = 0.0
        direction[m] = better[m]
    wanted = tolerance**2 * size
    for _ in range(_MOST_PRODUCTS):
        if size <= wanted:
            return
        _product(active, n_rows, at, sigma, blocks, direction, image)
        along = 0.0
        for m in range(n):
            along += direction[m] * image[m]
        if along <= 0:  # rounding: what is left has no curvature
            return
        length, before = size / along, size
        for m in range(n):
            step[m] += length * direction[m]
            residual[m] -= length * image[m]
        size = _precondition(blocks, residual, better, n)
        for m in range(n):
            direction[m] = better[m] + size / before * direction[m]


@inner
def _solve_slots(blocks: Blocks, x: Floats) -> None:
    """Solve for the slopes cell by cell."""
    _solve_blocks(
        blocks.slot_matrix, blocks.slot_first, blocks.slot_size, blocks.slot_at, x
    )


@inner
def _precondition(blocks: Blocks, residual: Floats, better: Floats, n: int) -> float:
    """Residual divided by the curvature of each reference cell; their product."""
    for m in range(n):
        better[m] = residual[m]
    _solve_blocks(
        blocks.moment_factor,
        blocks.moment_first,
        blocks.moment_size,
        blocks.moment_at,
        better,
    )
    size = 0.0
    for m in range(n):
        size += residual[m] * better[m]
    return size


@inner
def _product(
    active: Active,
    n_rows: int,
    at: Point,
    sigma: float,
    blocks: Blocks,
    x: Floats,
    out: Floats,
) -> None:
    """Curvature of the multipliers once the slopes follow them."""
    slopes = blocks.vectors[0]
    for i in range(len(blocks.slot_cell)):
        slopes[i] = 0.0
    _to_slots(active, n_rows, sigma, x, slopes)
    _solve_slots(blocks, slopes)
    for m in range(len(blocks.moment_cell)):
        out[m] = 0.0
    _to_moments(active, n_rows, sigma, slopes, out)
    paid, total = 0.0, 0.0
    for m in range(len(blocks.moment_cell)):
        c = blocks.moment_cell[m]
        n, first = blocks.moment_size[c], blocks.moment_first[c]
        line = blocks.moment_at[c] + (m - first) * n
        value = -out[m]
        for o in range(n):
            value += blocks.moment_matrix[line + o] * x[first + o]
        out[m] = value
        if at.charged[m] != 0:
            paid += at.charged[m] * at.curvature[m] * x[m]
            total += at.curvature[m]
    if total > 0:
        for m in range(len(blocks.moment_cell)):
            out[m] -= at.charged[m] * at.curvature[m] * paid / total


@inner
def _to_slots(
    active: Active, n_rows: int, sigma: float, x: Floats, out: Floats
) -> None:
    """Add what multipliers do to the slopes' gradient."""
    start, slot, entry = active.start, active.slot, active.entry
    moment, coefficient, weight = active.moment, active.coefficient, active.weight
    for r in range(n_rows):
        first, last = start[r], start[r + 1]
        mean = 0.0
        for e in range(entry[first], entry[last]):
            mean -= coefficient[e] * x[moment[e]]
        mean /= last - first
        pace = sigma * weight[r]
        for f in range(first, last):
            moved = -mean
            for e in range(entry[f], entry[f + 1]):
                moved -= coefficient[e] * x[moment[e]]
            out[slot[f]] += pace * moved


@inner
def _to_moments(
    active: Active, n_rows: int, sigma: float, x: Floats, out: Floats
) -> None:
    """Add what slopes do to the multipliers' gradient."""
    start, slot, entry = active.start, active.slot, active.entry
    moment, coefficient, weight = active.moment, active.coefficient, active.weight
    for r in range(n_rows):
        first, last = start[r], start[r + 1]
        mean = 0.0
        for f in range(first, last):
            mean += x[slot[f]]
        mean /= last - first
        pace = sigma * weight[r]
        for f in range(first, last):
            moved = pace * (x[slot[f]] - mean)
            for e in range(entry[f], entry[f + 1]):
                out[moment[e]] -= coefficient[e] * moved


@inner
def _solve_blocks(
    matrix: Floats, first: Ints, size: Ints, address: Ints, x: Floats
) -> None:
    """Solve with factors of diagonal blocks, whose diagonals hold inverses."""
    for j in range(len(first)):
        n, at, x0 = size[j], address[j], first[j]
        for k in range(n):
            value = x[x0 + k]
            for i in range(k):
                value -= matrix[at + k * n + i] * x[x0 + i]
            x[x0 + k] = value * matrix[at + k * n + k]
        for k in range(n - 1, -1, -1):
            value = x[x0 + k]
            for i in range(k + 1, n):
                value -= matrix[at + i * n + k] * x[x0 + i]
            x[x0 + k] = value * matrix[at + k * n + k]


@inner
def _assemble(
    active: Active,
    n_rows: int,
    atoms: Atoms,
    tilted: Tilted,
    at: Point,
    sigma: float,
    blocks: Blocks,
    damping: Floats,
) -> None:
    """Curvature within cells of either kind, factorised."""
    blocks.slot_matrix[:] = 0.0
    blocks.moment_matrix[:] = 0.0
    n_slots = len(blocks.slot_cell)
    for i in range(n_slots):
        j = blocks.slot_cell[i]
        own = i - blocks.slot_first[j]
        blocks.slot_matrix[blocks.slot_at[j] + own * (blocks.slot_size[j] + 1)] = (
            damping[i]
        )
    for m in range(len(blocks.moment_cell)):
        c = blocks.moment_cell[m]
        own = m - blocks.moment_first[c]
        blocks.moment_matrix[
            blocks.moment_at[c] + own * (blocks.moment_size[c] + 1)
        ] = damping[n_slots + m] + at.curvature[m]
    _add_rows(active, n_rows, sigma, blocks)
    _add_atoms(atoms, tilted, blocks)
    blocks.moment_factor[:] = blocks.moment_matrix
    for j in range(len(blocks.slot_first)):
        factorise_block(
            blocks.slot_matrix, blocks.slot_at[j], blocks.slot_size[j], 0, 0
        )
    for c in range(len(blocks.moment_first)):
        factorise_block(
            blocks.moment_factor, blocks.moment_at[c], blocks.moment_size[c], 0, 0
        )


@inner
def _add_rows(active: Active, n_rows: int, sigma: float, blocks: Blocks) -> None:
    start, slot, entry = active.start, active.slot, active.entry
    moment, coefficient = active.moment, active.coefficient
    for r in range(n_rows):
        first, last = start[r], start[r + 1]
        j = blocks.slot_cell[slot[first]]
        n_slots, slot_at = blocks.slot_size[j], blocks.slot_at[j]
        first_slot = blocks.slot_first[j]
        pace = sigma * active.weight[r]
        off = -pace / (last - first)
        for f in range(first, last):
            line = slot_at + (slot[f] - first_slot) * n_slots - first_slot
            for g in range(first, last):
                blocks.slot_matrix[line + slot[g]] += off + (pace if f == g else 0.0)
        if entry[first] == entry[last]:
            continue
        c = blocks.moment_cell[moment[entry[first]]]
        n, moment_at = blocks.moment_size[c], blocks.moment_at[c]
        first_moment = blocks.moment_first[c]
        for f in range(first, last):
            for e in range(entry[f], entry[f + 1]):
                line = moment_at + (moment[e] - first_moment) * n - first_moment
                for g in range(first, last):
                    value = coefficient[e] * (off + (pace if f == g else 0.0))
                    for d in range(entry[g], entry[g + 1]):
                        blocks.moment_matrix[line + moment[d]] += value * coefficient[d]


@inner
def _add_atoms(atoms: Atoms, tilted: Tilted, blocks: Blocks) -> None:
    n_atoms, n = atoms.base.shape
    for i in range(n_atoms):
        j = atoms.cell[i]
        size, first = blocks.slot_size[j], blocks.slot_first[j]
        for y in range(n):
            s = atoms.slot[j, y]
            if s < 0:
                continue
            line = blocks.slot_at[j] + (s - first) * size - first
            blocks.slot_matrix[line + s] += atoms.weight[i] * tilted.d[i, y]
            along_a = atoms.weight[i] * tilted.a_weight[i] * tilted.a[i, y]
            along_b = atoms.weight[i] * tilted.b_weight[i] * tilted.b[i, y]
            if along_a == 0.0 and along_b == 0.0:
                continue
            for k in range(n):
                o = atoms.slot[j, k]
                if o >= 0:
                    blocks.slot_matrix[line + o] += (
                        along_a * tilted.a[i, k] + along_b * tilted.b[i, k]
                    )
