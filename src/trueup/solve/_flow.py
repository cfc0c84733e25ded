"""Compiled maximum flow between two kinds of nodes, inside one piece of a graph.

Sources have supplies, sinks have needs, arcs have capacities. Dinic's method: layers
by breadth-first search, then augmenting paths along them until none is left. A path
that fills an arc, a need or a supply fills it exactly, so the method ends whatever the
rounding of the numbers it is given.
"""

from __future__ import annotations

from typing import NamedTuple

from trueup._validate import Floats, Ints
from trueup.solve._jit import inner

FULL = 4e-16
"""Share of an arc's capacity that is rounding."""


class Graph(NamedTuple):
    """Arcs in the order of their sources, and the places of each sink's arcs."""

    source: Ints
    sink: Ints
    capacity: Floats
    of_source: Ints
    """(sources + 1,) first arc of each source."""
    of_sink: Ints
    """(sinks + 1,) first place of each sink in ``arcs``."""
    arcs: Ints
    """Arcs in the order of their sinks."""


class Flow(NamedTuple):
    """A flow in progress, and the working space of its layers."""

    on: Floats
    """(arcs,) what flows."""
    left: Floats
    """(sources,) supply that has not flowed yet."""
    need: Floats
    """(sinks,) what a sink still takes."""
    source_piece: Ints
    sink_piece: Ints
    source_layer: Ints
    """(sources,) distance from a source with supply left; -1 where none reaches."""
    sink_layer: Ints
    source_next: Ints
    """(sources,) first arc that may still lead on."""
    sink_next: Ints
    queue: Ints
    path: Ints


@inner
def fill(
    graph: Graph, flow: Flow, sources: Ints, sinks: Ints, piece: int, dust: float
) -> float:
    """Send as much as possible inside a piece; returns the supply that is left.

    What can still be reached from it afterwards, by layers not below zero, is the
    side of a smallest cut on which the supply is.
    """
    while _layers(graph, flow, sources, sinks, piece, dust):
        for b in sources:
            flow.source_next[b] = graph.of_source[b]
        for j in sinks:
            flow.sink_next[j] = graph.of_sink[j]
        for b in sources:
            while flow.left[b] > dust:
                length = _find_path(graph, flow, b, piece, dust)
                if length == 0:
                    break
                _send(graph, flow, b, length)
    total = 0.0
    for b in sources:
        total += flow.left[b]
    return total


@inner
def _layers(
    graph: Graph, flow: Flow, sources: Ints, sinks: Ints, piece: int, dust: float
) -> bool:
    """Distances from supply; whether some sink in need is reached."""
    for j in sinks:
        flow.sink_layer[j] = -1
    # Sources and sinks share one queue; sinks stand in it as -1 - number.
    tail = 0
    for b in sources:
        flow.source_layer[b] = -1
        if flow.left[b] > dust:
            flow.source_layer[b] = 0
            flow.queue[tail] = b
            tail += 1
    head, reached = 0, False
    while head < tail:
        here = flow.queue[head]
        head += 1
        if here >= 0:
            for p in range(graph.of_source[here], graph.of_source[here + 1]):
                j = graph.sink[p]
                if flow.sink_piece[j] != piece or flow.sink_layer[j] >= 0:
                    continue
                if graph.capacity[p] - flow.on[p] > FULL * graph.capacity[p]:
                    flow.sink_layer[j] = flow.source_layer[here] + 1
                    flow.queue[tail] = -1 - j
                    tail += 1
                    reached = reached or flow.need[j] > dust
            continue
        j = -1 - here
        for k in range(graph.of_sink[j], graph.of_sink[j + 1]):
            p = graph.arcs[k]
            b = graph.source[p]
            if flow.source_piece[b] != piece or flow.source_layer[b] >= 0:
                continue
            if flow.on[p] > FULL * graph.capacity[p]:
                flow.source_layer[b] = flow.sink_layer[j] + 1
                flow.queue[tail] = b
                tail += 1
    return reached


@inner
def _find_path(graph: Graph, flow: Flow, begin: int, piece: int, dust: float) -> int:
    """Arcs from a source to a sink in need along the layers; zero if there are none.

    Arcs at even places are filled, those at odd places emptied.
    """
    length, here, at_source = 0, begin, True
    while True:
        if at_source:
            j = _advance_source(graph, flow, here, piece)
            if j >= 0:
                flow.path[length] = flow.source_next[here]
                length += 1
                if flow.need[j] > dust:
                    return length
                here, at_source = j, False
            elif length == 0:
                return 0
            else:  # this source leads nowhere: back to the sink before it
                length -= 1
                here, at_source = graph.sink[flow.path[length]], False
                flow.sink_next[here] += 1
        else:
            b = _advance_sink(graph, flow, here, piece)
            if b >= 0:
                flow.path[length] = graph.arcs[flow.sink_next[here]]
                length += 1
                here, at_source = b, True
            else:
                length -= 1
                here, at_source = graph.source[flow.path[length]], True
                flow.source_next[here] += 1


@inner
def _advance_source(graph: Graph, flow: Flow, b: int, piece: int) -> int:
    """The next sink that a source can send to, or -1."""
    while flow.source_next[b] < graph.of_source[b + 1]:
        p = flow.source_next[b]
        j = graph.sink[p]
        if (
            flow.sink_piece[j] == piece
            and flow.sink_layer[j] == flow.source_layer[b] + 1
            and graph.capacity[p] - flow.on[p] > FULL * graph.capacity[p]
        ):
            return int(j)
        flow.source_next[b] += 1
    return -1


@inner
def _advance_sink(graph: Graph, flow: Flow, j: int, piece: int) -> int:
    """The next source whose flow into a sink may be sent elsewhere, or -1."""
    while flow.sink_next[j] < graph.of_sink[j + 1]:
        p = graph.arcs[flow.sink_next[j]]
        b = graph.source[p]
        if (
            flow.source_piece[b] == piece
            and flow.source_layer[b] == flow.sink_layer[j] + 1
            and flow.on[p] > FULL * graph.capacity[p]
        ):
            return int(b)
        flow.sink_next[j] += 1
    return -1


@inner
def _send(graph: Graph, flow: Flow, begin: int, length: int) -> None:
    """Send what fits along a path; what is filled or emptied is so exactly."""
    last = graph.sink[flow.path[length - 1]]
    amount = min(flow.left[begin], flow.need[last])
    for k in range(length):
        p = flow.path[k]
        room = graph.capacity[p] - flow.on[p] if k % 2 == 0 else flow.on[p]
        amount = min(amount, room)
    flow.left[begin] -= amount
    flow.need[last] -= amount
    for k in range(length):
        p = flow.path[k]
        if k % 2 == 0:
            full = amount >= graph.capacity[p] - flow.on[p]
            flow.on[p] = graph.capacity[p] if full else flow.on[p] + amount
        else:
            flow.on[p] = 0.0 if amount >= flow.on[p] else flow.on[p] - amount
