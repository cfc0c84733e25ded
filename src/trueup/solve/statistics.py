"""Fitting from statistics: the items of a fold as few weighted ones in given cells."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.core.losses import ProperLoss
from trueup.core.moments import Trust
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.core.resolution import PrimaryCells, ReferenceCells, Resolution, SplitBins
from trueup.core.statistics import KEYS, UNITS, CellStatistics
from trueup.errors import InvalidInputError
from trueup.solve.crossfit import Half, fit_placed, steps_of
from trueup.solve.sample import Placed, Sample


def fit_halves(
    statistics: CellStatistics,
    loss: ProperLoss,
    trust: Trust,
    *,
    assume: tuple[str, ...] = (),
    family: str | None = None,
    floor: float | None = None,
    resolution: Resolution,
) -> list[tuple[Half, Half]]:
    """The two maps of a cross-fit, for every step length that is tried.

    Half f certifies on fold f and is fitted on the other; nothing here looks at the
    fold that will certify it.
    """

    def fit(fold: int) -> tuple[Sample, Half]:
        one = placed(statistics, fold, trust, floor, resolution)
        half = fit_placed(
            one, loss, trust, assume=assume, family=family, resolution=resolution
        )
        return one.sample, half

    with ThreadPoolExecutor(2) as pool:  # two problems that share nothing
        samples, (first, second) = zip(*pool.map(fit, (1, 0)), strict=True)
    tried = []
    for step in steps_of(trust, family):
        if step == 1:
            tried.append((first, second))
        else:
            tried.append(
                (
                    first.shortened(step, samples[0], loss, trust),
                    second.shortened(step, samples[1], loss, trust),
                )
            )
    return tried


def placed(
    statistics: CellStatistics,
    fold: int,
    trust: Trust,
    floor: float | None,
    resolution: Resolution,
) -> Placed:
    """One fold as weighted items: mean reports, and the cells they stand for."""
    own = _Fold.of(statistics, fold)
    layout, edges = statistics.layout, statistics.layout.edges[fold]
    shift = 0.0 if floor is None else floor
    rest = 1 - layout.n_outcomes * shift
    # The map meets reports after the floor, so its cells are those of floored ones.
    inner = tuple(rest * one + shift for one in edges.primary)
    place, micro = own.key("place"), own.key("micro")
    by_rank = layout.frame == "rank"
    # By rank a micro-cell pools all places of the reference's answer.
    atom = micro if by_rank else place * (len(edges.micro) + 1) + micro
    n_bins = min(resolution.certify_bins, max(1, own.total // resolution.certify_items))
    fewer = _fewer(edges.reference, n_bins)
    sample = Sample(
        primary=floored_reports(own.primary_reports(), floor),
        reference=own.reference_reports(trust),
        groups=own.key("group"),
        n_groups=len(layout.groups),
        weights=own.n_items,
    )
    return Placed(
        sample,
        PrimaryCells(inner, layout.frame),
        edges.primary_cell(place, micro),
        np.unique(atom, return_inverse=True)[1].ravel(),
        _reference_cells(own, edges.reference, trust, resolution.least_items),
        _reference_cells(own, fewer, trust, resolution.certify_items),
        own.n_items,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """The rows of a table of statistics that belong to one fold."""

    statistics: CellStatistics
    rows: Ints

    @classmethod
    def of(cls, statistics: CellStatistics, fold: int) -> _Fold:
        rows = np.flatnonzero(statistics.keys[:, 0] == fold)
        if len(rows) == 0:
            message = (
                "one of the two halves of the items is empty.\n"
                "hint: the halves are chosen by the items' ids; these must differ."
            )
            raise InvalidInputError(message)
        return cls(statistics, rows)

    def key(self, name: str) -> Ints:
        return self.statistics.keys[self.rows, KEYS.index(name)]

    @property
    def fold(self) -> int:
        return int(self.statistics.keys[self.rows[0], 0])

    @property
    def n_items(self) -> Floats:
        return self.statistics.n_items[self.rows].astype(np.float64)

    @property
    def total(self) -> int:
        return int(self.n_items.sum())

    def primary_reports(self) -> Reports:
        """Mean report of each row's micro-cell; by rank in the order of ranks."""
        layout, sums = self.statistics.layout, self.statistics.primary[self.fold]
        place, micro = self.key("place"), self.key("micro")
        shape = sums.shape[:2]
        counts = np.zeros(shape)
        np.add.at(counts, (place, micro), self.n_items)
        if layout.frame == "rank":
            means = _divided(sums.sum(axis=0), counts.sum(axis=0))[micro]
            return _as_reports(means, np.zeros_like(place), layout.outcomes)
        return _as_reports(_divided(sums, counts)[place, micro], place, layout.outcomes)

    def reference_reports(self, trust: Trust) -> Reports:
        """Mean reports of the parts that cells are made of, as the rung reads them.

        In the frame of ranks an answer is its place in the primary's order.
        """
        layout, sums = self.statistics.layout, self.statistics.reference[self.fold]
        part = tuple(self.key(name) for name in ("group", "bin", "reference_answer"))
        counts = np.zeros(sums.shape[:3])
        np.add.at(counts, part, self.n_items)
        mean, answer = _divided(sums, counts)[part], part[2]
        if trust.rung != "distribution" and layout.reference_kind == "distribution":
            mean = mean[np.arange(len(mean)), answer][:, None]
        said = self.key("place") if layout.frame == "rank" else answer
        return _as_reports(mean, said, layout.outcomes)


def _divided(sums: Ints, counts: Floats) -> Floats:
    return sums / UNITS / np.maximum(counts, 1e-300)[..., None]


def _as_reports(mean: Floats, answer: Ints, outcomes: tuple[object, ...]) -> Reports:
    if mean.shape[1] == 1:
        return AnswerConfidence._of(answer, mean[:, 0], outcomes)  # type: ignore[arg-type]
    rows = mean / mean.sum(axis=1, keepdims=True)
    return Distributions(rows, outcomes)  # type: ignore[arg-type]


def _reference_cells(
    own: _Fold, edges: Floats, trust: Trust, least: int
) -> tuple[ReferenceCells, Ints]:
    """Cells of at least so many items, and the cell of each row."""
    layout = own.statistics.layout
    fine = layout.edges[own.fold].reference
    if trust.rung == "mean":
        edges = np.empty(0)
    bin_of = np.searchsorted(edges, np.append(-np.inf, fine), side="right")
    place = bin_of[own.key("bin")]
    n_groups = max(len(layout.groups), 1)
    part, n_parts = own.key("group"), n_groups
    if trust.rung in ("answer-confidence", "distribution"):
        part = own.key("reference_answer") * n_groups + part
        n_parts = layout.n_outcomes * n_groups
    counts = group_sums(place * n_parts + part, own.n_items, (len(edges) + 1) * n_parts)
    bins = SplitBins.from_counts(
        edges, counts.reshape(-1, n_parts), least if n_parts > 1 else 0
    )
    cells = ReferenceCells(trust.rung, len(layout.groups), bins)
    return cells, bins.table[place, part]


def _fewer(edges: Floats, n_bins: int) -> Floats:
    """Some of the edges, so that about ``n_bins`` bins of equal mass remain."""
    n_fine = len(edges) + 1
    if n_bins >= n_fine:
        return edges
    wanted = np.unique(np.arange(1, n_bins) * n_fine // n_bins) - 1
    return edges[wanted]


def floored_reports(reports: Reports, floor: float | None) -> Reports:
    """Distributions moved away from zero: (1 - K floor) r + floor."""
    if floor is None or not isinstance(reports, Distributions):
        return reports
    mixed = (1 - reports.n_outcomes * floor) * reports.probabilities + floor
    return replace(reports, probabilities=mixed)
