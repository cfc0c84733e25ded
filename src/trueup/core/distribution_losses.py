"""Losses on whole distributions: Brier, logarithmic, spherical."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from trueup._validate import Floats
from trueup.core.loss import Deployment, ProperLoss, Solved
from trueup.core.reports import Distributions, Reports
from trueup.core.simplex import normalise_rows, project_rows, simplex_from_norm


class DistributionLoss(ProperLoss):
    """A loss on whole distributions; h itself is deployed."""

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        stated = cast("Distributions", reports)
        tilted = self.tilted(stated.probabilities, solved)
        better = replace(stated, probabilities=tilted, n_normalised=0)
        return Deployment(self.vectors(better), better)

    def average(self, deployed: Sequence[Deployment]) -> Reports:
        rows = [cast("Distributions", one.reports) for one in deployed]
        return replace(
            rows[0], probabilities=self.mean([r.probabilities for r in rows])
        )

    def mean(self, rows: list[Floats]) -> Floats:
        """The average on which the loss is convex: of h itself, unless overridden."""
        return cast("Floats", np.mean(rows, axis=0))

    @abstractmethod
    def tilted(self, stated: Floats, solved: Solved) -> Floats:
        """Argmin over h in the simplex of D(h, r) - <tilt, h>."""


class BrierLoss(DistributionLoss):
    """Brier loss summed over outcomes, in [0, 2].

    sum_k (r_k - 1[y = k])^2. For two outcomes this is *twice* (p - y)^2.

    Examples
    --------
    >>> BrierLoss().generator(np.array([[0.2, 0.8]])).round(2)
    array([0.68])
    """

    name = "brier"

    def vectors(self, reports: Reports) -> Floats:
        stated = cast("Distributions", reports).probabilities
        return (stated**2).sum(axis=1, keepdims=True) - 2 * stated

    def constants(self, n_outcomes: int) -> Floats:
        return np.ones(n_outcomes)

    def generator(self, p: Floats) -> Floats:
        return cast("Floats", (p**2).sum(axis=1))

    def divergence(self, p: Floats, reports: Reports) -> Floats:
        # The expanded form cancels; this one keeps small moves exact.
        stated = cast("Distributions", reports).probabilities
        return cast("Floats", ((p - stated) ** 2).sum(axis=1))

    def tilted(self, stated: Floats, solved: Solved) -> Floats:
        return project_rows(stated + solved.tilt / 2)


class LogLoss(DistributionLoss):
    """Logarithmic loss -log r_y in nats; infinite where a zero comes true."""

    name = "log"

    def vectors(self, reports: Reports) -> Floats:
        with np.errstate(divide="ignore"):
            return -np.log(cast("Distributions", reports).probabilities)

    def generator(self, p: Floats) -> Floats:
        positive = np.where(p > 0, p, 1.0)
        return cast("Floats", (p * np.log(positive)).sum(axis=1))

    def divergence(self, p: Floats, reports: Reports) -> Floats:
        stated = cast("Distributions", reports).probabilities
        positive = np.where(p > 0, p, 1.0)
        ratio = np.where(p > 0, np.log(positive) - np.log(stated), 0.0)
        return cast("Floats", (p * ratio).sum(axis=1))

    def tilted(self, stated: Floats, solved: Solved) -> Floats:
        # Outcomes no admissible truth allows are dropped exactly, not approached.
        exponent = np.where(solved.possible, np.log(stated) + solved.tilt, -np.inf)
        return normalise_rows(np.exp(exponent - exponent.max(axis=1, keepdims=True)))


class SphericalLoss(DistributionLoss):
    """Spherical loss -r_y / |r|, in [-1, 0]."""

    name = "spherical"

    def vectors(self, reports: Reports) -> Floats:
        return -_unit_rows(cast("Distributions", reports).probabilities)

    def generator(self, p: Floats) -> Floats:
        return cast("Floats", np.linalg.norm(p, axis=1))

    def mean(self, rows: list[Floats]) -> Floats:
        # The loss is linear in r / |r|, and shortening that vector only helps.
        return normalise_rows(np.mean([_unit_rows(row) for row in rows], axis=0))

    def tilted(self, stated: Floats, solved: Solved) -> Floats:
        return simplex_from_norm(_unit_rows(stated) + solved.tilt)


def _unit_rows(rows: Floats) -> Floats:
    return cast("Floats", rows / np.linalg.norm(rows, axis=1, keepdims=True))
