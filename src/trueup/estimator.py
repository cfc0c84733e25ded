"""LabelFreeCalibrator: the map as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from trueup._validate import Floats
from trueup.api import fit
from trueup.core.cells import Cells
from trueup.core.reports import Distributions, Reports
from trueup.errors import InvalidInputError, MissingExtraError
from trueup.maps import _schema

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, clone
    from sklearn.utils import get_tags
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover - the extra is installed in tests
    raise MissingExtraError.of("scikit-learn", "sklearn") from error


class LabelFreeCalibrator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Calibrate a classifier without labels, against a reference that is trusted.

    Two forms. **On matrices**, leave both models out: ``fit(X, y)`` takes the
    primary's probabilities as ``X`` and the reference's reports as ``y``, and
    ``predict_proba`` takes probabilities. **On models**, give ``estimator`` and
    ``reference``, fitted and frozen: ``fit(X)`` takes features without labels.

    A model that is not frozen is cloned and fitted on ``(X, y)`` first, as
    scikit-learn does it. What it then says about the same items is better than what it
    says about others, and a reference is not calibrated there: freeze models fitted on
    other data wherever the certificate matters.

    Parameters
    ----------
    estimator, reference
        The strong classifier to improve and the weaker one to trust, both with
        ``predict_proba``; or neither, for the form on matrices.
    loss, trust, caps, reference_error, cells, assume, family, floor, fallback
        As in :func:`trueup.fit`.

    Attributes
    ----------
    map_ : ReportMap
        The fitted map; :meth:`~trueup.ReportMap.save` keeps it.
    certificate_ : Certificate
        What is guaranteed of it, on which assumption.
    classes_
        Labels of the classes; 0, 1, ... in the form on matrices.
    estimator_, reference_
        The models in use, in the form on models.

    Examples
    --------
    >>> import numpy as np
    >>> calibrator = LabelFreeCalibrator(cells="exact")
    >>> primary, reference = [[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.5, 0.5]]
    >>> calibrator.fit(primary, reference).predict_proba(primary).round(6)
    array([[0.8, 0.2],
           [0.2, 0.8]])
    >>> round(calibrator.certificate_.guaranteed_improvement, 6)
    0.02

    On two models that know less and more of the same features:

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = make_classification(1200, flip_y=0.2, random_state=0)
    >>> strong = DecisionTreeClassifier(random_state=0).fit(X[:400], y[:400])
    >>> weak = GaussianNB().fit(X[:400], y[:400])
    >>> calibrator = LabelFreeCalibrator(FrozenEstimator(strong), FrozenEstimator(weak))
    >>> calibrator.fit(X[400:]).predict_proba(X[400:]).shape
    (800, 2)
    """

    def __init__(
        self,
        estimator: Any = None,  # noqa: ANN401 - any classifier
        reference: Any = None,  # noqa: ANN401 - any classifier
        *,
        loss: str | None = None,
        trust: str | None = None,
        caps: bool | None = None,
        reference_error: float = 0.0,
        cells: str | Cells = "auto",
        assume: str | Iterable[str] = (),
        family: str | None = None,
        floor: float | None = None,
        fallback: str = "map",
    ) -> None:
        self.estimator = estimator
        self.reference = reference
        self.loss = loss
        self.trust = trust
        self.caps = caps
        self.reference_error = reference_error
        self.cells = cells
        self.assume = assume
        self.family = family
        self.floor = floor
        self.fallback = fallback

    def fit(
        self,
        X: Any,  # noqa: ANN401 - scikit-learn's name
        y: Any = None,  # noqa: ANN401 - scikit-learn's
        *,
        sample_weight: Any = None,  # noqa: ANN401 - scikit-learn's
        groups: Iterable[Any] | None = None,
        blocks: Iterable[Any] | None = None,
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        X
            Features without labels; in the form on matrices the primary's (n, K)
            probabilities.
        y
            Ignored by frozen models; in the form on matrices the reference's reports.
        sample_weight, groups, blocks
            As in :func:`trueup.fit`, one value an item.
        """
        if (self.estimator is None) != (self.reference is None):
            message = (
                "give both estimator and reference, or neither.\n"
                "hint: without models, fit(X, y) takes the probabilities of both."
            )
            raise InvalidInputError(message)
        if self.estimator is None:
            primary, trusted = self._matrices(X, y)
        else:
            primary, trusted = self._predicted(X, y, sample_weight)
        self.map_ = fit(
            primary,
            trusted,
            loss=self.loss,
            trust=self.trust,
            caps=self.caps,
            groups=groups,
            sample_weight=sample_weight,
            reference_error=self.reference_error,
            cells=self.cells,
            floor=self.floor,
            assume=self.assume,
            family=self.family,
            blocks=blocks,
            fallback=self.fallback,
        )
        self.certificate_ = self.map_.certificate
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: ANN401 - scikit-learn's
        """(n, K) better probabilities; the reference is not needed."""
        check_is_fitted(self)
        if self.estimator is None:
            rows = _matrix(validate_data(self, X, reset=False, dtype=np.float64))
        else:
            # The model first: it says best what is wrong with its features.
            rows = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
            validate_data(self, X, reset=False, skip_check_array=True)
        return np.asarray(self.map_.apply(rows))

    def predict(self, X: Any) -> Any:  # noqa: ANN401 - scikit-learn's
        """The most likely class of each item after calibration."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _matrices(self, X: Any, y: Any) -> tuple[Reports, object]:  # noqa: ANN401
        if y is None:
            message = (
                "without models, fit needs the reference's reports as y.\n"
                "hint: fit(X=primary, y=reference), or give estimator and reference."
            )
            raise InvalidInputError(message)
        rows = _matrix(validate_data(self, X, dtype=np.float64))
        primary = Distributions.parse(rows, "X", None)
        trusted = y if isinstance(y, Reports) else _reference(y)
        self.classes_ = np.arange(primary.n_outcomes)
        return primary, trusted

    def _predicted(
        self,
        X: Any,  # noqa: ANN401 - scikit-learn's
        y: Any,  # noqa: ANN401 - scikit-learn's
        sample_weight: Any,  # noqa: ANN401 - scikit-learn's
    ) -> tuple[Reports, Reports]:
        validate_data(self, X, skip_check_array=True)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = _fitted(self.estimator, X, y, weights)
        self.reference_ = _fitted(self.reference, X, y, weights)
        self.classes_ = self.estimator_.classes_
        if not np.array_equal(self.classes_, self.reference_.classes_):
            message = (
                f"estimator knows the classes {list(self.classes_)} but reference "
                f"{list(self.reference_.classes_)}.\n"
                "hint: both must predict the same thing."
            )
            raise InvalidInputError(message)
        outcomes = [_label(value) for value in self.classes_]
        return (
            Distributions.parse(
                self.estimator_.predict_proba(X), "estimator", outcomes
            ),
            Distributions.parse(
                self.reference_.predict_proba(X), "reference", outcomes
            ),
        )

    def __getstate__(self) -> dict[str, Any]:
        """The map travels as its JSON form, which loads bit for bit."""
        state = dict(super().__getstate__())
        fitted = state.pop("map_", None)
        if fitted is not None:
            state["map_"] = _schema.to_json(fitted)
            state.pop("certificate_")
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "map_" in state:
            self.map_ = _schema.from_json(state["map_"], "the pickled map")
            self.certificate_ = self.map_.certificate

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn's
        tags = super().__sklearn_tags__()
        if self.estimator is None:
            tags.target_tags.two_d_labels = True
            return tags
        models = [get_tags(model) for model in (self.estimator, self.reference)]
        tags.input_tags.sparse = all(one.input_tags.sparse for one in models)
        tags.input_tags.allow_nan = all(one.input_tags.allow_nan for one in models)
        tags.target_tags.required = any(one.target_tags.required for one in models)
        return tags


def _fitted(model: Any, X: Any, y: Any, weights: dict[str, Any]) -> Any:  # noqa: ANN401
    """A model ready to predict: a frozen one as it is, another fitted on (X, y)."""
    from sklearn.frozen import FrozenEstimator  # noqa: PLC0415 - with the extra only

    if isinstance(model, FrozenEstimator):
        check_is_fitted(model)
        return model
    return clone(model).fit(X, y, **weights)


def _matrix(rows: Any) -> Floats:  # noqa: ANN401 - scikit-learn checked it
    array = np.asarray(rows, dtype=np.float64)
    return array[:, 0] if array.shape[1] == 1 else array


def _reference(y: object) -> object:
    """The reference's probabilities; labels are refused, which y usually means."""
    array = np.asarray(y)
    if array.ndim == 1 and array.dtype.kind in "OUSiub":
        message = (
            "y holds labels, but without models it is the reference's probabilities.\n"
            "hint: to calibrate models pass them as estimator and reference; labels "
            "are not needed."
        )
        raise InvalidInputError(message)
    return y


def _label(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value
