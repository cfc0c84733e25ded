"""Hypothesis strategies for the worlds that the oracle can judge.

Reports come from small palettes on coarse grids: what breaks a method of cells and
atoms is equality (shared reports, tied answers, confidences of exactly 0, 1 or 1/K),
and equality never happens by chance among random floats. Every draw is an integer
or a choice whose first option is the plainest, so examples shrink to small worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from oracle import Floats, Kind, Loss, Trust, World, normalise

LOSS_OF_KIND: dict[Kind, tuple[Loss, ...]] = {
    "distribution": ("brier", "log", "spherical"),
    "answer-confidence": ("confidence",),
    "mean": ("squared",),
    "quantile": ("pinball",),
    "expectile": ("expectile",),
    "mode": ("zero-one",),
}
"""The proper losses of each kind of primary report."""

TRUSTS_OF_KIND: dict[Kind, tuple[Trust, ...]] = {
    "distribution": ("mean", "confidence", "answer-confidence", "distribution"),
    "answer-confidence": ("mean", "confidence", "answer-confidence"),
    "mean": ("point",),
    "quantile": ("point",),
    "expectile": ("point",),
    "mode": ("point",),
}
"""The rungs at which each kind of reference can be trusted, least first."""

ALL_KINDS: tuple[Kind, ...] = tuple(LOSS_OF_KIND)
ALL_LOSSES: tuple[Loss, ...] = tuple(x for xs in LOSS_OF_KIND.values() for x in xs)
ALL_TRUSTS: tuple[Trust, ...] = (*TRUSTS_OF_KIND["distribution"], "point")
REFERENCE_ERRORS = (0.0, 0.01, 0.05, 0.2)
LEVELS = (0.5, 0.25, 0.9)
NUMERIC_KINDS = ("mean", "quantile", "expectile")

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]


@dataclass(frozen=True, slots=True)
class _Side:
    """What the palette of one side has to know."""

    kind: Kind
    n_outcomes: int
    values: Floats | None
    positive: bool = False
    least_confidence: float = 0.0

    def palette(self, draw: Draw[list[int]], size: int) -> Floats:
        """Draw distinct-looking reports; repetitions are welcome."""
        match self.kind:
            case "distribution":
                return self._distributions(draw, size)
            case "answer-confidence":
                answers = draw(_integers(0, self.n_outcomes - 1, size))
                grid = self._confidences()
                picks = draw(_integers(0, grid.size - 1, size))
                return np.column_stack([answers, grid[picks]])
            case "mode":
                answers = draw(_integers(0, self.n_outcomes - 1, size))
                return np.array(answers, dtype=float)
            case "mean" | "expectile" | "quantile":
                grid = self._numbers()
                return grid[draw(_integers(0, grid.size - 1, size))]

    def _distributions(self, draw: Draw[list[int]], size: int) -> Floats:
        k = self.n_outcomes
        counts = draw(_integers(int(self.positive), 4, size * k))
        table = np.array(counts, dtype=float).reshape(size, k)
        # No counts at all is the plainest example, and means uniform.
        table[~table.any(axis=1)] = 1.0
        return table / table.sum(axis=1, keepdims=True)

    def _confidences(self) -> Floats:
        k = self.n_outcomes
        steps = np.array([5, 6, 7, 8, 9, 10, 4, 3, 2, 1, 0]) / 10
        grid = np.append(steps, 1 / k)
        return grid[grid >= self.least_confidence]

    def _numbers(self) -> Floats:
        """Return support points and, unless for a quantile, points between them."""
        assert self.values is not None
        if self.kind == "quantile":
            return self.values
        low, high = self.values[0], self.values[-1]
        # Eighths of multiples of 1/2 are exact, so no report leaves the range.
        return np.append(self.values, low + (high - low) * np.arange(1, 8) / 8)


def _integers(low: int, high: int, size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, high), min_size=size, max_size=size)


@st.composite
def outcome_values(draw: st.DrawFn, n_outcomes: int) -> Floats:
    """Draw distinct increasing outcome values, multiples of one half."""
    start = draw(st.integers(-3, 3))
    steps = draw(_integers(1, 4, n_outcomes - 1))
    return (start + np.append(0, np.cumsum(steps))) / 2


def combinations(
    *,
    primary_kinds: Sequence[Kind] = ALL_KINDS,
    reference_kinds: Sequence[Kind] = ALL_KINDS,
    trusts: Sequence[Trust] = ALL_TRUSTS,
    losses: Sequence[Loss] = ALL_LOSSES,
) -> list[tuple[Kind, Loss, Kind, Trust]]:
    """List the legal (primary kind, loss, reference kind, trust) among the allowed."""
    primaries = [
        (kind, loss)
        for kind in primary_kinds
        for loss in LOSS_OF_KIND[kind]
        if loss in losses
    ]
    references = [
        (kind, trust)
        for kind in reference_kinds
        for trust in TRUSTS_OF_KIND[kind]
        if trust in trusts
    ]
    return [(*p, *r) for p, r in product(primaries, references)]


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    primary_kinds: Sequence[Kind] = ALL_KINDS,
    reference_kinds: Sequence[Kind] = ALL_KINDS,
    trusts: Sequence[Trust] = ALL_TRUSTS,
    losses: Sequence[Loss] = ALL_LOSSES,
    max_outcomes: int = 6,
    max_rows: int = 8,
    groups: bool = True,
    reference_errors: Sequence[float] = REFERENCE_ERRORS,
) -> World:
    """Draw a world whose reference can be calibrated and whose losses are finite."""
    legal = combinations(
        primary_kinds=primary_kinds,
        reference_kinds=reference_kinds,
        trusts=trusts,
        losses=losses,
    )
    primary_kind, loss, reference_kind, trust = draw(st.sampled_from(legal))
    k = draw(st.integers(2, max_outcomes))
    n = draw(st.integers(1, max_rows))
    numeric = {primary_kind, reference_kind} & set(NUMERIC_KINDS)
    values = draw(outcome_values(k)) if numeric else None
    caps = trust == "answer-confidence" and draw(st.booleans())
    primary = _Side(primary_kind, k, values, positive=loss == "log")
    reference = _Side(
        reference_kind, k, values, least_confidence=1 / k if caps else 0.0
    )
    return World(
        n_outcomes=k,
        weights=draw(_weights(n)),
        primary_kind=primary_kind,
        primary=_reports(draw, primary, n),
        reference_kind=reference_kind,
        reference=_reports(draw, reference, n),
        trust=trust,
        loss=loss,
        values=values,
        groups=draw(_groups(n)) if groups and draw(st.booleans()) else None,
        primary_level=_level(draw, primary_kind),
        reference_level=_level(draw, reference_kind),
        caps=caps,
        reference_error=draw(st.sampled_from(tuple(reference_errors))),
    )


def _reports(draw: st.DrawFn, side: _Side, n: int) -> Floats:
    """Give each of n rows a report from a palette of at most four."""
    size = draw(st.integers(1, min(n, 4)))
    palette = side.palette(draw, size)
    return palette[draw(_integers(0, size - 1, n))]


def _weights(n: int) -> st.SearchStrategy[Floats]:
    """Small integer weights, sometimes zero, never all zero; plain ones first."""
    weight = st.sampled_from((1, 2, 3, 5, 0))
    lists = st.lists(weight, min_size=n, max_size=n)
    return lists.map(lambda w: normalise(w if any(w) else [1] * n))


def _groups(n: int) -> st.SearchStrategy[np.ndarray]:
    return _integers(0, 1, n).map(lambda labels: np.array(labels, dtype=np.int64))


def _level(draw: st.DrawFn, kind: Kind) -> float | None:
    quantile_like = kind in ("quantile", "expectile")
    return draw(st.sampled_from(LEVELS)) if quantile_like else None
