"""Compiled loops. Module-level functions with array arguments only: numba finds
nothing else in its cache again, and a fresh process would compile for a second.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trueup._validate import Floats, Ints

_DUST = 1e-15
"""Share of a cell's mass below which a remainder is rounding, not mass."""
_PATHS = 100
"""Paths tried a row and sink before giving up; about two are usual."""
_TIE = 1e-13
"""Relative difference of costs below which two ways are equally cheap."""


@njit(cache=True)
def transport_cells(
    start: Ints, weight: Floats, cost: Floats, demand: Floats, flow: Floats
) -> Floats:
    """Solve one transport problem a cell; returns (cells, sinks) potentials.

    Rows start[b] .. start[b + 1] of a cell carry ``weight`` to sinks that take
    ``demand``. Successive shortest paths over the few sinks: a row's mass goes to the
    sink that is cheapest after the cheapest chain of reassignments of earlier rows.
    Optimal after every row, so optimal at the end; ``flow`` is filled in.
    """
    n_cells, n_sinks = demand.shape
    potentials = np.zeros((n_cells, n_sinks))
    # One set of queues serves all cells; making them anew costs more than the cells.
    largest = 1
    for b in range(n_cells):
        largest = max(largest, start[b + 1] - start[b])
    keys = np.empty((n_sinks * n_sinks, largest))
    rows = np.empty((n_sinks * n_sinks, largest), dtype=np.int64)
    queued = np.zeros((n_sinks * n_sinks, largest), dtype=np.bool_)
    for b in range(n_cells):
        lo, hi = start[b], start[b + 1]
        if hi - lo == 1:  # a lone row takes all there is, at its own price
            flow[lo] = demand[b]
            for s in range(n_sinks):
                potentials[b, s] = cost[lo, s] if cost[lo, s] < np.inf else 0.0
            continue
        queued[:, : hi - lo] = False
        _transport(
            weight[lo:hi],
            cost[lo:hi],
            demand[b],
            flow[lo:hi],
            potentials[b],
            keys,
            rows,
            queued,
        )
    return potentials


@njit(cache=True)
def _transport(
    weight: Floats,
    cost: Floats,
    demand: Floats,
    flow: Floats,
    potential: Floats,
    keys: Floats,
    rows: Ints,
    queued: Floats,
) -> None:
    n_rows, n_sinks = cost.shape
    dust = _DUST * demand.sum()
    left = demand.copy()
    size = np.zeros(n_sinks * n_sinks, dtype=np.int64)
    distance = np.empty(n_sinks)
    previous = np.empty(n_sinks, dtype=np.int64)
    left_over = _PATHS * (n_rows + n_sinks) * n_sinks
    for n in range(n_rows):
        remaining = weight[n]
        while remaining > dust:
            left_over -= 1
            if left_over < 0:  # never seen; the caller is told and stays correct
                potential[:] = np.nan
                return
            target = _cheapest_sink(
                cost, n, flow, left, dust, keys, rows, size, queued, distance, previous
            )
            if target < 0:
                break  # rounding left no demand for the last crumb of mass
            push = min(remaining, left[target])
            sink = target
            while previous[sink] >= 0:
                source = previous[sink]
                push = min(push, flow[rows[source * n_sinks + sink, 0], source])
                sink = source
            sink = target
            while previous[sink] >= 0:
                source = previous[sink]
                moved = rows[source * n_sinks + sink, 0]
                flow[moved, source] -= push
                if flow[moved, source] <= dust:
                    flow[moved, source] = 0.0
                flow[moved, sink] += push
                _offer(cost, moved, sink, keys, rows, size, queued)
                sink = source
            flow[n, sink] += push
            _offer(cost, n, sink, keys, rows, size, queued)
            left[target] -= push
            remaining -= push
    _relax(flow, keys, rows, size, queued, potential, previous, 0.0)


@njit(cache=True)
def _cheapest_sink(
    cost: Floats,
    n: int,
    flow: Floats,
    left: Floats,
    dust: float,
    keys: Floats,
    rows: Ints,
    size: Ints,
    queued: Floats,
    distance: Floats,
    previous: Ints,
) -> int:
    """Sink with room that row n reaches most cheaply; previous[] holds the chain."""
    n_sinks = len(left)
    for s in range(n_sinks):
        distance[s] = cost[n, s]
    _relax(flow, keys, rows, size, queued, distance, previous, _TIE)
    target = -1
    for s in range(n_sinks):
        has_room = left[s] > dust and distance[s] < np.inf
        if has_room and (target < 0 or distance[s] < distance[target]):
            target = s
    return target


@njit(cache=True)
def _relax(
    flow: Floats,
    keys: Floats,
    rows: Ints,
    size: Ints,
    queued: Floats,
    distance: Floats,
    previous: Ints,
    tie: float,
) -> None:
    """Bellman-Ford over sinks; an edge moves the row that minds it least.

    A chain must be cheaper by more than ``tie`` to be preferred: among equals the
    shortest wins, because long chains of ties move crumbs of mass in circles.
    """
    n_sinks = len(distance)
    for s in range(n_sinks):
        previous[s] = -1
        for t in range(n_sinks):
            if s != t:
                _discard_gone(flow, s, s * n_sinks + t, keys, rows, size, queued)
    for _ in range(n_sinks):
        changed = False
        for s in range(n_sinks):
            if distance[s] == np.inf:
                continue
            for t in range(n_sinks):
                edge = s * n_sinks + t
                if s == t or size[edge] == 0:
                    continue
                through = distance[s] + keys[edge, 0]
                gained = distance[t] - through
                worth = gained > tie * (1.0 + abs(through))
                if worth and not _descends(previous, s, t):
                    distance[t] = through
                    previous[t] = s
                    changed = True
        if not changed:
            break


@njit(cache=True)
def _descends(previous: Ints, sink: int, ancestor: int) -> bool:
    """Whether a chain already comes from ``ancestor``: closing it would be a cycle.

    Flows are optimal, so a cycle that seems to pay is rounding; following it would
    never end.
    """
    while sink >= 0:
        if sink == ancestor:
            return True
        sink = previous[sink]
    return False


@njit(cache=True)
def _discard_gone(
    flow: Floats,
    sink: int,
    edge: int,
    keys: Floats,
    rows: Ints,
    size: Ints,
    queued: Floats,
) -> None:
    """Drop rows from the head of a queue that no longer send anything to the sink."""
    while size[edge] > 0 and flow[rows[edge, 0], sink] <= 0.0:
        queued[edge, rows[edge, 0]] = False
        size[edge] -= 1
        last = size[edge]
        keys[edge, 0], rows[edge, 0] = keys[edge, last], rows[edge, last]
        _sift_down(keys[edge], rows[edge], last)


@njit(cache=True)
def _offer(
    cost: Floats,
    row: int,
    sink: int,
    keys: Floats,
    rows: Ints,
    size: Ints,
    queued: Floats,
) -> None:
    """Queue a row at a sink as a candidate to be moved to every other sink."""
    n_sinks = cost.shape[1]
    for t in range(n_sinks):
        edge = sink * n_sinks + t
        extra = cost[row, t] - cost[row, sink]
        if t == sink or queued[edge, row] or not extra < np.inf:
            continue
        place = size[edge]
        size[edge] += 1
        queued[edge, row] = True
        keys[edge, place], rows[edge, place] = extra, row
        while place > 0:
            parent = (place - 1) // 2
            if keys[edge, parent] <= keys[edge, place]:
                break
            _swap(keys[edge], rows[edge], parent, place)
            place = parent


@njit(cache=True)
def _sift_down(keys: Floats, rows: Ints, size: int) -> None:
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[place] <= keys[child]:
            return
        _swap(keys, rows, place, child)
        place = child


@njit(cache=True)
def _swap(keys: Floats, rows: Ints, i: int, j: int) -> None:
    keys[i], keys[j] = keys[j], keys[i]
    rows[i], rows[j] = rows[j], rows[i]


@njit(cache=True)
def lower_hulls(abscissa: Floats, ordinate: Floats, order: Ints, kept: Ints) -> Ints:
    """Lower convex hull of each row of points; fills ``kept``, returns hull sizes.

    Points of row n are (abscissa[n, k], ordinate[n, k]); ``order`` sorts each row by
    abscissa, then ordinate. Ordinates may be infinite: such points are skipped.
    """
    n_rows, n_points = abscissa.shape
    sizes = np.zeros(n_rows, dtype=np.int64)
    for n in range(n_rows):
        size = 0
        for rank in range(n_points):
            k = order[n, rank]
            x, y = abscissa[n, k], ordinate[n, k]
            if not y < np.inf:
                continue
            if size > 0 and abscissa[n, kept[n, size - 1]] == x:
                continue  # the lower of two points above each other came first
            while size > 1:
                p, q = kept[n, size - 2], kept[n, size - 1]
                rise = (ordinate[n, q] - ordinate[n, p]) * (x - abscissa[n, p])
                run = (y - ordinate[n, p]) * (abscissa[n, q] - abscissa[n, p])
                if rise < run:
                    break
                size -= 1
            kept[n, size] = k
            size += 1
        sizes[n] = size
    return sizes
