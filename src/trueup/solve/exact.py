"""The least expected gain over all admissible truths, exactly and cell by cell.

For gains linear in the truth the cells of the reference separate (METHOD section 9):
one equality is a sort, a whole distribution or an answer with caps a transport problem
with few sinks. An error budget couples the cells through one number, the largest
multiplier, over which the value is concave.

Each form of moments is a class with one method, ``best(bound)``: the multipliers that
are best among those not exceeding ``bound``, and how much the truth that attains the
minimum violates the moments.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.core.moments import MomentRows
from trueup.errors import GapWarning
from trueup.solve.problem import Rows


class Best(NamedTuple):
    """Best multipliers under a bound on their size."""

    multipliers: Floats
    violation: float
    """Total moment error of the minimising truth, zero if the bound does not bind."""


class CellPrograms(ABC):
    """All cells' programmes of one form of moments."""

    def __init__(self, moments: MomentRows, rows: Rows, gain: Floats) -> None:
        cell = moments.cell_of_node[rows.node]
        order = np.argsort(cell, kind="stable")
        self.moments = moments
        self.node = rows.node[order]
        self.cell = cell[order]
        self.weight = rows.weight[order]
        self.gain = gain[order]
        self.mass = group_sums(self.cell, self.weight, moments.n_cells)

    @abstractmethod
    def best(self, bound: float) -> Best:
        """The best multipliers of size at most ``bound``."""

    def size_of(self, multipliers: Floats) -> float:
        """Largest multiplier, after the free shift of a whole distribution's."""
        return float(np.abs(self.moments.centred(multipliers)).max(initial=0.0))

    def row_of(self, slot: int) -> Ints:
        """(cells,) the moment row a cell has in a slot, or -1."""
        place = np.full(self.moments.n_cells, -1)
        rows = np.flatnonzero(self.moments.slot_of_row == slot)
        place[self.moments.cell_of_row[rows]] = rows
        return place

    def value(self, multipliers: Floats) -> float:
        """The dual value, for finding the best bound; certificates recompute it."""
        slack = self.gain - self.moments.pull(multipliers)[self.node]
        return float(
            multipliers @ self.moments.target + self.weight @ slack.min(axis=1)
        )


class SingleEquality(CellPrograms):
    """One moment a cell: move mass along the cheapest slopes until it balances.

    Each row offers its outcomes at (coefficient, gain); only the lower convex hull of
    these points is ever used, and its edges are taken in order of their slopes.
    """

    def __init__(self, moments: MomentRows, rows: Rows, gain: Floats) -> None:
        from trueup.solve._kernels import lower_hulls  # noqa: PLC0415 - numba is heavy

        super().__init__(moments, rows, gain)
        coefficients = np.zeros(moments.anchors.shape)
        coefficients[moments.node, moments.outcome] = moments.coefficient
        across = coefficients[self.node]
        order = np.lexsort(np.stack([self.gain, across]), axis=1)
        kept = np.zeros(across.shape, dtype=np.int64)
        sizes = lower_hulls(across, self.gain, order, kept)
        x = np.take_along_axis(across, kept, axis=1)
        y = np.take_along_axis(self.gain, kept, axis=1)
        places = np.arange(1, gain.shape[1])
        row, edge = np.nonzero(places[None, :] < sizes.reshape(-1, 1))
        step = x[row, edge + 1] - x[row, edge]
        slope = (y[row, edge + 1] - y[row, edge]) / step
        sort = np.lexsort((slope, self.cell[row]))
        self.edge_cell, self.edge_slope = self.cell[row][sort], slope[sort]
        self.edge_mass = (self.weight[row] * step)[sort]
        self.lowest = group_sums(self.cell, self.weight * x[:, 0], moments.n_cells)

    def best(self, bound: float) -> Best:
        moments = self.moments
        balance = self._balance()
        clipped = np.clip(balance, -bound, bound)
        multipliers = np.zeros(moments.n_rows)
        multipliers[self.row_of(0)] = clipped
        binding = np.abs(balance) > bound
        if not binding.any():
            return Best(multipliers, 0.0)
        reached = self.lowest + group_sums(
            self.edge_cell,
            np.where(self.edge_slope <= clipped[self.edge_cell], self.edge_mass, 0.0),
            moments.n_cells,
        )
        missing = np.abs(reached - moments.target[self.row_of(0)])
        return Best(multipliers, float(missing[binding].sum()))

    def _balance(self) -> Floats:
        """(cells,) slope of the edge on which the moment is met."""
        n_cells = self.moments.n_cells
        start = np.searchsorted(self.edge_cell, np.arange(n_cells + 1))
        total = np.concatenate([[0.0], np.cumsum(self.edge_mass)])
        wanted = self.moments.target[self.row_of(0)] - self.lowest + total[start[:-1]]
        found = np.searchsorted(total[1:], wanted)
        inside = np.clip(found, start[:-1], np.maximum(start[1:] - 1, start[:-1]))
        has_edges = start[1:] > start[:-1]
        slopes = np.append(self.edge_slope, 0.0)
        return np.where(has_edges, slopes[inside], 0.0)


class _Transport(CellPrograms):
    """Cells whose truth is a transport of rows to sinks, with a filler for slack."""

    def solve(
        self, cost: Floats, demand: Floats, filler: Floats | None
    ) -> tuple[Floats, Floats, Floats]:
        """Potentials (cells, sinks), flows of rows, and of fillers (cells, sinks).

        A filler is a row a cell that takes up the demand left over, at its own cost;
        potentials are shifted so that it counts nothing.
        """
        from trueup.solve._kernels import transport_cells  # noqa: PLC0415

        n_cells = self.moments.n_cells
        starts = np.searchsorted(self.cell, np.arange(n_cells + 1))
        if filler is None:
            flow = np.zeros_like(cost)
            potentials = transport_cells(starts, self.weight, cost, demand, flow)
            return _usable(potentials), flow, np.zeros_like(demand)
        ends = starts[1:]
        weight = np.insert(self.weight, ends, demand.sum(axis=1) - self.mass)
        full = np.insert(cost, ends, filler, axis=0)
        flow = np.zeros_like(full)
        shifted = starts + np.arange(n_cells + 1)
        potentials = _usable(transport_cells(shifted, weight, full, demand, flow))
        level = (filler - potentials).min(axis=1)
        last = shifted[1:] - 1
        rest = np.delete(flow, last, axis=0)
        return potentials + level[:, None], rest, flow[last]


def _usable(potentials: Floats) -> Floats:
    """Potentials of cells whose programme gave up are zero: valid, not the best."""
    failed: Bools = np.asarray(np.isnan(potentials).any(axis=1))
    if failed.any():
        warnings.warn(
            f"the exact programme of {int(failed.sum()):,} of {len(failed):,} cells "
            "did not finish: the bound is true, but not the tightest",
            GapWarning,
            stacklevel=2,
        )
    return np.where(failed[:, None], 0.0, potentials)


class WholeDistribution(_Transport):
    """Every outcome has its mass: a transport problem.

    Under a bound the mass that arrives at one outcome may be booked to another for
    twice the bound: one unit too much here, one too little there.
    """

    def best(self, bound: float) -> Best:
        n_cells, n_outcomes = self.moments.n_cells, self.gain.shape[1]
        demand = self.moments.target.reshape(n_cells, n_outcomes)
        booked = self.gain.min(axis=1, keepdims=True) + 2 * bound
        cost = np.minimum(self.gain, booked)
        potentials, flow, _ = self.solve(cost, demand, None)
        moved = float(flow[cost < self.gain].sum())
        return Best(potentials.ravel(), 2 * moved)


class CappedAnswer(_Transport):
    """The answer has its mass and no other outcome has more: sinks with capacities.

    Under a bound there is one more sink for what exceeds any of them, at that price,
    and the filler may stand in for the answer's missing mass.
    """

    def best(self, bound: float) -> Best:
        moments, n_outcomes = self.moments, self.gain.shape[1]
        n_cells = moments.n_cells
        answer = np.zeros(n_cells, dtype=np.int64)
        first = moments.equality[moments.row]
        answer[moments.cell_of_node[moments.node[first]]] = moments.outcome[first]
        cells = np.arange(n_cells)
        demand = np.repeat(self.mass[:, None], n_outcomes, axis=1)
        for y in range(n_outcomes):
            capped = self.row_of(1 + y)
            has = capped >= 0
            demand[has, y] = moments.target[capped[has]]
        demand[cells, answer] = moments.target[self.row_of(0)]
        filler = np.zeros_like(demand)
        filler[cells, answer] = bound
        cost = self.gain
        if np.isfinite(bound):
            over = self.gain.min(axis=1, keepdims=True) + bound
            cost = np.column_stack([cost, over])
            demand = np.column_stack([demand, self.mass])
            filler = np.column_stack([filler, np.zeros(n_cells)])
        potentials, flow, filled = self.solve(cost, demand, filler)
        multipliers = np.zeros(moments.n_rows)
        multipliers[self.row_of(0)] = potentials[cells, answer]
        for y in range(n_outcomes):
            capped = self.row_of(1 + y)
            has = capped >= 0
            multipliers[capped[has]] = np.minimum(potentials[has, y], 0)
        violation = float(filled[cells, answer].sum() + flow[:, n_outcomes:].sum())
        return Best(np.clip(multipliers, -bound, bound), violation)


class QuantileCells(_Transport):
    """At most the level lies below the report, at most the rest above it."""

    def best(self, bound: float) -> Best:
        moments = self.moments
        shape = moments.anchors.shape
        below, up_to = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        is_first = moments.slot_of_row[moments.row] == 0
        below[moments.node[is_first], moments.outcome[is_first]] = True
        up_to[moments.node[~is_first], moments.outcome[~is_first]] = True
        classes = (below, up_to & ~below, ~up_to)
        cost = np.column_stack(
            [
                np.where(mask[self.node], self.gain, np.inf).min(axis=1)
                for mask in classes
            ]
        )
        low, high = self.row_of(0), self.row_of(1)
        demand = np.column_stack(
            [moments.target[low], self.mass, self.mass + moments.target[high]]
        )
        if np.isfinite(bound):
            over = cost.min(axis=1, keepdims=True) + bound
            cost = np.column_stack([cost, over])
            demand = np.column_stack([demand, self.mass])
        potentials, flow, _ = self.solve(cost, demand, np.zeros_like(demand))
        multipliers = np.zeros(moments.n_rows)
        multipliers[low] = np.minimum(potentials[:, 0] - potentials[:, 1], 0)
        multipliers[high] = np.minimum(potentials[:, 2] - potentials[:, 1], 0)
        violation = float(flow[:, 3:].sum())
        return Best(np.clip(multipliers, -bound, bound), violation)


FORMS: dict[str, type[CellPrograms]] = {
    "single": SingleEquality,
    "vector": WholeDistribution,
    "capped": CappedAnswer,
    "quantile": QuantileCells,
}


_MAX_LINES = 200
"""Supporting lines tried; a few dozen suffice, so this only stops rounding."""


@dataclass(frozen=True, slots=True)
class _Point:
    """The objective at one bound on the multipliers."""

    bound: float
    value: float
    slope: float
    best: Best


def best_multipliers(programs: CellPrograms, price: float) -> Floats:
    """Multipliers that maximise the dual value less ``price`` times their size.

    The value is concave and piecewise linear in the bound on the size; two supporting
    lines meet at the next point to try, and at the optimum they meet on the graph.
    """
    unbounded = programs.best(np.inf)
    if price == 0:
        return unbounded.multipliers

    def at(bound: float) -> _Point:
        best = programs.best(bound)
        value = programs.value(best.multipliers) - price * bound
        return _Point(bound, value, best.violation - price, best)

    low, high = at(0.0), at(programs.size_of(unbounded.multipliers))
    for _ in range(_MAX_LINES):
        if low.slope <= 0 or high.slope >= 0 or high.bound <= low.bound:
            break
        meeting = (
            high.value - low.value + low.slope * low.bound - high.slope * high.bound
        ) / (low.slope - high.slope)
        meeting = float(np.clip(meeting, low.bound, high.bound))
        promised = low.value + low.slope * (meeting - low.bound)
        middle = at(meeting)
        if middle.value >= promised - 1e-14 * (1 + abs(promised)):
            return middle.best.multipliers
        low, high = (middle, high) if middle.slope > 0 else (low, middle)
    return max(low, high, key=lambda point: point.value).best.multipliers
