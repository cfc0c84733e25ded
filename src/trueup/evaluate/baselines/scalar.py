"""Supervised baselines that see one chance an item and whether it came true.

For two outcomes that is P(outcome 1) and the result is a distribution. For more, and
for (answer, confidence), it is the confidence in the answer, as in the paper: the
answer stays and only its confidence changes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats
from trueup.core.reports import Reports
from trueup.errors import MissingExtraError
from trueup.evaluate.baselines import _logistic
from trueup.evaluate.baselines.base import (
    BaselineFit,
    Chances,
    SupervisedMap,
    binary_chances,
    with_chances,
)

N_BINS = 10


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ScalarMap(SupervisedMap):
    """A function from stated to better chances."""

    @classmethod
    @abstractmethod
    def fitted_parameters(cls, chances: Chances) -> dict[str, Any]:
        """Constructor arguments that fit these chances best."""

    @abstractmethod
    def curve(self, stated: Floats) -> Floats:
        """(n,) better chances."""

    @classmethod
    def fit(
        cls,
        primary: object,
        labels: object,
        *,
        outcomes: Iterable[Any] | None = None,
        sample_weight: object | None = None,
    ) -> Self:
        """Fit the function to whether stated chances came true.

        Parameters are those of :func:`trueup.evaluate`.
        """
        chances = Chances.read(primary, labels, outcomes, sample_weight)
        return cls(
            outcomes=chances.outcomes,
            reads=chances.reads,
            fitted_on=BaselineFit(len(chances.stated), len(chances.stated)),
            **cls.fitted_parameters(chances),
        )

    def replace(self, primary: Reports, reference: Reports | None) -> Reports:
        del reference
        stated, _ = binary_chances(primary)
        return with_chances(primary, np.clip(self.curve(stated), 0, 1))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ConfidenceTemperature(ScalarMap):
    """Temperature scaling of one chance: sigmoid(logit(c) / T), as in the paper.

    T minimises the negative log-likelihood and lies in [0.01, 100]; chances are kept
    1e-7 away from 0 and 1.

    Examples
    --------
    Four answers with confidence 0.9, half of them right. A temperature cannot bring
    0.9 down to 0.5, only near it:

    >>> import numpy as np
    >>> import warnings
    >>> from trueup import AnswerConfidence
    >>> a = AnswerConfidence(answer=[0] * 4, confidence=[.9] * 4, outcomes=["A", "B"])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     fitted = ConfidenceTemperature.fit(a, ["A", "A", "B", "B"])
    >>> fitted
    ConfidenceTemperature(temperature 100, fitted on 4 items)
    >>> fitted.apply(a).confidence.round(3)
    array([0.505, 0.505, 0.505, 0.505])
    """

    temperature: float

    name = "confidence-temperature"

    @classmethod
    def fitted_parameters(cls, chances: Chances) -> dict[str, Any]:
        z = _logistic.logits(chances.stated)

        def slope(inverse: float) -> float:
            errors = _logistic.sigmoid(inverse * z) - chances.hits
            return float(chances.weights @ (z * errors))

        return {"temperature": _logistic.best_temperature(slope, cls.name)}

    def curve(self, stated: Floats) -> Floats:
        return _logistic.sigmoid(_logistic.logits(stated) / self.temperature)

    def parameters(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    @classmethod
    def read_parameters(cls, saved: Mapping[str, Any]) -> dict[str, Any]:
        return {"temperature": positive_number(saved["temperature"])}

    def _shown(self) -> str:
        return f"temperature {self.temperature:.4g}, "


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PlattScaling(ScalarMap):
    """Logistic regression on the log-odds, with Platt's smoothed targets.

    sigmoid(slope * logit(c) + intercept). One imagined hit and miss keep samples in
    which everything (or nothing) came true finite. Needs scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = PlattScaling.fit(np.array([.1, .3, .7, .9] * 25), [0, 1, 0, 1] * 25)
    >>> fitted.apply(np.array([.2, .8])).round(2)
    array([[0.67, 0.33],
           [0.33, 0.67]])
    """

    slope: float
    intercept: float

    name = "platt"

    @classmethod
    def fitted_parameters(cls, chances: Chances) -> dict[str, Any]:
        targets = _logistic.platt_targets(chances.hits, chances.weights)
        slopes, intercept = _logistic.fit_logistic(
            _logistic.logits(chances.stated)[:, None], targets, chances.weights
        )
        return {"slope": float(slopes[0]), "intercept": intercept}

    def curve(self, stated: Floats) -> Floats:
        return _logistic.sigmoid(self.slope * _logistic.logits(stated) + self.intercept)

    def parameters(self) -> dict[str, Any]:
        return {"slope": self.slope, "intercept": self.intercept}

    @classmethod
    def read_parameters(cls, saved: Mapping[str, Any]) -> dict[str, Any]:
        return {name: finite_number(saved[name]) for name in ("slope", "intercept")}

    def _shown(self) -> str:
        return f"slope {self.slope:.4g}, intercept {self.intercept:.4g}, "


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BetaCalibration(ScalarMap):
    """Beta calibration (Kull, Silva Filho, Flach 2017) with three parameters.

    sigmoid(a ln c - b ln(1 - c) + intercept) with a, b >= 0: a negative one is set to
    zero and the others are fitted again; where one result occurs only, targets are
    smoothed as in Platt scaling. Needs scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = BetaCalibration.fit(np.array([.1, .3, .7, .9] * 25), [0, 1, 0, 1] * 25)
    >>> fitted.apply(np.array([.5])).round(2)
    array([[0.5, 0.5]])
    """

    a: float
    b: float
    intercept: float

    name = "beta"

    @classmethod
    def fitted_parameters(cls, chances: Chances) -> dict[str, Any]:
        targets = chances.hits
        if not chances.is_mixed:
            targets = _logistic.platt_targets(chances.hits, chances.weights)
        features = _beta_features(chances.stated)
        slopes, intercept = _logistic.fit_logistic(features, targets, chances.weights)
        for _ in range(2):  # each round sets one negative coefficient to zero for good
            negative = np.flatnonzero(slopes < 0)
            if not negative.size:
                break
            features[:, negative[0]] = 0
            slopes, intercept = _logistic.fit_logistic(
                features, targets, chances.weights
            )
        return {"a": float(slopes[0]), "b": float(slopes[1]), "intercept": intercept}

    def curve(self, stated: Floats) -> Floats:
        slopes = np.array([self.a, self.b])
        return _logistic.sigmoid(_beta_features(stated) @ slopes + self.intercept)

    def parameters(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b, "intercept": self.intercept}

    @classmethod
    def read_parameters(cls, saved: Mapping[str, Any]) -> dict[str, Any]:
        return {name: finite_number(saved[name]) for name in ("a", "b", "intercept")}

    def _shown(self) -> str:
        return f"a {self.a:.4g}, b {self.b:.4g}, "


def _beta_features(stated: Floats) -> Floats:
    safe = _logistic.clipped(stated)
    return np.column_stack([np.log(safe), -np.log1p(-safe)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HistogramBinning(ScalarMap):
    """The share that came true in each of ten bins [a, b), as in the paper.

    The last bin holds 1. A chance in a bin without items stays as it is: nothing was
    learnt about it, and any other number would be made up.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = HistogramBinning.fit(np.array([.91, .95, .97]), [1, 1, 0])
    >>> fitted.apply(np.array([.93, .42])).round(3)
    array([[0.333, 0.667],
           [0.58 , 0.42 ]])
    """

    rates: tuple[float | None, ...]
    """Share of hits in each bin; None where the sample has no items."""

    name = "histogram"

    @classmethod
    def fitted_parameters(cls, chances: Chances) -> dict[str, Any]:
        index = _left_closed_bins(chances.stated)
        mass = group_sums(index, chances.weights, N_BINS)
        hits = group_sums(index, chances.weights * chances.hits, N_BINS)
        pairs = zip(hits.tolist(), mass.tolist(), strict=True)
        return {"rates": tuple(h / m if m > 0 else None for h, m in pairs)}

    def curve(self, stated: Floats) -> Floats:
        rates = np.array([math.nan if r is None else r for r in self.rates])
        found = rates[_left_closed_bins(stated)]
        return np.where(np.isnan(found), stated, found)

    def parameters(self) -> dict[str, Any]:
        return {"rates": list(self.rates)}

    @classmethod
    def read_parameters(cls, saved: Mapping[str, Any]) -> dict[str, Any]:
        rates = tuple(None if r is None else chance(r) for r in saved["rates"])
        if len(rates) != N_BINS:
            message = f"expected {N_BINS} rates, found {len(rates)}"
            raise ValueError(message)
        return {"rates": rates}

    def _shown(self) -> str:
        n_empty = sum(rate is None for rate in self.rates)
        return f"{N_BINS - n_empty} of {N_BINS} bins filled, "


def _left_closed_bins(stated: Floats) -> Any:  # noqa: ANN401 - integers
    return np.searchsorted(np.arange(1, N_BINS) / N_BINS, stated, side="right")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class IsotonicCalibration(ScalarMap):
    """Isotonic regression: the best non-decreasing function, by scikit-learn.

    Linear between the fitted points, constant beyond them.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = IsotonicCalibration.fit(np.array([.2, .4, .6, .8]), [0, 1, 0, 1])
    >>> fitted.apply(np.array([.2, .5, .9]))
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """

    stated: tuple[float, ...]
    rates: tuple[float, ...]

    name = "isotonic"

    @classmethod
    def fitted_parameters(cls, chances: Chances) -> dict[str, Any]:
        try:
            from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtraError.of("scikit-learn", "sklearn") from error
        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        model.fit(chances.stated, chances.hits, sample_weight=chances.weights)
        return {
            "stated": tuple(map(float, model.X_thresholds_)),
            "rates": tuple(map(float, model.y_thresholds_)),
        }

    def curve(self, stated: Floats) -> Floats:
        return np.asarray(np.interp(stated, self.stated, self.rates))

    def parameters(self) -> dict[str, Any]:
        return {"stated": list(self.stated), "rates": list(self.rates)}

    @classmethod
    def read_parameters(cls, saved: Mapping[str, Any]) -> dict[str, Any]:
        stated = tuple(map(chance, saved["stated"]))
        rates = tuple(map(chance, saved["rates"]))
        if not stated or len(stated) != len(rates) or sorted(stated) != list(stated):
            message = "the points of the isotonic function are not in order"
            raise ValueError(message)
        return {"stated": stated, "rates": rates}

    def _shown(self) -> str:
        return f"{len(self.stated)} points, "


def finite_number(value: object) -> float:
    """A finite number from JSON."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"expected a number, found {value!r}"
        raise TypeError(message)
    if not math.isfinite(value):
        message = f"expected a finite number, found {value!r}"
        raise ValueError(message)
    return float(value)


def positive_number(value: object) -> float:
    """A positive number from JSON."""
    number = finite_number(value)
    if number <= 0:
        message = f"expected a positive number, found {value!r}"
        raise ValueError(message)
    return number


def chance(value: object) -> float:
    """A number in [0, 1] from JSON."""
    number = finite_number(value)
    if not 0 <= number <= 1:
        message = f"expected a number in [0, 1], found {value!r}"
        raise ValueError(message)
    return number
