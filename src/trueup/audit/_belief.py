"""What a predictor must expect of a payoff, by its own report and nothing else.

The least mean of a payoff over all distributions that have the stated property. A
predictor that believes its report accepts a contract whose least mean is not negative.
Written from the level sets, without the moments that contracts are made of, so that a
contract can be checked against something it does not come from.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from trueup._validate import Floats
from trueup.core.properties import AnswerConfidenceProperty
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports


def least_means(reports: Reports, payoffs: Floats, *, caps: bool) -> Floats:
    """(n,) least expected payoff of each report; infinite where none can be right.

    ``caps`` says whether an answer is believed to be the most likely outcome.
    """
    if isinstance(reports, Distributions):
        return np.asarray((reports.probabilities * payoffs).sum(axis=1))
    if isinstance(reports, AnswerConfidence):
        return _answers(reports, payoffs, caps=caps)
    return _points(cast("PointReport", reports), payoffs)


def believes_caps(reports: Reports) -> bool:
    """Whether such reports claim by themselves that the answer is the mode."""
    about = reports.about
    return isinstance(about, AnswerConfidenceProperty) and about.caps


def _answers(reports: AnswerConfidence, payoffs: Floats, *, caps: bool) -> Floats:
    """The answer has its confidence; the rest goes where it pays least."""
    rows, confidence = np.arange(len(reports)), reports.confidence
    own = payoffs[rows, reports.answer]
    others = payoffs.copy()
    others[rows, reports.answer] = np.inf
    cheapest = np.sort(others, axis=1)[:, :-1]
    limit = confidence if caps else np.ones_like(confidence)
    left, total = 1 - confidence, confidence * own
    for column in cheapest.T:
        placed = np.minimum(left, limit)
        total, left = total + placed * column, left - placed
    return np.where(left > 1e-9, np.inf, total)


def _points(reports: PointReport, payoffs: Floats) -> Floats:
    name, stated = reports.about.name, reports.value
    if name == "mode":
        return _modes(stated.astype(np.int64), payoffs)
    support = reports.about.values
    if name == "quantile":
        return _quantiles(reports, payoffs, support)
    if name == "mean":
        return _on_a_line(payoffs, np.tile(support, (len(stated), 1)) - stated[:, None])
    residual = support - stated[:, None]
    level = cast("float", reports.about.level)
    return _on_a_line(payoffs, np.abs(level - (residual < 0)) * residual)


def _modes(stated: Floats | np.ndarray, payoffs: Floats) -> Floats:  # type: ignore[type-arg]
    """Uniform over the mode and any others are the extreme beliefs."""
    rows = np.arange(len(payoffs))
    own = payoffs[rows, stated]
    others = payoffs.copy()
    others[rows, stated] = np.inf
    cheapest = np.sort(others, axis=1)[:, :-1]
    running = own[:, None] + np.cumsum(cheapest, axis=1)
    means = running / np.arange(2, payoffs.shape[1] + 1)
    return np.minimum(own, means.min(axis=1))


def _quantiles(reports: PointReport, payoffs: Floats, support: Floats) -> Floats:
    """At most the level lies below, at most the rest above, what is left at it."""
    stated, level = reports.value[:, None], cast("float", reports.about.level)
    at = np.where(support == stated, payoffs, np.inf).min(axis=1)
    below = np.where(support < stated, payoffs, np.inf).min(axis=1)
    above = np.where(support > stated, payoffs, np.inf).min(axis=1)
    gain_below, gain_above = np.minimum(below - at, 0), np.minimum(above - at, 0)
    return np.asarray(at + level * gain_below + (1 - level) * gain_above)


def _on_a_line(payoffs: Floats, residual: Floats) -> Floats:
    """Least mean when the mean residual is zero: two outcomes are enough."""
    low, high = residual[:, :, None], residual[:, None, :]
    straddles = (low <= 0) & (high >= 0)
    width = np.where(high > low, high - low, 1.0)
    share = np.where(high > low, -low / width, 0.0)
    mixed = (1 - share) * payoffs[:, :, None] + share * payoffs[:, None, :]
    return np.where(straddles, mixed, np.inf).min(axis=(1, 2))
