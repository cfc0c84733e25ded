"""Rungs of the ladder as cells and moments of labelled items (METHOD section 3).

Cells are functions of the reference's report (and of the group), never of labels:
one set of equal-mass confidence edges for all rungs, split by answer further up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from trueup._arrays import group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.core.moments import POINT, RUNGS
from trueup.core.properties import AnswerConfidenceProperty, ModeProperty, Property
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.evaluate import _binning
from trueup.evaluate._inputs import Labelled
from trueup.evaluate._resampling import CHUNK, CellNorm

CAPS = "answer-confidence with caps"
PSEUDO_ITEMS = 4.0
"""Agresti and Coull: this many imagined items a cell keep rates off zero and one."""


@dataclass(frozen=True, slots=True, eq=False)
class RungMoments:
    """What one rung says of the labelled items, moment by moment.

    Column m belongs to cell ``cell_of_column[m]``; the rung says that the mean over
    the cell of ``hits - targets`` is zero, or at most zero.
    """

    rung: str
    cell: Ints
    """(n,) cell of each item."""
    weights: Floats
    hits: sparse.csr_array
    """(n, columns) T at what happened."""
    targets: sparse.csr_array
    """(n, columns) t."""
    equality: Bools
    cell_of_column: Ints
    n_categories: int
    """Outcomes T tells apart, for imagined items; 0 where T is no indicator."""

    @classmethod
    def of(
        cls, rung: str, about: Property, reports: Reports, sample: Labelled, cell: Ints
    ) -> Self:
        """Read the identification functions and pool them into cells."""
        reading = about.identify(reports)
        n_items, n_slots = reading.targets.shape
        _, index = np.unique(cell, return_inverse=True)
        n_cells = int(index.max()) + 1
        # A pooled inequality holds only where every member carries it.
        counts = group_sums(index, reading.applies.astype(np.float64), n_cells)
        kept = (counts == np.bincount(index)[:, None]).ravel()
        shape = (n_items, n_cells * n_slots)
        happened = reading.outcome == sample.labels[reading.report]
        column = index[reading.report] * n_slots + reading.slot
        hits = sparse.csr_array(
            (
                reading.coefficient[happened],
                (reading.report[happened], column[happened]),
            ),
            shape=shape,
        )
        columns = index[:, None] * n_slots + np.arange(n_slots)
        starts = np.arange(n_items + 1) * n_slots
        targets = sparse.csr_array(
            (reading.targets.ravel(), columns.ravel(), starts), shape=shape
        )
        is_distribution = isinstance(reports, Distributions) and n_slots > 1
        indicator = 0 if isinstance(reports, PointReport) else 2
        return cls(
            rung=rung,
            cell=index,
            weights=sample.weights,
            hits=hits[:, kept],
            targets=targets[:, kept],
            equality=np.tile(reading.equality, n_cells)[kept],
            cell_of_column=np.repeat(np.arange(n_cells), n_slots)[kept],
            n_categories=reports.n_outcomes if is_distribution else indicator,
        )

    @property
    def n_cells(self) -> int:
        """How many cells hold items."""
        return int(self.cell.max()) + 1

    def norm(self, level: float) -> CellNorm:
        """The calibration error at this rung."""
        return CellNorm(
            (self.hits - self.targets).tocsr(),
            self.weights,
            equality=self.equality,
            level=level,
        )

    @property
    def noise_scale(self) -> Floats:
        """(columns,) standard errors that do not vanish where a cell shows one result.

        The larger of what the residuals show and of a binomial with imagined items.
        """
        weights, column_cell = self.weights, self.cell_of_column
        mass = group_sums(self.cell, weights, self.n_cells)
        spread = group_sums(self.cell, weights**2, self.n_cells)
        variance = self._residual_variance(mass)
        if self.n_categories:
            n_items = (mass**2 / spread)[column_cell]
            rate = (weights @ self.hits) / mass[column_cell]
            pseudo = PSEUDO_ITEMS / self.n_categories
            smooth = (rate * n_items + pseudo) / (n_items + PSEUDO_ITEMS)
            variance = np.maximum(variance, smooth * (1 - smooth))
        return np.sqrt(variance * spread[column_cell]) / weights.sum()

    def _residual_variance(self, mass: Floats) -> Floats:
        residual = (self.hits - self.targets).tocsr()
        mean = (self.weights @ residual) / mass[self.cell_of_column]
        residual.data **= 2
        second = (self.weights @ residual) / mass[self.cell_of_column]
        return np.maximum(second - mean**2, 0.0)

    def noise(self, n_draws: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Chunks of (draws, columns) normal errors of the columns' deviations.

        Items get normal multipliers, which keeps the correlation of moments in a cell;
        what is missing to ``noise_scale`` is added independently.
        """
        weights, total = self.weights, self.weights.sum()
        mass = group_sums(self.cell, weights, self.n_cells)
        rate = (weights @ self.hits) / mass[self.cell_of_column]
        member = sparse.csr_array(
            (weights, self.cell, np.arange(len(weights) + 1)),
            shape=(len(weights), self.n_cells),
        )
        weighted = self.hits.multiply(weights[:, None]).tocsr()
        shown = self._multiplier_variance(weighted, rate)
        missing = np.sqrt(np.maximum(self.noise_scale**2 - shown / total**2, 0))
        width = max(len(weights), len(rate))
        for start in range(0, n_draws, per_chunk := max(1, CHUNK // width)):
            size = min(per_chunk, n_draws - start)
            g = rng.standard_normal((size, len(weights)))
            shares: Floats = np.asarray(g @ member)[:, self.cell_of_column]
            centred = g @ weighted - rate * shares
            extra = rng.standard_normal((size, len(rate))) * missing
            yield centred / total + extra

    def _multiplier_variance(self, weighted: sparse.csr_array, rate: Floats) -> Floats:
        """(columns,) sum over a cell of w^2 (T - rate)^2."""
        spread = group_sums(self.cell, self.weights**2, self.n_cells)
        squared = weighted.copy()
        squared.data **= 2
        cross = self.weights @ weighted
        ones = np.asarray(squared.sum(axis=0)).ravel()
        return ones - 2 * rate * cross + rate**2 * spread[self.cell_of_column]


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """The cells of every rung for one labelled sample."""

    sample: Labelled
    group: Ints
    bin: Ints
    answer: Ints
    """(n,) answers, those too rare in their bin and group pooled as -1."""

    @classmethod
    def of(
        cls, sample: Labelled, group: Ints | None, n_bins: int, min_items: int
    ) -> Self:
        """Equal-mass bins of confidence, split by answer where there are enough."""
        reports = as_answers(sample.reports)
        groups = np.zeros(len(sample), np.int64) if group is None else group
        bins = _binning.equal_mass(reports.confidence, sample.weights, n_bins)
        key = np.column_stack([groups, bins, reports.answer])
        _, index, counts = np.unique(
            key, axis=0, return_inverse=True, return_counts=True
        )
        is_rare = counts[index.ravel()] < min_items
        answer = np.where(is_rare, -1, reports.answer)
        return cls(sample, groups, bins, answer)

    def rungs(self) -> Iterator[RungMoments]:
        """The rungs this reference has, the least demanding first."""
        sample = self.sample
        reports = as_answers(sample.reports)
        plain = AnswerConfidenceProperty(caps=False)
        by_bin = _codes(self.group, self.bin)
        by_answer = _codes(self.group, self.bin, self.answer)
        for rung, cell in zip(RUNGS, (self.group, by_bin, by_answer), strict=False):
            yield RungMoments.of(rung, plain, reports, sample, cell)
        if reports.n_outcomes > 2:
            capped = AnswerConfidenceProperty(caps=True)
            yield RungMoments.of(CAPS, capped, reports, sample, by_answer)
        if isinstance(sample.reports, Distributions):
            about = sample.reports.about
            yield RungMoments.of(RUNGS[3], about, sample.reports, sample, by_answer)


def point_moments(sample: Labelled, group: Ints | None, n_bins: int) -> RungMoments:
    """The one rung of a reference that reports a point property."""
    reports = sample.reports
    if not isinstance(reports, PointReport):
        message = "only point reports have this rung"
        raise TypeError(message)
    if isinstance(reports.about, ModeProperty):
        cell = reports.value.astype(np.int64)
    else:
        cell = _binning.equal_mass(reports.value, sample.weights, n_bins)
    groups = np.zeros(len(sample), np.int64) if group is None else group
    return RungMoments.of(POINT, reports.about, reports, sample, _codes(groups, cell))


def as_answers(reports: Reports) -> AnswerConfidence:
    """Reports as (answer, confidence); ties of a distribution to the lowest index."""
    if isinstance(reports, AnswerConfidence):
        return reports
    if isinstance(reports, Distributions):
        return AnswerConfidence._of(
            reports.answers(), reports.probabilities.max(axis=1), reports.outcomes
        )
    message = f"a {reports.about.title} report has no answer and confidence"
    raise TypeError(message)


def _codes(*columns: Ints) -> Ints:
    _, index = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return index.ravel()
