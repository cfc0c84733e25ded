"""Column expressions that every engine of narwhals evaluates to the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw

from trueup._validate import EXACT_SUM, ROW_SUM_TOLERANCE, Floats
from trueup.core.grid import LEVELS, level
from trueup.core.statistics import UNITS

Expr = Any
"""A narwhals expression."""


def row_sum(terms: Sequence[Expr]) -> Expr:
    """A sum as numpy adds a row: eight partial sums, then the rest."""
    n_terms = len(terms)
    whole = n_terms - n_terms % 8 if n_terms >= 8 else 0
    rest = list(terms[whole:])
    if whole:
        r = list(terms[:8])
        for k in range(8, whole):
            r[k % 8] = r[k % 8] + terms[k]
        head = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
    else:
        head, rest = rest[0], rest[1:]
    for term in rest:
        head = head + term
    return head


def divisor(total: Expr) -> Expr:
    """What a row is divided by: its sum, unless that is one but for rounding."""
    off = (total - 1.0).abs() > EXACT_SUM
    return nw.when(off).then(total).otherwise(nw.lit(1.0))


def is_no_distribution(columns: Sequence[str], total: Expr) -> Expr:
    """Whether a row holds a number outside [0, 1] or does not sum to one."""
    bad = (total - 1.0).abs() > ROW_SUM_TOLERANCE
    for column in columns:
        value = nw.col(column)
        bad = bad | (value < 0.0) | (value > 1.0)
    return bad


def largest(columns: Sequence[str]) -> Expr:
    """The largest entry of each row."""
    return nw.max_horizontal(*(nw.col(column) for column in columns))


def first_equal(columns: Sequence[str], top: str) -> Expr:
    """The first column that holds the largest entry."""
    found: Expr = nw.lit(len(columns) - 1)
    for index in range(len(columns) - 2, -1, -1):
        found = (
            nw.when(nw.col(columns[index]) == nw.col(top))
            .then(nw.lit(index))
            .otherwise(found)
        )
    return found.cast(nw.Int64)


def place(score: Expr) -> Expr:
    """Place of a score on the grid."""
    found: Expr = nw.lit(0.0)
    for index in range(LEVELS):
        start, steps, first = level(index)
        here = ((score - start) * steps).floor() + float(first)
        found = (
            here if index == 0 else nw.when(score >= start).then(here).otherwise(found)
        )
    return found.cast(nw.Int64)


def edges_reached(score: Expr, edges: Floats, base: int = 0) -> Expr:
    """How many edges lie at or below a score, as a tree of comparisons."""
    if len(edges) == 0:
        return nw.lit(base)
    middle = len(edges) // 2
    below = edges_reached(score, edges[:middle], base)
    above = edges_reached(score, edges[middle + 1 :], base + middle + 1)
    return nw.when(score >= float(edges[middle])).then(above).otherwise(below)


def units(value: Expr) -> Expr:
    """A probability as whole units of 2**-30, rounded down."""
    return (value * float(UNITS)).floor().cast(nw.Int64)


def sorting_network(n: int) -> list[tuple[int, int]]:
    """Pairs of places to put in descending order, one after the other (odd-even)."""
    return [(k, k + 1) for turn in range(n) for k in range(turn % 2, n - 1, 2)]
