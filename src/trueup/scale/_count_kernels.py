"""Compiled loops that count and certify items as they stream by.

Module-level functions with scalar and array arguments only, so that numba finds them
in its cache again. Totals are whole numbers: no order of adding changes them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trueup._validate import Floats, Ints
from trueup.core.folds import FIRST, PRIME, SECOND
from trueup.core.grid import LEVELS
from trueup.maps._row_kernels import (
    BLOCK,
    _load,
    _put_in_order,
    _tops,
)

_UNITS = float(1 << 30)


@njit(cache=True, nogil=True)
def load_side(
    rows: Floats,
    answers: Ints,
    first: int,
    n: int,
    block: Floats,
    partial: Floats,
    total: Floats,
    answer: Ints,
    score: Floats,
) -> bool:
    """A block of one predictor's reports: entries, answers and confidences."""
    if len(answers) == 0:
        good = _load(rows, first, n, block, partial, total)
        if good:
            _tops(block, n, answer, score)
        return good
    good = True
    for i in range(n):
        value = rows[first + i, 0]
        good &= (value >= 0.0) & (value <= 1.0) & (answers[first + i] >= 0)
        block[0, i] = value
        score[i] = value
        answer[i] = answers[first + i]
    return good


@njit(cache=True, nogil=True)
def fold_of_number(number: int) -> int:
    """The same as ``fold_of(mixed(number))``."""
    once = ((number % PRIME) * FIRST + 11) % PRIME
    return ((once * once % PRIME) * SECOND + 7) % PRIME % 2


@njit(cache=True, nogil=True)
def _place(score: float, starts: Floats, steps: Floats, firsts: Ints) -> int:
    at = LEVELS - 1
    while score < starts[at]:
        at -= 1
    return firsts[at] + int(np.floor((score - starts[at]) * steps[at]))


@njit(cache=True, nogil=True)
def reach(edges: Floats, reached: Ints, score: float) -> int:
    """How many edges lie at or below the score; edges end in infinity."""
    n_steps = len(reached)
    c = reached[min(int(score * n_steps), n_steps - 1)]
    while edges[c] <= score:
        c += 1
    return c


@njit(cache=True, nogil=True)
def count_scores(
    primary: Floats,
    primary_answers: Ints,
    reference: Floats,
    reference_answers: Ints,
    numbers: Ints,
    starts: Floats,
    steps: Floats,
    firsts: Ints,
    primary_counts: Ints,
    reference_counts: Ints,
) -> int:
    """Add a batch to both sketches; returns the first bad block, or -1."""
    n_rows = len(numbers)
    width = max(primary.shape[1], reference.shape[1])
    block, partial = np.empty((width, BLOCK)), np.empty((8, BLOCK))
    total, score = np.empty(BLOCK), np.empty(BLOCK)
    answer, fold = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        for i in range(n):
            fold[i] = fold_of_number(numbers[first + i])
        rows = block[: primary.shape[1]]
        if not load_side(
            primary, primary_answers, first, n, rows, partial, total, answer, score
        ):
            return first
        for i in range(n):
            place = _place(score[i], starts, steps, firsts)
            primary_counts[fold[i], answer[i], place] += 1
        rows = block[: reference.shape[1]]
        if not load_side(
            reference, reference_answers, first, n, rows, partial, total, answer, score
        ):
            return first
        for i in range(n):
            reference_counts[fold[i], _place(score[i], starts, steps, firsts)] += 1
    return -1


@njit(cache=True, nogil=True)
def place_of(rows: Floats, i: int, answer: int, said: int) -> int:
    """Place of the reference's answer in the primary's own order of outcomes."""
    if len(rows) == 1:  # an answer comes first, and what stood there takes its place
        if said == answer:
            return 0
        return answer if said == 0 else said
    place, value = 0, rows[said, i]
    for k in range(len(rows)):
        place += (rows[k, i] > value) | ((rows[k, i] == value) & (k < said))
    return place


@njit(cache=True, nogil=True)
def _sort_columns(rows: Floats, n: int) -> None:
    for last in range(len(rows) - 1, 0, -1):
        for k in range(last):
            _put_in_order(rows[k], rows[k + 1], n)


@njit(cache=True, nogil=True)
def count_cells(
    primary: Floats,
    primary_answers: Ints,
    reference: Floats,
    reference_answers: Ints,
    numbers: Ints,
    groups: Ints,
    bins: tuple[Floats, Ints],
    micros: tuple[Floats, Ints],
    ranked: bool,
    n_items: Ints,
    reference_sums: Ints,
    primary_sums: Ints,
) -> int:
    """Add a batch to the tables; returns the first bad block, or -1."""
    n_rows = len(numbers)
    rows, others = (
        np.empty((primary.shape[1], BLOCK)),
        np.empty((reference.shape[1], BLOCK)),
    )
    partial, total = np.empty((8, BLOCK)), np.empty(BLOCK)
    score, level = np.empty(BLOCK), np.empty(BLOCK)
    answer, said = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
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
        if ranked:
            for i in range(n):
                answer[i] = place_of(rows, i, answer[i], said[i])
            _sort_columns(rows, n)
        for i in range(n):
            f = fold_of_number(numbers[first + i])
            g = groups[first + i] if len(groups) else 0
            b = reach(bins[0][f], bins[1][f], level[i])
            micro = reach(micros[0][f], micros[1][f], score[i])
            n_items[f, g, b, said[i], answer[i], micro] += 1
            for k in range(len(others)):
                units = int(np.floor(others[k, i] * _UNITS))
                reference_sums[f, g, b, said[i], k] += units
            for k in range(len(rows)):
                units = int(np.floor(rows[k, i] * _UNITS))
                primary_sums[f, answer[i], micro, k] += units
    return -1
