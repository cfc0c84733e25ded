"""A grid of scores that every engine counts in the same way, to the last bit.

Places are equally wide up to 15/16, sixteen times narrower from there to 255/256, and
so on towards one: overconfident predictors need resolution there. All ends are sums of
powers of two and all steps powers of two, so finding a place rounds nothing: numpy,
DuckDB and Spark agree exactly.
"""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats, Ints

LEVELS = 5
FIRST_STEPS = 1024.0
"""Steps in one of the first level; every level has sixteen times as many."""
_PER_LEVEL = 960
N_PLACES = _PER_LEVEL * (LEVELS - 1) + 1024 + 1


def level(index: int) -> tuple[float, float, int]:
    """Where a level starts, how many steps make one there, and its first place."""
    start = 0.0 if index == 0 else 1.0 - 16.0**-index
    return start, FIRST_STEPS * 16.0**index, _PER_LEVEL * index


def places(scores: Floats) -> Ints:
    """(n,) place of each score in [0, 1]; one has a place of its own."""
    found = np.zeros(len(scores))
    for index in range(LEVELS):
        start, steps, first = level(index)
        found = np.where(
            scores >= start, first + np.floor((scores - start) * steps), found
        )
    return found.astype(np.int64)


def lower_ends() -> Floats:
    """(places,) smallest score of each place."""
    index = np.arange(N_PLACES)
    at = np.minimum(index // _PER_LEVEL, LEVELS - 1)
    ends = np.empty(N_PLACES)
    for one in range(LEVELS):
        start, steps, first = level(one)
        own = at == one
        ends[own] = start + (index[own] - first) / steps
    return ends


def edges_of_equal_mass(counts: Ints, n_bins: int) -> Floats:
    """Inner edges of at most ``n_bins`` bins of about equal mass; each is a place's."""
    held = np.flatnonzero(counts)
    if n_bins <= 1 or len(held) <= 1:
        return np.empty(0)
    reached = np.cumsum(counts[held])
    wanted = reached[-1] * np.arange(1, n_bins) / n_bins
    last = np.minimum(np.searchsorted(reached, wanted * (1 - 1e-12)), len(held) - 2)
    return lower_ends()[held[np.unique(last) + 1]]
