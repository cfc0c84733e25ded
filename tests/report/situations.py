"""Summaries of several situations that pages are looked at for."""

from __future__ import annotations

from functools import cache

import numpy as np

import trueup
from trueup.report import summarise

HOSTILE = (
    "</script><script>window.hacked=1</script>\"'&<img src=x onerror=hacked=1>",
    "a|b,c\n\u2028{{7*7}} `x` [l](javascript:1) 🙂 ${1}",
)


def worlds(n_items=1500, n_outcomes=2, *, sharp=3.0, shift=0.0, seed=3):
    """A calibrated reference, and a primary that is sharp and leans to one outcome."""
    rng = np.random.default_rng(seed)
    known, more = rng.normal(size=(2, n_items, n_outcomes))
    truth = _softmax(1.2 * known + 1.2 * more)
    draws = np.array([rng.normal(size=(n_items, n_outcomes)) for _ in range(200)])
    reference = _softmax(1.2 * known + 1.2 * draws).mean(axis=0)
    lean = shift * np.eye(n_outcomes)[-1]
    primary = _softmax(sharp * 1.2 * (known + 0.2 * more) + lean)
    labels = (truth.cumsum(axis=1) < rng.random(n_items)[:, None]).sum(axis=1)
    return primary, reference, labels


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@cache
def binary():
    """Two outcomes, a guarantee, labels."""
    primary, reference, labels = worlds(shift=2.5)
    fitted = trueup.fit(primary, reference, cells="auto")
    return summarise(fitted, primary, reference, labels=labels, names=("GPT", "base"))


@cache
def nothing():
    """Too few items for any guarantee; no labels."""
    primary, reference, _ = worlds(200, 3, sharp=1.0)
    fitted = trueup.fit(primary, reference, cells="auto", trust="mean")
    return summarise(fitted, primary, reference)


@cache
def hostile():
    """Names that try to leave their place, also as outcomes and ids."""
    primary, reference, labels = worlds(400, 3)
    outcomes = ["<b>yes</b>", "no | `x`\n", HOSTILE[0]]
    fitted = trueup.fit(primary, reference, cells="auto", outcomes=outcomes)
    return summarise(
        fitted,
        primary,
        reference,
        labels=[outcomes[place] for place in labels],
        names=HOSTILE,
        ids=[f"<i>{place}</i>" for place in range(len(labels))],
        title=HOSTILE[0],
    )


@cache
def answers():
    """Six answers with confidences, groups, an allowed error and missing labels."""
    primary, reference, labels = worlds(1200, 6, seed=5)
    first, second = map(
        trueup.AnswerConfidence.from_distributions, (primary, reference)
    )
    groups = np.arange(1200) % 2
    fitted = trueup.fit(
        first, second, cells="auto", groups=groups, reference_error=0.002
    )
    some = [int(one) if place % 3 else None for place, one in enumerate(labels)]
    return summarise(fitted, first, second, labels=some, groups=groups)


@cache
def table():
    """The example of the README: exact cells, nothing sampled."""
    primary, reference = np.array([0.1, 0.7]), np.array([0.5, 0.5])
    fitted = trueup.fit(primary, reference, cells="exact")
    return summarise(fitted, primary, reference, names=("primary", "reference"))


@cache
def points():
    """Means against means: no answers, no confidences."""
    rng = np.random.default_rng(8)
    values = [0.0, 1.0, 2.0, 3.0]
    level = rng.uniform(0.5, 2.5, size=900)
    second = trueup.PointReport(value=level, outcomes=values, property="mean")
    first = trueup.PointReport(
        value=np.clip(1.6 * level - 0.2, 0, 3), outcomes=values, property="mean"
    )
    labels = np.clip(np.rint(rng.normal(level, 0.7)), 0, 3)
    fitted = trueup.fit(first, second, cells="auto")
    return summarise(fitted, first, second, labels=labels.tolist())


SITUATIONS = {
    made.__name__: made for made in (binary, nothing, hostile, answers, table, points)
}
