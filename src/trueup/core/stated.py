"""The one number that a report is drawn by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.reports import AnswerConfidence, Distributions, Reports


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """A number an item, what it is called, and between which limits it lies."""

    values: Floats
    title: str
    low: float
    high: float

    def bands(self, n_bands: int) -> Ints:
        """(n,) which of so many equal bands; the last holds the upper limit."""
        place = (self.values - self.low) / (self.high - self.low) * n_bands
        return np.clip(np.floor(place + 1e-9), 0, n_bands - 1).astype(np.int64)


def stated(reports: Reports) -> Stated:
    """P(outcome 1) of two outcomes, the confidence of an answer, or the value."""
    if isinstance(reports, AnswerConfidence):
        return Stated(reports.confidence, "confidence", 0.0, 1.0)
    if isinstance(reports, Distributions):
        if reports.n_outcomes == 2:
            title = f"P({reports.outcomes[1]})"
            return Stated(reports.probabilities[:, 1], title, 0.0, 1.0)
        return Stated(reports.probabilities.max(axis=1), "confidence", 0.0, 1.0)
    is_number = reports.answers() is None
    support = reports.about.values if is_number else np.arange(reports.n_outcomes)
    low, high = float(support.min()), float(support.max())
    title = f"stated {reports.about.title}"
    return Stated(reports.keys()[:, 0], title, low, max(high, low + 1e-9))
