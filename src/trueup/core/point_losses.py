"""Losses on a number: squared (mean), pinball (quantile), expectile."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import cast

import numpy as np

from trueup._validate import Floats
from trueup.core.loss import Deployment, ProperLoss, Solved
from trueup.core.properties import Property
from trueup.core.reports import PointReport, Reports

_BISECTIONS = 60
"""Halvings of the outcomes' range until nothing is left to halve."""


class _PointLoss(ProperLoss):
    """A loss on a numeric report that it is convex in."""

    def __init__(self, about: Property) -> None:
        self.about = about
        self.support = about.values

    def vectors(self, reports: Reports) -> Floats:
        return self.at(cast("PointReport", reports).value)

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        ceiling = self.vectors(reports) - solved.tilt
        value = self.snapped(self.respond(np.where(solved.possible, ceiling, np.inf)))
        better = PointReport._of(value, reports.outcomes, self.about)
        return Deployment(self.vectors(better), better)

    def average(self, deployed: Sequence[Deployment]) -> Reports:
        first = cast("PointReport", deployed[0].reports)
        values = [cast("PointReport", one.reports).value for one in deployed]
        mean = cast("Floats", np.mean(values, axis=0))
        return PointReport._of(mean, first.outcomes, first.about)

    def respond(self, ceiling: Floats) -> Floats:
        """(n,) the value r that maximises min_y [ ceiling(y) - l(r, y) ].

        Concave in r because the loss is convex; no draw is needed, since the mean of
        drawn values is never worse than the draw. Bisection on the slope of the
        outcome that attains the minimum, to the last bit.
        """
        low = np.full(len(ceiling), self.support.min())
        high = np.full(len(ceiling), self.support.max())
        rows = np.arange(len(ceiling))
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            worst = (ceiling - self.at(middle)).argmin(axis=1)
            rising = self.slope(middle)[rows, worst] < 0
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        return (low + high) / 2

    def snapped(self, value: Floats) -> Floats:
        """The value, without the solver's last digits where an outcome is meant."""
        support = np.sort(self.support)
        above = np.clip(np.searchsorted(support, value), 1, len(support) - 1)
        low, high = support[above - 1], support[above]
        nearest = np.where(value - low <= high - value, low, high)
        close = np.abs(value - nearest) <= 1e-9 * (support[-1] - support[0])
        return np.where(close, nearest, value)

    @abstractmethod
    def at(self, value: Floats) -> Floats:
        """(n, K) loss of each stated value under each outcome."""

    @abstractmethod
    def slope(self, value: Floats) -> Floats:
        """(n, K) derivative of the loss in the stated value."""


class SquaredLoss(_PointLoss):
    """Squared error (r - y)^2, without the term y^2 that no report changes."""

    name = "squared"

    def at(self, value: Floats) -> Floats:
        return value[:, None] ** 2 - 2 * value[:, None] * self.support

    def constants(self, n_outcomes: int) -> Floats:
        del n_outcomes
        return self.support**2

    def generator(self, p: Floats) -> Floats:
        return (p @ self.support) ** 2

    def slope(self, value: Floats) -> Floats:
        return 2 * (value[:, None] - self.support)


class PinballLoss(_PointLoss):
    """Pinball loss of a quantile: level (y - r)_+ + (1 - level) (r - y)_+."""

    name = "pinball"

    def at(self, value: Floats) -> Floats:
        residual = self.support - value[:, None]
        level = cast("float", self.about.level)
        return np.where(residual >= 0, level * residual, (level - 1) * residual)

    def generator(self, p: Floats) -> Floats:
        return -(p @ self.at(self.support).T).min(axis=1)

    def slope(self, value: Floats) -> Floats:
        level = cast("float", self.about.level)
        return (self.support < value[:, None]).astype(np.float64) - level


class ExpectileLoss(_PointLoss):
    """Asymmetric squared error |level - 1[y < r]| (y - r)^2."""

    name = "expectile"

    def at(self, value: Floats) -> Floats:
        residual = self.support - value[:, None]
        level = cast("float", self.about.level)
        return np.abs(level - (residual < 0)) * residual**2

    def generator(self, p: Floats) -> Floats:
        return cast("Floats", -(p * self.at(self.expectile(p))).sum(axis=1))

    def slope(self, value: Floats) -> Floats:
        residual = self.support - value[:, None]
        level = cast("float", self.about.level)
        return -2 * np.abs(level - (residual < 0)) * residual

    def expectile(self, p: Floats) -> Floats:
        """(n,) the expectile of each distribution: root of a decreasing function."""
        order = np.argsort(self.support)
        support, mass = self.support[order], p[:, order]
        level = cast("float", self.about.level)
        best = np.full(len(p), support[0])
        for last in range(len(support) - 1):
            weight = np.where(np.arange(len(support)) <= last, 1 - level, level) * mass
            total = weight.sum(axis=1)
            root = (weight @ support) / np.where(total > 0, total, 1)
            best = np.where(
                root >= support[last], np.minimum(root, support[last + 1]), best
            )
        return best
