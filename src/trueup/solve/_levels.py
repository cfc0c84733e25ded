"""Compiled loops of the exact projection for two outcomes.

A primary cell is a sink that takes the mass ``m_j(x)`` at the slope x: each of its
reports is tilted by x. A reference cell is a source with a supply. Divide and conquer
(Fujishige, Groenevelt): give all cells of a piece the one slope at which masses and
supply agree in total; where the supply cannot flow there, a smallest cut splits the
piece, the side with too much supply has a slope at least as high and the other one at
most as high, and both are pieces again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._validate import Floats, Ints
from trueup.solve._flow import Flow, Graph, fill
from trueup.solve._jit import entry, inner

BRIER, LOG, SPHERICAL, CONFIDENCE, HELD_FIRST, HELD_SECOND = range(6)
"""How a report moves with its slope, by number."""
MIRRORED = (BRIER, LOG, SPHERICAL, CONFIDENCE, HELD_SECOND, HELD_FIRST)
"""The same with the two outcomes exchanged."""
_SLACK = 1e-14
"""Share of a piece's mass that may fail to flow: rounding."""
_ROUNDED = 1e-15
"""Share of a cell's mass that is rounding."""


class Tilts(NamedTuple):
    """Primary reports in the order of their cells."""

    start: Ints
    """(sinks + 1,) first report of each cell."""
    kind: Ints
    base: Floats
    """Slope of the generator at the report, outcome 1 less outcome 0."""
    weight: Floats
    total: Floats
    """(sinks,) mass of each cell."""
    lowest: float
    """Slope at which no report has mass left, and its negative where all is."""


class Levels(NamedTuple):
    """What is found: a slope for every node."""

    source: Floats
    sink: Floats
    low: Floats
    """(sinks,) what other pieces send to a sink for certain."""
    high: Floats
    """(sinks,) the most it can get."""
    mass: Floats
    """(sinks,) what it gets."""


@inner
def rate(kind: int, u: float) -> tuple[float, float]:
    """Probability of outcome 1 at a slope of the generator, and its derivative."""
    if kind == LOG:
        small = np.exp(-abs(u))
        h = small / (1.0 + small)
        return (1.0 - h if u > 0 else h), h * (1.0 - h)
    if kind == SPHERICAL:
        if abs(u) >= 1.0:
            return (1.0 if u > 0 else 0.0), 0.0
        rest = 2.0 - u * u
        return 0.5 + 0.5 * u / np.sqrt(rest), 1.0 / (rest * np.sqrt(rest))
    if kind == CONFIDENCE and abs(u) <= 1.0:
        return 0.5, 0.0
    if kind == BRIER:
        h, speed = 0.5 + u / 4.0, 0.25
    elif kind == HELD_SECOND or (kind == CONFIDENCE and u > 0):
        h, speed = u / 2.0, 0.5
    else:
        h, speed = 1.0 + u / 2.0, 0.5
    if h <= 0.0:
        return 0.0, 0.0
    return (1.0, 0.0) if h >= 1.0 else (h, speed)


@inner
def mass_at(tilts: Tilts, j: int, slope: float) -> tuple[float, float]:
    """Mass of outcome 1 in a cell at a slope, and its derivative."""
    total, speed = 0.0, 0.0
    for a in range(tilts.start[j], tilts.start[j + 1]):
        h, d = rate(tilts.kind[a], tilts.base[a] + slope)
        total += tilts.weight[a] * h
        speed += tilts.weight[a] * d
    return total, speed


@inner
def _clipped_mass(
    tilts: Tilts, levels: Levels, sinks: Ints, slope: float
) -> tuple[float, float]:
    total, speed = 0.0, 0.0
    for j in sinks:
        mass, d = mass_at(tilts, j, slope)
        if mass <= levels.low[j]:
            total += levels.low[j]
        elif mass >= levels.high[j]:
            total += levels.high[j]
        else:
            total += mass
            speed += d
    return total, speed


@inner
def _level(
    tilts: Tilts,
    levels: Levels,
    sinks: Ints,
    wanted: float,
    bottom: float,
    top: float,
) -> float:
    """The slope at which cells take ``wanted`` together: Newton inside a bracket.

    The mass is continuous and never falls. Piecewise linear for all losses but log and
    spherical, for which a root is exact to the last digits.
    """
    # A bracket's inner end is the slope of the piece that this one is a part of.
    slope, last = 0.0, np.inf
    if bottom > tilts.lowest:
        slope = bottom
    elif top < -tilts.lowest:
        slope = top
    for _ in range(300):
        total, speed = _clipped_mass(tilts, levels, sinks, slope)
        off = total - wanted
        if off == 0.0:
            break
        if off > 0.0:
            top = slope
        else:
            bottom = slope
        guess = slope - off / speed if speed > 0.0 else bottom
        if not bottom < guess < top or abs(off) > 0.5 * last:
            guess = 0.5 * (bottom + top)
        last = abs(off)
        if guess in (bottom, top) or abs(guess - slope) <= 1e-16 * abs(slope):
            break
        slope = guess
    return slope


@entry
def find_levels(
    graph: Graph, flow: Flow, tilts: Tilts, levels: Levels, supply: Floats
) -> int:
    """Solve; fills in the levels and the flow, returns the number of pieces."""
    n_sources, n_sinks = len(supply), len(levels.sink)
    sources, sinks = np.arange(n_sources), np.arange(n_sinks)
    spare = np.empty(max(n_sources, n_sinks), dtype=np.int64)
    # Pieces to do: ranges of both orders, and the bracket of the slope.
    todo = np.empty((n_sources + n_sinks + 1, 4), dtype=np.int64)
    bracket = np.empty((n_sources + n_sinks + 1, 2))
    todo[0] = (0, n_sources, 0, n_sinks)
    bracket[0] = (tilts.lowest, -tilts.lowest)
    n_todo, n_pieces, piece = 1, 0, 0
    while n_todo > 0:
        n_todo -= 1
        b0, b1, j0, j1 = todo[n_todo]
        bottom, top = bracket[n_todo]
        of_b, of_j = sources[b0:b1], sinks[j0:j1]
        piece += 1
        slope, is_done = _try_piece(
            graph, flow, tilts, levels, supply, of_b, of_j, piece, bottom, top
        )
        if is_done:
            n_pieces += 1
            _finish(tilts, levels, of_b, of_j, slope)
            continue
        n_b = _split(of_b, flow.source_layer, spare)
        n_j = _split(of_j, flow.sink_layer, spare)
        _settle(graph, flow, levels, supply, of_b, piece)
        todo[n_todo] = (b0, b0 + n_b, j0, j0 + n_j)
        bracket[n_todo] = (slope, top)
        todo[n_todo + 1] = (b0 + n_b, b1, j0 + n_j, j1)
        bracket[n_todo + 1] = (bottom, slope)
        n_todo += 2
    return n_pieces


@inner
def _try_piece(
    graph: Graph,
    flow: Flow,
    tilts: Tilts,
    levels: Levels,
    supply: Floats,
    sources: Ints,
    sinks: Ints,
    piece: int,
    bottom: float,
    top: float,
) -> tuple[float, bool]:
    """One slope for the piece; whether the supply can flow to where it is then."""
    wanted, size = 0.0, 0.0
    for b in sources:
        flow.source_piece[b] = piece
        flow.left[b] = supply[b]
        wanted += supply[b]
    for j in sinks:
        flow.sink_piece[j] = piece
        wanted += levels.low[j]
        size += tilts.total[j]
    slope = _level(tilts, levels, sinks, wanted, bottom, top)
    for j in sinks:
        mass, _ = mass_at(tilts, j, slope)
        levels.mass[j] = min(max(mass, levels.low[j]), levels.high[j])
        flow.need[j] = levels.mass[j] - levels.low[j]
        _keep_flow(graph, flow, j, piece)
    dust = _SLACK * size / (4.0 * (len(sources) + len(sinks)))
    left = fill(graph, flow, sources, sinks, piece, dust)
    n_reached_b, n_reached_j = 0, 0
    for b in sources:
        n_reached_b += flow.source_layer[b] >= 0
    for j in sinks:
        n_reached_j += flow.sink_layer[j] >= 0
    # Supply without a sink, or a need without a source, is rounding.
    is_done = left <= _SLACK * size or n_reached_j == 0 or n_reached_b == len(sources)
    return slope, is_done


@inner
def _keep_flow(graph: Graph, flow: Flow, j: int, piece: int) -> None:
    """Begin with the flow of the larger piece, as far as the sink still needs it."""
    for k in range(graph.of_sink[j], graph.of_sink[j + 1]):
        p = graph.arcs[k]
        b = graph.source[p]
        if flow.source_piece[b] != piece:
            continue
        flow.on[p] = min(flow.on[p], max(min(flow.need[j], flow.left[b]), 0.0))
        flow.need[j] -= flow.on[p]
        flow.left[b] -= flow.on[p]


@inner
def _split(order: Ints, layer: Ints, spare: Ints) -> int:
    """Put what was reached first; returns how many."""
    n_reached, n_other = 0, 0
    for i in range(len(order)):
        one = order[i]
        if layer[one] >= 0:
            order[n_reached] = one
            n_reached += 1
        else:
            spare[n_other] = one
            n_other += 1
    order[n_reached:] = spare[:n_other]
    return n_reached


@inner
def _settle(
    graph: Graph,
    flow: Flow,
    levels: Levels,
    supply: Floats,
    sources: Ints,
    piece: int,
) -> None:
    """Fix the arcs between the sides: full one way, empty the other way."""
    for b in sources:
        reached = flow.source_layer[b] >= 0
        for p in range(graph.of_source[b], graph.of_source[b + 1]):
            j = graph.sink[p]
            if flow.sink_piece[j] != piece or (flow.sink_layer[j] >= 0) == reached:
                continue
            if reached:
                flow.on[p] = graph.capacity[p]
                supply[b] -= graph.capacity[p]
                levels.low[j] += graph.capacity[p]
            else:
                flow.on[p] = 0.0
                levels.high[j] -= graph.capacity[p]


@inner
def _finish(
    tilts: Tilts,
    levels: Levels,
    sources: Ints,
    sinks: Ints,
    slope: float,
) -> None:
    """Slopes of a piece that is done; sinks at an end of their range have their own."""
    one = np.empty(1, dtype=np.int64)
    for b in sources:
        levels.source[b] = slope
    for j in sinks:
        mass, _ = mass_at(tilts, j, slope)
        wanted, last = levels.mass[j], tilts.lowest
        levels.sink[j] = slope
        # Where the mass is flat in the slope the nearest one is asked for, so stop
        # short of what is wanted by as much as rounding may have added.
        if mass < wanted - _ROUNDED * tilts.total[j]:
            wanted, last = wanted - _ROUNDED * tilts.total[j], -tilts.lowest
        elif mass > wanted + _ROUNDED * tilts.total[j]:
            wanted += _ROUNDED * tilts.total[j]
        else:
            continue
        one[0] = j
        levels.low[j], levels.high[j] = -1.0, np.inf
        ends = min(slope, last), max(slope, last)
        levels.sink[j] = _level(tilts, levels, one, wanted, ends[0], ends[1])


@entry
def tilted_rates(tilts: Tilts, slopes: Floats) -> Floats:
    """(reports,) probability of outcome 1 at the slopes of their cells."""
    rates = np.empty(len(tilts.base))
    for j in range(len(slopes)):
        for a in range(tilts.start[j], tilts.start[j + 1]):
            rates[a], _ = rate(tilts.kind[a], tilts.base[a] + slopes[j])
    return rates
