"""Fitting from statistics: the items of a fold as few weighted ones in given cells."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.core.losses import ProperLoss
from trueup.core.moments import Trust
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.core.resolution import PrimaryCells, ReferenceCells, Resolution, SplitBins
from trueup.core.statistics import UNITS, CellStatistics
from trueup.errors import InvalidInputError
from trueup.solve.crossfit import Half, fit_placed
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
) -> tuple[Half, Half]:
    """The two maps of a cross-fit: half ``f`` certifies on fold f, fitted on the other.

    Nothing here looks at the fold that will certify the map.
    """
    first, second = (
        fit_placed(
            placed(statistics, fold, trust, floor, resolution),
            loss,
            trust,
            assume=assume,
            family=family,
        )
        for fold in (1, 0)
    )
    return first, second


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
    cells = PrimaryCells(tuple(rest * inner + shift for inner in edges.primary))
    answer, micro = own.key("primary_answer"), own.key("micro")
    where = edges.primary_cell(answer, micro)
    atom = _numbered(answer * (len(edges.micro) + 1) + micro)
    fine = _reference_cells(own, edges.reference, trust, resolution.least_items)
    n_bins = min(
        resolution.reference_bins, max(1, own.total // resolution.certify_items)
    )
    inner = _fewer(edges.reference, n_bins)
    coarse = _reference_cells(own, inner, trust, resolution.certify_items)
    sample = Sample(
        primary=floored_reports(own.primary_reports(atom), floor),
        reference=own.reference_reports(trust),
        groups=own.key("group"),
        n_groups=len(layout.groups),
        weights=own.n_items,
    )
    return Placed(sample, cells, where, atom, fine, coarse)


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
        names = ("fold", "group", "bin", "reference_answer", "primary_answer", "micro")
        return self.statistics.keys[self.rows, names.index(name)]

    @property
    def n_items(self) -> Floats:
        return self.statistics.n_items[self.rows].astype(np.float64)

    @property
    def total(self) -> int:
        return int(self.n_items.sum())

    def means(self, sums: Ints, index: Ints) -> Floats:
        """Mean report of each row's group."""
        n_groups = int(index.max()) + 1
        total = group_sums(index, sums[self.rows].astype(np.float64), n_groups)
        count = group_sums(index, self.n_items, n_groups)
        return (total / UNITS / count[:, None])[index]

    def primary_reports(self, atom: Ints) -> Reports:
        layout = self.statistics.layout
        mean = self.means(self.statistics.primary, atom)
        return _as_reports(mean, self.key("primary_answer"), layout.outcomes)

    def reference_reports(self, trust: Trust) -> Reports:
        """Mean reports of the parts that cells are made of, as the rung reads them."""
        layout = self.statistics.layout
        answer = self.key("reference_answer")
        part = self.key("group") * layout.n_outcomes + answer
        index = _numbered(self.key("bin") * int(part.max() + 1) + part)
        mean = self.means(self.statistics.reference, index)
        if trust.rung != "distribution" and layout.reference_kind == "distribution":
            mean = mean[np.arange(len(mean)), answer][:, None]
        return _as_reports(mean, answer, layout.outcomes)


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
    fine = layout.edges[int(own.statistics.keys[own.rows[0], 0])].reference
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


def _numbered(code: Ints) -> Ints:
    return np.unique(code, return_inverse=True)[1].ravel()


def floored_reports(reports: Reports, floor: float | None) -> Reports:
    """Distributions moved away from zero: (1 - K floor) r + floor."""
    if floor is None or not isinstance(reports, Distributions):
        return reports
    mixed = (1 - reports.n_outcomes * floor) * reports.probabilities + floor
    return replace(reports, probabilities=mixed)
