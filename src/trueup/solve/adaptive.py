"""Maps on adaptive cells: fitted on some items, certified item by item on others.

Primary cells tie reports, they do not pool them: every report keeps its own new report,
a *tilt* by the slope of its cell, which is defined for reports never seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from trueup._arrays import distinct_rows, equal_pairs, group_sums
from trueup._validate import Floats, Ints
from trueup.core.assertions import Assertion, make_assertions, top_of
from trueup.core.losses import Deployment, ProperLoss, Solved
from trueup.core.moments import MomentRows, Trust, as_trusted, pooled_rows
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.core.resolution import (
    PrimaryCells,
    ReferenceCells,
    Resolution,
    in_order,
    out_of_order,
)
from trueup.solve import conic, lazily
from trueup.solve.problem import ProjectionProblem, Rows, merged_rows
from trueup.solve.sample import Placed, Sample

_IDLE = 1e-9
"""Slopes below this are the solver's rounding: the cell is left alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Tilt:
    """A map by formula: a slope for each primary cell, applied to any report."""

    cells: PrimaryCells
    slopes: Floats
    """(cells, K) mu in the frame of the cells, centred; zero in cells never seen."""

    def shortened(self, step: float) -> Tilt:
        """The same direction, a part of the way."""
        return replace(self, slopes=step * self.slopes)

    def deploy(self, loss: ProperLoss, reports: Reports) -> Deployment:
        """What replaces each report."""
        slopes = self.slopes[self.cells.assign(reports)]
        slopes = out_of_order(slopes, self.cells.order(reports))
        anywhere = np.ones_like(slopes, dtype=bool)
        return loss.deploy(reports, Solved(slopes, anywhere))


@dataclass(frozen=True, slots=True, eq=False)
class Temperature:
    """A map with one parameter: h proportional to r to the power ``exponent``."""

    cells: PrimaryCells
    exponent: float

    def shortened(self, step: float) -> Temperature:
        """The same direction, a part of the way."""
        return replace(self, exponent=self.exponent**step)

    def deploy(self, loss: ProperLoss, reports: Reports) -> Deployment:
        """What replaces each report."""
        stated = cast("Distributions", reports)
        better = replace(
            stated, probabilities=powered(stated.probabilities, self.exponent)
        )
        return Deployment(loss.vectors(better), better)


def powered(rows: Floats, exponent: float) -> Floats:
    """Rows to a power, normalised; zeros stay zero."""
    with np.errstate(divide="ignore"):
        logs = np.where(rows > 0, exponent * np.log(rows), -np.inf)
    raised = np.exp(logs - logs.max(axis=1, keepdims=True))
    return cast("Floats", raised / raised.sum(axis=1, keepdims=True))


def nearest_temperature(
    sample: Sample,
    cells: PrimaryCells,
    trust: Trust,
    assume: tuple[str, ...],
    resolution: Resolution,
) -> Temperature:
    """The temperature nearest one that satisfies the asserted rows on these items.

    ``informative`` may ask for less confidence, ``stronger`` for more; where they ask
    for both, the predictors contradict the assertions and the exponent stays at one.
    Each row may be missed by the reference's error, and one of several by its standard
    error as well: the extreme of many noisy rows would ask for too much.
    """
    asserted = make_assertions(
        assume,
        sample.primary,
        sample.reference,
        sample.shares,
        cells=cells,
        resolution=resolution,
    )
    several = len({one.confidence for one in asserted if one.sign > 0}) > 1
    wanted = [
        _root(one.name, _excess(one, sample, trust.reference_error, several=several))
        for one in asserted
    ]
    lowest, highest = min(wanted, default=1.0), max(wanted, default=1.0)
    if lowest < 1 < highest:
        return Temperature(cells, 1.0)
    return Temperature(cells, lowest if lowest < 1 else highest)


def _excess(
    one: Assertion, sample: Sample, error: float, *, several: bool
) -> Callable[[float], float]:
    """How far an asserted row is from holding, by exponent, on the items it concerns.

    Item by item, without the shares that a linear row of the projection needs.
    """
    reference = top_of(sample.reference)
    inside = np.flatnonzero(one.concerns(sample.reference))
    rows = cast("Distributions", sample.primary).probabilities[inside]
    chosen = reference.answer[inside] if one.sign > 0 else rows.argmax(axis=1)
    stated, items = reference.confidence[inside], np.arange(len(inside))
    share = sample.shares[inside] / sample.shares[inside].sum()

    def excess(exponent: float) -> float:
        beyond = one.sign * (powered(rows, exponent)[items, chosen] - stated)
        mean = float(share @ beyond)
        noise = float(np.sqrt((share**2) @ (beyond - mean) ** 2)) if several else 0.0
        return mean - noise - error

    return excess


def _root(name: str, excess: Callable[[float], float]) -> float:
    """The exponent nearest one at which a row holds, by bisection on its logarithm."""
    if excess(1.0) <= 0:
        return 1.0
    near, far = 0.0, np.log(100.0) if name == "stronger" else np.log(0.01)
    if excess(float(np.exp(far))) > 0:
        return 1.0  # no temperature satisfies it
    for _ in range(60):
        middle = (near + far) / 2
        if excess(float(np.exp(middle))) > 0:
            near = middle
        else:
            far = middle
    return float(np.exp(far))


@dataclass(frozen=True, slots=True, eq=False)
class LinkedProjection:
    """A projection on adaptive cells, before it is turned into a map."""

    problem: ProjectionProblem
    iterate: conic.Iterate
    cells: PrimaryCells
    used: Ints
    """Numbers of the primary cells that hold items, in the problem's order."""
    reference_cells: ReferenceCells
    n0: int
    """Items in the smallest reference cell, remainders of a bin aside."""

    @property
    def tilt(self) -> Tilt:
        """The map: slopes of the cells in use, none elsewhere."""
        slopes = np.zeros((self.cells.n_cells, self.problem.n_outcomes))
        slopes[self.used[self.problem.cell_of_atom]] = self.iterate.solved.tilt
        slopes -= slopes.mean(axis=1, keepdims=True)
        # A solver's last digits must not decide between answers that tie.
        idle = np.abs(slopes).max(axis=1, keepdims=True) < _IDLE
        return Tilt(self.cells, np.where(idle, 0.0, slopes))


def project_linked(
    sample: Sample,
    loss: ProperLoss,
    trust: Trust,
    assume: tuple[str, ...],
    resolution: Resolution,
) -> LinkedProjection:
    """Project on adaptive cells of both predictors, built from the items."""
    placed = Placed.of_items(sample, trust, assume, resolution)
    return project_placed(placed, loss, trust, assume, resolution)


def project_placed(
    placed: Placed,
    loss: ProperLoss,
    trust: Trust,
    assume: tuple[str, ...],
    resolution: Resolution,
) -> LinkedProjection:
    """Project on the cells that items were placed in."""
    sample, cells, (found, cell) = placed.sample, placed.cells, placed.fine
    stated, about = as_trusted(sample.reference, trust)
    shares, items = sample.shares, np.arange(len(sample))
    where, order = placed.primary_cell, cells.order(sample.primary)
    ordered = in_order(stated, order)
    moments = unrestricted(pooled_rows(ordered, about, items, cell, shares))
    rows = merged_rows(moments.node_of_pair, where, shares)
    if assume:
        asserted = make_assertions(
            assume,
            sample.primary,
            sample.reference,
            shares,
            cells=cells,
            resolution=resolution,
        )
        bounds = [float(shares @ one.targets(sample.reference)) for one in asserted]
        moments, rows = with_assertions(moments, rows, asserted, bounds)
    ranked = replace(sample, primary=in_order(sample.primary, order))
    truth = (moments, rows)
    problem, used = _linked_problem(ranked, where, placed.micro, truth, trust)
    sizes = group_sums(cell, placed.n_items, found.n_cells)
    smallest = int(sizes[: max(found.bins.n_alone, 1)].min())
    iterate = lazily.solve(problem, loss)
    return LinkedProjection(problem, iterate, cells, used, found, smallest)


def unrestricted(moments: MomentRows) -> MomentRows:
    """A sample's zeros are not the population's: rule no outcome out."""
    return replace(moments, allowed=np.ones_like(moments.allowed))


def with_assertions(
    moments: MomentRows,
    rows: Rows,
    asserted: tuple[Assertion, ...],
    bounds: list[float],
) -> tuple[MomentRows, Rows]:
    """Add asserted rows, whose coefficients depend on the primary cell.

    Every (node, primary cell) becomes a node of its own, so that a row may tell them
    apart; the moments of the reference then span several nodes of a cell.
    """
    n_rows, n_nodes = moments.n_rows, len(rows.weight)
    entry, node = equal_pairs(moments.node, rows.node)
    parts = [
        (moments.row[entry], node, moments.outcome[entry], moments.coefficient[entry])
    ]
    for extra, one in enumerate(asserted):
        of_node = one.coefficients[rows.owner]
        where, outcome = np.nonzero(of_node)
        full = np.full(len(where), n_rows + extra)
        parts.append((full, where, outcome, of_node[where, outcome]))
    row, node, outcome, coefficient = (
        np.concatenate(list(x)) for x in zip(*parts, strict=True)
    )
    own_cells = moments.n_cells + np.arange(len(asserted))
    wide = replace(
        moments,
        node_of_pair=np.arange(n_nodes),
        cell_of_node=moments.cell_of_node[rows.node],
        equality=np.append(moments.equality, np.zeros(len(asserted), dtype=bool)),
        target=np.append(moments.target, bounds),
        cell_of_row=np.append(moments.cell_of_row, own_cells),
        slot_of_row=np.append(
            moments.slot_of_row, np.zeros(len(asserted), dtype=np.int64)
        ),
        row=row,
        node=node,
        outcome=outcome,
        coefficient=coefficient,
        anchors=moments.anchors[rows.node],
        allowed=moments.allowed[rows.node],
        form="asserted",
    )
    return wide, Rows(np.arange(n_nodes), rows.owner, rows.weight)


def _linked_problem(
    sample: Sample,
    cell_of_item: Ints,
    micro: Ints,
    truth: tuple[MomentRows, Rows],
    trust: Trust,
) -> tuple[ProjectionProblem, Ints]:
    """Atoms (micro-cells of reports) linked to primary cells; and the cells in use."""
    moments, rows = truth
    shares = sample.shares
    used, compact = np.unique(cell_of_item, return_inverse=True)
    n_micro = int(micro.max()) + 1
    cell_of_atom = np.zeros(n_micro, dtype=np.int64)
    cell_of_atom[micro] = compact.ravel()
    linked = Rows(rows.node, np.searchsorted(used, rows.owner), rows.weight)
    weight = group_sums(micro, shares, n_micro)
    problem = ProjectionProblem(
        atoms=_mean_reports(sample.primary, micro, shares, weight),
        atom_weight=weight,
        cell_of_atom=cell_of_atom,
        pairs=linked,
        linked=linked,
        moments=moments,
        trust=trust,
    )
    return problem, used


def _mean_reports(
    reports: Reports, micro: Ints, shares: Floats, weight: Floats
) -> Reports:
    """The mean report of each micro-cell; all have the same answer."""
    first, _ = distinct_rows(micro[:, None].astype(np.float64))
    if isinstance(reports, Distributions):
        total = group_sums(micro, shares[:, None] * reports.probabilities, len(weight))
        return replace(reports, probabilities=total / weight[:, None])
    if isinstance(reports, AnswerConfidence):
        mean = group_sums(micro, shares * reports.confidence, len(weight)) / weight
        return AnswerConfidence._of(reports.answer[first], mean, reports.outcomes)
    if isinstance(reports, PointReport):
        mean = group_sums(micro, shares * reports.value, len(weight)) / weight
        return PointReport._of(mean, reports.outcomes, reports.about)
    return reports.take(first)
