"""Fitting in passes over data that need not fit in memory.

The first pass sketches the confidences and so finds the cells, the second counts, then
two small problems are solved, and a third pass certifies each half's map on the items
of the other half. Nothing is kept between passes but whole numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from trueup import _validate
from trueup._validate import Label
from trueup.core.assertions import check_assertions, check_rung
from trueup.core.cells import Auto
from trueup.core.losses import ProperLoss
from trueup.core.moments import Trust, trust_in
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.core.resolution import Resolution
from trueup.core.statistics import CellLayout, CellStatistics, FoldEdges, ScoreCounts
from trueup.errors import InvalidInputError, UnknownNameError
from trueup.maps.adaptive import described
from trueup.maps.report_map import FittedOn, ReportMap
from trueup.maps.request import Request
from trueup.maps.rules import Tilts, adaptive_loss
from trueup.scale.batch_counts import (
    MOST_COMBINATIONS,
    Batch,
    DenseCounts,
    add_scores,
)
from trueup.scale.certify import Certifier, Totals
from trueup.scale.pairs import PairSource
from trueup.scale.passes import BadItems, Total, go_through, n_workers
from trueup.solve.crossfit import FEWEST_ITEMS, CrossFit, Estimate, Half
from trueup.solve.sample import frame_of
from trueup.solve.statistics import fit_halves

Progress = Callable[[str, int, int], None]
"""Called with what is being done, items done, and items in all."""

SKETCHED = 1_000_000
"""A sketch of about so many items is as good as one of all."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked of a fit in passes, with defaults filled in."""

    loss: ProperLoss
    trust: Trust
    assume: tuple[str, ...]
    family: str | None
    floor: float | None
    keep_unsupported: bool

    @classmethod
    def check(
        cls,
        outcomes: tuple[Label, ...],
        kinds: tuple[str, str],
        n_groups: int,
        *,
        loss: str | None = None,
        trust: str | None = None,
        caps: bool | None = None,
        reference_error: float = 0.0,
        assume: Any = (),  # noqa: ANN401 - a name or several
        family: str | None = None,
        floor: float | None = None,
        fallback: str = "map",
    ) -> Wanted:
        """Read the options; the same errors as :func:`trueup.fit`."""
        primary, reference = (_nothing(kind, outcomes) for kind in kinds)
        if fallback not in ("map", "identity"):
            raise UnknownNameError.of("fallback", fallback, ("identity", "map"))
        if family not in (None, "temperature"):
            raise UnknownNameError.of("family", family, ("temperature",))
        if floor is not None and not 0 < floor < 1 / len(outcomes):
            message = (
                f"floor must lie strictly between 0 and 1/{len(outcomes)}, got "
                f"{floor!r}.\nhint: 1e-4 is usual."
            )
            raise InvalidInputError(message)
        error = _validate.non_negative(reference_error, "reference_error")
        trusted = trust_in(reference, n_groups, trust, caps, error)
        asserted = check_assertions(assume, primary, reference)
        check_rung(asserted, trusted.rung)
        return cls(
            adaptive_loss(loss, primary.about),
            trusted,
            asserted,
            family,
            floor,
            fallback == "map",
        )

    @property
    def frame(self) -> str:
        """The frame of the primary's cells."""
        return frame_of(True, self.trust, self.assume)

    def halves(
        self, statistics: CellStatistics, resolution: Resolution
    ) -> list[tuple[Half, Half]]:
        """The two maps of a cross-fit, for every step length that is tried."""
        return fit_halves(
            statistics,
            self.loss,
            self.trust,
            assume=self.assume,
            family=self.family,
            floor=self.floor,
            resolution=resolution,
        )

    def certifier(self, halves: tuple[Half, Half], source: Any) -> Certifier:  # noqa: ANN401
        """What certifies two halves on batches of a source."""
        return Certifier.of(
            halves,
            self.loss,
            self.trust,
            floor=self.floor,
            outcomes=source.outcomes,
            kinds=source.kinds,
            n_groups=len(source.groups),
        )


def fit_source(
    source: PairSource,
    *,
    resolution: Resolution | None = None,
    progress: Progress | None = None,
    **options: Any,  # noqa: ANN401 - see Wanted.check
) -> ReportMap:
    """Fit in three passes over batches."""
    chosen = resolution or Resolution()
    wanted = Wanted.check(source.outcomes, source.kinds, len(source.groups), **options)
    enough_items(source.n_items)
    layout = sketch_layout(source, wanted.frame, chosen, progress)
    statistics = count(source, layout, progress, refuse_zeros=needs_positive(wanted))
    tried = wanted.halves(statistics, chosen)
    halves, estimate = certify(source, tried, wanted, progress)
    return as_map(statistics, halves, estimate, wanted)


def enough_items(n_items: int) -> int:
    """Refuse what cannot be split in two halves."""
    if n_items < FEWEST_ITEMS:
        message = (
            f"{n_items:,} items are too few to fit on one half and certify on the "
            "other.\nhint: use trueup.fit with cells='exact' if these items are the "
            "whole population."
        )
        raise InvalidInputError(message)
    return n_items


def sketch_layout(
    source: PairSource,
    frame: str,
    resolution: Resolution,
    progress: Progress | None = None,
) -> CellLayout:
    """Cells of both folds from one pass, over a sample where there are many items."""
    pieces, share = source.sample(max(1, source.n_items // SKETCHED))
    n_outcomes = len(source.outcomes)
    totals = [ScoreCounts.empty(n_outcomes) for _ in range(n_workers())]

    def add(counts: ScoreCounts, batch: Batch) -> int:
        return add_scores(counts, batch, share)

    try:
        go_through(pieces, totals, add, _telling(source, "finding cells", progress))
    except BadItems:  # once more over all items, for its place among them
        _go(source, "finding cells", totals, add, progress)
        raise
    return layout_of(reduce(operator.add, totals), source, frame, resolution)


def layout_of(
    counts: ScoreCounts,
    source: Any,  # noqa: ANN401 - knows outcomes, kinds and groups
    frame: str,
    resolution: Resolution,
) -> CellLayout:
    """Cells from a sketch; each fold's only from its own items."""
    first, second = (
        FoldEdges.choose(counts, fold, resolution, frame) for fold in (0, 1)
    )
    primary, reference = source.kinds
    edges = (first, second)
    return CellLayout(source.outcomes, primary, reference, source.groups, edges, frame)


def count(
    source: PairSource,
    layout: CellLayout,
    progress: Progress | None = None,
    *,
    refuse_zeros: bool = False,
) -> CellStatistics:
    """One pass: counts and sums per combination of cells."""
    n_combinations = int(np.prod(layout.sizes()))
    if n_combinations > MOST_COMBINATIONS:
        message = (
            f"{layout.n_outcomes} outcomes and {len(layout.groups)} groups make "
            f"{n_combinations:,} combinations of cells, which is too many.\n"
            "hint: fit a sample in memory with trueup.fit; about 20 million "
            "combinations are possible here."
        )
        raise InvalidInputError(message)
    n_threads = n_workers(8 * n_combinations)
    tables = [DenseCounts.empty(layout) for _ in range(n_threads)]

    def add(table: DenseCounts, batch: Batch) -> int:
        bad = table.add(batch)
        if bad < 0 and refuse_zeros and (batch.primary.rows == 0).any():
            raise zero_under_log_loss()
        return bad

    _go(source, "counting", tables, add, progress)
    for table in tables[1:]:
        tables[0].take(table)
    return tables[0].statistics()


def zero_under_log_loss() -> InvalidInputError:
    """The error for a certain report under log loss."""
    message = (
        "the primary reports a probability of zero, which log loss punishes without "
        "limit.\nhint: pass floor=1e-4, or use another loss."
    )
    return InvalidInputError(message)


def certify(
    source: PairSource,
    tried: list[tuple[Half, Half]],
    wanted: Wanted,
    progress: Progress | None = None,
) -> tuple[tuple[Half, Half], Estimate]:
    """One pass with everything fixed: each half on the items of the other fold.

    Where several step lengths are tried, the best, at the price of looking twice.
    """
    certifiers = [wanted.certifier(halves, source) for halves in tried]
    found = [[Totals.empty() for _ in tried] for _ in range(n_workers())]

    def add(totals: list[Totals], batch: Batch) -> int:
        pairs = zip(certifiers, totals, strict=True)
        return max(certifier.add(total, batch) for certifier, total in pairs)

    _go(source, "certifying", found, add, progress)
    totals = [Totals.merged(several) for several in zip(*found, strict=True)]
    return best_of(tried, totals, wanted.trust)


def best_of(
    tried: list[tuple[Half, Half]], totals: list[Totals], trust: Trust
) -> tuple[tuple[Half, Half], Estimate]:
    """The step length with the best lower limit."""
    found = [
        (halves, total.estimate(halves, trust, n_looks=len(tried)))
        for halves, total in zip(tried, totals, strict=True)
    ]
    return max(found, key=lambda one: one[1].lower)


def as_map(
    statistics: CellStatistics,
    halves: tuple[Half, ...],
    estimate: Estimate,
    wanted: Wanted,
) -> ReportMap:
    """The map with its certificate."""
    layout, fitted = statistics.layout, CrossFit(halves, estimate)
    n_items = statistics.total
    certificate = described(
        fitted.estimate,
        fitted,
        wanted.loss,
        wanted.trust,
        n_items=n_items,
        assume=wanted.assume,
    )
    keep = certificate.supported or wanted.keep_unsupported
    rule = Tilts(
        outcomes=layout.outcomes,
        about=_nothing(layout.primary_kind, layout.outcomes).about,
        loss=wanted.loss.name,
        trust=wanted.trust,
        assume=wanted.assume,
        groups=layout.groups,
        halves=fitted if keep else None,
    )
    return ReportMap(
        rule=rule,
        loss=wanted.loss.name,
        cells=Auto(),
        floor=wanted.floor,
        certificate=_request(wanted).annotated(certificate),
        fitted_on=FittedOn(
            n_items=n_items,
            n_primary=statistics.n_distinct(4, 6),
            n_reference=statistics.n_distinct(1, 4),
            n_pairs=len(statistics.keys),
            n_groups=len(layout.groups),
            n_normalised=0,
        ),
    )


def _go(
    source: PairSource,
    stage: str,
    totals: list[Total],
    add: Callable[[Total, Batch], int],
    progress: Progress | None,
) -> None:
    """One pass over all items; a report that is none is refused with its place."""
    try:
        go_through(source.pieces(), totals, add, _telling(source, stage, progress))
    except BadItems as bad:
        raise source.refuse(*bad.place) from None


def _telling(
    source: PairSource, stage: str, progress: Progress | None
) -> Callable[[int], None] | None:
    if progress is None:
        return None
    n_items = source.n_items
    return lambda n_done: progress(stage, min(n_done, n_items), n_items)


def _nothing(kind: str, outcomes: tuple[Label, ...]) -> Reports:
    """No reports, but of a kind."""
    if kind == "distribution":
        return Distributions(np.empty((0, len(outcomes))), outcomes)
    empty = np.empty(0)
    return AnswerConfidence._of(empty.astype(np.int64), empty, outcomes)


def needs_positive(wanted: Wanted) -> bool:
    """Whether a probability of zero would make the loss infinite."""
    return wanted.loss.name == "log" and wanted.floor is None


def _request(wanted: Wanted) -> Request:
    return Request(
        loss=wanted.loss.name,
        trust=wanted.trust.rung,
        caps=wanted.trust.caps,
        groups=None,
        sample_weight=None,
        reference_error=wanted.trust.reference_error,
        floor=wanted.floor,
        n_normalised=0,
        assume=wanted.assume,
        family=wanted.family,
        keep_unsupported=wanted.keep_unsupported,
        blocks=None,
        rng=None,
    )
