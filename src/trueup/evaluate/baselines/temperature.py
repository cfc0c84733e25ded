"""Multi-class temperatures: fitted to labels, or (DACA) to the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from scipy.special import softmax

from trueup._validate import Floats
from trueup.core.pairing import parse_reports
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.errors import InvalidInputError
from trueup.evaluate._inputs import read_labelled, read_like, read_weights
from trueup.evaluate.baselines import _logistic
from trueup.evaluate.baselines.base import (
    DISTRIBUTIONS,
    REFERENCE,
    BaselineFit,
    BaselineMap,
    SupervisedMap,
    no_probabilities,
    same_answers,
)
from trueup.evaluate.baselines.scalar import positive_number

FLOOR = 1e-12
"""Probabilities below this are read as this, so that no logarithm is infinite."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class _TemperatureMap(BaselineMap):
    """softmax(log p / T)."""

    temperature: float

    def replace(self, primary: Reports, reference: Reports | None) -> Reports:
        del reference
        stated = cast("Distributions", primary).probabilities
        scaled = softmax(_log(stated) / self.temperature, axis=1)
        return Distributions(scaled, self.outcomes)

    def parameters(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    @classmethod
    def read_parameters(cls, saved: Mapping[str, Any]) -> dict[str, Any]:
        return {"temperature": positive_number(saved["temperature"])}

    def _shown(self) -> str:
        return f"temperature {self.temperature:.4g}, "


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TemperatureScaling(_TemperatureMap, SupervisedMap):
    """Temperature scaling of distributions (Guo et al. 2017): softmax(log p / T).

    Log-probabilities are logits up to a constant a row, which softmax ignores. T
    minimises the log loss and lies in [0.01, 100]. Answers never change.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.repeat([[.8, .1, .1]], 10, axis=0)
    >>> fitted = TemperatureScaling.fit(p, [0] * 6 + [1] * 2 + [2] * 2)
    >>> fitted.apply(p[:1]).round(4)
    array([[0.6, 0.2, 0.2]])
    """

    name = "temperature"

    @classmethod
    def fit(
        cls,
        primary: object,
        labels: object,
        *,
        outcomes: Iterable[Any] | None = None,
        sample_weight: object | None = None,
    ) -> Self:
        """Fit the temperature to what happened; needs distributions."""
        sample = read_labelled(
            primary,
            labels,
            name="primary",
            outcomes=outcomes,
            sample_weight=sample_weight,
        )
        stated = _distributions(sample.reports, "primary", cls.name)
        z = _log(stated)
        wanted = z[np.arange(len(z)), sample.labels]
        return cls(
            outcomes=sample.reports.outcomes,
            reads=DISTRIBUTIONS,
            fitted_on=BaselineFit(len(z), len(z)),
            temperature=_fitted(z, wanted, sample.weights, cls.name),
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Daca(_TemperatureMap):
    """Disagreement-aware alignment (DACA, Luo et al. 2025): label-free temperature.

    One temperature of the primary, fitted by cross-entropy to the reference's
    distributions on the items where both give the same answer.

    Examples
    --------
    >>> import numpy as np
    >>> primary = np.array([[.9, .1], [.9, .1], [.2, .8]])
    >>> reference = np.array([[.6, .4], [.6, .4], [.7, .3]])
    >>> fitted = Daca.fit(primary, reference)
    >>> fitted.apply(primary[:1]).round(4), fitted.fitted_on.n_used
    (array([[0.6, 0.4]]), 2)
    """

    name = "daca"
    needs = REFERENCE

    @classmethod
    def fit(
        cls,
        primary: object,
        reference: object,
        *,
        outcomes: Iterable[Any] | None = None,
        sample_weight: object | None = None,
    ) -> Self:
        """Fit the temperature to the reference; both must report distributions."""
        first = parse_reports(primary, "primary", outcomes)
        second = read_like(reference, "reference", first, "primary")
        stated = _distributions(first, "primary", cls.name)
        wanted = _distributions(second, "reference", cls.name)
        weights = read_weights(sample_weight, len(first), "primary")
        used = np.flatnonzero(same_answers(first, second) & (weights > 0))
        if not used.size:
            message = (
                f"primary and reference give the same answer on none of {len(first):,} "
                "items, and DACA learns only from those.\n"
                "hint: are the outcomes of both in the same order?"
            )
            raise InvalidInputError(message)
        z = _log(stated[used])
        target = (wanted[used] * z).sum(axis=1)
        return cls(
            outcomes=first.outcomes,
            reads=DISTRIBUTIONS,
            fitted_on=BaselineFit(int((weights > 0).sum()), len(used)),
            temperature=_fitted(z, target, weights[used], cls.name),
        )


def _fitted(z: Floats, wanted: Floats, weights: Floats, what: str) -> float:
    """Temperature with the least cross-entropy; ``wanted`` is E[z] of the target."""

    def slope(inverse: float) -> float:
        expected = (softmax(inverse * z, axis=1) * z).sum(axis=1)
        return float(weights @ (expected - wanted))

    if not np.ptp(z, axis=1).any():  # uniform rows stay uniform at any temperature
        return 1.0
    return _logistic.best_temperature(slope, what)


def _log(stated: Floats) -> Floats:
    return np.log(np.maximum(stated, FLOOR))


def _distributions(reports: Reports, name: str, method: str) -> Floats:
    if isinstance(reports, Distributions):
        return reports.probabilities
    if isinstance(reports, AnswerConfidence):
        message = (
            f"{method} needs a probability for every outcome, but {name} reports an "
            "answer and a confidence.\nhint: pass its distributions; with labels, "
            "'confidence-temperature' scales the confidence alone."
        )
        raise InvalidInputError(message)
    raise no_probabilities(reports, name)
