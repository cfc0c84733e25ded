"""Label-free baselines that choose between the two predictors item by item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from trueup.core.pairing import parse_reports
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.errors import InvalidInputError
from trueup.evaluate._inputs import read_like, read_weights
from trueup.evaluate.baselines.base import (
    ANSWERS,
    DISTRIBUTIONS,
    REFERENCE,
    BaselineFit,
    BaselineMap,
    no_probabilities,
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class _Choice(BaselineMap):
    """A rule without parameters; fitting only fixes the outcomes and the kind."""

    needs = REFERENCE
    needs_reference_to_apply = True

    @classmethod
    def fit(
        cls,
        primary: object,
        reference: object,
        *,
        outcomes: Iterable[Any] | None = None,
        sample_weight: object | None = None,
    ) -> Self:
        """Note what both predictors report; there is nothing to learn."""
        first = parse_reports(primary, "primary", outcomes)
        second = read_like(reference, "reference", first, "primary")
        for name, reports in (("primary", first), ("reference", second)):
            if not isinstance(reports, Distributions | AnswerConfidence):
                raise no_probabilities(reports, name)
        both = isinstance(first, Distributions) and isinstance(second, Distributions)
        weights = read_weights(sample_weight, len(first), "primary")
        n_items = int((weights > 0).sum())
        return cls(
            outcomes=first.outcomes,
            reads=DISTRIBUTIONS if both else ANSWERS,
            fitted_on=BaselineFit(n_items, n_items),
        )

    def parameters(self) -> dict[str, Any]:
        return {}

    @classmethod
    def read_parameters(cls, saved: Mapping[str, Any]) -> dict[str, Any]:
        del saved
        return {}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MaxConfidence(_Choice):
    """On each item the report with the higher confidence; ties to the primary.

    The paper's heuristic. It needs both predictors when it is applied.

    Examples
    --------
    >>> import numpy as np
    >>> primary, reference = np.array([.9, .6]), np.array([.2, .1])
    >>> rule = MaxConfidence.fit(primary, reference)
    >>> rule.apply(primary, reference=reference)
    array([[0.1, 0.9],
           [0.9, 0.1]])
    """

    name = "max-confidence"

    def replace(self, primary: Reports, reference: Reports | None) -> Reports:
        if isinstance(primary, Distributions) and isinstance(reference, Distributions):
            first, second = primary.probabilities, reference.probabilities
            wins = second.max(axis=1) > first.max(axis=1)
            chosen = np.where(wins[:, None], second, first)
            return Distributions(chosen, self.outcomes)
        one = cast("AnswerConfidence", primary)
        two = cast("AnswerConfidence", reference)
        wins = two.confidence > one.confidence
        return AnswerConfidence._of(
            np.where(wins, two.answer, one.answer),
            np.where(wins, two.confidence, one.confidence),
            self.outcomes,
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ReferenceCopy(_Choice):
    """The reference's report instead of the primary's, on every item.

    Calibrated if the reference is, and as weak as it is: what a label-free method has
    to beat.

    Examples
    --------
    >>> import numpy as np
    >>> primary, reference = np.array([.9, .6]), np.array([.2, .1])
    >>> ReferenceCopy.fit(primary, reference).apply(primary, reference=reference)
    array([[0.8, 0.2],
           [0.9, 0.1]])
    """

    name = "reference-copy"

    def replace(self, primary: Reports, reference: Reports | None) -> Reports:
        del primary
        if reference is None:
            message = "the reference's reports are missing"
            raise InvalidInputError(message)
        return reference
