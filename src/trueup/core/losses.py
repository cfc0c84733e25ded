"""Proper losses, each by its generator.

Every loss is written D(p, r) = G(p) + <l(r, .), p> with G(p) = -min_r <l(r, .), p>:
``vectors`` are the l up to a constant that does not depend on the report, ``generator``
is G, and ``divergence`` is the excess loss of reporting r when the truth is p. A loss
also knows what to *deploy*: from what the solver found for a report to the report that
replaces it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.core.properties import Property
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.core.simplex import normalise_rows, project_rows, simplex_from_norm
from trueup.errors import UnknownNameError, UnsuitableLossError

_BISECTIONS = 60
"""Halvings of the outcomes' range until nothing is left to halve."""


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """What a solver found for each of n primary reports about K outcomes."""

    distributions: Floats
    """(n, K) the compatible distributions h."""
    tilt: Floats
    """(n, K) mu: the slope by which the generator at h exceeds that at the report."""
    possible: Bools
    """(n, K) outcomes that some admissible truth allows for the report."""


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

    def identity(self, reports: Reports) -> Deployment:
        """Leave every report as it is."""
        return Deployment(self.vectors(reports), reports)

    def least_divergence(self, reports: Reports) -> Floats:
        """(n,) what can be gained on each report without any reference.

        Positive only where no distribution at all has the stated property.
        """
        return np.zeros(len(reports))


class _DistributionLoss(ProperLoss):
    """A loss on whole distributions; h itself is deployed."""

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        stated = cast("Distributions", reports)
        tilted = self.tilted(stated.probabilities, solved)
        better = replace(stated, probabilities=tilted, n_normalised=0)
        return Deployment(self.vectors(better), better)

    @abstractmethod
    def tilted(self, stated: Floats, solved: Solved) -> Floats:
        """Argmin over h in the simplex of D(h, r) - <tilt, h>."""


class BrierLoss(_DistributionLoss):
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


class LogLoss(_DistributionLoss):
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


class SphericalLoss(_DistributionLoss):
    """Spherical loss -r_y / |r|, in [-1, 0]."""

    name = "spherical"

    def vectors(self, reports: Reports) -> Floats:
        return -_unit_rows(cast("Distributions", reports).probabilities)

    def generator(self, p: Floats) -> Floats:
        return cast("Floats", np.linalg.norm(p, axis=1))

    def tilted(self, stated: Floats, solved: Solved) -> Floats:
        return simplex_from_norm(_unit_rows(stated) + solved.tilt)


class ConfidenceLoss(ProperLoss):
    """Confidence loss c^2 - 2 c 1[y = answer]: top-label Brier minus accuracy."""

    name = "confidence"
    draws = True

    def vectors(self, reports: Reports) -> Floats:
        stated = cast("AnswerConfidence", reports)
        return answer_losses(stated.answer, stated.confidence, stated.n_outcomes)

    def generator(self, p: Floats) -> Floats:
        return cast("Floats", p.max(axis=1) ** 2)

    def least_divergence(self, reports: Reports) -> Floats:
        stated = cast("AnswerConfidence", reports)
        return np.maximum(1 / stated.n_outcomes - stated.confidence, 0) ** 2

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        """Draw answers with weights theta and report the confidence m for each."""
        stated = cast("AnswerConfidence", reports)
        slopes = solved.tilt.copy()
        slopes[np.arange(len(stated)), stated.answer] += 2 * stated.confidence
        confidence, doubled = _drawn_answers(slopes)
        weights = normalise_rows(doubled)
        losses = confidence[:, None] ** 2 - 2 * confidence[:, None] * weights
        return Deployment(losses, None, weights, confidence)

    def hold(self, answers: Ints) -> HeldAnswerLoss:
        return HeldAnswerLoss(answers)


class HeldAnswerLoss(ProperLoss):
    """Confidence loss with the new answer fixed and the confidence free.

    Its generator is p_a^2, smooth, so no draw is needed: deploy h_a for answer a.
    """

    name = "confidence"

    def __init__(self, answers: Ints) -> None:
        self.answers = answers

    def vectors(self, reports: Reports) -> Floats:
        return ConfidenceLoss().vectors(reports)

    def generator(self, p: Floats) -> Floats:
        return self.held(p) ** 2

    def held(self, p: Floats) -> Floats:
        """(n,) probability of the answer that is held."""
        return p[np.arange(len(p)), self.answers]

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        stated = cast("AnswerConfidence", reports)
        rows = np.arange(len(stated))
        slopes = solved.tilt.copy()
        slopes[rows, stated.answer] += 2 * stated.confidence
        held = slopes[rows, self.answers]
        slopes[rows, self.answers] = -np.inf
        confidence = np.clip((held - slopes.max(axis=1)) / 2, 0, 1)
        better = AnswerConfidence._of(self.answers, confidence, reports.outcomes)
        return Deployment(self.vectors(better), better)


class ZeroOneLoss(ProperLoss):
    """Zero-one loss of the reported outcome, minus one: -1[y = r]."""

    name = "zero-one"
    draws = True

    def vectors(self, reports: Reports) -> Floats:
        stated = cast("PointReport", reports)
        losses = np.zeros((len(stated), stated.n_outcomes))
        losses[np.arange(len(stated)), stated.value.astype(np.int64)] = -1
        return losses

    def constants(self, n_outcomes: int) -> Floats:
        return np.ones(n_outcomes)

    def generator(self, p: Floats) -> Floats:
        return cast("Floats", p.max(axis=1))

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        weights = project_rows(solved.tilt - self.vectors(reports))
        return Deployment(-weights, None, weights)

    def hold(self, answers: Ints) -> HeldModeLoss:
        return HeldModeLoss(answers)


class HeldModeLoss(ProperLoss):
    """Zero-one loss with the new outcome fixed: nothing is left to choose."""

    name = "zero-one"

    def __init__(self, answers: Ints) -> None:
        self.answers = answers

    def vectors(self, reports: Reports) -> Floats:
        return ZeroOneLoss().vectors(reports)

    def generator(self, p: Floats) -> Floats:
        return p[np.arange(len(p)), self.answers]

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        del solved  # the answers are given
        stated = cast("PointReport", reports)
        held = self.answers.astype(np.float64)
        better = PointReport._of(held, stated.outcomes, stated.about)
        return Deployment(self.vectors(better), better)


class _PointLoss(ProperLoss):
    """A loss on a numeric report that it is convex in."""

    def __init__(self, about: Property) -> None:
        self.about = about
        self.support = about.values

    def vectors(self, reports: Reports) -> Floats:
        return self.at(cast("PointReport", reports).value)

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        ceiling = self.vectors(reports) - solved.tilt
        value = self.respond(np.where(solved.possible, ceiling, np.inf))
        better = PointReport._of(value, reports.outcomes, self.about)
        return Deployment(self.vectors(better), better)

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


def answer_losses(answer: Ints, confidence: Floats, n_outcomes: int) -> Floats:
    """(n, K) confidence loss of an answer and confidence under each outcome."""
    losses = np.repeat(confidence[:, None] ** 2, n_outcomes, axis=1)
    losses[np.arange(len(answer)), answer] -= 2 * confidence
    return losses


def _unit_rows(rows: Floats) -> Floats:
    return cast("Floats", rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _drawn_answers(slopes: Floats) -> tuple[Floats, Floats]:
    """Confidence m and 2 m theta = (u - k)_+ of METHOD section 5, by sorting u.

    For each number of answers drawn from there are two candidates: all of them share
    the whole mass (m = 1/count), or the next slope is the threshold k and answers at
    it are not drawn. Exactly one candidate satisfies its own conditions; rounding can
    make that none, so the least violated is taken.
    """
    n_rows, n_outcomes = slopes.shape
    ordered = np.column_stack([-np.sort(-slopes, axis=1), np.full(n_rows, -np.inf)])
    sums = np.cumsum(ordered[:, :-1], axis=1)
    best = np.full(n_rows, np.inf)
    chosen, threshold = np.ones(n_rows), np.zeros(n_rows)
    for count in range(1, n_outcomes + 1):
        smallest, following = ordered[:, count - 1], ordered[:, count]
        shared = (sums[:, count - 1] - 2 / count) / count
        violation = np.maximum(following - shared, shared - smallest)
        candidates = [(violation, np.full(n_rows, 1 / count), shared)]
        if count < n_outcomes:
            m = (sums[:, count - 1] - count * following) / 2
            at_least = (slopes >= following[:, None]).sum(axis=1)
            above = (slopes > following[:, None]).sum(axis=1)
            violation = np.maximum(above * m - 1, 1 - at_least * m)
            candidates.append((violation, m, following))
        for violation, m, level in candidates:
            better = violation < best
            best = np.where(better, violation, best)
            chosen = np.where(better, m, chosen)
            threshold = np.where(better, level, threshold)
    return np.clip(chosen, 0, 1), np.maximum(slopes - threshold[:, None], 0)


_FACTORIES: dict[str, Callable[[Property], ProperLoss]] = {
    "brier": lambda _: BrierLoss(),
    "log": lambda _: LogLoss(),
    "spherical": lambda _: SphericalLoss(),
    "confidence": lambda _: ConfidenceLoss(),
    "zero-one": lambda _: ZeroOneLoss(),
    "squared": SquaredLoss,
    "pinball": PinballLoss,
    "expectile": ExpectileLoss,
}
LOSSES = tuple(_FACTORIES)


def get_loss(name: str | None, about: Property) -> ProperLoss:
    """The named loss for a property, or the property's canonical one."""
    chosen = about.losses[0] if name is None else name
    if chosen not in _FACTORIES:
        raise UnknownNameError.of("loss", chosen, LOSSES)
    if chosen not in about.losses:
        raise UnsuitableLossError.of(chosen, about.title, about.losses)
    return _FACTORIES[chosen](about)
