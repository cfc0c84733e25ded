"""Sufficient statistics of two predictors: counts and sums that add up exactly.

All that fitting on adaptive cells needs of the items is how many there are in each
combination of a cell of the reference and a small cell of the primary, and the sums of
their reports there (METHOD section 5). Reports are summed as whole numbers of 2**-30,
so tables of days, shards or machines merge to the same bits in any order. Sums only
decide which map is fitted; what certifies the map is computed from the reports
themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints, Label
from trueup.core.grid import N_PLACES, edges_of_equal_mass, places
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.core.resolution import Resolution, ranking
from trueup.errors import InvalidInputError

UNITS = 1 << 30
"""Sums of reports are whole numbers of one UNITS-th, rounded down."""

KEYS = ("fold", "group", "bin", "reference_answer", "place", "micro")
_FEWEST_FINE = 40


def in_units(values: Floats) -> Ints:
    """Probabilities as whole numbers of 2**-30, rounded down."""
    return np.floor(values * UNITS).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCounts:
    """How often each place of the grid occurs: the sketch that cell edges come from."""

    primary: Ints
    """(folds, answers, places) of the primary's confidence."""
    reference: Ints
    """(folds, places) of the reference's confidence."""

    @classmethod
    def empty(cls, n_outcomes: int) -> Self:
        """Nothing counted yet."""
        return cls(
            np.zeros((2, n_outcomes, N_PLACES), dtype=np.int64),
            np.zeros((2, N_PLACES), dtype=np.int64),
        )

    @classmethod
    def count(
        cls,
        primary: Reports,
        reference: Reports,
        fold: Ints,
        times: Ints | None = None,
    ) -> Self:
        """Count items, each as often as ``times`` says."""
        answer, score, _ = parts_of(primary)
        n_outcomes = primary.n_outcomes
        code = (fold * n_outcomes + answer) * N_PLACES + places(score)
        other = fold * N_PLACES + places(parts_of(reference)[1])
        made = cls.empty(n_outcomes)
        often = np.ones(len(fold), dtype=np.int64) if times is None else times
        np.add.at(made.primary.reshape(-1), code, often)
        np.add.at(made.reference.reshape(-1), other, often)
        return made

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, ScoreCounts):
            return NotImplemented
        return type(self)(
            self.primary + other.primary, self.reference + other.reference
        )


def parts_of(reports: Reports) -> tuple[Ints, Floats, Floats]:
    """Answer, confidence, and what is summed: the distribution or the confidence."""
    if isinstance(reports, AnswerConfidence):
        return reports.answer, reports.confidence, reports.confidence[:, None]
    if isinstance(reports, Distributions):
        rows = reports.probabilities
        return reports.answers(), rows.max(axis=1), rows
    message = (
        f"statistics are kept of distributions and of answers with a confidence, not "
        f"of a {reports.about.title}.\nhint: fit such reports in memory (trueup.fit)."
    )
    raise InvalidInputError(message)


@dataclass(frozen=True, slots=True, eq=False)
class FoldEdges:
    """Edges of the cells that are fitted on one fold."""

    reference: Floats
    """Inner edges of the reference's bins."""
    primary: tuple[Floats, ...]
    """Inner edges of the primary's bins: for each answer, or one set for all."""
    micro: Floats
    """Finer edges, common to all answers; every primary edge is one of them."""

    @classmethod
    def choose(
        cls, counts: ScoreCounts, fold: int, resolution: Resolution, frame: str
    ) -> Self:
        """Bins of about equal mass from a sketch of the fold's scores."""
        n_items = int(counts.reference[fold].sum())
        n_bins = min(
            resolution.reference_bins, max(1, n_items // resolution.least_items)
        )
        own = counts.primary[fold]
        pooled = own.sum(axis=0)
        n_fine = resolution.micro_cells // (2 if frame == "rank" else len(own))
        micro = edges_of_equal_mass(pooled, max(n_fine, _FEWEST_FINE))
        most = resolution.primary_bins
        if frame == "rank":
            own, most = pooled[None, :], resolution.ranked_bins
        primary = tuple(
            _nearest(
                edges_of_equal_mass(
                    one, min(most, int(one.sum()) // resolution.primary_items)
                ),
                micro,
            )
            for one in own
        )
        return cls(edges_of_equal_mass(counts.reference[fold], n_bins), primary, micro)

    def primary_cell(self, answer: Ints, micro: Ints) -> Ints:
        """The primary cell that holds each micro-cell of an answer."""
        lowest = np.append(-np.inf, self.micro)[micro]
        if len(self.primary) == 1:
            return np.searchsorted(self.primary[0], lowest, side="right")
        first = np.cumsum([0, *(len(inner) + 1 for inner in self.primary)])
        found = np.empty(len(answer), dtype=np.int64)
        for a, inner in enumerate(self.primary):
            own = answer == a
            found[own] = first[a] + np.searchsorted(inner, lowest[own], side="right")
        return found

    def same_as(self, other: FoldEdges) -> bool:
        """Whether both make the same cells."""
        mine = (self.reference, self.micro, *self.primary)
        theirs = (other.reference, other.micro, *other.primary)
        return len(mine) == len(theirs) and all(
            np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True)
        )


@dataclass(frozen=True, slots=True, eq=False)
class CellLayout:
    """Which cells are counted: outcomes, kinds of report, groups, edges of folds."""

    outcomes: tuple[Label, ...]
    primary_kind: str
    """``distribution`` or ``answer-confidence``."""
    reference_kind: str
    groups: tuple[Any, ...]
    edges: tuple[FoldEdges, FoldEdges]
    frame: str = "answer"
    """``answer``: a combination tells the primary's answer. ``rank``: it tells which
    place the reference's answer has in the primary's own order of outcomes, and
    reports are summed in that order."""

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes K."""
        return len(self.outcomes)

    @property
    def n_primary_sums(self) -> int:
        """Numbers summed of each primary report."""
        return self.n_outcomes if self.primary_kind == "distribution" else 1

    @property
    def n_reference_sums(self) -> int:
        """Numbers summed of each reference report."""
        return self.n_outcomes if self.reference_kind == "distribution" else 1

    def same_as(self, other: CellLayout) -> bool:
        """Whether statistics on both can be added."""
        return (
            self.outcomes == other.outcomes
            and self.primary_kind == other.primary_kind
            and self.reference_kind == other.reference_kind
            and self.groups == other.groups
            and self.frame == other.frame
            and all(a.same_as(b) for a, b in zip(self.edges, other.edges, strict=True))
        )

    def sizes(self) -> tuple[int, ...]:
        """How many values each key has."""
        n_bins = max(len(edges.reference) for edges in self.edges) + 1
        n_micro = max(len(edges.micro) for edges in self.edges) + 1
        k = self.n_outcomes
        return (2, max(len(self.groups), 1), n_bins, k, k, n_micro)


@dataclass(frozen=True, slots=True, eq=False)
class CellStatistics:
    """Counts and sums of reports per combination of cells; tables add up with ``+``.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.core.reports import Distributions
    >>> rows = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.6, 0.4]])
    >>> said = Distributions(rows, (0, 1))
    >>> fold = np.array([0, 0, 1, 1])
    >>> edges = FoldEdges(np.empty(0), (np.empty(0), np.empty(0)), np.array([0.75]))
    >>> layout = CellLayout((0, 1), "distribution", "distribution", (), (edges, edges))
    >>> day = CellStatistics.count(layout, said, said, fold)
    >>> day + day
    CellStatistics(8 items, 4 combinations of cells, 2 outcomes)
    """

    layout: CellLayout
    keys: Ints
    """(rows, 6) fold, group, reference bin, reference answer, place (the primary's
    answer, or the place of the reference's answer), micro-cell."""
    n_items: Ints
    """(rows,) items of each combination that occurs."""
    reference: Ints
    """(folds, groups, bins, answers, K or 1) sums of reference reports, in 2**-30."""
    primary: Ints
    """(folds, places, micro-cells, K or 1) sums of primary reports, in 2**-30."""

    @classmethod
    def count(
        cls,
        layout: CellLayout,
        primary: Reports,
        reference: Reports,
        fold: Ints,
        *,
        groups: Ints | None = None,
        times: Ints | None = None,
    ) -> Self:
        """Count items in memory, each as often as ``times`` says."""
        first, second = parts_of(primary), parts_of(reference)
        place, summed = first[0], first[2]
        if layout.frame == "rank":
            place = _place_of(primary, second[0])
            summed = -np.sort(-summed, axis=1)
        group = np.zeros(len(fold), dtype=np.int64) if groups is None else groups
        keys = np.column_stack(
            [
                fold,
                group,
                _counted(layout, fold, second[1], "reference"),
                second[0],
                place,
                _counted(layout, fold, first[1], "micro"),
            ]
        )
        often = np.ones(len(fold), dtype=np.int64) if times is None else times
        sums = (often[:, None] * in_units(part) for part in (second[2], summed))
        return cls.gather(layout, keys, often, *sums)

    @classmethod
    def gather(
        cls,
        layout: CellLayout,
        keys: Ints,
        n_items: Ints,
        reference: Ints,
        primary: Ints,
    ) -> Self:
        """From rows with keys, counts and sums; equal keys are added up."""
        (f, g, b, k, p, m), kind = layout.sizes(), n_items.dtype
        first = np.zeros((f, g, b, k, layout.n_reference_sums), dtype=kind)
        second = np.zeros((f, p, m, layout.n_primary_sums), dtype=kind)
        np.add.at(first, tuple(keys[:, :4].T), reference)
        np.add.at(second, (keys[:, 0], keys[:, 4], keys[:, 5]), primary)
        return cls(layout, *_added(layout, keys, n_items), first, second)

    @property
    def total(self) -> int:
        """Items in all."""
        return int(self.n_items.sum())

    def n_distinct(self, first: int, stop: int) -> int:
        """How many combinations of these keys occur."""
        sizes = self.layout.sizes()[first:stop]
        occurs = np.zeros(sizes, dtype=bool)
        occurs[tuple(self.keys[:, first:stop].T)] = True
        return int(occurs.sum())

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, CellStatistics):
            return NotImplemented
        if not self.layout.same_as(other.layout):
            message = (
                "statistics that were counted on different cells cannot be added.\n"
                "hint: count both with the same layout."
            )
            raise InvalidInputError(message)
        keys = np.concatenate([self.keys, other.keys])
        n_items = np.concatenate([self.n_items, other.n_items])
        return type(self)(
            self.layout,
            *_added(self.layout, keys, n_items),
            self.reference + other.reference,
            self.primary + other.primary,
        )

    def faded(self, share: float) -> Self:
        """Everything counts for less."""
        whole: Any = (self.n_items, self.reference, self.primary)
        return type(self)(self.layout, self.keys, *(one * share for one in whole))

    def cell_counts(self) -> list[Floats]:
        """Counts of the primary's cells and of the reference's, fold by fold."""
        sizes, fold = self.layout.sizes(), self.keys[:, 0]
        primary = []
        for which, edges in enumerate(self.layout.edges):
            own = fold == which
            cell = edges.primary_cell(self.keys[own, 4], self.keys[own, 5])
            n_cells = sum(len(inner) + 1 for inner in edges.primary)
            primary.append(
                group_sums(cell, self.n_items[own].astype(np.float64), n_cells)
            )
        place = (fold * sizes[2] + self.keys[:, 2]) * sizes[3] + self.keys[:, 3]
        n_places = 2 * sizes[2] * sizes[3]
        reference = group_sums(place, self.n_items.astype(np.float64), n_places)
        return [np.concatenate(primary), reference]

    def equals(self, other: CellStatistics) -> bool:
        """Whether both hold the same numbers, to the last bit."""
        pairs = (
            (self.keys, other.keys),
            (self.n_items, other.n_items),
            (self.reference, other.reference),
            (self.primary, other.primary),
        )
        return self.layout.same_as(other.layout) and all(
            np.array_equal(a, b) for a, b in pairs
        )

    def __repr__(self) -> str:
        return (
            f"CellStatistics({self.total:,} items, {len(self.n_items):,} combinations "
            f"of cells, {self.layout.n_outcomes} outcomes)"
        )


def _added(layout: CellLayout, keys: Ints, n_items: Ints) -> tuple[Ints, Ints]:
    """Rows with equal keys as one, in the order of their keys."""
    code = np.ravel_multi_index(tuple(keys.T), layout.sizes())
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    if len(starts) == 0:
        return keys, n_items
    return keys[order][starts], np.add.reduceat(n_items[order], starts)


def _place_of(primary: Reports, answer: Ints) -> Ints:
    """Place of an answer in the primary's own order of outcomes."""
    return (ranking(primary) == answer[:, None]).argmax(axis=1)


def _nearest(edges: Floats, grid: Floats) -> Floats:
    """Edges moved to the nearest of a grid."""
    if len(edges) == 0 or len(grid) == 0:
        return np.empty(0)
    above = np.clip(np.searchsorted(grid, edges), 1, max(len(grid) - 1, 1))
    low, high = grid[above - 1], grid[np.minimum(above, len(grid) - 1)]
    return np.unique(np.where(edges - low <= high - edges, low, high))


def _counted(layout: CellLayout, fold: Ints, score: Floats, which: str) -> Ints:
    """How many edges of its own fold each score reaches."""
    reached = [
        np.searchsorted(getattr(edges, which), score, side="right")
        for edges in layout.edges
    ]
    return np.where(fold == 0, reached[0], reached[1])
