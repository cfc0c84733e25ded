"""Rows of a projection for two outcomes as arcs of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.solve.problem import ProjectionProblem

if TYPE_CHECKING:
    from trueup.solve._flow import Flow, Graph


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Arcs from reference cells to primary cells that carry mass of outcome 1.

    Doubled where a cell counts outcome 1 on some rows and outcome 0 on others: the
    second half of all nodes carries outcome 0, and a row is two arcs.
    """

    source: Ints
    sink: Ints
    capacity: Floats
    supply: Floats
    sign: Floats
    """(rows,) whether the moment of a row's cell counts outcome 1 (+1) or 0 (-1)."""
    size: Floats
    """(reference cells,) by how much the moment tells the outcomes apart."""
    is_doubled: bool

    def graph(self) -> tuple[Graph, Flow, Ints]:
        """Arrays for the compiled loops, and the arcs in their order there."""
        from trueup.solve._flow import Flow, Graph  # noqa: PLC0415 - numba is heavy

        order = np.argsort(self.source, kind="stable")
        source, sink = self.source[order], self.sink[order]
        n_sources, n_sinks = len(self.supply), int(sink.max()) + 1
        graph = Graph(
            source,
            sink,
            self.capacity[order],
            starts(source, n_sources),
            starts(sink, n_sinks),
            np.argsort(sink, kind="stable"),
        )
        by_source, by_sink = np.zeros((4, n_sources), int), np.zeros((4, n_sinks), int)
        flow = Flow(
            on=np.zeros(len(order)),
            left=np.zeros(n_sources),
            need=np.zeros(n_sinks),
            source_piece=by_source[0],
            sink_piece=by_sink[0],
            source_layer=by_source[1],
            sink_layer=by_sink[1],
            source_next=by_source[2],
            sink_next=by_sink[2],
            queue=np.zeros(n_sources + n_sinks, int),
            path=np.zeros(2 * (n_sources + n_sinks), int),
        )
        return graph, flow, order


def moment_sizes(problem: ProjectionProblem) -> Floats | None:
    """(reference cells,) by how much each moment tells the two outcomes apart.

    None where a cell has rows that it tells apart by different amounts, or not at all.
    """
    moments = problem.moments
    step = np.abs(_steps(problem))
    size = np.zeros(moments.n_cells)
    np.maximum.at(size, moments.cell_of_node, step)
    alike = np.abs(step - size[moments.cell_of_node]) <= 1e-12 * step
    return size if alike.all() and (size > 0).all() else None


def make_network(problem: ProjectionProblem) -> Network:
    """Write down the graph."""
    rows, moments = problem.linked, problem.moments
    size = moment_sizes(problem)
    if size is None:
        message = "the moments of a cell tell the outcomes apart by different amounts"
        raise ValueError(message)
    table = moments.pull(np.ones(moments.n_rows))
    cell, sign = moments.cell_of_node[rows.node], np.sign(_steps(problem))[rows.node]
    n_cells, n_primary = moments.n_cells, problem.n_cells
    target = np.zeros(n_cells)
    target[moments.cell_of_row] = moments.target
    # What a cell's moment has beyond its smallest value, in units of mass.
    least = group_sums(cell, rows.weight * table.min(axis=1)[rows.node], n_cells)
    mass = group_sums(cell, rows.weight, n_cells)
    supply = np.clip((target - least) / size, 0.0, mass)
    balance = group_sums(cell, sign, n_cells) / np.bincount(cell, minlength=n_cells)
    if (np.abs(balance) == 1).all():
        supply = np.where(balance > 0, supply, mass - supply)
        parts = cell, rows.owner, rows.weight, supply
        return Network(*parts, sign, size, is_doubled=False)
    swap = (sign < 0).astype(np.int64)
    other = n_primary * swap, n_primary * (1 - swap)
    return Network(
        np.append(cell, n_cells + cell),
        np.append(rows.owner + other[0], rows.owner + other[1]),
        np.append(rows.weight, rows.weight),
        np.append(supply, mass - supply),
        sign,
        size,
        is_doubled=True,
    )


def starts(index: Ints, n_groups: int) -> Ints:
    """First place of each group when sorted by group numbers, and the end."""
    return np.append(0, np.cumsum(np.bincount(index, minlength=n_groups)))


def _steps(problem: ProjectionProblem) -> Floats:
    """(nodes,) by how much the moment of a node's cell grows with outcome 1."""
    table = problem.moments.pull(np.ones(problem.moments.n_rows))
    return np.asarray(table[:, 1] - table[:, 0])
