"""Reports: what a predictor says about each item.

Three kinds. ``Distributions`` state a probability for every outcome,
``AnswerConfidence`` an answer and the probability that it is right, ``PointReport``
one property of the outcome's distribution (mean, quantile, expectile or mode).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from trueup import _validate
from trueup._validate import Floats, Ints, Label
from trueup.core.properties import (
    AnswerConfidenceProperty,
    DistributionProperty,
    ModeProperty,
    Property,
    point_property,
)
from trueup.errors import InvalidInputError, InvalidReportError, UnknownNameError


class Reports(ABC):
    """One predictor's reports on a sequence of items."""

    outcomes: tuple[Label, ...]

    @property
    @abstractmethod
    def about(self) -> Property:
        """The property these reports state."""

    @abstractmethod
    def keys(self) -> Floats:
        """Rows of numbers, equal exactly where two reports are equal."""

    @abstractmethod
    def answers(self) -> Ints | None:
        """Index of the outcome each report singles out, if it does."""

    @abstractmethod
    def take(self, index: Ints) -> Self:
        """The reports at these positions."""

    @abstractmethod
    def reordered(self, outcomes: Sequence[Label]) -> Self:
        """The same reports with the outcomes in another order."""

    @property
    def n_outcomes(self) -> int:
        """How many outcomes the reports are about."""
        return len(self.outcomes)

    def __len__(self) -> int:
        return len(self.keys())


@dataclass(frozen=True, slots=True, eq=False)
class Distributions(Reports):
    """A probability for every outcome, one row an item.

    Parameters
    ----------
    probabilities
        (n, K); rows sum to one up to 1e-5 and are then divided by their sum.
        A 1-D array means P(outcome 1) of two outcomes.
    outcomes
        Names of the K outcomes; 0, 1, ... when left out.
    """

    probabilities: Floats
    outcomes: tuple[Label, ...] = ()
    n_normalised: int = 0
    """Rows whose sum was visibly off and that were divided by it."""

    @classmethod
    def parse(cls, values: object, name: str, outcomes: Iterable[Any] | None) -> Self:
        """Read user input, with an error that names what is wrong and where."""
        probabilities, n_normalised = _validate.probabilities(values, name)
        n_outcomes = probabilities.shape[1]
        labels = tuple(range(n_outcomes)) if outcomes is None else tuple(outcomes)
        named = _validate.outcome_labels(labels, "outcomes")
        if len(named) != n_outcomes:
            message = (
                f"{name} has {n_outcomes} columns, but {len(named)} outcomes are named."
            )
            raise InvalidInputError(message)
        return cls(probabilities, named, n_normalised)

    @property
    def about(self) -> Property:
        return DistributionProperty()

    def keys(self) -> Floats:
        return self.probabilities

    def answers(self) -> Ints:
        return self.probabilities.argmax(axis=1)

    def take(self, index: Ints) -> Self:
        return replace(self, probabilities=self.probabilities[index])

    def reordered(self, outcomes: Sequence[Label]) -> Self:
        columns = [self.outcomes.index(label) for label in outcomes]
        return replace(
            self, probabilities=self.probabilities[:, columns], outcomes=tuple(outcomes)
        )


@dataclass(frozen=True, eq=False, init=False)
class AnswerConfidence(Reports):
    """An answer and the probability that it is right, one of each an item.

    Parameters
    ----------
    answer
        The answers, as labels found in ``outcomes`` or, when no outcome is a number,
        as positions in it.
    confidence
        Probability that the answer is right, in [0, 1].
    outcomes
        All outcomes, also those never answered.

    Examples
    --------
    >>> AnswerConfidence(answer=["A", "B"], confidence=[0.5, 0.6], outcomes=["A", "B"])
    AnswerConfidence(2 items, 2 outcomes: A, B)
    """

    answer: Ints
    confidence: Floats
    outcomes: tuple[Label, ...]

    def __init__(
        self, *, answer: Iterable[Any], confidence: object, outcomes: Iterable[Any]
    ) -> None:
        labels = _validate.outcome_labels(outcomes, "outcomes")
        indices = _answer_indices(answer, labels, "answer")
        numbers = _validate.floats(confidence, "confidence")
        _validate.check_one_per_item(numbers, "confidence")
        if len(indices) != len(numbers):
            raise InvalidInputError.lengths(
                "answer", len(indices), "confidence", len(numbers)
            )
        _validate.check_unit_interval(numbers, "confidence")
        object.__setattr__(self, "answer", indices)
        object.__setattr__(self, "confidence", numbers)
        object.__setattr__(self, "outcomes", labels)

    @classmethod
    def from_distributions(
        cls, probabilities: object, *, outcomes: Iterable[Any] | None = None
    ) -> Self:
        """Most likely outcome and its probability; ties go to the lowest index.

        Examples
        --------
        >>> both = AnswerConfidence.from_distributions([[0.2, 0.8], [0.5, 0.5]])
        >>> both.labels(), both.confidence.tolist()
        ([1, 0], [0.8, 0.5])
        """
        read = Distributions.parse(probabilities, "probabilities", outcomes)
        return cls._of(read.answers(), read.probabilities.max(axis=1), read.outcomes)

    @classmethod
    def _of(cls, answer: Ints, confidence: Floats, outcomes: tuple[Label, ...]) -> Self:
        """Build from arrays known to be valid, without another look at them."""
        made = cls.__new__(cls)
        object.__setattr__(made, "answer", answer.astype(np.int64))
        object.__setattr__(made, "confidence", confidence)
        object.__setattr__(made, "outcomes", outcomes)
        return made

    def labels(self) -> list[Label]:
        """The answers as outcome names."""
        return [self.outcomes[index] for index in self.answer]

    @property
    def about(self) -> Property:
        return AnswerConfidenceProperty()

    def keys(self) -> Floats:
        return np.column_stack([self.answer.astype(np.float64), self.confidence])

    def answers(self) -> Ints:
        return self.answer

    def take(self, index: Ints) -> Self:
        return self._of(self.answer[index], self.confidence[index], self.outcomes)

    def reordered(self, outcomes: Sequence[Label]) -> Self:
        position = np.array([outcomes.index(label) for label in self.outcomes])
        return self._of(position[self.answer], self.confidence, tuple(outcomes))

    def __repr__(self) -> str:
        return f"AnswerConfidence({_count(self)})"


@dataclass(frozen=True, eq=False, init=False)
class PointReport(Reports):
    """One property of each outcome distribution, stated as a value.

    Parameters
    ----------
    value
        What the predictor says: a number, or an outcome's name for the mode.
    outcomes
        All values the outcome can take.
    property
        ``"mean"``, ``"median"``, ``"quantile"``, ``"expectile"`` or ``"mode"``.
    level
        Of the quantile or expectile, strictly between 0 and 1.

    Examples
    --------
    >>> PointReport(value=[1, 2], outcomes=[0, 1, 2, 5], property="median")
    PointReport(0.5-quantile, 2 items, 4 outcomes: 0, 1, 2, 5)
    """

    value: Floats
    """The stated number; for the mode the outcome's index."""
    outcomes: tuple[Label, ...]
    _about: Property = field(repr=False)

    def __init__(
        self,
        *,
        value: Iterable[Any],
        outcomes: Iterable[Any],
        property: str,  # noqa: A002 - the word users know; the attribute is `about`
        level: float | None = None,
    ) -> None:
        labels = _validate.outcome_labels(outcomes, "outcomes")
        about = point_property(property, level, labels)
        if isinstance(about, ModeProperty):
            numbers = _answer_indices(value, labels, "value").astype(np.float64)
        else:
            numbers = _validate.floats(value, "value")
            _validate.check_one_per_item(numbers, "value")
            _check_range(numbers, about.values)
        object.__setattr__(self, "value", numbers)
        object.__setattr__(self, "outcomes", labels)
        object.__setattr__(self, "_about", about)

    def snapped(self) -> Self:
        """Move quantile reports between two outcomes to the nearer of them.

        A quantile strictly between two possible outcomes claims that exactly that
        share lies below, which a predictor rarely means. Ties go down.
        """
        support = np.sort(self._about.values)
        above = np.clip(np.searchsorted(support, self.value), 1, len(support) - 1)
        low, high = support[above - 1], support[above]
        nearer = np.where(self.value - low <= high - self.value, low, high)
        return self._of(nearer, self.outcomes, self._about)

    @classmethod
    def _of(cls, value: Floats, outcomes: tuple[Label, ...], about: Property) -> Self:
        """Build from arrays known to be valid, without another look at them."""
        made = cls.__new__(cls)
        object.__setattr__(made, "value", value)
        object.__setattr__(made, "outcomes", outcomes)
        object.__setattr__(made, "_about", about)
        return made

    @property
    def about(self) -> Property:
        return self._about

    def keys(self) -> Floats:
        return self.value[:, None]

    def answers(self) -> Ints | None:
        if isinstance(self._about, ModeProperty):
            return self.value.astype(np.int64)
        return None

    def take(self, index: Ints) -> Self:
        return self._of(self.value[index], self.outcomes, self._about)

    def reordered(self, outcomes: Sequence[Label]) -> Self:
        value, about = self.value, self._about.reordered(self.outcomes, outcomes)
        if isinstance(about, ModeProperty):
            position = np.array([outcomes.index(label) for label in self.outcomes])
            value = position[self.value.astype(np.int64)].astype(np.float64)
        return self._of(value, tuple(outcomes), about)

    def labels(self) -> list[Label]:
        """The stated values; for the mode as outcome names."""
        if isinstance(self._about, ModeProperty):
            return [self.outcomes[int(index)] for index in self.value]
        return [float(value) for value in self.value]

    def __repr__(self) -> str:
        return f"PointReport({self._about.title}, {_count(self)})"


def _answer_indices(
    values: Iterable[Any], labels: tuple[Label, ...], name: str
) -> Ints:
    """Positions of the answers; given ones are taken where no label is a number."""
    items = np.asarray(values, dtype=object).ravel().tolist()
    _validate.check_not_empty(items, name)
    position: dict[Any, int] = {label: index for index, label in enumerate(labels)}
    if not any(isinstance(label, int | float) for label in labels):
        position |= {index: index for index in range(len(labels))}
    unknown = [row for row, item in enumerate(items) if _lookup(position, item) is None]
    if unknown:
        item = items[unknown[0]]
        near = UnknownNameError.of("answer", item, map(str, labels))
        raise InvalidReportError.rows(
            name,
            "that are not among the outcomes",
            bad=len(unknown),
            total=len(items),
            first=f"{item!r} at row {unknown[0]:,}",
            hint=f"the outcomes are {', '.join(map(repr, labels))}",
        ) from near
    return np.array([position[_plain(item)] for item in items], dtype=np.int64)


def _plain(item: object) -> Any:  # noqa: ANN401 - whatever the column held
    return item.item() if isinstance(item, np.generic) else item


def _lookup(position: dict[Any, int], item: object) -> int | None:
    plain = _plain(item)
    return position.get(plain) if isinstance(plain, Hashable) else None


def _check_range(numbers: Floats, values: Floats) -> None:
    low, high = float(values.min()), float(values.max())
    bad = (numbers < low) | (numbers > high)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidReportError.rows(
            "value",
            f"outside the range [{low:g}, {high:g}] of the outcomes",
            bad=int(bad.sum()),
            total=len(numbers),
            first=f"{float(numbers[row])!r} at row {row:,}",
            hint="no distribution over these outcomes has such a property; "
            "add the missing outcomes or repair the reports",
        )


def _count(reports: Reports) -> str:
    shown = ", ".join(map(str, reports.outcomes[:6]))
    more = ", ..." if reports.n_outcomes > 6 else ""
    return f"{len(reports)} items, {reports.n_outcomes} outcomes: {shown}{more}"
