"""Fitting from pair counts: the items never leave the warehouse."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup._validate import Ints
from trueup.core.joint import JointTable
from trueup.core.resolution import Resolution
from trueup.core.statistics import CellLayout, CellStatistics, FoldEdges, ScoreCounts
from trueup.errors import InvalidInputError
from trueup.maps.report_map import ReportMap
from trueup.scale.certify import Totals
from trueup.scale.fitting import Wanted, as_map, best_of, enough_items
from trueup.solve.crossfit import Half
from trueup.solve.sample import Sample
from trueup.solve.statistics import floored_reports


def fit_counts(
    table: JointTable,
    *,
    rng: np.random.Generator | None = None,
    resolution: Resolution | None = None,
    **options: Any,  # noqa: ANN401 - see Wanted.check
) -> ReportMap:
    """Fit on adaptive cells from counts of pairs of reports.

    The items behind a count are split in halves as a random split of the items
    themselves would: without replacement, the same split when no ``rng`` is given.
    The certificate uses every pair of reports as it is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> reference = rng.choice([0.2, 0.3, 0.4], size=400)
    >>> primary = np.clip(3 * reference - 0.5, 0, 1).round(2)
    >>> table = JointTable.from_counts(primary, reference, counts=np.full(400, 5))
    >>> fit_counts(table).certificate.n_items
    2000
    """
    chosen = resolution or Resolution()
    outcomes = table.primary.outcomes
    kinds = table.primary.about.name, table.reference.about.name
    wanted = Wanted.check(outcomes, kinds, len(table.groups), **options)
    enough_items(table.n_items)
    index, fold, times = _split(table, rng)
    primary = table.primary.take(table.primary_index[index])
    reference = table.reference.take(table.reference_index[index])
    groups = table.group_index[index]
    scores = ScoreCounts.count(primary, reference, fold, times)
    first, second = (
        FoldEdges.choose(scores, one, chosen, wanted.frame) for one in (0, 1)
    )
    edges = (first, second)
    layout = CellLayout(outcomes, *kinds, table.groups, edges, wanted.frame)
    statistics = CellStatistics.count(
        layout, primary, reference, fold, groups=groups, times=times
    )
    tried = wanted.halves(statistics, chosen)
    sample = Sample(
        floored_reports(primary, wanted.floor),
        reference,
        groups,
        len(table.groups),
        times.astype(np.float64),
    )
    totals = [_certified(halves, sample, fold, times, wanted) for halves in tried]
    return as_map(statistics, *best_of(tried, totals, wanted.trust), wanted)


def _certified(
    halves: tuple[Half, Half], sample: Sample, fold: Ints, times: Ints, wanted: Wanted
) -> Totals:
    totals = Totals.empty()
    for which, half in enumerate(halves):
        own = np.flatnonzero(fold == which)
        z = half.bounds(sample.take(own), wanted.loss, wanted.trust)
        totals.add_items(which, z, times[own])
    return totals


def _split(
    table: JointTable, rng: np.random.Generator | None
) -> tuple[Ints, Ints, Ints]:
    """Pairs of each half, the half, and how many items of the pair are in it."""
    counts = np.rint(table.counts).astype(np.int64)
    if not np.array_equal(counts, table.counts):
        message = (
            "counts must be whole numbers to be split in halves.\n"
            "hint: weights belong into trueup.fit(..., sample_weight=...)."
        )
        raise InvalidInputError(message)
    chosen = np.random.default_rng(0) if rng is None else rng
    total = int(counts.sum())
    half = chosen.multivariate_hypergeometric(counts, total // 2, method="marginals")
    both = np.concatenate([half, counts - half])
    pairs = np.tile(np.arange(len(counts)), 2)
    folds = np.repeat([0, 1], len(counts))
    held = np.flatnonzero(both)
    return pairs[held], folds[held], both[held]
