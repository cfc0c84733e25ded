"""Compiled loops over rows of reports: what applying a map costs.

Module-level functions with scalar and array arguments only, so that numba finds them
in its cache again. Rows are taken in blocks and turned round, outcome by outcome, so
that the inner loops run over items and the compiler can use vector instructions. Every
sum is added in the order in which numpy adds a row: a compiled map gives the same bits
as the formula in ``core`` (a test compares them).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trueup._validate import EXACT_SUM, ROW_SUM_TOLERANCE, Floats, Ints

BRIER, LOG = 0, 1
BLOCK = 256


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _divide_columns(columns: Floats, n: int, total: Floats) -> None:
    for k in range(len(columns)):
        for i in range(n):
            columns[k, i] /= total[i]


@njit(cache=True, nogil=True)
def _load(
    source: Floats, first: int, n: int, rows: Floats, partial: Floats, total: Floats
) -> bool:
    """Turn a block of reports round, divided by their sums; False if one is bad."""
    good = True
    for k in range(len(rows)):
        for i in range(n):
            value = source[first + i, k]
            good &= (value >= 0.0) & (value <= 1.0)
            rows[k, i] = value
    if not good:
        return False
    _column_sums(rows, n, partial, total)
    exact = True
    for i in range(n):
        deviation = abs(total[i] - 1.0)
        good &= deviation <= ROW_SUM_TOLERANCE
        exact &= deviation <= EXACT_SUM
        total[i] = total[i] if deviation > EXACT_SUM else 1.0
    if good and not exact:
        _divide_columns(rows, n, total)
    return good


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _find_cells(
    edges: Floats, answer: Ints, score: Floats, n: int, cell: Ints
) -> None:
    """(answers, most edges) edges, filled up with infinity: how many are reached."""
    width = edges.shape[1]
    for i in range(n):
        own = edges[answer[i]]
        if width <= 16:
            reached = 0
            for e in range(width):
                reached += own[e] <= score[i]
        else:
            reached, high = 0, width
            while reached < high:
                middle = (reached + high) // 2
                if own[middle] <= score[i]:
                    reached = middle + 1
                else:
                    high = middle
        cell[i] = answer[i] * (width + 1) + reached


@njit(cache=True, nogil=True)
def _onto_simplex(
    points: Floats, n: int, ordered: Floats, partial: Floats, total: Floats
) -> None:
    """Euclidean projection of every item, by sorting; points are replaced."""
    n_outcomes = len(points)
    for k in range(n_outcomes):
        for i in range(n):
            ordered[k, i] = points[k, i]
    for last in range(n_outcomes - 1, 0, -1):
        for k in range(last):
            for i in range(n):
                a, b = ordered[k, i], ordered[k + 1, i]
                ordered[k, i] = a if a > b else b
                ordered[k + 1, i] = b if a > b else a
    threshold, reached = total, partial[0]
    for i in range(n):
        reached[i] = 0.0
    for k in range(n_outcomes):
        for i in range(n):
            reached[i] += ordered[k, i]
            trial = (reached[i] - 1) / (k + 1)
            threshold[i] = trial if ordered[k, i] > trial else threshold[i]
    for k in range(n_outcomes):
        for i in range(n):
            moved = points[k, i] - threshold[i]
            points[k, i] = moved if moved > 0.0 else 0.0


@njit(cache=True, nogil=True)
def tilt_rows(
    source: Floats,
    floor: float,
    loss: int,
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
    edges
        (answers, most edges) edges of all tilts together, infinity where there are
        fewer.
    slopes
        (tilts, answers * (most edges + 1), K).
    """
    n_rows, n_outcomes = source.shape
    shape = (n_outcomes, BLOCK)
    rows, points, ordered, mean = (
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
    )
    partial, total, score = np.empty((8, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    answer, cell = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    rest = 1 - n_outcomes * floor
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        if not _load(source, first, n, rows, partial, total):
            return first
        if floor > 0:
            for k in range(n_outcomes):
                for i in range(n):
                    rows[k, i] = rest * rows[k, i] + floor
        _tops(rows, n, answer, score)
        _find_cells(edges, answer, score, n, cell)
        for t in range(len(slopes)):
            for k in range(n_outcomes):
                for i in range(n):
                    slope = slopes[t, cell[i], k]
                    old = rows[k, i]
                    points[k, i] = old + slope if loss == BRIER else old * slope
            if loss == BRIER:
                _onto_simplex(points, n, ordered, partial, total)
            _column_sums(points, n, partial, total)
            _divide_columns(points, n, total)
            for k in range(n_outcomes):
                for i in range(n):
                    before = mean[k, i] if t > 0 else 0.0
                    mean[k, i] = before + points[k, i]
        for k in range(n_outcomes):
            for i in range(n):
                out[first + i, k] = mean[k, i] / len(slopes)
    return -1
