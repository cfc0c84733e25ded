"""Certifying as items stream by: mean and spread of z, everything fixed (METHOD 6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.losses import ProperLoss
from trueup.core.moments import Trust
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.core.statistics import UNITS
from trueup.maps._compiled import edge_table, joined_edges
from trueup.scale.batch_counts import Batch, SideBatch
from trueup.solve.adaptive import Tilt
from trueup.solve.crossfit import ONE_SIDED_95, Estimate, Half
from trueup.solve.sample import Sample
from trueup.solve.statistics import floored_reports

_LOSSES = {"brier": 0, "log": 1, "confidence": 2}


@dataclass(slots=True, eq=False)
class Totals:
    """Items, and sums of z and of its square in units of 2**-30, for each fold.

    Python's whole numbers have no largest: ten billion items overflow nothing.
    """

    sums: list[list[int]]

    @classmethod
    def empty(cls) -> Self:
        """Nothing added yet."""
        return cls([[0, 0, 0], [0, 0, 0]])

    @classmethod
    def merged(cls, several: Iterable[Totals]) -> Self:
        """The totals of all parts of some items."""
        made = cls.empty()
        for one in several:
            for fold, sums in enumerate(one.sums):
                made.add(fold, *sums)
        return made

    def add(self, fold: int, n_items: int, total: int, squares: int) -> None:
        """Add what a batch came to."""
        for place, value in enumerate((n_items, total, squares)):
            self.sums[fold][place] += int(value)

    def add_items(self, fold: int, z: Floats, times: Ints | None = None) -> None:
        """Add items one by one, each as often as ``times`` says."""
        down, up = np.floor(z * UNITS), np.ceil(z * z * UNITS)
        if times is None:
            self.add(fold, len(z), int(down.sum()), int(up.sum()))
            return
        often = [int(n) for n in times]
        total = sum(n * int(v) for n, v in zip(often, down, strict=True))
        squares = sum(n * int(v) for n, v in zip(often, up, strict=True))
        self.add(fold, sum(often), total, squares)

    def estimate(
        self, halves: tuple[Half, ...], trust: Trust, *, n_looks: int = 1
    ) -> Estimate:
        """Mean of z less the price of the reference's error, and its lower limit."""
        n_items, total, squares = (
            sum(column) for column in zip(*self.sums, strict=True)
        )
        mean = total / UNITS / n_items
        # Whole numbers: n * sum of squares - square of the sum, without cancellation.
        spread = (n_items * squares * UNITS - total * total) / UNITS**2
        error = float(np.sqrt(max(spread, 0.0) / n_items)) / n_items
        steepness = float(np.mean([half.multipliers.steepness for half in halves]))
        certified = mean - trust.reference_error * steepness
        return Estimate(
            fitted=float(np.mean([half.fitted for half in halves])),
            certified=certified,
            lower=certified - ONE_SIDED_95[n_looks] * error,
            steepness=steepness,
            n_items=n_items,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Certifier:
    """Both halves, ready to certify items of the fold they were not fitted on."""

    halves: tuple[Half, ...]
    loss: ProperLoss
    trust: Trust
    floor: float | None
    outcomes: tuple[object, ...]
    kinds: tuple[str, str]
    n_groups: int
    compiled: CompiledBounds | None

    @classmethod
    def of(
        cls,
        halves: tuple[Half, ...],
        loss: ProperLoss,
        trust: Trust,
        *,
        floor: float | None,
        outcomes: tuple[object, ...],
        kinds: tuple[str, str],
        n_groups: int,
    ) -> Self:
        """Compile what can be compiled."""
        compiled = CompiledBounds.of(
            halves, loss, trust, floor=floor, n_outcomes=len(outcomes), kinds=kinds
        )
        return cls(halves, loss, trust, floor, outcomes, kinds, n_groups, compiled)

    def add(self, totals: Totals, batch: Batch) -> int:
        """Add a batch; returns the start of a block with a bad row, or -1."""
        if self.compiled is not None:
            return self.compiled.add(totals, batch)
        from trueup.core.folds import fold_of, mixed

        fold = fold_of(mixed(batch.numbers))
        sample = self._sample(batch)
        for which, half in enumerate(self.halves):
            own = sample.take(np.flatnonzero(fold == which))
            if len(own):
                totals.add_items(which, half.bounds(own, self.loss, self.trust))
        return -1

    def _sample(self, batch: Batch) -> Sample:
        n_items = len(batch)
        groups = (
            batch.groups if len(batch.groups) else np.zeros(n_items, dtype=np.int64)
        )
        return Sample(
            floored_reports(self._reports(batch.primary, "primary"), self.floor),
            self._reports(batch.reference, "reference"),
            groups,
            self.n_groups,
            np.ones(n_items),
        )

    def _reports(self, side: SideBatch, name: str) -> Reports:
        if len(side.answers):
            return AnswerConfidence._of(
                side.answers,
                side.rows[:, 0],
                self.outcomes,  # type: ignore[arg-type]
            )
        rows = np.ascontiguousarray(side.rows)
        return Distributions.parse(rows, name, self.outcomes)


@dataclass(frozen=True, slots=True, eq=False)
class CompiledBounds:
    """Tilts and multipliers of both halves as the loops read them."""

    floor: float
    loss: int
    ranked: bool
    tilt: tuple[Floats, Floats]
    """Edges of both halves together, and the slopes of one half after the other."""
    asserted: Floats
    """(K, halves * cells) pull of what is asserted, in the frame of the cells."""
    asserted_rows: Floats
    """(halves, assertions, 3) range of confidence, and weight of the confidence."""
    trusted: tuple[Floats, Ints, Floats]
    """Edges of reference bins, cell of (bin, part), multipliers."""
    mode: int
    n_parts: Ints

    @classmethod
    def of(
        cls,
        halves: tuple[Half, ...],
        loss: ProperLoss,
        trust: Trust,
        *,
        floor: float | None,
        n_outcomes: int,
        kinds: tuple[str, str],
    ) -> Self | None:
        """Flatten; None for losses and maps that need another formula."""
        tilts = [half.tilt for half in halves if isinstance(half.tilt, Tilt)]
        plain = kinds[0] == "distribution" or loss.name == "confidence"
        if len(tilts) < len(halves) or loss.name not in _LOSSES or not plain:
            return None
        edges, cells = joined_edges([tilt.cells for tilt in tilts])
        both = list(zip(halves, tilts, cells, strict=True))
        return cls(
            floor or 0.0,
            _LOSSES[loss.name],
            tilts[0].cells.frame == "rank",
            (
                edges,
                np.hstack([_slopes(tilt, cell, loss.name) for _, tilt, cell in both]),
            ),
            np.hstack([_pull(half, cell, n_outcomes) for half, _, cell in both]),
            _asserted_rows(halves),
            _trusted(halves, n_outcomes),
            _mode(trust, kinds[1], n_outcomes),
            np.array([max(trust.n_groups, 1), trust.rung in _BY_ANSWER]),
        )

    def add(self, totals: Totals, batch: Batch) -> int:
        """Add a batch; returns the start of a block with a bad row, or -1."""
        from trueup.scale._bound_kernels import certify_rows

        found = np.zeros((2, 3), dtype=np.int64)
        bad = int(
            certify_rows(
                batch.primary.rows,
                batch.primary.answers,
                batch.reference.rows,
                batch.reference.answers,
                batch.numbers,
                batch.groups,
                self.floor,
                self.loss,
                self.ranked,
                self.tilt,
                self.asserted,
                self.asserted_rows,
                self.trusted,
                self.mode,
                self.n_parts,
                found,
            )
        )
        for fold, sums in enumerate(found.tolist()):
            totals.add(fold, *sums)
        return bad


_BY_ANSWER = ("answer-confidence", "distribution")


def _mode(trust: Trust, reference_kind: str, n_outcomes: int) -> int:
    from trueup.scale._bound_kernels import ANSWER, BINARY, CAPPED, VECTOR

    if trust.rung == "distribution" and reference_kind == "distribution":
        return BINARY if n_outcomes == 2 else VECTOR
    return CAPPED if trust.caps and n_outcomes > 2 else ANSWER


def _slopes(tilt: Tilt, cells: Ints, loss: str) -> Floats:
    """(K or 1, joint cells) what is added to, or multiplies, a report."""
    slopes = tilt.slopes[cells]
    if loss == "brier":
        return np.ascontiguousarray(slopes.T / 2)
    if loss == "log":
        return np.ascontiguousarray(
            np.exp(slopes - slopes.max(axis=1, keepdims=True)).T
        )
    answer = np.zeros(len(slopes), dtype=np.int64)
    if tilt.cells.frame != "rank":
        answer = np.arange(len(slopes)) // (len(slopes) // slopes.shape[1])
    own = slopes[np.arange(len(slopes)), answer]
    others = slopes.copy()
    others[np.arange(len(slopes)), answer] = -np.inf
    return ((own - others.max(axis=1)) / 2)[None, :]


def _pull(half: Half, cells: Ints, n_outcomes: int) -> Floats:
    pull = np.zeros((n_outcomes, len(cells)))
    given = half.multipliers
    for one, weight in zip(given.asserted, given.weights, strict=True):
        pull += weight * one.coefficients[cells].T
    return pull


def _asserted_rows(halves: tuple[Half, ...]) -> Floats:
    given = [half.multipliers for half in halves]
    # Halves may tell different numbers of levels apart; rows of zeros claim nothing.
    rows = np.zeros((len(halves), max(len(one.asserted) for one in given), 3))
    for f, multipliers in enumerate(given):
        pairs = zip(multipliers.asserted, multipliers.weights, strict=True)
        for a, (one, weight) in enumerate(pairs):
            rows[f, a] = (*one.confidence, float(weight) * one.sign)
    return rows


def _trusted(halves: tuple[Half, ...], n_outcomes: int) -> tuple[Floats, Ints, Floats]:
    """Cells of (bin, part), the last part being one never seen; and multipliers."""
    bins = [half.multipliers.cells.bins for half in halves]
    given = [half.multipliers.table for half in halves]
    n_bins = max(len(one.table) for one in bins)
    n_parts = max(one.table.shape[1] for one in bins)
    most = max(len(one) for one in given)
    table = np.full((len(halves), n_bins, n_parts + 1), most)
    multipliers = np.zeros((len(halves), most + 1, n_outcomes + 1))
    for f, (one, values) in enumerate(zip(bins, given, strict=True)):
        table[f, : len(one.table), : one.table.shape[1]] = one.table
        table[f, : len(one.rest), -1] = one.rest
        multipliers[f, : len(values), : values.shape[1]] = values
    edges = edge_table([one.edges for one in bins])
    return edges, np.where(table < 0, most, table), multipliers
