"""Compiled loops over rows of reports: what applying a map costs.

Module-level functions with scalar and array arguments only, so that numba finds them
in its cache again. Rows are taken in blocks and turned round, outcome by outcome, so
that the inner loops run over items and the compiler can use vector instructions. Every
sum is added in the order in which numpy adds a row: a compiled map gives the same bits
as the formula in ``core`` (a test compares them).
"""

from __future__ import annotations

import numpy as np

from trueup._validate import EXACT_SUM, ROW_SUM_TOLERANCE, Floats, Ints
from trueup.maps._small_kernels import (
    Places,
    add_projected_2,
    add_projected_3,
    add_projected_4,
    load_few,
    project_2,
    project_3,
    project_4,
    store_few,
    tilt_2,
    tilt_3,
    tilt_4,
)
from trueup.solve._jit import entry, inner

BRIER, LOG = 0, 1
BLOCK = 256


@inner
def _column_sums(columns: Floats, n: int, partial: Floats, total: Floats) -> None:
    """Sum over outcomes as numpy adds a row: eight partial sums, then the rest."""
    n_outcomes = len(columns)
    whole = n_outcomes - n_outcomes % 8 if n_outcomes >= 8 else 0
    if whole:
        for k in range(8):
            for i in range(n):
                partial[k, i] = columns[k, i]
        for k in range(8, whole):
            for i in range(n):
                partial[k % 8, i] += columns[k, i]
        for i in range(n):
            left = (partial[0, i] + partial[1, i]) + (partial[2, i] + partial[3, i])
            right = (partial[4, i] + partial[5, i]) + (partial[6, i] + partial[7, i])
            total[i] = left + right
    else:
        for i in range(n):
            total[i] = 0.0
    for k in range(whole, n_outcomes):
        for i in range(n):
            total[i] += columns[k, i]


@inner
def _divide_columns(columns: Floats, n: int, total: Floats) -> None:
    for k in range(len(columns)):
        for i in range(n):
            columns[k, i] /= total[i]


@inner
def _load_many(
    source: Floats, first: int, n: int, rows: Floats, partial: Floats, total: Floats
) -> tuple[bool, bool]:
    good, exact = True, True
    for k in range(len(rows)):
        for i in range(n):
            value = source[first + i, k]
            good &= (value >= 0.0) & (value <= 1.0)
            rows[k, i] = value
    _column_sums(rows, n, partial, total)
    for i in range(n):
        deviation = abs(total[i] - 1.0)
        good &= deviation <= ROW_SUM_TOLERANCE
        exact &= deviation <= EXACT_SUM
    return good, exact


@inner
def _load(
    source: Floats, first: int, n: int, rows: Floats, partial: Floats, total: Floats
) -> bool:
    """Turn a block of reports round, divided by their sums; False if one is bad."""
    if len(rows) == 2:
        good, exact = load_few(source, first, n, (0.0, 0.0), rows)
    elif len(rows) == 3:
        good, exact = load_few(source, first, n, (0.0, 0.0, 0.0), rows)
    elif len(rows) == 4:
        good, exact = load_few(source, first, n, (0.0, 0.0, 0.0, 0.0), rows)
    else:
        good, exact = _load_many(source, first, n, rows, partial, total)
    if good and not exact:
        _column_sums(rows, n, partial, total)
        for i in range(n):
            off = abs(total[i] - 1.0) > EXACT_SUM
            total[i] = total[i] if off else 1.0
        _divide_columns(rows, n, total)
    return good


@inner
def _tops(rows: Floats, n: int, answer: Ints, score: Floats) -> None:
    """Largest entry of each item and its outcome; ties go to the first."""
    for i in range(n):
        score[i] = rows[0, i]
        answer[i] = 0
    for k in range(1, len(rows)):
        for i in range(n):
            higher = rows[k, i] > score[i]
            score[i] = rows[k, i] if higher else score[i]
            answer[i] = k if higher else answer[i]


@inner
def find_cells(edges: Floats, which: Ints, score: Floats, n: int, cell: Places) -> None:
    """Cell of each item: how many edges of its own row of a table it reaches.

    The table's width is a power of two, and infinity ends every row: halving takes the
    same steps for all items, so there is no branch to predict. Cells are numbered row
    by row.
    """
    width = edges.shape[1]
    flat = edges.reshape(-1)
    for i in range(n):
        cell[i] = which[i] * width
    step = width // 2
    while step > 0:
        last, more = np.uint64(step - 1), np.uint64(step)
        for i in range(n):
            at = cell[i]
            cell[i] = at + more if flat[at + last] <= score[i] else at
        step //= 2


@inner
def _put_in_order(larger: Floats, smaller: Floats, n: int) -> None:
    for i in range(n):
        a, b = larger[i], smaller[i]
        larger[i] = a if a > b else b
        smaller[i] = b if a > b else a


@inner
def _extend(
    entry: Floats,
    rank: float,
    n: int,
    reached: Floats,
    excess: Floats,
    active: Floats,
) -> None:
    """Take the next largest entry of each item in, if it stays above zero."""
    for i in range(n):
        reached[i] += entry[i]
        trial = reached[i] - 1.0
        inside = entry[i] * rank > trial
        excess[i] = trial if inside else excess[i]
        active[i] = rank if inside else active[i]


@inner
def _lower(entry: Floats, threshold: Floats, n: int) -> None:
    for i in range(n):
        moved = entry[i] - threshold[i]
        entry[i] = moved if moved > 0.0 else 0.0


@inner
def _copy(entry: Floats, n: int, out: Floats) -> None:
    for i in range(n):
        out[i] = entry[i]


@inner
def _project_many(
    points: Floats, n: int, ordered: Floats, partial: Floats, total: Floats
) -> None:
    n_outcomes = len(points)
    for k in range(n_outcomes):
        _copy(points[k], n, ordered[k])
    for last in range(n_outcomes - 1, 0, -1):
        for k in range(last):
            _put_in_order(ordered[k], ordered[k + 1], n)
    reached, excess, active = partial[0], partial[1], partial[2]
    for i in range(n):
        reached[i] = 0.0
    for k in range(n_outcomes):
        _extend(ordered[k], k + 1.0, n, reached, excess, active)
    for i in range(n):
        total[i] = excess[i] / active[i]
    for k in range(n_outcomes):
        _lower(points[k], total, n)
    _column_sums(points, n, partial, total)


@inner
def _onto_simplex(
    points: Floats, n: int, ordered: Floats, partial: Floats, total: Floats
) -> None:
    """Euclidean projection of every item, by sorting; points are replaced.

    Few outcomes stay in registers from the sorting to the sums, which ``total`` holds.
    """
    if len(points) == 2:
        project_2(points, n, total)
    elif len(points) == 3:
        project_3(points, n, total)
    elif len(points) == 4:
        project_4(points, n, total)
    else:
        _project_many(points, n, ordered, partial, total)


@inner
def _tilt(
    entry: Floats, slope: Floats, cell: Places, n: int, loss: int, out: Floats
) -> None:
    if loss == BRIER:
        for i in range(n):
            out[i] = entry[i] + slope[cell[i]]
    else:
        for i in range(n):
            out[i] = entry[i] * slope[cell[i]]


@inner
def rank_rows(rows: Floats, n: int, ranks: Ints) -> None:
    """(K, n) place of every outcome in its item's own order; ties go to the first."""
    n_outcomes = len(rows)
    for k in range(n_outcomes):
        for i in range(n):
            ranks[k, i] = 0
    for k in range(1, n_outcomes):
        for j in range(k):
            for i in range(n):
                behind = rows[j, i] >= rows[k, i]
                ranks[k, i] += 1 if behind else 0
                ranks[j, i] += 0 if behind else 1


@inner
def _tilt_ranked(
    entry: Floats,
    slopes: Floats,
    rank: Ints,
    cell: Places,
    n: int,
    loss: int,
    out: Floats,
) -> None:
    if loss == BRIER:
        for i in range(n):
            out[i] = entry[i] + slopes[rank[i], cell[i]]
    else:
        for i in range(n):
            out[i] = entry[i] * slopes[rank[i], cell[i]]


@inner
def _tilt_all(
    rows: Floats,
    n: int,
    loss: int,
    ranked: bool,
    ranks: Ints,
    cell: Places,
    slopes: Floats,
    points: Floats,
) -> None:
    """Reports moved by the slopes of their cells, not yet distributions."""
    if loss == BRIER and not ranked and len(rows) == 2:
        tilt_2(rows, slopes, cell, n, points)
    elif loss == BRIER and not ranked and len(rows) == 3:
        tilt_3(rows, slopes, cell, n, points)
    elif loss == BRIER and not ranked and len(rows) == 4:
        tilt_4(rows, slopes, cell, n, points)
    else:
        for k in range(len(rows)):
            if ranked:
                _tilt_ranked(rows[k], slopes, ranks[k], cell, n, loss, points[k])
            else:
                _tilt(rows[k], slopes[k], cell, n, loss, points[k])


@inner
def _add_distributions(
    loss: int,
    n: int,
    points: Floats,
    ordered: Floats,
    partial: Floats,
    total: Floats,
    mean: Floats,
) -> None:
    """Make distributions of moved reports and add them."""
    if loss == BRIER and len(points) == 2:
        add_projected_2(points, n, mean)
    elif loss == BRIER and len(points) == 3:
        add_projected_3(points, n, mean)
    elif loss == BRIER and len(points) == 4:
        add_projected_4(points, n, mean)
    else:
        if loss == BRIER:
            _project_many(points, n, ordered, partial, total)
        else:
            _column_sums(points, n, partial, total)
        for i in range(n):
            total[i] = 1.0 / total[i]
        for k in range(len(points)):
            for i in range(n):
                mean[k, i] += points[k, i] * total[i]


@inner
def _store(mean: Floats, n: int, share: float, first: int, out: Floats) -> None:
    if len(mean) == 2:
        store_few(mean, n, (0.0, 0.0), share, first, out)
    elif len(mean) == 3:
        store_few(mean, n, (0.0, 0.0, 0.0), share, first, out)
    elif len(mean) == 4:
        store_few(mean, n, (0.0, 0.0, 0.0, 0.0), share, first, out)
    else:
        for k in range(len(mean)):
            for i in range(n):
                out[first + i, k] = mean[k, i] * share


@entry
def tilt_rows(
    source: Floats,
    floor: float,
    loss: int,
    ranked: bool,
    edges: Floats,
    slopes: Floats,
    out: Floats,
) -> int:
    """Apply the mean of several tilts to every row; returns the first bad block or -1.

    Parameters
    ----------
    source
        (n, K) reports, any strides.
    floor
        Weight of one in (1 - K floor) r + floor; zero for none.
    loss
        BRIER: ``slopes`` are halved slopes to add. LOG: factors to multiply by.
    ranked
        Whether answers share cells and slopes belong to places in a report's order.
    edges
        (answers, a power of two) edges of all tilts together, filled up with infinity.
    slopes
        (tilts, K, answers * columns of edges).
    """
    n_rows, n_outcomes = source.shape
    shape = (n_outcomes, BLOCK)
    rows, points, ordered = np.empty(shape), np.empty(shape), np.empty(shape)
    mean, ranks = np.empty(shape), np.empty(shape, dtype=np.int64)
    partial, total, score = np.empty((8, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    answer, cell = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.uint64)
    rest, share = 1 - n_outcomes * floor, 1.0 / len(slopes)
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        if not _load(source, first, n, rows, partial, total):
            return first
        if floor > 0:
            for k in range(n_outcomes):
                for i in range(n):
                    rows[k, i] = rest * rows[k, i] + floor
        _tops(rows, n, answer, score)
        if ranked:
            answer[:] = 0
            rank_rows(rows, n, ranks)
        find_cells(edges, answer, score, n, cell)
        mean[:] = 0.0
        for t in range(len(slopes)):
            _tilt_all(rows, n, loss, ranked, ranks, cell, slopes[t], points)
            _add_distributions(loss, n, points, ordered, partial, total, mean)
        _store(mean, n, share, first, out)
    return -1
