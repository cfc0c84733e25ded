"""The least expected gain over all admissible truths, exactly and cell by cell.

For gains linear in the truth the cells of the reference separate (METHOD section 9):
one equality is a sort, a whole distribution or an answer with caps a transport problem
with few sinks. An error budget couples the cells through one number, the largest
multiplier, over which the value is concave.

Each form of moments is a class with two methods: ``best(bound)``, the multipliers that
are best among those not exceeding ``bound`` and how much the truth that attains the
minimum violates the moments; and ``truth(bound)``, that truth itself.
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
from trueup.core.simplex import normalise_rows
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
        self.order = order
        self.moments = moments
        self.node = rows.node[order]
        self.cell = cell[order]
        self.weight = rows.weight[order]
        self.gain = gain[order]
        self.mass = group_sums(self.cell, self.weight, moments.n_cells)

    @abstractmethod
    def best(self, bound: float) -> Best:
        """The best multipliers of size at most ``bound``."""

    @abstractmethod
    def truth(self, bound: float) -> Floats:
        """(rows, K) rates that attain the minimum under that bound."""

    def _in_order(self, mass: Floats) -> Floats:
        """Rates of the rows as they were given, from masses of the sorted rows."""
        rates = np.empty_like(mass)
        rates[self.order] = normalise_rows(mass)
        return rates

    def _cheapest(self, mass: Floats, among: Bools | None = None) -> Floats:
        """(rows, K) masses put on each row's outcome of least gain."""
        gain = self.gain if among is None else np.where(among, self.gain, np.inf)
        placed = np.zeros_like(gain)
        placed[np.arange(len(gain)), gain.argmin(axis=1)] = mass
        return placed

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
        self.edge_row, self.start = row[sort], kept[:, 0]
        self.edge_from = kept[row, edge][sort]
        self.edge_to = kept[row, edge + 1][sort]
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

    def truth(self, bound: float) -> Floats:
        balance, n_cells = self._balance(), self.moments.n_cells
        clipped = np.clip(balance, -bound, bound)
        below = np.where(
            self.edge_slope <= clipped[self.edge_cell], self.edge_mass, 0.0
        )
        wanted = self.moments.target[self.row_of(0)] - self.lowest
        taken = np.where(
            np.abs(balance) > bound, group_sums(self.edge_cell, below, n_cells), wanted
        )
        before = np.cumsum(self.edge_mass) - self.edge_mass
        first = np.searchsorted(self.edge_cell, np.arange(n_cells))
        offset = np.append(before, 0.0)[np.minimum(first, len(before))]
        room = taken[self.edge_cell] - (before - offset[self.edge_cell])
        share = np.clip(room / self.edge_mass, 0.0, 1.0)
        rates = np.zeros_like(self.gain)
        rates[np.arange(len(rates)), self.start] = 1.0
        np.add.at(rates, (self.edge_row, self.edge_from), -share)
        np.add.at(rates, (self.edge_row, self.edge_to), share)
        return self._in_order(rates)

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
        potentials, flow, booked = self._booked(bound)
        return Best(potentials.ravel(), 2 * float(flow[booked].sum()))

    def truth(self, bound: float) -> Floats:
        _, flow, booked = self._booked(bound)
        elsewhere = np.where(booked, flow, 0.0).sum(axis=1)
        return self._in_order(np.where(booked, 0.0, flow) + self._cheapest(elsewhere))

    def _booked(self, bound: float) -> tuple[Floats, Floats, Bools]:
        """Potentials, flows, and which of them arrive somewhere else."""
        n_cells, n_outcomes = self.moments.n_cells, self.gain.shape[1]
        demand = self.moments.target.reshape(n_cells, n_outcomes)
        limit = self.gain.min(axis=1, keepdims=True) + 2 * bound
        cost = np.minimum(self.gain, limit)
        potentials, flow, _ = self.solve(cost, demand, None)
        return potentials, flow, cost < self.gain


class CappedAnswer(_Transport):
    """The answer has its mass and no other outcome has more: sinks with capacities.

    Under a bound there is one more sink for what exceeds any of them, at that price,
    and the filler may stand in for the answer's missing mass.
    """

    def best(self, bound: float) -> Best:
        moments, n_outcomes = self.moments, self.gain.shape[1]
        cells, answer = np.arange(moments.n_cells), self._answer()
        potentials, flow, filled = self._carried(bound, answer)
        multipliers = np.zeros(moments.n_rows)
        multipliers[self.row_of(0)] = potentials[cells, answer]
        for y in range(n_outcomes):
            capped = self.row_of(1 + y)
            has = capped >= 0
            multipliers[capped[has]] = np.minimum(potentials[has, y], 0)
        violation = float(filled[cells, answer].sum() + flow[:, n_outcomes:].sum())
        return Best(np.clip(multipliers, -bound, bound), violation)

    def truth(self, bound: float) -> Floats:
        n_outcomes = self.gain.shape[1]
        _, flow, _ = self._carried(bound, self._answer())
        over = flow[:, n_outcomes:].sum(axis=1)
        return self._in_order(flow[:, :n_outcomes] + self._cheapest(over))

    def _answer(self) -> Ints:
        """(cells,) the answer whose mass is given."""
        moments = self.moments
        answer = np.zeros(moments.n_cells, dtype=np.int64)
        first = moments.equality[moments.row]
        answer[moments.cell_of_node[moments.node[first]]] = moments.outcome[first]
        return answer

    def _carried(self, bound: float, answer: Ints) -> tuple[Floats, Floats, Floats]:
        moments, n_outcomes = self.moments, self.gain.shape[1]
        cells = np.arange(moments.n_cells)
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
            filler = np.column_stack([filler, np.zeros(moments.n_cells)])
        return self.solve(cost, demand, filler)


class QuantileCells(_Transport):
    """At most the level lies below the report, at most the rest above it."""

    def best(self, bound: float) -> Best:
        potentials, flow = self._carried(bound, self._classes())
        multipliers = np.zeros(self.moments.n_rows)
        low, high = self.row_of(0), self.row_of(1)
        multipliers[low] = np.minimum(potentials[:, 0] - potentials[:, 1], 0)
        multipliers[high] = np.minimum(potentials[:, 2] - potentials[:, 1], 0)
        violation = float(flow[:, 3:].sum())
        return Best(np.clip(multipliers, -bound, bound), violation)

    def truth(self, bound: float) -> Floats:
        classes = self._classes()
        _, flow = self._carried(bound, classes)
        mass = self._cheapest(flow[:, 3:].sum(axis=1))
        for place, mask in enumerate(classes):
            mass += self._cheapest(flow[:, place], mask)
        return self._in_order(mass)

    def _classes(self) -> tuple[Bools, Bools, Bools]:
        """(rows, K) outcomes below the report, at it, above it."""
        moments = self.moments
        below = np.zeros(moments.anchors.shape, dtype=bool)
        up_to = np.zeros_like(below)
        is_first = moments.slot_of_row[moments.row] == 0
        below[moments.node[is_first], moments.outcome[is_first]] = True
        up_to[moments.node[~is_first], moments.outcome[~is_first]] = True
        classes = (below, up_to & ~below, ~up_to)
        first, second, third = (mask[self.node] for mask in classes)
        return first, second, third

    def _carried(
        self, bound: float, classes: tuple[Bools, Bools, Bools]
    ) -> tuple[Floats, Floats]:
        moments = self.moments
        cost = np.column_stack(
            [np.where(mask, self.gain, np.inf).min(axis=1) for mask in classes]
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
        return potentials, flow


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
