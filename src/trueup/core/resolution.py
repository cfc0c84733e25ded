"""Adaptive cells: functions of a report, fitted on some items, defined for all.

Reference cells are equal-mass bins of the stated confidence (or value), common to all
answers; a rung that tells answers or groups apart splits each bin by them and pools
those with too few items inside that bin. So the cells of a rung refine the cells of
the rung below, equal reports are never torn apart, and no cell depends on anything but
the reference's report and the group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    certify_bins: int = 10
    reference_bins: int = 40
    primary_bins: int = 20
    """Bins of the primary's confidence, at most, for each answer."""
    ranked_bins: int = 20
    """The same in the frame ``rank``, where all answers share their bins."""
    primary_items: int = 10
    """Items a primary cell has at least, where there are enough."""
    asserted_bins: int = 10
    asserted_items: int = 250
    """Items behind each level of confidence that an assertion tells apart."""
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
    """Cells of the primary: equal-mass bins of its confidence, in one of two frames.

    In the frame ``answer`` each answer has bins of its own and outcomes keep their
    places. In the frame ``rank`` all answers share bins and outcomes stand in the
    order in which the report itself ranks them, so that a slope belongs to "its first
    choice", "its second choice" and so on. Either way a cell ties reports by a sum
    that every truth satisfies; the frame only decides which sums.
    """

    edges: tuple[Floats, ...]
    """Inner edges for each answer (one entry for reports without answers)."""
    frame: str = "answer"

    @classmethod
    def build(
        cls,
        reports: Reports,
        weights: Floats,
        resolution: Resolution,
        *,
        frame: str = "answer",
    ) -> Self:
        """Bins with enough items each; an answer nobody gave has one empty cell."""
        answers, scores = reports.answers(), score_of(reports)
        if frame == "rank":
            n_bins = len(reports) // resolution.primary_items
            n_bins = min(resolution.ranked_bins, n_bins)
            return cls((equal_mass_edges(scores, weights, n_bins),), frame)
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
        if answers is None or self.frame == "rank":
            return np.searchsorted(self.edges[0], scores, side="right")
        cell = np.empty(len(reports), dtype=np.int64)
        for answer, (edges, first) in enumerate(
            zip(self.edges, self.offsets[:-1], strict=True)
        ):
            chosen = answers == answer
            cell[chosen] = first + np.searchsorted(edges, scores[chosen], side="right")
        return cell

    def order(self, reports: Reports) -> Ints | None:
        """(n, K) outcome in each place of the frame; None if all keep their places."""
        return ranking(reports) if self.frame == "rank" else None


def ranking(reports: Reports) -> Ints:
    """(n, K) outcomes from the likeliest to the least likely; ties by their index.

    A report that states only an answer puts it first, and the outcome that stood
    there in the answer's place.
    """
    if isinstance(reports, Distributions):
        return np.argsort(-reports.probabilities, axis=1, kind="stable")
    answers = reports.answers()
    order = np.tile(np.arange(reports.n_outcomes), (len(reports), 1))
    if answers is not None:
        rows = np.arange(len(reports))
        order[rows, answers] = 0
        order[rows, 0] = answers
    return order


def in_order(reports: Reports, order: Ints | None) -> Reports:
    """Reports with the outcomes of each item in the given order."""
    if order is None:
        return reports
    if isinstance(reports, Distributions):
        rows = np.take_along_axis(reports.probabilities, order, axis=1)
        return replace(reports, probabilities=rows)
    if isinstance(reports, AnswerConfidence):
        place = (order == reports.answer[:, None]).argmax(axis=1)
        return AnswerConfidence._of(place, reports.confidence, reports.outcomes)
    message = f"{type(reports).__name__} has no order of outcomes"
    raise TypeError(message)


def out_of_order(rows: Floats, order: Ints | None) -> Floats:
    """(n, K) numbers that stood in the places of a frame, at their outcomes again."""
    if order is None:
        return rows
    back = np.empty_like(rows)
    np.put_along_axis(back, order, rows, axis=1)
    return back


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
