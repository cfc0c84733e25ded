"""Compiled loops for two, three and four outcomes, an item in registers throughout.

Written out by hand: the compiler turns a loop over items into vector instructions only
if its body has no loop of its own. Every step is the one of the general loops, in the
same order, so the bits are the same.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from trueup._validate import EXACT_SUM, ROW_SUM_TOLERANCE, Floats, Ints
from trueup.solve._jit import inner

Places: TypeAlias = NDArray[np.uint64]
"""Numbers of cells. Without a sign an index needs no check for counting backwards."""


@inner
def load_few(
    source: Floats, first: int, n: int, like: tuple[float, ...], rows: Floats
) -> tuple[bool, bool]:
    """Turn a block round; whether all rows are reports, and all sums one.

    ``like`` has one entry an outcome, so that their number is known when compiling.
    """
    for i in range(n):
        for k in range(len(like)):
            rows[k, i] = source[first + i, k]
    good, exact = True, True
    for i in range(n):
        total = 0.0
        for k in range(len(like)):
            value = rows[k, i]
            good &= (value >= 0.0) & (value <= 1.0)
            total += value
        deviation = abs(total - 1.0)
        good &= deviation <= ROW_SUM_TOLERANCE
        exact &= deviation <= EXACT_SUM
    return good, exact


@inner
def store_few(
    mean: Floats,
    n: int,
    like: tuple[float, ...],
    share: float,
    first: int,
    out: Floats,
) -> None:
    """Turn a block back, times ``share``."""
    for i in range(n):
        for k in range(len(like)):
            out[first + i, k] = mean[k, i] * share


@inner
def add_few(
    units: Ints, n: int, like: tuple[int, ...], cell: Places, sums: Ints
) -> None:
    """Add every item's report to the sums of its cell."""
    for i in range(n):
        for k in range(len(like)):
            sums[cell[i], k] += units[k, i]


@inner
def _high(a: float, b: float) -> float:
    return a if a > b else b


@inner
def _low(a: float, b: float) -> float:
    return b if a > b else a


@inner
def _next(
    entry: float, rank: float, reached: float, excess: float, active: float
) -> tuple[float, float, float]:
    """Take the next largest entry in, if it stays above zero."""
    reached += entry
    trial = reached - 1.0
    inside = entry * rank > trial
    return reached, trial if inside else excess, rank if inside else active


@inner
def _above(entry: float, threshold: float) -> float:
    moved = entry - threshold
    return moved if moved > 0.0 else 0.0


@inner
def _projected_2(a: float, b: float) -> tuple[float, float, float]:
    """The nearest point of the simplex, and its sum."""
    reached, excess, active = _next(_high(a, b), 1.0, 0.0, 0.0, 1.0)
    reached, excess, active = _next(_low(a, b), 2.0, reached, excess, active)
    threshold = excess / active
    a, b = _above(a, threshold), _above(b, threshold)
    return a, b, a + b


@inner
def _projected_3(a: float, b: float, c: float) -> tuple[float, float, float, float]:
    e, f = _high(a, b), _low(a, b)
    g, s2 = _high(f, c), _low(f, c)
    s0, s1 = _high(e, g), _low(e, g)
    reached, excess, active = _next(s0, 1.0, 0.0, 0.0, 1.0)
    reached, excess, active = _next(s1, 2.0, reached, excess, active)
    reached, excess, active = _next(s2, 3.0, reached, excess, active)
    threshold = excess / active
    a, b, c = _above(a, threshold), _above(b, threshold), _above(c, threshold)
    return a, b, c, (a + b) + c


@inner
def _projected_4(
    a: float, b: float, c: float, d: float
) -> tuple[float, float, float, float, float]:
    e, f = _high(a, b), _low(a, b)
    g, h = _high(c, d), _low(c, d)
    s0, u = _high(e, g), _low(e, g)
    v, s3 = _high(f, h), _low(f, h)
    s1, s2 = _high(u, v), _low(u, v)
    reached, excess, active = _next(s0, 1.0, 0.0, 0.0, 1.0)
    reached, excess, active = _next(s1, 2.0, reached, excess, active)
    reached, excess, active = _next(s2, 3.0, reached, excess, active)
    reached, excess, active = _next(s3, 4.0, reached, excess, active)
    threshold = excess / active
    a, b = _above(a, threshold), _above(b, threshold)
    c, d = _above(c, threshold), _above(d, threshold)
    return a, b, c, d, ((a + b) + c) + d


@inner
def project_2(points: Floats, n: int, total: Floats) -> None:
    """Project pairs onto the simplex; ``total`` gets their sums."""
    p0, p1 = points[0], points[1]
    for i in range(n):
        p0[i], p1[i], total[i] = _projected_2(p0[i], p1[i])


@inner
def project_3(points: Floats, n: int, total: Floats) -> None:
    """Project triples onto the simplex; ``total`` gets their sums."""
    p0, p1, p2 = points[0], points[1], points[2]
    for i in range(n):
        p0[i], p1[i], p2[i], total[i] = _projected_3(p0[i], p1[i], p2[i])


@inner
def project_4(points: Floats, n: int, total: Floats) -> None:
    """Project fours onto the simplex; ``total`` gets their sums."""
    p0, p1, p2, p3 = points[0], points[1], points[2], points[3]
    for i in range(n):
        p0[i], p1[i], p2[i], p3[i], total[i] = _projected_4(p0[i], p1[i], p2[i], p3[i])


@inner
def tilt_2(rows: Floats, slopes: Floats, cell: Places, n: int, points: Floats) -> None:
    """Add each item's slopes to its report."""
    r0, r1, p0, p1 = rows[0], rows[1], points[0], points[1]
    s0, s1 = slopes[0], slopes[1]
    for i in range(n):
        c = cell[i]
        p0[i] = r0[i] + s0[c]
        p1[i] = r1[i] + s1[c]


@inner
def tilt_3(rows: Floats, slopes: Floats, cell: Places, n: int, points: Floats) -> None:
    """Add each item's slopes to its report."""
    r0, r1, r2 = rows[0], rows[1], rows[2]
    s0, s1, s2 = slopes[0], slopes[1], slopes[2]
    p0, p1, p2 = points[0], points[1], points[2]
    for i in range(n):
        c = cell[i]
        p0[i] = r0[i] + s0[c]
        p1[i] = r1[i] + s1[c]
        p2[i] = r2[i] + s2[c]


@inner
def tilt_4(rows: Floats, slopes: Floats, cell: Places, n: int, points: Floats) -> None:
    """Add each item's slopes to its report."""
    r0, r1, r2, r3 = rows[0], rows[1], rows[2], rows[3]
    s0, s1, s2, s3 = slopes[0], slopes[1], slopes[2], slopes[3]
    p0, p1, p2, p3 = points[0], points[1], points[2], points[3]
    for i in range(n):
        c = cell[i]
        p0[i] = r0[i] + s0[c]
        p1[i] = r1[i] + s1[c]
        p2[i] = r2[i] + s2[c]
        p3[i] = r3[i] + s3[c]


@inner
def add_projected_2(points: Floats, n: int, mean: Floats) -> None:
    """Add the projections of pairs, each divided by its sum."""
    p0, p1, m0, m1 = points[0], points[1], mean[0], mean[1]
    for i in range(n):
        a, b, total = _projected_2(p0[i], p1[i])
        scale = 1.0 / total
        m0[i] += a * scale
        m1[i] += b * scale


@inner
def add_projected_3(points: Floats, n: int, mean: Floats) -> None:
    """Add the projections of triples, each divided by its sum."""
    p0, p1, p2 = points[0], points[1], points[2]
    m0, m1, m2 = mean[0], mean[1], mean[2]
    for i in range(n):
        a, b, c, total = _projected_3(p0[i], p1[i], p2[i])
        scale = 1.0 / total
        m0[i] += a * scale
        m1[i] += b * scale
        m2[i] += c * scale


@inner
def add_projected_4(points: Floats, n: int, mean: Floats) -> None:
    """Add the projections of fours, each divided by its sum."""
    p0, p1, p2, p3 = points[0], points[1], points[2], points[3]
    m0, m1, m2, m3 = mean[0], mean[1], mean[2], mean[3]
    for i in range(n):
        a, b, c, d, total = _projected_4(p0[i], p1[i], p2[i], p3[i])
        scale = 1.0 / total
        m0[i] += a * scale
        m1[i] += b * scale
        m2[i] += c * scale
        m3[i] += d * scale
