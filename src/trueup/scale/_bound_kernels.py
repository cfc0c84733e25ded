"""Compiled loops that certify: each item's z with everything fixed (METHOD 6).

The same numbers as ``solve.sampling.per_item_bounds``, which a test compares. Each z is
rounded down and each square up to a whole number of 2**-30 before it is added: the
result does not depend on the order of items, and rounding never flatters the map.
"""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats, Ints
from trueup.maps._row_kernels import (
    BLOCK,
    BRIER,
    LOG,
    _column_sums,
    _divide_columns,
    _onto_simplex,
    _tilt_all,
    find_cells,
    rank_rows,
)
from trueup.maps._small_kernels import Places
from trueup.scale._count_kernels import folds_of, load_side
from trueup.solve._jit import entry, inner

_UNITS = float(1 << 30)
CONFIDENCE = 2
ANSWER, CAPPED, VECTOR, BINARY = 0, 1, 2, 3
"""What the reference is trusted for: see ``Moments`` in ``scale.certify``."""


@inner
def _deploy(
    loss: int,
    n: int,
    rows: Floats,
    ranked: bool,
    ranks: Ints,
    cell: Places,
    slopes: Floats,
    points: Floats,
    ordered: Floats,
    partial: Floats,
    total: Floats,
) -> None:
    """What replaces each report under the half that was not fitted on it."""
    if loss == CONFIDENCE:
        for i in range(n):
            moved = rows[0, i] + slopes[0, cell[i]]
            points[0, i] = min(max(moved, 0.0), 1.0)
        return
    _tilt_all(rows, n, loss, ranked, ranks, cell, slopes, points)
    if loss == BRIER:
        _onto_simplex(points, n, ordered, partial, total)
    else:
        _column_sums(points, n, partial, total)
    _divide_columns(points, n, total)


@inner
def _gains(
    loss: int,
    n: int,
    rows: Floats,
    points: Floats,
    answer: Ints,
    base: Floats,
    gain: Floats,
) -> None:
    """(K, n) loss of the old report minus loss of the new one, for every outcome."""
    if loss == LOG:
        for k in range(len(rows)):
            for i in range(n):
                gain[k, i] = np.log(points[k, i] / rows[k, i])
        return
    for i in range(n):
        base[i] = 0.0
    for k in range(len(rows)):
        for i in range(n):
            base[i] += rows[k, i] ** 2 - points[k, i] ** 2
    if loss == BRIER:
        for k in range(len(rows)):
            for i in range(n):
                gain[k, i] = base[i] - 2 * (rows[k, i] - points[k, i])
    else:
        _confidence_gains(n, rows[0], points[0], answer, base, gain)


@inner
def _confidence_gains(
    n: int, old: Floats, new: Floats, answer: Ints, base: Floats, gain: Floats
) -> None:
    for k in range(len(gain)):
        for i in range(n):
            gain[k, i] = base[i]
    for i in range(n):
        gain[answer[i], i] -= 2 * (old[i] - new[i])


@inner
def _pull_back(
    ranked: bool, n: int, ranks: Ints, cell: Places, pulls: Floats, gain: Floats
) -> None:
    """Take the pull of what is asserted from the gains."""
    for k in range(len(gain)):
        for i in range(n):
            place = ranks[k, i] if ranked else k
            gain[k, i] -= pulls[place, cell[i]]


@inner
def _bound(
    i: int,
    mode: int,
    others: Floats,
    said: int,
    level: float,
    given: Floats,
    row: int,
    gain: Floats,
) -> float:
    """Sum of multiplier times t, plus the worst outcome of gain minus pull."""
    n_outcomes = len(gain)
    base = 0.0
    if mode == VECTOR:
        for k in range(n_outcomes):
            base += given[row, k] * others[k, i]
            gain[k, i] -= given[row, k]
    elif mode == BINARY:
        base = given[row, 0] * others[1, i]
        gain[1, i] -= given[row, 0]
    else:
        base = given[row, 0] * level
        gain[said, i] -= given[row, 0]
        if mode == CAPPED and level >= 1 / n_outcomes - 1e-12:
            for k in range(n_outcomes):
                if k != said:
                    base += given[row, 1 + k] * level
                    gain[k, i] -= given[row, 1 + k]
    worst = gain[0, i]
    for k in range(1, n_outcomes):
        worst = min(worst, gain[k, i])
    return base + worst


@inner
def _add_up(
    first: int,
    n: int,
    fold: Ints,
    groups: Ints,
    others: Floats,
    said: Ints,
    level: Floats,
    gain: Floats,
    trusted: tuple[Floats, Ints, Floats],
    mode: int,
    n_parts: Ints,
    asserted_rows: Floats,
    bins: Places,
    totals: Ints,
) -> None:
    """Add n, z and z squared of a block whose gains are known."""
    edges, table, multipliers = trusted
    n_rows = multipliers.shape[1]
    flat = multipliers.reshape((-1, multipliers.shape[2]))
    find_cells(edges, fold, level, n, bins)
    for i in range(n):
        f, level_i = fold[i], level[i]
        part = groups[first + i] if len(groups) else 0
        if n_parts[1] and part >= 0:
            part += said[i] * n_parts[0]
        b = int(bins[i]) - f * edges.shape[1]
        # The last column is the cell of parts never seen; the last row of
        # multipliers belongs to no cell and claims nothing.
        row = f * n_rows + table[f, b, part if part >= 0 else -1]
        z = _bound(i, mode, others, said[i], level_i, flat, row, gain)
        for a in range(asserted_rows.shape[1]):
            if asserted_rows[f, a, 0] <= level_i < asserted_rows[f, a, 1]:
                z += asserted_rows[f, a, 2] * level_i
        totals[f, 0] += 1
        totals[f, 1] += int(np.floor(z * _UNITS))
        totals[f, 2] += int(np.ceil(z * z * _UNITS))


@entry
def certify_rows(
    primary: Floats,
    primary_answers: Ints,
    reference: Floats,
    reference_answers: Ints,
    numbers: Ints,
    groups: Ints,
    floor: float,
    loss: int,
    ranked: bool,
    tilt: tuple[Floats, Floats],
    asserted: Floats,
    asserted_rows: Floats,
    trusted: tuple[Floats, Ints, Floats],
    mode: int,
    n_parts: Ints,
    totals: Ints,
) -> int:
    """Add n, z and z squared of a batch to (2, 3) totals; the first bad block, or -1.

    ``n_parts`` holds the number of groups and whether cells tell answers apart.
    """
    n_first, n_outcomes = primary.shape[1], len(asserted)
    edges, slopes = tilt
    shape = (n_first, BLOCK)
    rows, points, ordered = np.empty(shape), np.empty(shape), np.empty(shape)
    gain, others = np.empty((n_outcomes, BLOCK)), np.empty((reference.shape[1], BLOCK))
    ranks = np.zeros((n_outcomes, BLOCK), dtype=np.int64)
    partial, total = np.empty((8, BLOCK)), np.empty(BLOCK)
    score, level = np.empty(BLOCK), np.empty(BLOCK)
    answer, said = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    cell, fold = np.empty(BLOCK, dtype=np.uint64), np.empty(BLOCK, dtype=np.int64)
    for first in range(0, len(numbers), BLOCK):
        n = min(BLOCK, len(numbers) - first)
        if not load_side(
            primary, primary_answers, first, n, rows, partial, total, answer, score
        ) or not load_side(
            reference, reference_answers, first, n, others, partial, total, said, level
        ):
            return first
        if floor > 0:
            _raise_floor(floor, n, rows, score)
        folds_of(numbers, first, n, fold)
        if ranked:
            _rank(rows, n, answer, ranks)
        cell_answer = np.zeros_like(answer) if ranked else answer
        find_cells(edges, cell_answer, score, n, cell)
        for i in range(n):  # both halves' slopes stand side by side
            cell[i] += np.uint64(fold[i] * edges.size)
        _deploy(
            loss, n, rows, ranked and n_first > 1, ranks, cell, slopes,
            points, ordered, partial, total,
        )  # fmt: skip
        _gains(loss, n, rows, points, answer, total, gain)
        if asserted_rows.shape[1]:
            _pull_back(ranked, n, ranks, cell, asserted, gain)
        _add_up(
            first, n, fold, groups, others, said, level, gain,
            trusted, mode, n_parts, asserted_rows, cell, totals,
        )  # fmt: skip
    return -1


@inner
def _raise_floor(floor: float, n: int, rows: Floats, score: Floats) -> None:
    rest = 1 - len(rows) * floor
    for i in range(n):
        score[i] = rest * score[i] + floor
        for k in range(len(rows)):
            rows[k, i] = rest * rows[k, i] + floor


@inner
def _rank(rows: Floats, n: int, answer: Ints, ranks: Ints) -> None:
    """Places of all outcomes; an answer alone changes places with the first."""
    if len(rows) > 1:
        rank_rows(rows, n, ranks)
        return
    for k in range(len(ranks)):
        for i in range(n):
            ranks[k, i] = k
    for i in range(n):
        ranks[0, i] = answer[i]
        ranks[answer[i], i] = 0
