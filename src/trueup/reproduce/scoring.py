"""The paper's four numbers, of reports and of answers that are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.core.reports import AnswerConfidence
from trueup.evaluate._binning import equal_width

N_BINS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A confidence an item, and the chance with which each outcome is answered."""

    confidence: Floats
    answers: Floats
    """(n, K); one 1 in each row where nothing is drawn."""

    @classmethod
    def of(cls, reports: AnswerConfidence) -> Self:
        """Answers that are certain."""
        return cls(reports.confidence, np.eye(len(reports.outcomes))[reports.answer])

    def take(self, index: Ints) -> Self:
        """Some of the items."""
        return type(self)(self.confidence[index], self.answers[index])


@dataclass(frozen=True, slots=True)
class Scores:
    """ACC, BS, ECE and CL; of drawn answers, their expectations."""

    accuracy: float
    brier_top: float
    ece: float
    confidence_loss: float


@dataclass(frozen=True, slots=True)
class Gain:
    """How much the confidence loss falls, over all items, and its standard error."""

    value: float
    error: float


def scores(said: Said, labels: Ints) -> Scores:
    """Score reports with labels.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup import AnswerConfidence
    >>> said = AnswerConfidence(answer=["A", "B"], confidence=[0.5, 1.0],
    ...                         outcomes=["A", "B"])
    >>> scores(Said.of(said), np.array([0, 0]))
    Scores(accuracy=0.5, brier_top=0.625, ece=0.75, confidence_loss=0.125)
    """
    hits = _hits(said, labels)
    stated = said.confidence
    gaps = group_sums(equal_width(stated, N_BINS), hits - stated, N_BINS)
    return Scores(
        accuracy=float(hits.mean()),
        brier_top=float((stated**2 - 2 * stated * hits + hits).mean()),
        ece=float(np.abs(gaps).sum() / len(hits)),
        confidence_loss=float(_losses(said, labels).mean()),
    )


def gain(before: Said, after: Said, labels: Ints) -> Gain:
    """The fall in confidence loss from one to the other on the same items."""
    falls = _losses(before, labels) - _losses(after, labels)
    error = falls.std(ddof=1) / math.sqrt(len(falls)) if len(falls) > 1 else math.inf
    return Gain(float(falls.mean()), float(error))


def _hits(said: Said, labels: Ints) -> Floats:
    return np.asarray(said.answers[np.arange(len(labels)), labels])


def _losses(said: Said, labels: Ints) -> Floats:
    stated = said.confidence
    return np.asarray(stated**2 - 2 * stated * _hits(said, labels))
