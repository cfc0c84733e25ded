"""Compiled loops that certify: each item's z with everything fixed (METHOD 6).

The same numbers as ``solve.sampling.per_item_bounds``, which a test compares. Each z is
rounded down and each square up to a whole number of 2**-30 before it is added: the
result does not depend on the order of items, and rounding never flatters the map.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trueup._validate import Floats, Ints
from trueup.maps._row_kernels import (
    BLOCK,
    BRIER,
    LOG,
    _column_sums,
    _find_cells,
    _onto_simplex,
)
from trueup.scale._count_kernels import fold_of_number, load_side, reach

_UNITS = float(1 << 30)
ANSWER, CAPPED, VECTOR, BINARY = 0, 1, 2, 3
"""What the reference is trusted for: see ``Moments`` in ``scale.certify``."""


@njit(cache=True, nogil=True)
def _deploy(
    loss: int,
    n: int,
    rows: Floats,
    score: Floats,
    cell: Ints,
    fold: Ints,
    slopes: Floats,
    points: Floats,
    ordered: Floats,
    partial: Floats,
    total: Floats,
) -> None:
    """What replaces each report under the half that was not fitted on it."""
    n_outcomes = len(rows)
    if loss != BRIER and loss != LOG:
        for i in range(n):
            moved = score[i] + slopes[fold[i], 0, cell[i]]
            points[0, i] = min(max(moved, 0.0), 1.0)
        return
    for k in range(n_outcomes):
        for i in range(n):
            slope = slopes[fold[i], k, cell[i]]
            points[k, i] = rows[k, i] + slope if loss == BRIER else rows[k, i] * slope
    if loss == BRIER:
        _onto_simplex(points, n, ordered, partial, total)
    _column_sums(points, n, partial, total)
    for k in range(n_outcomes):
        for i in range(n):
            points[k, i] /= total[i]


@njit(cache=True, nogil=True)
def _gains(
    loss: int, n: int, rows: Floats, points: Floats, answer: Ints, gain: Floats
) -> None:
    """(K, n) loss of the old report minus loss of the new one, for every outcome."""
    if loss == BRIER:
        for i in range(n):
            base = 0.0
            for k in range(len(rows)):
                base += rows[k, i] ** 2 - points[k, i] ** 2
            for k in range(len(rows)):
                gain[k, i] = base - 2 * (rows[k, i] - points[k, i])
    elif loss == LOG:
        for k in range(len(rows)):
            for i in range(n):
                gain[k, i] = np.log(points[k, i] / rows[k, i])
    else:
        for i in range(n):
            old, new = rows[0, i], points[0, i]
            for k in range(len(gain)):
                gain[k, i] = old**2 - new**2
            gain[answer[i], i] -= 2 * (old - new)


@njit(cache=True, nogil=True)
def _bound(
    i: int,
    mode: int,
    others: Floats,
    said: int,
    level: float,
    given: Floats,
    gain: Floats,
) -> float:
    """Sum of multiplier times t, plus the worst outcome of gain minus pull."""
    n_outcomes = len(gain)
    base = 0.0
    if mode == VECTOR:
        for k in range(n_outcomes):
            base += given[k] * others[k, i]
            gain[k, i] -= given[k]
    elif mode == BINARY:
        base = given[0] * others[1, i]
        gain[1, i] -= given[0]
    else:
        base = given[0] * level
        gain[said, i] -= given[0]
        if mode == CAPPED and level >= 1 / n_outcomes - 1e-12:
            for k in range(n_outcomes):
                if k != said:
                    base += given[1 + k] * level
                    gain[k, i] -= given[1 + k]
    worst = gain[0, i]
    for k in range(1, n_outcomes):
        worst = min(worst, gain[k, i])
    return base + worst


@njit(cache=True, nogil=True)
def certify_rows(
    primary: Floats,
    primary_answers: Ints,
    reference: Floats,
    reference_answers: Ints,
    numbers: Ints,
    groups: Ints,
    floor: float,
    loss: int,
    edges: Floats,
    reached: Ints,
    slopes: Floats,
    asserted: Floats,
    asserted_targets: Floats,
    bin_edges: Floats,
    bin_reached: Ints,
    table: Ints,
    multipliers: Floats,
    mode: int,
    n_parts: Ints,
    totals: Ints,
) -> int:
    """Add n, z and z squared of a batch to (2, 3) totals; the first bad block, or -1.

    ``n_parts`` holds the number of groups and whether cells tell answers apart.
    """
    n_rows, n_outcomes = len(numbers), asserted.shape[1]
    n_first = primary.shape[1]
    rows, points = np.empty((n_first, BLOCK)), np.empty((n_first, BLOCK))
    ordered, gain = np.empty((n_first, BLOCK)), np.empty((n_outcomes, BLOCK))
    others = np.empty((reference.shape[1], BLOCK))
    partial, total = np.empty((8, BLOCK)), np.empty(BLOCK)
    score, level = np.empty(BLOCK), np.empty(BLOCK)
    answer, said = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    cell, fold = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    rest = 1 - n_first * floor
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        if not load_side(
            primary, primary_answers, first, n, rows, partial, total, answer, score
        ):
            return first
        if not load_side(
            reference, reference_answers, first, n, others, partial, total, said, level
        ):
            return first
        if floor > 0:
            for i in range(n):
                score[i] = rest * score[i] + floor
                for k in range(n_first):
                    rows[k, i] = rest * rows[k, i] + floor
        for i in range(n):
            fold[i] = fold_of_number(numbers[first + i])
        _find_cells(edges, reached, answer, score, n, cell)
        _deploy(
            loss, n, rows, score, cell, fold, slopes, points, ordered, partial, total
        )
        _gains(loss, n, rows, points, answer, gain)
        for i in range(n):
            f = fold[i]
            for k in range(n_outcomes):
                gain[k, i] -= asserted[f, k, cell[i]]
            part = groups[first + i] if len(groups) else 0
            if n_parts[1] and part >= 0:
                part += said[i] * n_parts[0]
            b = reach(bin_edges[f], bin_reached[f], level[i])
            # The last column is the cell of parts never seen; the last row of
            # multipliers belongs to no cell and claims nothing.
            given = multipliers[f, table[f, b, part if part >= 0 else -1]]
            z = _bound(i, mode, others, said[i], level[i], given, gain)
            z += asserted_targets[f] * level[i]
            totals[f, 0] += 1
            totals[f, 1] += int(np.floor(z * _UNITS))
            totals[f, 2] += int(np.ceil(z * z * _UNITS))
    return -1
