"""Maps on adaptive cells: fitted on some items, certified item by item on others.

Primary cells tie reports, they do not pool them: every report keeps its own new report,
a *tilt* by the slope of its cell, which is defined for reports never seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np

from trueup._arrays import distinct_rows, equal_pairs, group_sums
from trueup._validate import Floats, Ints
from trueup.core.assertions import Assertion, make_assertion, top_of
from trueup.core.losses import Deployment, ProperLoss, Solved
from trueup.core.moments import MomentRows, Trust, as_trusted, pooled_rows
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.core.resolution import (
    PrimaryCells,
    ReferenceCells,
    Resolution,
    micro_cells,
)
from trueup.solve import conic, lazily
from trueup.solve.problem import ProjectionProblem, Rows, merged_rows

_IDLE = 1e-9
"""Slopes below this are the solver's rounding: the cell is left alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Items of both predictors, as fitting sees them."""

    primary: Reports
    reference: Reports
    groups: Ints
    n_groups: int
    weights: Floats

    def take(self, index: Ints) -> Sample:
        """Some of the items."""
        return replace(
            self,
            primary=self.primary.take(index),
            reference=self.reference.take(index),
            groups=self.groups[index],
            weights=self.weights[index],
        )

    @property
    def shares(self) -> Floats:
        """Weights that sum to one."""
        return self.weights / self.weights.sum()

    def __len__(self) -> int:
        return len(self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class Tilt:
    """A map by formula: a slope for each primary cell, applied to any report."""

    cells: PrimaryCells
    slopes: Floats
    """(cells, K) mu, centred; zero in cells never seen."""

    def deploy(self, loss: ProperLoss, reports: Reports) -> Deployment:
        """What replaces each report."""
        slopes = self.slopes[self.cells.assign(reports)]
        anywhere = np.ones_like(slopes, dtype=bool)
        return loss.deploy(reports, Solved(slopes, anywhere))


@dataclass(frozen=True, slots=True, eq=False)
class Temperature:
    """A map with one parameter: h proportional to r to the power ``exponent``."""

    cells: PrimaryCells
    exponent: float

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
    sample: Sample, cells: PrimaryCells, trust: Trust, assume: tuple[str, ...]
) -> Temperature:
    """The temperature nearest one that satisfies the asserted rows on these items.

    ``informative`` may ask for less confidence, ``stronger`` for more; where they ask
    for both, the predictors contradict the assertions and the exponent stays at one.
    """
    rows = cast("Distributions", sample.primary).probabilities
    shares, items = sample.shares, np.arange(len(sample))
    reference = top_of(sample.reference)
    bound = float(shares @ reference.confidence)
    picks = {"informative": reference.answer, "stronger": rows.argmax(axis=1)}

    def excess(name: str, exponent: float) -> float:
        reached = float(shares @ powered(rows, exponent)[items, picks[name]])
        beyond = reached - bound if name == "informative" else bound - reached
        return beyond - trust.reference_error

    wanted = [_root(name, excess) for name in assume]
    lowest, highest = min(wanted, default=1.0), max(wanted, default=1.0)
    if lowest < 1 < highest:
        return Temperature(cells, 1.0)
    return Temperature(cells, lowest if lowest < 1 else highest)


def _root(name: str, excess: Callable[[str, float], float]) -> float:
    """The exponent nearest one at which a row holds, by bisection on its logarithm."""
    if excess(name, 1.0) <= 0:
        return 1.0
    near, far = 0.0, np.log(0.01) if name == "informative" else np.log(100.0)
    if excess(name, float(np.exp(far))) > 0:
        return 1.0  # no temperature satisfies it
    for _ in range(60):
        middle = (near + far) / 2
        if excess(name, float(np.exp(middle))) > 0:
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


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Items, or weighted stand-ins for many, and the cells they are in."""

    sample: Sample
    cells: PrimaryCells
    primary_cell: Ints
    micro: Ints
    """Finer than the primary cells: reports are averaged in it for solving."""
    fine: tuple[ReferenceCells, Ints]
    """Reference cells of the projection, and the cell of each item."""
    coarse: tuple[ReferenceCells, Ints]
    """Reference cells of the certificate."""

    @classmethod
    def of_items(cls, sample: Sample, trust: Trust, resolution: Resolution) -> Self:
        """Build cells from the items themselves."""
        stated, _ = as_trusted(sample.reference, trust)
        shares = sample.shares

        def built(n_bins: int, least: int) -> tuple[ReferenceCells, Ints]:
            made = ReferenceCells.build(
                stated,
                trust.rung,
                sample.groups,
                sample.n_groups,
                shares,
                n_bins=n_bins,
                least=least,
            )
            return made, made.assign(stated, sample.groups)

        cells = PrimaryCells.build(sample.primary, shares, resolution)
        where = cells.assign(sample.primary)
        n_bins, least = resolution.reference_bins, resolution.certify_items
        fewer = min(n_bins, max(1, len(sample) // least))
        return cls(
            sample,
            cells,
            where,
            micro_cells(sample.primary, where, resolution.micro_cells),
            built(n_bins, resolution.least_items),
            built(fewer, least),
        )

    def assertions(self, assume: tuple[str, ...]) -> tuple[Assertion, ...]:
        """What is asserted, written down for the primary cells."""
        return tuple(
            make_assertion(
                name,
                self.sample.primary,
                self.sample.reference,
                self.primary_cell,
                self.cells.n_cells,
                self.sample.weights,
            )
            for name in assume
        )


def project_placed(
    placed: Placed, loss: ProperLoss, trust: Trust, assume: tuple[str, ...]
) -> LinkedProjection:
    """Project on the cells that items were placed in."""
    sample, (reference_cells, cell) = placed.sample, placed.fine
    stated, about = as_trusted(sample.reference, trust)
    shares, items = sample.shares, np.arange(len(sample))
    moments = unrestricted(pooled_rows(stated, about, items, cell, shares))
    rows = merged_rows(moments.node_of_pair, placed.primary_cell, shares)
    if assume:
        asserted = list(placed.assertions(assume))
        bounds = [float(shares @ one.targets(sample.reference)) for one in asserted]
        moments, rows = with_assertions(moments, rows, asserted, bounds)
    problem, used = _linked_problem(
        sample, placed.primary_cell, placed.micro, (moments, rows), trust
    )
    sizes = group_sums(cell, sample.weights, reference_cells.n_cells)
    smallest = int(sizes[: max(reference_cells.bins.n_alone, 1)].min())
    iterate = lazily.solve(problem, loss)
    return LinkedProjection(
        problem, iterate, placed.cells, used, reference_cells, smallest
    )


def project_linked(
    sample: Sample,
    loss: ProperLoss,
    trust: Trust,
    assume: tuple[str, ...],
    resolution: Resolution,
) -> LinkedProjection:
    """Project on adaptive cells of both predictors, built from the items."""
    placed = Placed.of_items(sample, trust, resolution)
    return project_placed(placed, loss, trust, assume)


def unrestricted(moments: MomentRows) -> MomentRows:
    """A sample's zeros are not the population's: rule no outcome out."""
    return replace(moments, allowed=np.ones_like(moments.allowed))


def with_assertions(
    moments: MomentRows, rows: Rows, asserted: list[Assertion], bounds: list[float]
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
