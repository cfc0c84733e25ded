"""Tests and intervals for the calibration error of one rung."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betainc

from trueup._arrays import group_sums
from trueup._validate import Floats
from trueup.core.reports import Distributions, Reports
from trueup.evaluate._resampling import CellNorm, Estimate, Moves, estimate
from trueup.evaluate._rungs import RungMoments, as_answers
from trueup.evaluate._simulation import exceedance, simulated_hits, simulated_labels


class Chance(NamedTuple):
    """What a calibrated reference would show."""

    p_value: float
    """How often it shows an error as large as the observed one."""
    error: float
    """The error it shows on average."""


def _chance(simulated: list[Floats], observed: float, scale: float = 1.0) -> Chance:
    errors = np.concatenate(simulated) / scale
    return Chance(exceedance(errors, observed), float(errors.mean()))


def measured(
    moments: RungMoments, level: float, n_draws: int, rng: np.random.Generator
) -> tuple[Estimate, Chance]:
    """The error with an interval for the true one, and chance from normal noise.

    The noise is that of moments which all vanish.
    """
    norm = moments.norm(level)
    lows, highs, sums = [], [], []
    for noise in moments.noise(n_draws, rng):
        moves = norm.moves_of_noise(noise)
        lows.append(moves.low)
        highs.append(moves.high)
        sums.append(_size(norm, noise).sum(axis=1))
    moves = Moves(np.concatenate(lows), np.concatenate(highs))
    error = estimate(norm.value, moves, level, least=0.0)
    return error, _chance(sums, norm.value)


def _size(norm: CellNorm, noise: Floats) -> Floats:
    return np.where(norm.equality, np.abs(noise), np.maximum(noise, 0))


def hits_by_chance(
    moments: RungMoments, chances: Floats, n_draws: int, rng: np.random.Generator
) -> Chance:
    """Exact test of one equality a cell: hits drawn with the stated chances.

    Given the reports, a calibrated reference's hits *are* such draws, whatever the
    cells; so the test is exact for any number of them and any sample size.
    """
    weights = moments.weights
    shape = (len(weights), moments.n_cells)
    member = sparse.csr_array(
        (weights, moments.cell, np.arange(len(weights) + 1)), shape=shape
    )
    simulated = [
        np.abs(np.asarray((hits - chances) @ member)).sum(axis=1)
        for hits in simulated_hits(chances, n_draws, rng)
    ]
    return _chance(simulated, moments.norm(0.5).value, float(weights.sum()))


def labels_by_chance(
    moments: RungMoments, reports: Reports, n_draws: int, rng: np.random.Generator
) -> Chance:
    """Exact test of whole distributions: outcomes drawn from the stated ones."""
    if not isinstance(reports, Distributions):
        message = "only distributions can be drawn from"
        raise TypeError(message)
    if reports.n_outcomes == 2:
        return hits_by_chance(moments, reports.probabilities[:, 1], n_draws, rng)
    simulated = list(_label_errors(moments, reports, n_draws, rng))
    return _chance(simulated, moments.norm(0.5).value, float(moments.weights.sum()))


def _label_errors(
    moments: RungMoments,
    reports: Distributions,
    n_draws: int,
    rng: np.random.Generator,
) -> Iterator[Floats]:
    weights, n_outcomes = moments.weights, reports.n_outcomes
    stated = group_sums(
        moments.cell, weights[:, None] * reports.probabilities, moments.n_cells
    ).ravel()
    place = moments.cell * n_outcomes
    for chunk in simulated_labels(reports.probabilities, n_draws, rng):
        # A draw at a time: the counts of all draws at once would not fit in memory.
        counted = (
            np.bincount(place + labels, weights, len(stated)) for labels in chunk
        )
        yield np.array([np.abs(one - stated).sum() for one in counted])


def cap_p_value(moments: RungMoments) -> float:
    """Test of the caps alone: binomial tails, times their number (Bonferroni).

    If an outcome is at most as likely as the confidence, its count in a cell is at
    most binomial with the mean confidence.
    """
    caps = ~moments.equality
    if not caps.any():
        return 1.0
    weights, cell = moments.weights, moments.cell_of_column[caps]
    mass = group_sums(moments.cell, weights, moments.n_cells)
    spread = group_sums(moments.cell, weights**2, moments.n_cells)
    n_items = (mass**2 / spread)[cell]
    hits = (weights @ moments.hits)[caps] / mass[cell] * n_items
    chance = (weights @ moments.targets)[caps] / mass[cell]
    tail = betainc(np.maximum(hits, 1e-300), n_items - hits + 1, chance)
    smallest = float(np.where(hits > 0, tail, 1.0).min())
    return min(1.0, smallest * int(caps.sum()))


def confidences(reports: Reports) -> Floats:
    """(n,) confidence of the answer."""
    return as_answers(reports).confidence
