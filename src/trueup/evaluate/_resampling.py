"""Statistics of labelled items, and how far the truth may be from them.

A bootstrap draw is a vector of counts: how often each item was picked. Every
statistic turns counts into a pair of moves (low, high) for each draw, and its interval
is value + [quantile of low, quantile of high]. For a mean both moves are what the draw
shows (percentile interval). For a sum of absolute values, such as ECE, a draw shows
too much: resampling adds noise to numbers that are already noisy. See `CellNorm`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.special import ndtr, ndtri

from trueup._validate import Bools, Floats, Ints

CHUNK = 4_000_000
"""Counts held in memory at once."""

DOUBT = 0.05
"""Share of the error allowance spent on knowing the signs of cells."""


class Estimate(NamedTuple):
    """A number measured on a sample, with an interval for its true value.

    Examples
    --------
    >>> value, lower, upper = Estimate(0.5, 0.4, 0.6)
    >>> Estimate(0.5, 0.4, 0.6)
    Estimate(value=0.5, lower=0.4, upper=0.6)
    """

    value: float
    lower: float
    upper: float


class Moves(NamedTuple):
    """Per draw, by how much the truth may lie below and above the value."""

    low: Floats
    high: Floats

    def minus(self, other: Moves) -> Moves:
        """Moves of a difference of two statistics under the same draws."""
        return Moves(self.low - other.high, self.high - other.low)


class Statistic(ABC):
    """One number of a weighted sample, and its behaviour under resampling."""

    value: float
    least: float = -np.inf
    """No limit of an interval lies below this."""

    @abstractmethod
    def moves(self, weighted: Floats, totals: Floats) -> Moves:
        """Moves for each draw: (draws, n) counts times weights, and their sums."""


class Mean(Statistic):
    """The weighted mean of one number an item.

    An infinite item makes the true mean infinite too, so then nothing moves.
    """

    def __init__(self, items: Floats, weights: Floats) -> None:
        self.items = items
        self.value = float(weights @ items / weights.sum())

    def moves(self, weighted: Floats, totals: Floats) -> Moves:
        if not np.isfinite(self.value):
            return Moves(np.zeros(len(totals)), np.zeros(len(totals)))
        moved = weighted @ self.items / totals - self.value
        return Moves(moved, moved)


class CellNorm(Statistic):
    r"""A sum over cells of absolute values (or positive parts) of weighted sums.

    :math:`\sum_b |D_b|` with :math:`D_b = \sum_{n \in b} w_n e_n / \sum_n w_n`: ECE and
    its relatives. The estimate of each :math:`D_b` is unbiased, that of the sum is
    biased upwards, and bootstrap draws are biased twice. Hence no percentiles:

    - above: whatever the true signs :math:`s_b`, :math:`\sum_b |\hat D_b| \ge \sum_b
      s_b \hat D_b`, whose mean is the true sum. Its noise is that of the signed sum.
    - below: the estimate exceeds the truth by at most :math:`\sum_b (|D_b + \epsilon_b|
      - |D_b|)`, which falls in :math:`|D_b|`; so :math:`\hat D_b` is moved towards zero
      by as much as it may plausibly be wrong.

    Both limits hold whether the predictor is calibrated or far from it.
    """

    def __init__(
        self,
        moments: sparse.csr_array,
        weights: Floats,
        *,
        equality: Bools | None = None,
        units: Ints | None = None,
        level: float = 0.95,
    ) -> None:
        n_cells = moments.shape[1]
        self.moments = moments
        self.equality = np.ones(n_cells, bool) if equality is None else equality
        self.deviation = weights @ moments / weights.sum()
        self.value = float(self._size(self.deviation).sum())
        self.least = 0.0
        allowance = DOUBT * (1 - level) / (2 * n_cells)
        doubt = ndtri(1 - allowance) * cell_noise(moments, weights, units)
        kept = np.maximum(np.abs(self.deviation) - doubt, 0)
        self.cautious = np.sign(self.deviation) * kept
        # At zero either sign may be the true one; an inequality counts for sure only
        # where it is clearly broken, and not at all where it clearly holds.
        clear = self.cautious > 0
        sign = np.where(self.deviation >= 0, 1.0, -1.0)
        self.sign = np.where(self.equality, sign, clear.astype(np.float64))
        self.doubtful = ~self.equality & ~clear & (self.deviation > -doubt)

    def moves(self, weighted: Floats, totals: Floats) -> Moves:
        shown = weighted @ self.moments / totals[:, None]
        return self.moves_of_noise(shown - self.deviation)

    def moves_of_noise(self, noise: Floats) -> Moves:
        """Moves for (draws, cells) errors of the cells' deviations."""
        excess = self._size(self.cautious + noise) - self._size(self.cautious)
        hidden = np.maximum(-noise[:, self.doubtful], 0).sum(axis=1)
        return Moves(-excess.sum(axis=1), hidden - noise @ self.sign)

    def _size(self, deviation: Floats) -> Floats:
        return np.where(self.equality, np.abs(deviation), np.maximum(deviation, 0))


class Shifted(Statistic):
    """Another estimate of the same quantity, with the same interval."""

    def __init__(self, value: float, base: Statistic) -> None:
        self.value, self.base, self.least = value, base, base.least

    def moves(self, weighted: Floats, totals: Floats) -> Moves:
        shift = self.base.value - self.value
        low, high = self.base.moves(weighted, totals)
        return Moves(low + shift, high + shift)


class Ranking(Statistic):
    """AUROC: how often a hit has a higher score than a miss; ties count half."""

    def __init__(self, scores: Floats, is_hit: Bools, weights: Floats) -> None:
        self.order = np.argsort(scores, kind="stable")
        ordered = scores[self.order]
        self.starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        self.is_hit = is_hit[self.order]
        self.value = float(self._area(weights[None, :])[0])

    def moves(self, weighted: Floats, totals: Floats) -> Moves:
        del totals
        moved = self._area(weighted) - self.value
        return Moves(moved, moved)

    def _area(self, weighted: Floats) -> Floats:
        """(draws,) areas; NaN for draws without a hit or without a miss."""
        ordered = weighted[:, self.order]
        hits = np.add.reduceat(ordered * self.is_hit, self.starts, axis=1)
        misses = np.add.reduceat(ordered * ~self.is_hit, self.starts, axis=1)
        beaten = np.cumsum(misses, axis=1) - misses / 2
        pairs = hits.sum(axis=1) * misses.sum(axis=1)
        area = (hits * beaten).sum(axis=1)
        return np.divide(area, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Resampled:
    """The moves of several statistics under common draws."""

    statistics: Mapping[str, Statistic]
    moves: Mapping[str, Moves]
    level: float

    @classmethod
    def of(
        cls,
        statistics: Mapping[str, Statistic],
        counts: Sequence[Floats] | Iterator[Floats],
        weights: Floats,
        level: float,
    ) -> Self:
        """Run the draws; ``counts`` come in chunks of (draws, n)."""
        parts: dict[str, list[Moves]] = {name: [] for name in statistics}
        for chunk in counts:
            weighted = chunk * weights
            totals = weighted.sum(axis=1)
            for name, statistic in statistics.items():
                parts[name].append(statistic.moves(weighted, totals))
        joined = {name: _joined(some) for name, some in parts.items()}
        return cls(statistics, joined, level)

    def estimate(self, name: str) -> Estimate:
        """One statistic with its interval."""
        one = self.statistics[name]
        return estimate(one.value, self.moves[name], self.level, one.least)

    def difference(self, name: str, other: str) -> Estimate:
        """One statistic minus another under the same draws."""
        value = self.statistics[name].value - self.statistics[other].value
        return estimate(value, self.moves[name].minus(self.moves[other]), self.level)


def estimate(
    value: float, moves: Moves, level: float, least: float = -np.inf
) -> Estimate:
    """Quantiles of the moves around a value; the interval always contains it."""
    tail = (1 - level) / 2
    lower = max(value + float(np.nanquantile(moves.low, tail)), least)
    upper = value + float(np.nanquantile(moves.high, 1 - tail))
    return Estimate(value, min(lower, value), max(upper, value))


def _joined(parts: list[Moves]) -> Moves:
    return Moves(
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
    )


def resampled_counts(
    n_items: int, n_draws: int, rng: np.random.Generator, units: Ints | None = None
) -> Iterator[Floats]:
    """Chunks of (draws, n) counts: how often each item was picked.

    With ``units`` whole blocks of items are picked together.
    """
    n_units = n_items if units is None else int(units.max()) + 1
    per_chunk = max(1, CHUNK // max(n_units, n_items))
    for start in range(0, n_draws, per_chunk):
        size = min(per_chunk, n_draws - start)
        picks = rng.integers(0, n_units, size=(size, n_units))
        picks += np.arange(size)[:, None] * n_units
        flat = np.bincount(picks.ravel(), minlength=size * n_units)
        counts = flat.reshape(size, n_units).astype(np.float64)
        yield counts if units is None else counts[:, units]


def cell_moments(cell: Ints, residual: Floats) -> sparse.csr_array:
    """(n, cells) one entry an item; cells without items are left out."""
    _, index = np.unique(cell, return_inverse=True)
    shape = (len(cell), int(index.max()) + 1)
    return sparse.csr_array((residual, index, np.arange(len(cell) + 1)), shape=shape)


def cell_noise(
    moments: sparse.csr_array, weights: Floats, units: Ints | None
) -> Floats:
    """(cells,) standard errors of the cells' deviations, not centred: never small."""
    n_items = len(weights)
    unit = np.arange(n_items) if units is None else units
    shape = (int(unit.max()) + 1, n_items)
    gather = sparse.csr_array((weights, (unit, np.arange(n_items))), shape=shape)
    sums = (gather @ moments).tocsr()
    sums.data **= 2
    return np.sqrt(np.asarray(sums.sum(axis=0)).ravel()) / weights.sum()


def debiased_norm(
    deviation: Floats, noise: Floats, equality: Bools | None = None
) -> float:
    r"""Sum of :math:`|D_b|` (or positive parts) less its bias under normal noise.

    The bias of :math:`|\hat D|` is the mean of a folded normal minus :math:`|\hat D|`
    (Kumar, Liang, Ma 2019, whose resampling has this closed form). It removes about
    two fifths of the bias of a calibrated predictor, where the bias is largest; for an
    honest statement use the interval. Never below zero.
    """
    safe = np.where(noise > 0, noise, 1.0)
    z = deviation / safe
    density = noise * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    positive = np.where(noise > 0, density + deviation * ndtr(z), np.maximum(z, 0))
    # |x| = 2 x_+ - x, and the mean of x is what was measured.
    folded = np.where(noise > 0, 2 * positive - deviation, np.abs(deviation))
    if equality is None:
        return max(float((2 * np.abs(deviation) - folded).sum()), 0.0)
    size = np.where(equality, np.abs(deviation), np.maximum(deviation, 0))
    mean = np.where(equality, folded, positive)
    return max(float((2 * size - mean).sum()), 0.0)
