"""Labels as they would be if a predictor were right about itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trueup._validate import Floats, Ints
from trueup.evaluate._resampling import CHUNK

LAST = 1 - 1e-9
"""Uniform numbers stay below this: adding a row number must not round them up."""


def simulated_hits(
    chances: Floats, n_draws: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Chunks of (draws, n) zeros and ones: item n is a hit with its own chance."""
    for size in _chunks(len(chances), n_draws):
        yield (rng.random((size, len(chances))) < chances).astype(np.float64)


def simulated_labels(
    distributions: Floats, n_draws: int, rng: np.random.Generator
) -> Iterator[Ints]:
    """Chunks of (draws, n) outcomes, each drawn from its item's distribution.

    One search in all rows at once: row n of the cumulated distributions is shifted by
    n, so that the whole is ascending and K does not enter the cost of a draw.
    """
    n_items, n_outcomes = distributions.shape
    cumulated = np.cumsum(distributions, axis=1)
    cumulated /= cumulated[:, -1:]
    row = np.arange(n_items)
    ladder = (cumulated + row[:, None]).ravel()
    for size in _chunks(n_items, n_draws):
        shots = np.minimum(rng.random((size, n_items)), LAST) + row
        found = np.searchsorted(ladder, shots.ravel(), side="right")
        yield found.reshape(size, n_items) - row * n_outcomes


def _chunks(n_items: int, n_draws: int) -> Iterator[int]:
    per_chunk = max(1, CHUNK // n_items)
    for start in range(0, n_draws, per_chunk):
        yield min(per_chunk, n_draws - start)


def exceedance(simulated: Floats, observed: float) -> float:
    """Share of simulated statistics that reach the observed one, which counts too.

    A p-value that is valid for any number of draws. Statistics of the same labels may
    differ by rounding, which must not count as "smaller".
    """
    reached = simulated >= observed - 1e-12 * (1 + abs(observed))
    return float((1 + reached.sum()) / (1 + len(simulated)))
