"""Certificates that survive sampling: everything fixed on other items beforehand.

With cells, map and multipliers fixed, the mean of z over fresh items is an unbiased
estimate of a number that is at most the true improvement (METHOD section 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.core.assertions import Assertion, make_assertions
from trueup.core.identification import Identification
from trueup.core.moments import MomentRows, Trust, as_trusted, pooled_rows
from trueup.core.resolution import (
    PrimaryCells,
    ReferenceCells,
    Resolution,
    out_of_order,
)
from trueup.solve.adaptive import unrestricted
from trueup.solve.problem import Rows
from trueup.solve.sample import Sample
from trueup.solve.worst_case import least_gain

_GOLDEN = (np.sqrt(5) - 1) / 2
_SEARCH_STEPS = 24


@dataclass(frozen=True, slots=True, eq=False)
class Multipliers:
    """What certifies a map on any items: multipliers on cells and of assertions."""

    cells: ReferenceCells
    table: Floats
    """(cells, slots) multipliers of the reference's moments."""
    primary_cells: PrimaryCells
    asserted: tuple[Assertion, ...]
    weights: Floats
    """(assertions,) their multipliers, never positive."""

    def scaled(self, factor: float) -> Multipliers:
        """All multipliers times a positive factor: as valid as any."""
        return replace(self, table=factor * self.table, weights=factor * self.weights)

    @property
    def steepness(self) -> float:
        """Fall of the bound per unit of reference error."""
        both = [
            np.abs(self.table).max(initial=0.0),
            np.abs(self.weights).max(initial=0.0),
        ]
        return float(max(both))


def per_item_bounds(
    multipliers: Multipliers, sample: Sample, gain: Floats, trust: Trust
) -> Floats:
    """(n,) z: each item's contribution to the certified improvement."""
    stated, about = as_trusted(sample.reference, trust)
    cell = multipliers.cells.assign(stated, sample.groups)
    # A cell never seen has the last row: no multiplier, hence no claim about it.
    table = np.vstack([multipliers.table, np.zeros((1, multipliers.table.shape[1]))])
    base, pull = _moments_of_items(about.identify(stated), table[cell])
    more, pulled = _assertions_of_items(
        multipliers.asserted, multipliers.weights, multipliers.primary_cells, sample
    )
    worst: Floats = (gain - pull - pulled).min(axis=1)
    return base + more + worst


def best_on_coarse_cells(
    sample: Sample,
    gain: Floats,
    trust: Trust,
    *,
    assume: tuple[str, ...],
    primary_cells: PrimaryCells,
    coarse: tuple[ReferenceCells, Ints],
    resolution: Resolution,
    size: float,
) -> tuple[Multipliers, float]:
    """The best multipliers for a fixed map on coarse cells, and the bound in sample.

    Any multipliers on any cells are valid; coarse ones generalise better.
    """
    programme = _Coarse.build(
        sample,
        trust,
        assume,
        primary_cells,
        resolution,
        coarse=coarse,
        gain=gain,
        size=size,
    )
    weights = _best_assertion_weights(
        lambda trial: programme.solve(trial)[0],
        [one.name for one in programme.asserted],
        scale=float(np.abs(gain).max()),
    )
    value, found = programme.solve(weights)
    moments = programme.moments
    n_slots = int(moments.slot_of_row.max(initial=0)) + 1
    table = np.zeros((programme.cells.n_cells, n_slots))
    table[moments.cell_of_row, moments.slot_of_row] = moments.centred(found)
    multipliers = Multipliers(
        programme.cells, table, primary_cells, programme.asserted, weights
    )
    return multipliers, value


@dataclass(frozen=True, slots=True, eq=False)
class _Coarse:
    """The worst case of a fixed map on coarse cells, for given assertion weights."""

    sample: Sample
    trust: Trust
    cells: ReferenceCells
    moments: MomentRows
    primary_cells: PrimaryCells
    asserted: tuple[Assertion, ...]
    gain: Floats
    size: float

    @classmethod
    def build(
        cls,
        sample: Sample,
        trust: Trust,
        assume: tuple[str, ...],
        primary_cells: PrimaryCells,
        resolution: Resolution,
        *,
        coarse: tuple[ReferenceCells, Ints],
        gain: Floats,
        size: float,
    ) -> Self:
        stated, about = as_trusted(sample.reference, trust)
        cells, cell = coarse
        items = np.arange(len(sample))
        moments = unrestricted(pooled_rows(stated, about, items, cell, sample.shares))
        asserted = make_assertions(
            assume,
            sample.primary,
            sample.reference,
            sample.shares,
            cells=primary_cells,
            resolution=resolution,
        )
        return cls(sample, trust, cells, moments, primary_cells, asserted, gain, size)

    def solve(self, weights: Floats) -> tuple[float, Floats]:
        """Certified value and multipliers of the reference's moments."""
        shares, error = self.sample.shares, self.trust.reference_error
        more, pulled = _assertions_of_items(
            self.asserted, weights, self.primary_cells, self.sample
        )
        items = np.arange(len(self.sample))
        bound, found = least_gain(
            self.moments,
            Rows(self.moments.node_of_pair, items, shares),
            self.gain - pulled,
            reference_error=error,
            size=self.size,
        )
        steepest = max(bound.steepness, float(np.abs(weights).max(initial=0.0)))
        return bound.base - error * steepest + float(shares @ more), found


def _best_assertion_weights(
    value_of: Callable[[Floats], float], names: list[str], *, scale: float
) -> Floats:
    """Golden-section search for the multiplier of each assertion in turn; concave.

    Rows of one assertion share theirs: a multiplier for each level of confidence would
    follow the noise of its few items.
    """
    weights = np.zeros(len(names))
    for name in dict.fromkeys(names):
        rows = np.array([one == name for one in names])
        low, high = -8 * max(scale, 1e-9), 0.0

        def value(x: float, rows: Bools = rows) -> float:
            return value_of(np.where(rows, x, weights))

        a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        at_a, at_b = value(a), value(b)
        for _ in range(_SEARCH_STEPS):
            if at_a < at_b:
                low, a, at_a = a, b, at_b
                b = low + _GOLDEN * (high - low)
                at_b = value(b)
            else:
                high, b, at_b = b, a, at_a
                a = high - _GOLDEN * (high - low)
                at_a = value(a)
        best = (low + high) / 2
        weights[rows] = best if value(best) > value(0.0) else 0.0
    return weights


def _moments_of_items(reading: Identification, given: Floats) -> tuple[Floats, Floats]:
    """(n,) sum of multiplier times t, and (n, K) sum of multiplier times T."""
    width = min(given.shape[1], reading.targets.shape[1])
    used = np.zeros_like(reading.targets)
    used[:, :width] = given[:, :width]
    base = (used * np.where(reading.applies, reading.targets, 0.0)).sum(axis=1)
    n_items, n_outcomes = reading.allowed.shape
    pull = group_sums(
        reading.report * n_outcomes + reading.outcome,
        used[reading.report, reading.slot] * reading.coefficient,
        n_items * n_outcomes,
    )
    return base, pull.reshape(n_items, n_outcomes)


def _assertions_of_items(
    asserted: tuple[Assertion, ...],
    weights: Floats,
    primary_cells: PrimaryCells,
    sample: Sample,
) -> tuple[Floats, Floats]:
    """The same for asserted rows, whose coefficients belong to primary cells."""
    base = np.zeros(len(sample))
    pull = np.zeros((len(sample), sample.primary.n_outcomes))
    cell = primary_cells.assign(sample.primary)
    for one, weight in zip(asserted, weights, strict=True):
        if weight:
            base += weight * one.targets(sample.reference)
            pull += weight * one.coefficients[cell]
    return base, out_of_order(pull, primary_cells.order(sample.primary))
