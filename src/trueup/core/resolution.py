"""Adaptive cells: functions of a report, fitted on some items, defined for all.

Reference cells are equal-mass bins of the stated confidence (or value), common to all
answers; a rung that tells answers or groups apart splits each bin by them and pools
those with too few items inside that bin. So the cells of a rung refine the cells of
the rung below, equal reports are never torn apart, and no cell depends on anything but
the reference's report and the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from trueup._arrays import distinct_rows, group_sums
from trueup._validate import Floats, Ints
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports

NEVER_SEEN = -1


def score_of(reports: Reports) -> Floats:
    """(n,) the number that bins are made of: confidence or value."""
    if isinstance(reports, AnswerConfidence):
        return reports.confidence
    if isinstance(reports, Distributions):
        return reports.probabilities.max(axis=1)
    return reports.value if isinstance(reports, PointReport) else np.zeros(len(reports))


def equal_mass_edges(scores: Floats, weights: Floats, n_bins: int) -> Floats:
    """Inner edges of at most ``n_bins`` bins of about equal mass.

    An edge lies midway between two distinct scores, so equal scores share a bin.
    """
    values, place = np.unique(scores, return_inverse=True)
    if n_bins <= 1 or len(values) == 1:
        return np.empty(0)
    mass = group_sums(place.ravel(), weights, len(values))
    reached = np.cumsum(mass)
    wanted = reached[-1] * np.arange(1, n_bins) / n_bins
    last = np.minimum(np.searchsorted(reached, wanted * (1 - 1e-12)), len(values) - 2)
    cut = np.unique(last)
    return (values[cut] + values[cut + 1]) / 2


@dataclass(frozen=True, slots=True, eq=False)
class SplitBins:
    """Bins of a score, each split in parts, small ones pooled inside the bin."""

    edges: Floats
    """Inner edges of the bins."""
    table: Ints
    """(bins, parts) cell of each part; a pooled cell stands in several places."""
    rest: Ints
    """(bins,) cell of parts never seen; NEVER_SEEN where the bin pooled nothing."""

    @classmethod
    def build(
        cls,
        scores: Floats,
        parts: Ints,
        weights: Floats,
        *,
        n_parts: int,
        n_bins: int,
        least: float,
    ) -> Self:
        """Split equal-mass bins; parts of fewer than ``least`` items are pooled."""
        edges = equal_mass_edges(scores, weights, n_bins)
        place = np.searchsorted(edges, scores, side="right")
        n_items = group_sums(
            place * n_parts + parts, np.ones(len(scores)), (len(edges) + 1) * n_parts
        ).reshape(-1, n_parts)
        return cls.from_counts(edges, n_items, least)

    @classmethod
    def from_counts(cls, edges: Floats, n_items: Floats, least: float) -> Self:
        """Cells of (bins, parts) that hold so many items."""
        alone = n_items >= max(least, 1)
        table = np.full(n_items.shape, NEVER_SEEN)
        table[alone] = np.arange(int(alone.sum()))
        rest = np.full(len(edges) + 1, NEVER_SEEN)
        pooled = ((n_items > 0) & ~alone).any(axis=1)
        rest[pooled] = int(alone.sum()) + np.arange(int(pooled.sum()))
        table = np.where(alone, table, rest[:, None])
        return cls(edges, table, rest)

    @property
    def n_alone(self) -> int:
        """Number of cells that are no remainder of a bin; they come first."""
        kept = self.rest[self.rest != NEVER_SEEN]
        return int(kept.min()) if kept.size else self.n_cells

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(max(self.table.max(initial=-1), self.rest.max(initial=-1))) + 1

    def assign(self, scores: Floats, parts: Ints) -> Ints:
        """(n,) cell of each item; parts below zero were never seen."""
        place = np.searchsorted(self.edges, scores, side="right")
        known = (parts >= 0) & (parts < self.table.shape[1])
        inside = self.table[place, np.where(known, parts, 0)]
        return np.where(known, inside, self.rest[place])


@dataclass(frozen=True, slots=True)
class Resolution:
    """How fine the cells are. Documented in docs/explanation/finite-samples.md."""

    least_items: int = 8
    """Items a reference cell of the projection has at least (n0)."""
    certify_items: int = 50
    """Items a reference cell of the certificate has at least, where N allows."""
    reference_bins: int = 10
    primary_bins: int = 6
    """Bins of the primary's confidence, at most, for each answer."""
    primary_items: int = 40
    """Items a primary cell has at least, where there are enough."""
    micro_cells: int = 400
    """Reports are averaged to about so many for solving; tilts use every report."""


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceCells:
    """Cells of the reference for one rung, defined for any report and group."""

    rung: str
    n_groups: int
    bins: SplitBins

    @classmethod
    def build(
        cls,
        reports: Reports,
        rung: str,
        groups: Ints,
        n_groups: int,
        weights: Floats,
        *,
        n_bins: int,
        least: int,
    ) -> Self:
        """Bins with enough items, split by what the rung tells apart."""
        parts, n_parts = _parts(rung, n_groups, reports, groups)
        wanted = 1 if rung == "mean" else min(n_bins, max(1, len(reports) // least))
        bins = SplitBins.build(
            score_of(reports),
            parts,
            weights,
            n_parts=n_parts,
            n_bins=wanted,
            least=least if n_parts > 1 else 0,
        )
        return cls(rung, n_groups, bins)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.bins.n_cells

    def assign(self, reports: Reports, groups: Ints) -> Ints:
        """(n,) cell of each report; NEVER_SEEN where fitting had nothing like it."""
        parts, _ = _parts(self.rung, self.n_groups, reports, groups)
        return self.bins.assign(score_of(reports), parts)


_TELLS_ANSWERS_APART = ("answer-confidence", "distribution", "point")


def _parts(
    rung: str, n_groups: int, reports: Reports, groups: Ints
) -> tuple[Ints, int]:
    """What a rung tells apart inside a bin; NEVER_SEEN for a group never seen."""
    n_groups = max(n_groups, 1)
    answers = reports.answers()
    if rung in _TELLS_ANSWERS_APART and answers is not None:
        parts = np.where(groups >= 0, answers * n_groups + groups, NEVER_SEEN)
        return parts, reports.n_outcomes * n_groups
    return groups, n_groups


@dataclass(frozen=True, slots=True, eq=False)
class PrimaryCells:
    """Cells of the primary: its answer, and equal-mass bins of its confidence."""

    edges: tuple[Floats, ...]
    """Inner edges for each answer (one entry for reports without answers)."""

    @classmethod
    def build(cls, reports: Reports, weights: Floats, resolution: Resolution) -> Self:
        """Bins with enough items each; an answer nobody gave has one empty cell."""
        answers, scores = reports.answers(), score_of(reports)
        n_answers = 1 if answers is None else reports.n_outcomes
        which = np.zeros(len(reports), dtype=np.int64) if answers is None else answers
        edges = []
        for answer in range(n_answers):
            chosen = which == answer
            n_bins = int(chosen.sum()) // resolution.primary_items
            n_bins = min(resolution.primary_bins, n_bins)
            edges.append(
                equal_mass_edges(scores[chosen], weights[chosen], n_bins)
                if n_bins > 1
                else np.empty(0)
            )
        return cls(tuple(edges))

    @property
    def offsets(self) -> Ints:
        """Number of the first cell of each answer, and of all cells."""
        sizes = [0, *(len(edges) + 1 for edges in self.edges)]
        return np.cumsum(sizes)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.offsets[-1])

    def assign(self, reports: Reports) -> Ints:
        """(n,) cell of each report."""
        answers, scores = reports.answers(), score_of(reports)
        if answers is None:
            return np.searchsorted(self.edges[0], scores, side="right")
        cell = np.empty(len(reports), dtype=np.int64)
        for answer, (edges, first) in enumerate(
            zip(self.edges, self.offsets[:-1], strict=True)
        ):
            chosen = answers == answer
            cell[chosen] = first + np.searchsorted(edges, scores[chosen], side="right")
        return cell


def two_folds(n_units: int, rng: np.random.Generator | None) -> Ints:
    """(n,) a random half for each unit; the same halves whenever no rng is given."""
    chosen = np.random.default_rng(0) if rng is None else rng
    return chosen.permutation(np.arange(n_units) % 2)


def micro_cells(reports: Reports, cells: Ints, n_micro: int) -> Ints:
    """(n,) micro-cell of each report: finer than cells, about ``n_micro`` in all."""
    if len(reports) <= n_micro:
        return distinct_rows(reports.keys())[1]
    order = np.lexsort((score_of(reports), cells))
    rank = np.empty(len(reports), dtype=np.int64)
    rank[order] = np.arange(len(reports)) * n_micro // len(reports)
    return distinct_rows(np.column_stack([cells, rank]).astype(np.float64))[1]
