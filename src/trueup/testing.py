"""Tools for tests and benchmarks: predictors with a known relation to the truth.

What makes a table worth solving is shared error. A primary that errs independently of
the reference is usually mutually calibrated with it, so the optimum is zero and every
solver is fast. :func:`shared_error_predictors` makes pairs that contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._validate import Floats, Ints

_CHUNK = 500
_NUMBERS = 4_000_000
"""Numbers that the draws behind a chunk may take, where outcomes are many."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedPredictors:
    """Reports of two predictors on the same items, and what happened."""

    primary: Floats
    """(n, K) an overconfident predictor that knows more than the reference."""
    reference: Floats
    """(n, K) the posterior given what the reference knows: calibrated."""
    labels: Ints
    """(n,) outcomes drawn from the truth."""


def shared_error_predictors(
    n_items: int,
    n_outcomes: int = 4,
    *,
    rng: np.random.Generator | int = 0,
    sharpness: float = 3.5,
    n_draws: int = 300,
) -> SimulatedPredictors:
    """Draw a calibrated reference and an overconfident primary that shares its errors.

    The truth is softmax(a + b1 + b2) with Gaussian scores. The reference knows a and
    reports the posterior given it (a Monte Carlo mean over ``n_draws`` of b1 + b2, the
    same for all items, so that its own error is shared and small). The primary knows a
    and b1 and reports softmax(sharpness * (a + b1)): it sees more, takes no account of
    b2, and exaggerates.

    Parameters
    ----------
    n_items, n_outcomes
        Size of the sample.
    rng
        Generator, or a seed.
    sharpness
        How far the primary exaggerates; 3.5 makes a gain of a few per cent.
    n_draws
        Draws behind each report of the reference.

    Examples
    --------
    >>> pair = shared_error_predictors(1_000, 3, rng=7)
    >>> pair.primary.shape, pair.reference.shape
    ((1000, 3), (1000, 3))
    >>> bool(pair.primary.max(axis=1).mean() > pair.reference.max(axis=1).mean())
    True
    """
    random = np.random.default_rng(rng)
    known, more = random.normal(size=(2, n_items, n_outcomes))
    unknown = random.normal(scale=np.sqrt(2), size=(n_draws, 1, n_outcomes))
    chunk = max(1, min(_CHUNK, _NUMBERS // (n_draws * n_outcomes)))
    parts = np.array_split(known, max(1, n_items // chunk))
    posterior = [_softmax(part + unknown).mean(axis=0) for part in parts]
    truth = _softmax(known + more + random.normal(size=(n_items, n_outcomes)))
    draws = random.random((n_items, 1))
    labels = (np.cumsum(truth, axis=1) < draws).sum(axis=1)
    return SimulatedPredictors(
        primary=_softmax(sharpness * (known + more)),
        reference=np.concatenate(posterior),
        labels=np.minimum(labels, n_outcomes - 1),
    )


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))
