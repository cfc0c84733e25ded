"""Cross-fitted maps: cells, map and multipliers fixed on one half, certified on the
other (METHOD section 6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.core.losses import Deployment, ProperLoss, Solved
from trueup.core.moments import MomentRows, Trust, as_trusted, pooled_rows
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.core.resolution import (
    PrimaryCells,
    Resolution,
    SplitBins,
    micro_cells,
    reference_cells,
    reference_labels,
)
from trueup.solve import conic
from trueup.solve.problem import ProjectionProblem, Rows, merged_rows
from trueup.solve.worst_case import least_gain

MICRO = 400
"""Micro-cells a projection works on; tilts and certificates use every report."""


@dataclass(frozen=True, slots=True, eq=False)
class Tilt:
    """A map by formula: a slope for each primary cell, applied to any report."""

    cells: PrimaryCells
    slopes: Floats
    """(cells, K) mu, centred."""

    def deploy(self, loss: ProperLoss, reports: Reports) -> Deployment:
        """What replaces each report, seen in fitting or not."""
        slopes = self.slopes[self.cells.assign(reports)]
        everywhere = np.ones_like(slopes, dtype=bool)
        return loss.deploy(reports, Solved(reports.keys(), slopes, everywhere))


@dataclass(frozen=True, slots=True, eq=False)
class Witnessed:
    """Multipliers on coarse reference cells: what certifies a map on any items."""

    cells: SplitBins
    multipliers: Floats
    """(cells, slots)."""

    @property
    def steepness(self) -> float:
        """Fall of the bound per unit of reference error."""
        return float(np.abs(self.multipliers).max(initial=0.0))


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


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A map fitted on some items with everything needed to certify it on others."""

    tilt: Tilt
    witnessed: Witnessed
    fitted: float
    """The bound on the items it was fitted on: optimistic."""
    n_cells: int
    n0: float
    """Items in the smallest reference cell of the projection."""


def fit_fold(
    sample: Sample, loss: ProperLoss, trust: Trust, resolution: Resolution
) -> Fold:
    """Build cells, project, and find the best multipliers for the map on coarse cells."""
    stated, about = as_trusted(sample.reference, trust)
    weights = sample.weights / sample.weights.sum()
    fine = reference_cells(
        stated,
        trust.rung,
        sample.groups,
        sample.n_groups,
        weights,
        n_bins=resolution.reference_bins,
        least=resolution.least_items,
    )
    labels, _ = reference_labels(stated, trust.rung, sample.groups, sample.n_groups)
    cell = fine.assign(_scores(stated), labels)
    primary_cells = PrimaryCells.build(sample.primary, weights, resolution)
    items = np.arange(len(weights))
    moments = _unrestricted(pooled_rows(stated, about, items, cell, weights))
    used, problem = linked_problem(sample.primary, primary_cells, moments, weights, trust)
    iterate = conic.solve(problem, loss)
    slopes = _cell_slopes(problem, used, iterate.solved.tilt, primary_cells.n_cells)
    tilt = Tilt(primary_cells, slopes)
    deployed = tilt.deploy(loss, sample.primary)
    witnessed, fitted = _certify_coarsely(
        sample, stated, about, trust, resolution, loss, deployed, weights
    )
    return Fold(tilt, witnessed, fitted, fine.n_cells, float(np.bincount(cell).min()))


def linked_problem(
    primary: Reports,
    cells: PrimaryCells,
    moments: MomentRows,
    weights: Floats,
    trust: Trust,
) -> tuple[Ints, ProjectionProblem]:
    """Atoms (micro-cells of reports) linked to primary cells, on pooled moments."""
    cell = cells.assign(primary)
    used, cell_of_item = np.unique(cell, return_inverse=True)
    micro, _ = micro_cells(primary, cell, MICRO)
    n_micro = int(micro.max()) + 1
    atom_weight = group_sums(micro, weights, n_micro)
    cell_of_atom = np.zeros(n_micro, dtype=np.int64)
    cell_of_atom[micro] = cell_of_item
    pairs = merged_rows(moments.node_of_pair, micro, weights)
    return used, ProjectionProblem(
        atoms=_mean_reports(primary, micro, weights, atom_weight),
        atom_weight=atom_weight,
        cell_of_atom=cell_of_atom,
        pairs=pairs,
        linked=merged_rows(pairs.node, cell_of_atom[pairs.owner], pairs.weight),
        moments=moments,
        trust=trust,
    )


def certify(
    fold: Fold, sample: Sample, loss: ProperLoss, trust: Trust
) -> Floats:
    """(n,) z: the bound item by item, with everything fixed beforehand.

    Its mean over fresh items is an unbiased estimate of a number that is at most the
    map's improvement, less steepness times the reference's error.
    """
    stated, about = as_trusted(sample.reference, trust)
    labels, _ = reference_labels(stated, trust.rung, sample.groups, sample.n_groups)
    cell = fold.witnessed.cells.assign(_scores(stated), labels)
    table = np.vstack([fold.witnessed.multipliers, np.zeros_like(fold.witnessed.multipliers[:1])])
    lam = table[cell]  # a cell never seen is the last row: no multiplier
    reading = about.identify(stated)
    base = (lam * np.where(reading.applies, reading.targets, 0.0)).sum(axis=1)
    n, k = len(stated), stated.n_outcomes
    pull = group_sums(
        reading.report * k + reading.outcome,
        lam[reading.report, reading.slot] * reading.coefficient,
        n * k,
    ).reshape(n, k)
    gain = loss.vectors(sample.primary) - fold.tilt.deploy(loss, sample.primary).losses
    return base + (gain - pull).min(axis=1)


def _scores(stated: Reports) -> Floats:
    from trueup.core.resolution import score_of
    return score_of(stated)


def _unrestricted(moments: MomentRows) -> MomentRows:
    """A sample's zeros are not the population's: rule nothing out."""
    return replace(moments, allowed=np.ones_like(moments.allowed))


def _cell_slopes(problem: ProjectionProblem, cells_used: Ints, tilt: Floats, n_cells: int) -> Floats:
    slopes = np.zeros((n_cells, tilt.shape[1]))
    slopes[cells_used[problem.cell_of_atom]] = tilt
    return slopes - slopes.mean(axis=1, keepdims=True)


def _mean_reports(primary: Reports, micro: Ints, weights: Floats, total: Floats) -> Reports:
    if isinstance(primary, Distributions):
        mean = group_sums(micro, weights[:, None] * primary.probabilities, len(total)) / total[:, None]
        return replace(primary, probabilities=mean)
    first = np.zeros(len(total), dtype=np.int64)
    first[micro] = np.arange(len(micro))
    if isinstance(primary, AnswerConfidence):
        mean = group_sums(micro, weights * primary.confidence, len(total)) / total
        return AnswerConfidence._of(primary.answer[first], mean, primary.outcomes)
    assert isinstance(primary, PointReport)
    mean = group_sums(micro, weights * primary.value, len(total)) / total
    return PointReport._of(mean, primary.outcomes, primary.about)


def _certify_coarsely(sample, stated, about, trust, resolution, loss, deployed, weights):
    coarse = reference_cells(stated, trust.rung, sample.groups, sample.n_groups, weights,
        n_bins=min(resolution.reference_bins, max(1, len(weights)//resolution.certify_items)), least=resolution.certify_items)
    labels, _ = reference_labels(stated, trust.rung, sample.groups, sample.n_groups)
    cell = coarse.assign(_scores(stated), labels)
    items = np.arange(len(weights))
    moments = _unrestricted(pooled_rows(stated, about, items, cell, weights))
    rows = Rows(moments.node_of_pair, items, weights)
    primary = loss.vectors(sample.primary)
    gain = primary - deployed.losses
    bound, multipliers = least_gain(moments, rows, gain, reference_error=trust.reference_error, size=float(np.abs(primary).max()))
    table = np.zeros((coarse.n_cells, int(moments.slot_of_row.max()) + 1))
    if moments.shiftable:
        m = multipliers.reshape(moments.n_cells, -1)
        multipliers = (m - (m.min(1, keepdims=True) + m.max(1, keepdims=True))/2).ravel()
    table[moments.cell_of_row, moments.slot_of_row] = multipliers
    return Witnessed(coarse, table), bound.at(trust.reference_error)
