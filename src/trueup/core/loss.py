"""Proper losses, each by its generator.

Every loss is written D(p, r) = G(p) + <l(r, .), p> with G(p) = -min_r <l(r, .), p>:
``vectors`` are the l up to a constant that does not depend on the report, ``generator``
is G, and ``divergence`` is the excess loss of reporting r when the truth is p. A loss
also knows what to *deploy*: from what the solver found for a report to the report that
replaces it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.core.reports import Reports


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """What a solver found for each of n primary reports about K outcomes."""

    tilt: Floats
    """(n, K) mu: the slope by which the generator at h exceeds that at the report."""
    possible: Bools
    """(n, K) outcomes that some admissible truth allows for the report."""
    distributions: Floats | None = None
    """(n, K) h itself, where a solver found it without a tilt in closed form."""


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """What replaces each primary report, and the loss this incurs."""

    losses: Floats
    """(n, K) expected loss of what is deployed, for each outcome."""
    reports: Reports | None
    """The new reports; None if an answer is drawn."""
    weights: Floats | None = None
    """(n, K) probabilities with which each answer is drawn."""
    confidence: Floats | None = None
    """(n,) confidence that goes with a drawn answer."""


class ProperLoss(ABC):
    """A proper loss for one property of the outcome."""

    name: ClassVar[str]
    draws: ClassVar[bool] = False
    """Whether the optimum may need a drawn answer, because G has kinks."""

    @abstractmethod
    def vectors(self, reports: Reports) -> Floats:
        """(n, K) loss of each report under each outcome."""

    @abstractmethod
    def generator(self, p: Floats) -> Floats:
        """(n,) the convex function G; minus G is the least expected loss at p."""

    @abstractmethod
    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        """Turn a solution into what replaces each report."""

    def constants(self, n_outcomes: int) -> Floats:
        """(K,) what ``vectors`` leave out: vectors + constants is the loss itself."""
        return np.zeros(n_outcomes)

    def divergence(self, p: Floats, reports: Reports) -> Floats:
        """(n,) excess loss of the reports when the truth is p; never negative."""
        return self.generator(p) + (self.vectors(reports) * p).sum(axis=1)

    def hold(self, answers: Ints) -> ProperLoss:
        """The loss with the new answers fixed, for losses that may draw them."""
        del answers
        return self

    def average(self, deployed: Sequence[Deployment]) -> Reports:
        """Reports whose loss is never above the mean loss of those deployed."""
        reports = deployed[0].reports
        if reports is None:
            message = f"{self.name} loss deploys a draw, which has no average report"
            raise TypeError(message)
        return reports

    def identity(self, reports: Reports) -> Deployment:
        """Leave every report as it is."""
        return Deployment(self.vectors(reports), reports)

    def least_divergence(self, reports: Reports) -> Floats:
        """(n,) what can be gained on each report without any reference.

        Positive only where no distribution at all has the stated property.
        """
        return np.zeros(len(reports))
