"""Compiled loops that count and certify items as they stream by.

Module-level functions with scalar and array arguments only, so that numba finds them
in its cache again. Totals are whole numbers: no order of adding changes them.
"""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.folds import FIRST, PRIME, SECOND
from trueup.core.grid import LEVELS
from trueup.maps._row_kernels import (
    BLOCK,
    _load,
    _put_in_order,
    _tops,
    find_cells,
)
from trueup.maps._small_kernels import Places, add_few
from trueup.solve._jit import entry, inner

_UNITS = float(1 << 30)


@inner
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


@inner
def _folded(value: int) -> int:
    """The same modulo PRIME = 2**31 - 1, and smaller: 2**31 leaves one."""
    return (value >> 31) + (value & PRIME)


@inner
def _reduced(value: int) -> int:
    """A value from -PRIME to 2 PRIME - 1 modulo PRIME."""
    value = value + PRIME if value < 0 else value
    return value - PRIME if value >= PRIME else value


@inner
def mixes_of(numbers: Ints, first: int, n: int, mix: Ints) -> None:
    """The same as ``mixed`` of ``core.folds``, in shifts and sums instead of divisions.

    Whole numbers of 62 bits become one of 32 by folding once and one of 31 by folding
    twice; what is left after that is at most one PRIME off.
    """
    for i in range(n):
        inside = _reduced(_folded(_folded(numbers[first + i])))
        once = _reduced(_folded(_folded(inside * FIRST + 11)))
        square = _reduced(_folded(_folded(once * once)))
        mix[i] = _reduced(_folded(_folded(square * SECOND + 7)))


@inner
def folds_of(numbers: Ints, first: int, n: int, fold: Ints) -> None:
    """Zero or one for each item: the lowest bit."""
    mixes_of(numbers, first, n, fold)
    for i in range(n):
        fold[i] &= 1


@inner
def _place(score: float, levels: tuple[Floats, Floats, Ints]) -> int:
    starts, steps, firsts = levels
    at = LEVELS - 1
    while score < starts[at]:
        at -= 1
    return firsts[at] + int(np.floor((score - starts[at]) * steps[at]))


@entry
def count_scores(
    primary: Floats,
    primary_answers: Ints,
    reference: Floats,
    reference_answers: Ints,
    numbers: Ints,
    share: int,
    levels: tuple[Floats, Floats, Ints],
    primary_counts: Ints,
    reference_counts: Ints,
) -> int:
    """Add one item in ``share`` to both sketches; returns the first bad block, or -1.

    Items are chosen by their numbers. All are checked.
    """
    n_rows = len(numbers)
    rows, others = (
        np.empty((primary.shape[1], BLOCK)),
        np.empty((reference.shape[1], BLOCK)),
    )
    partial, total = np.empty((8, BLOCK)), np.empty(BLOCK)
    score, level = np.empty(BLOCK), np.empty(BLOCK)
    answer, said = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    mix = np.empty(BLOCK, dtype=np.int64)
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        if not load_side(
            primary, primary_answers, first, n, rows, partial, total, answer, score
        ) or not load_side(
            reference, reference_answers, first, n, others, partial, total, said, level
        ):
            return first
        mixes_of(numbers, first, n, mix)
        for i in range(n):
            # The fold is the lowest bit, so the others choose.
            if (mix[i] >> 1) % share == 0:
                f = mix[i] & 1
                primary_counts[f, answer[i], _place(score[i], levels)] += 1
                reference_counts[f, _place(level[i], levels)] += 1
    return -1


@inner
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


@inner
def _sort_columns(rows: Floats, n: int) -> None:
    for last in range(len(rows) - 1, 0, -1):
        for k in range(last):
            _put_in_order(rows[k], rows[k + 1], n)


@inner
def _in_units(rows: Floats, n: int, units: Ints) -> None:
    """Whole numbers of 2**-30, rounded down; no entry is negative."""
    for k in range(len(rows)):
        for i in range(n):
            units[k, i] = int(rows[k, i] * _UNITS)


@inner
def _add_reports(units: Ints, n: int, cell: Places, sums: Ints) -> None:
    """Add every item's report to the sums of its cell."""
    if len(units) == 2:
        add_few(units, n, (0, 0), cell, sums)
    elif len(units) == 3:
        add_few(units, n, (0, 0, 0), cell, sums)
    elif len(units) == 4:
        add_few(units, n, (0, 0, 0, 0), cell, sums)
    else:
        for i in range(n):
            for k in range(len(units)):
                sums[cell[i], k] += units[k, i]


@entry
def count_cells(
    primary: Floats,
    primary_answers: Ints,
    reference: Floats,
    reference_answers: Ints,
    numbers: Ints,
    groups: Ints,
    bins: Floats,
    micros: Floats,
    ranked: bool,
    sizes: tuple[int, int, int, int, int, int],
    n_items: Ints,
    reference_sums: Ints,
    primary_sums: Ints,
) -> int:
    """Add a batch to the tables; returns the first bad block, or -1.

    Tables are flat: a number for each combination of keys, a row of sums for each
    combination of the reference's keys and of the primary's.
    """
    _, n_groups, n_bins, n_answers, n_places, n_micros = sizes
    rows, others = (
        np.empty((primary.shape[1], BLOCK)),
        np.empty((reference.shape[1], BLOCK)),
    )
    partial, total = np.empty((8, BLOCK)), np.empty(BLOCK)
    score, level = np.empty(BLOCK), np.empty(BLOCK)
    answer, said = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    fold = np.empty(BLOCK, dtype=np.int64)
    cell, other = np.empty(BLOCK, dtype=np.uint64), np.empty(BLOCK, dtype=np.uint64)
    wide, wider = bins.shape[1], micros.shape[1]
    units = np.empty((max(len(rows), len(others)), BLOCK), dtype=np.int64)
    for first in range(0, len(numbers), BLOCK):
        n = min(BLOCK, len(numbers) - first)
        if not load_side(
            primary, primary_answers, first, n, rows, partial, total, answer, score
        ) or not load_side(
            reference, reference_answers, first, n, others, partial, total, said, level
        ):
            return first
        if ranked:
            for i in range(n):
                answer[i] = place_of(rows, i, answer[i], said[i])
            _sort_columns(rows, n)
        folds_of(numbers, first, n, fold)
        find_cells(bins, fold, level, n, other)
        find_cells(micros, fold, score, n, cell)
        for i in range(n):
            f = fold[i]
            g = groups[first + i] if len(groups) else 0
            b, micro = int(other[i]) - f * wide, int(cell[i]) - f * wider
            theirs = ((f * n_groups + g) * n_bins + b) * n_answers + said[i]
            other[i] = theirs
            cell[i] = (f * n_places + answer[i]) * n_micros + micro
            n_items[(theirs * n_places + answer[i]) * n_micros + micro] += 1
        _in_units(others, n, units)
        _add_reports(units[: len(others)], n, other, reference_sums)
        _in_units(rows, n, units)
        _add_reports(units[: len(rows)], n, cell, primary_sums)
    return -1


@entry
def count_moved(old: Floats, new: Floats, least: float) -> int:
    """How many rows have an entry that moved by more than ``least``."""
    n_rows, n_outcomes = old.shape
    moved = np.empty(BLOCK, dtype=np.bool_)
    n_moved = 0
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        moved[:] = False
        for k in range(n_outcomes):
            for i in range(n):
                moved[i] |= abs(old[first + i, k] - new[first + i, k]) > least
        for i in range(n):
            n_moved += moved[i]
    return n_moved
