"""Properties: what a report states about the distribution of the outcome.

A property knows its *identification functions*: V_m(r, y) = T_m(r, y) - t_m(r), whose
mean given the report is zero (or at most zero) exactly when the report is right.
"The reference is calibrated" enters the mathematics only through them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from trueup import _validate
from trueup._validate import Floats, Label
from trueup.core.identification import (
    OWN,
    Identification,
    inequalities,
    other_outcomes,
    single_equality,
    with_caps,
)
from trueup.errors import InvalidInputError, InvalidReportError, UnknownNameError

if TYPE_CHECKING:
    from trueup.core.reports import (
        AnswerConfidence,
        Distributions,
        PointReport,
        Reports,
    )


class Property(ABC):
    """What a report is about."""

    name: ClassVar[str]
    losses: ClassVar[tuple[str, ...]]
    """Proper losses that elicit this property, the canonical one first."""
    values: Floats
    level: float | None

    @property
    @abstractmethod
    def title(self) -> str:
        """The property in words, as in 'a primary that reports ...'."""

    @abstractmethod
    def identify(self, reports: Reports) -> Identification:
        """The identification functions of these reports."""

    def merge_key(self, reports: Reports) -> Floats:
        """(n,) equal where two reports have the same coefficients T."""
        return np.zeros(len(reports))

    def reordered(self, old: Sequence[Label], new: Sequence[Label]) -> Property:
        """The same property with the outcomes in another order."""
        del old, new
        return self

    def check(self, reports: Reports, name: str) -> None:
        """Refuse reports that can be built but not fitted."""
        del reports, name


@dataclass(frozen=True, slots=True)
class DistributionProperty(Property):
    """The probability of every outcome."""

    name: ClassVar[str] = "distribution"
    losses: ClassVar[tuple[str, ...]] = ("brier", "log", "spherical")

    @property
    def title(self) -> str:
        return "distributions"

    def identify(self, reports: Reports) -> Identification:
        stated = cast("Distributions", reports).probabilities
        n_reports, n_outcomes = stated.shape
        if n_outcomes == 2:  # one moment, so that a budget is the binary ECE
            return single_equality(
                np.tile([0.0, 1.0], (n_reports, 1)), stated[:, 1], stated
            )
        report, slot = np.divmod(np.arange(stated.size), n_outcomes)
        return Identification(
            equality=np.ones(n_outcomes, dtype=bool),
            targets=stated,
            applies=np.ones_like(stated, dtype=bool),
            report=report,
            slot=slot,
            outcome=slot,
            coefficient=np.ones(stated.size),
            anchors=stated,
            allowed=stated > 0,
            extreme=np.full(n_reports, OWN),
            form="vector",
        )


@dataclass(frozen=True, slots=True)
class AnswerConfidenceProperty(Property):
    """The most likely outcome and its probability.

    With ``caps`` the answer is believed to be the most likely outcome, so that no
    other outcome is more probable than the confidence. A confidence below 1/K cannot
    have caps: nothing would satisfy them.
    """

    caps: bool = True

    name: ClassVar[str] = "answer-confidence"
    losses: ClassVar[tuple[str, ...]] = ("confidence",)

    @property
    def title(self) -> str:
        return "an answer and a confidence"

    def merge_key(self, reports: Reports) -> Floats:
        return cast("AnswerConfidence", reports).answer.astype(np.float64)

    def identify(self, reports: Reports) -> Identification:
        stated = cast("AnswerConfidence", reports)
        answer, confidence = stated.answer, stated.confidence
        n_outcomes = stated.n_outcomes
        indicator = np.zeros((len(answer), n_outcomes))
        indicator[np.arange(len(answer)), answer] = 1
        rest = (1 - confidence[:, None]) / (n_outcomes - 1)
        anchors = np.where(indicator == 1, confidence[:, None], rest)
        single = single_equality(indicator, confidence, anchors)
        if not self.caps or n_outcomes == 2:
            return single
        return with_caps(single, answer, confidence, n_outcomes)


@dataclass(frozen=True, slots=True, eq=False)
class MeanProperty(Property):
    """The mean of a numeric outcome."""

    values: Floats
    level: float | None = None

    name: ClassVar[str] = "mean"
    losses: ClassVar[tuple[str, ...]] = ("squared",)

    @property
    def title(self) -> str:
        return "mean"

    def identify(self, reports: Reports) -> Identification:
        stated = cast("PointReport", reports).value
        low, high = int(self.values.argmin()), int(self.values.argmax())
        anchors = np.zeros((len(stated), len(self.values)))
        share = (stated - self.values[low]) / (self.values[high] - self.values[low])
        anchors[:, low], anchors[:, high] = 1 - share, share
        coefficients = np.tile(self.values, (len(stated), 1))
        return single_equality(coefficients, stated, anchors)

    def reordered(self, old: Sequence[Label], new: Sequence[Label]) -> Property:
        return MeanProperty(_reorder(self.values, old, new))


@dataclass(frozen=True, slots=True, eq=False)
class QuantileProperty(Property):
    """A quantile of a numeric outcome: P(below) <= level <= P(at or below)."""

    values: Floats
    level: float

    name: ClassVar[str] = "quantile"
    losses: ClassVar[tuple[str, ...]] = ("pinball",)

    @property
    def title(self) -> str:
        return f"{self.level:g}-quantile"

    def merge_key(self, reports: Reports) -> Floats:
        return cast("PointReport", reports).value

    def identify(self, reports: Reports) -> Identification:
        stated = cast("PointReport", reports).value[:, None]
        below, up_to = self.values < stated, self.values <= stated
        dense = np.stack([below.astype(float), -up_to.astype(float)], axis=1)
        targets = np.tile([self.level, -self.level], (len(stated), 1))
        anchors = (self.values == stated).astype(float)
        return inequalities(dense, targets, anchors, self.name)

    def reordered(self, old: Sequence[Label], new: Sequence[Label]) -> Property:
        return QuantileProperty(_reorder(self.values, old, new), self.level)

    def check(self, reports: Reports, name: str) -> None:
        stated = cast("PointReport", reports).value
        between = ~np.isin(stated, self.values)
        if between.any():
            row = int(np.argmax(between))
            raise InvalidReportError.rows(
                name,
                "strictly between two outcomes, which for a quantile claims that "
                f"exactly a share of {self.level:g} lies below",
                bad=int(between.sum()),
                total=len(stated),
                first=f"{float(stated[row])!r} at row {row:,}",
                hint="use .snapped() to move each to the nearer outcome",
            )


@dataclass(frozen=True, slots=True, eq=False)
class ExpectileProperty(Property):
    """An expectile of a numeric outcome: the minimiser of asymmetric squared loss."""

    values: Floats
    level: float

    name: ClassVar[str] = "expectile"
    losses: ClassVar[tuple[str, ...]] = ("expectile",)

    @property
    def title(self) -> str:
        return f"{self.level:g}-expectile"

    def merge_key(self, reports: Reports) -> Floats:
        return cast("PointReport", reports).value

    def identify(self, reports: Reports) -> Identification:
        stated = cast("PointReport", reports).value[:, None]
        residual = self.values - stated
        coefficients = np.abs(self.level - (residual < 0)) * residual
        low, high = int(self.values.argmin()), int(self.values.argmax())
        down, up = -coefficients[:, low], coefficients[:, high]
        # Weights up : down on the extremes balance; a report at an extreme has one.
        share = np.divide(down, down + up, out=np.zeros_like(down), where=up + down > 0)
        anchors = np.zeros_like(coefficients)
        anchors[:, low], anchors[:, high] = 1 - share, share
        return single_equality(coefficients, np.zeros(len(stated)), anchors)

    def reordered(self, old: Sequence[Label], new: Sequence[Label]) -> Property:
        return ExpectileProperty(_reorder(self.values, old, new), self.level)


@dataclass(frozen=True, slots=True)
class ModeProperty(Property):
    """The most likely outcome."""

    n_outcomes: int

    name: ClassVar[str] = "mode"
    losses: ClassVar[tuple[str, ...]] = ("zero-one",)

    @property
    def title(self) -> str:
        return "mode"

    def merge_key(self, reports: Reports) -> Floats:
        return cast("PointReport", reports).value

    def identify(self, reports: Reports) -> Identification:
        stated = cast("PointReport", reports).value.astype(np.int64)
        rows = np.arange(len(stated))
        others = other_outcomes(stated, self.n_outcomes)
        dense = np.zeros((len(stated), self.n_outcomes - 1, self.n_outcomes))
        slots = np.arange(self.n_outcomes - 1)
        dense[rows[:, None], slots, others] = 1
        dense[rows[:, None], slots, stated[:, None]] = -1
        anchors = np.zeros((len(stated), self.n_outcomes))
        anchors[rows, stated] = 1
        return inequalities(dense, np.zeros(others.shape), anchors, self.name)


_LEVELLED = ("quantile", "expectile")
POINT_PROPERTIES = ("expectile", "mean", "median", "mode", "quantile")


def point_property(
    name: str, level: float | None, outcomes: tuple[Label, ...]
) -> Property:
    """Look up a point property by the name users give it."""
    if name not in POINT_PROPERTIES:
        raise UnknownNameError.of("property", name, POINT_PROPERTIES)
    if level is not None and name not in _LEVELLED:
        message = f"property {name!r} takes no level, got level={level!r}."
        raise InvalidInputError(message)
    if level is None and name in _LEVELLED:
        message = f"property {name!r} needs a level strictly between 0 and 1."
        raise InvalidInputError(message)
    if name == "mode":
        return ModeProperty(len(outcomes))
    values = _validate.outcome_values(outcomes, f"property {name!r}")
    if name == "mean":
        return MeanProperty(values)
    number = 0.5 if level is None else level
    number = _validate.unit_number(number, "level", inclusive=False)
    if name == "expectile":
        return ExpectileProperty(values, number)
    return QuantileProperty(values, number)


def _reorder(values: Floats, old: Sequence[Label], new: Sequence[Label]) -> Floats:
    return values[[list(old).index(label) for label in new]]
