"""What every baseline is: a fitted map that applies, saves and loads."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from trueup._validate import Bools, Floats, Ints, Label
from trueup.core.pairing import parse_reports, same_outcomes
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.errors import InvalidInputError
from trueup.evaluate._inputs import read_labelled

ANSWERS, DISTRIBUTIONS = "answer-confidence", "distribution"
LABELS, REFERENCE = "labels", "reference"


@dataclass(frozen=True, slots=True)
class BaselineFit:
    """What a baseline was fitted on."""

    n_items: int
    n_used: int
    """Items that took part; fewer where a method picks some."""
    fold: str | None = None
    """Which part of the items this was, if the baseline is cross-fitted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BaselineMap(ABC):
    """A fitted baseline: what ours is compared with.

    Made by the ``fit`` of its class, applied with :meth:`apply`, kept with
    :meth:`save`; :func:`trueup.load` reads it back. Unlike ours it carries no
    certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.evaluate import get_baseline
    >>> made = get_baseline("histogram")
    >>> made.needs, made.fit(np.array([.25, .25, .75]), [0, 1, 1])
    ('labels', HistogramBinning(2 of 10 bins filled, fitted on 3 items))
    """

    outcomes: tuple[Label, ...]
    reads: str
    """``distribution`` or ``answer-confidence``: what the map looks at."""
    fitted_on: BaselineFit

    name: ClassVar[str]
    """The name of the method."""
    needs: ClassVar[str]
    """What fitting needs beside the primary: ``labels`` or ``reference``."""
    needs_reference_to_apply: ClassVar[bool] = False

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What was fitted, as plain JSON values."""

    @classmethod
    @abstractmethod
    def read_parameters(cls, saved: Mapping[str, Any]) -> dict[str, Any]:
        """Constructor arguments from :meth:`parameters`, checked."""

    @abstractmethod
    def replace(self, primary: Reports, reference: Reports | None) -> Reports:
        """The better reports for checked ones."""

    def apply(
        self,
        primary: object,
        *,
        reference: object | None = None,
    ) -> Any:  # noqa: ANN401 - an array for distributions, reports otherwise
        """Replace the primary's reports.

        Distributions come back as an (n, K) array, answers as ``AnswerConfidence``.
        The reference is looked at only by methods that need it here too.
        """
        reports = self._read(primary, "primary")
        other = None
        if self.needs_reference_to_apply:
            if reference is None:
                message = (
                    f"{self.name} chooses between two predictors item by item, so it "
                    "needs the reference's reports here too.\n"
                    "hint: apply(primary, reference=...)."
                )
                raise InvalidInputError(message)
            other = self._read(reference, "reference")
            if len(other) != len(reports):
                raise InvalidInputError.lengths(
                    "primary", len(reports), "reference", len(other)
                )
        better = self.replace(reports, other)
        return better.probabilities if isinstance(better, Distributions) else better

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map as a readable JSON file, in one step or not at all."""
        from trueup.evaluate.baselines import _schema  # noqa: PLC0415 - imports us

        _schema.write(self, path)

    def _read(self, values: object, name: str) -> Reports:
        reports = parse_reports(values, name, None)
        known = Distributions(np.empty((0, len(self.outcomes))), self.outcomes)
        return check_kind(same_outcomes(reports, known, name, "the map"), self, name)

    def __repr__(self) -> str:
        fold = f", {self.fitted_on.fold}" if self.fitted_on.fold else ""
        return (
            f"{type(self).__name__}({self._shown()}fitted on "
            f"{self.fitted_on.n_used:,} items{fold})"
        )

    def _shown(self) -> str:
        """Parameters worth a place in the repr, with a comma after them."""
        return ""


class SupervisedMap(BaselineMap):
    """A baseline that is fitted to labels."""

    needs = LABELS

    @classmethod
    @abstractmethod
    def fit(
        cls,
        primary: object,
        labels: object,
        *,
        outcomes: Iterable[Any] | None = None,
        sample_weight: object | None = None,
    ) -> Self:
        """Fit to what happened."""


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """Stated chances and whether they came true: what binary methods see."""

    stated: Floats
    hits: Floats
    weights: Floats
    reads: str
    outcomes: tuple[Label, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether some came true and some did not."""
        return bool(self.hits.min() < self.hits.max())

    @classmethod
    def read(
        cls,
        primary: object,
        labels: object,
        outcomes: Iterable[Any] | None,
        sample_weight: object | None,
    ) -> Self:
        """Two outcomes as P(outcome 1); anything else as confidence in the answer."""
        sample = read_labelled(
            primary,
            labels,
            name="primary",
            outcomes=outcomes,
            sample_weight=sample_weight,
        )
        reports = sample.reports
        kind = binary_kind(reports)
        stated, answer = binary_chances(reports)
        hits = (answer == sample.labels).astype(np.float64)
        return cls(stated, hits, sample.weights, kind, reports.outcomes)


def binary_kind(reports: Reports) -> str:
    """What a binary method reads of these reports."""
    is_binary = isinstance(reports, Distributions) and reports.n_outcomes == 2
    return DISTRIBUTIONS if is_binary else ANSWERS


def binary_chances(reports: Reports) -> tuple[Floats, Ints]:
    """(n,) stated chances, and the outcome each is about."""
    if isinstance(reports, AnswerConfidence):
        return reports.confidence, reports.answer
    if not isinstance(reports, Distributions):
        raise no_probabilities(reports, "primary")
    if reports.n_outcomes == 2:
        return reports.probabilities[:, 1], np.ones(len(reports), np.int64)
    return reports.probabilities.max(axis=1), reports.answers()


def with_chances(reports: Reports, chances: Floats) -> Reports:
    """The reports with new chances; answers stay as they are."""
    if binary_kind(reports) == DISTRIBUTIONS:
        return Distributions(np.column_stack([1 - chances, chances]), reports.outcomes)
    _, answer = binary_chances(reports)
    return AnswerConfidence._of(answer, chances, reports.outcomes)


def check_kind(reports: Reports, fitted: BaselineMap, name: str) -> Reports:
    """Refuse reports that the map cannot read; distributions hold answers too."""
    if not isinstance(reports, Distributions | AnswerConfidence):
        raise no_probabilities(reports, name)
    if fitted.reads == ANSWERS and isinstance(reports, Distributions):
        return AnswerConfidence._of(
            reports.answers(), reports.probabilities.max(axis=1), reports.outcomes
        )
    if fitted.reads == DISTRIBUTIONS and isinstance(reports, AnswerConfidence):
        message = (
            f"this {fitted.name} map was fitted on distributions, but {name} reports "
            "an answer and a confidence.\nhint: pass its distributions."
        )
        raise InvalidInputError(message)
    return reports


def no_probabilities(reports: Reports, name: str) -> InvalidInputError:
    """The error for reports that state no probability."""
    return InvalidInputError(
        f"{name} reports a {reports.about.title}, but baselines calibrate "
        "probabilities.\nhint: pass distributions or AnswerConfidence."
    )


def same_answers(first: Reports, second: Reports) -> Bools:
    """(n,) where both single out the same outcome."""
    one, two = first.answers(), second.answers()
    if one is None or two is None:
        message = "these reports single out no outcome"
        raise InvalidInputError(message)
    return np.asarray(one == two)
