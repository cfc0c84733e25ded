"""Logits, logistic regression and one-parameter temperatures, with care at the ends."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

from trueup._validate import Floats
from trueup.errors import DoubtfulInputWarning, MissingExtraError

CLIP = 1e-7
"""Chances are kept this far from 0 and 1: a float32 probability of one may stand for
anything above 1 - 6e-8, and no logit is infinite."""

COLDEST, HOTTEST = 0.01, 100.0
"""Limits of a temperature; beyond them a map is a constant for all purposes."""

WEAKEST_PENALTY = 1e10
"""scikit-learn's C: keeps separable samples finite and changes nothing else."""


def clipped(chances: Floats) -> Floats:
    """Chances away from zero and one."""
    return np.clip(chances, CLIP, 1 - CLIP)


def logits(chances: Floats) -> Floats:
    """Finite log-odds."""
    return np.asarray(logit(clipped(chances)), dtype=np.float64)


def sigmoid(values: Floats) -> Floats:
    """Chances from log-odds."""
    return np.asarray(expit(values), dtype=np.float64)


def best_temperature(slope: Callable[[float], float], what: str) -> float:
    """Temperature at which a convex loss is least.

    ``slope`` is the derivative with respect to the inverse temperature, which never
    falls; so there is one root, or the loss is least at a limit.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - heavy, and used only here

    low, high = float(np.log(1 / HOTTEST)), float(np.log(1 / COLDEST))

    def at(log_inverse: float) -> float:
        return slope(float(np.exp(log_inverse)))

    first, last = at(low), at(high)
    if first == 0 and last == 0:  # no report moves with the temperature
        return 1.0
    if first >= 0 or last <= 0:
        limit = HOTTEST if first >= 0 else COLDEST
        warnings.warn(
            f"{what}: the temperature ran to its limit {limit:g}, because the sample "
            f"is fitted best by {'uniform' if first >= 0 else 'certain'} reports. Is "
            "it too small, or are its outcomes in another order?",
            DoubtfulInputWarning,
            stacklevel=5,
        )
        return limit
    return float(np.exp(-brentq(at, low, high, xtol=1e-14, rtol=1e-14)))


def fit_logistic(
    features: Floats, targets: Floats, weights: Floats
) -> tuple[Floats, float]:
    """Coefficients and intercept of a logistic regression on soft targets.

    Each item enters twice, as a hit with its target and as a miss with the rest.
    Features that do not vary get coefficient zero.
    """
    LogisticRegression = _sklearn_logistic()  # noqa: N806 - it is a class
    varies = np.ptp(features, axis=0) > 0
    coefficients = np.zeros(features.shape[1])
    if not varies.any():
        rate = np.array([weights @ targets / weights.sum()])
        return coefficients, float(logits(rate)[0])
    rows = np.concatenate([features[:, varies]] * 2)
    is_hit = np.repeat([1, 0], len(targets))
    shares = np.concatenate([weights * targets, weights * (1 - targets)])
    kept = shares > 0
    model = LogisticRegression(
        C=WEAKEST_PENALTY, solver="newton-cholesky", tol=1e-10, max_iter=1000
    )
    with warnings.catch_warnings():
        # Separable samples stop at the penalty; their coefficients are what is wanted.
        warnings.simplefilter("ignore")
        model.fit(rows[kept], is_hit[kept], sample_weight=shares[kept])
    coefficients[varies] = model.coef_[0]
    return coefficients, float(model.intercept_[0])


def platt_targets(hits: Floats, weights: Floats) -> Floats:
    """Platt's smoothed targets: one imagined hit and one imagined miss."""
    n_hits, n_misses = weights @ hits, weights @ (1 - hits)
    return np.where(hits == 1, (n_hits + 1) / (n_hits + 2), 1 / (n_misses + 2))


def _sklearn_logistic() -> type:
    try:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError.of("scikit-learn", "sklearn") from error
    return LogisticRegression
