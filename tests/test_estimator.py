"""LabelFreeCalibrator keeps scikit-learn's promises, in both of its forms."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import trueup

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "items are what is sampled: a row of weight two is one item seen twice, not "
        "two independent items, so the halves and the limits of sampling differ"
    ),
}


@pytest.fixture(scope="module")
def digits():
    """Two models fitted on 600 digits, and the other digits without labels."""
    X, y = load_digits(return_X_y=True)
    strong = DecisionTreeClassifier(random_state=0).fit(X[:600], y[:600])
    weak = make_pipeline(StandardScaler(), GaussianNB(var_smoothing=0.1))
    return strong, weak.fit(X[:600, :], y[:600]), X[600:], y[600:]


@pytest.fixture
def calibrator(digits):
    strong, weak, _, _ = digits
    return trueup.LabelFreeCalibrator(FrozenEstimator(strong), FrozenEstimator(weak))


def test_on_matrices_it_is_fit_and_apply(digits):
    strong, weak, X, _ = digits
    primary, reference = strong.predict_proba(X), weak.predict_proba(X)
    calibrator = trueup.LabelFreeCalibrator().fit(primary, reference)
    expected = trueup.fit(primary, reference, cells="auto")

    assert np.array_equal(calibrator.predict_proba(primary), expected.apply(primary))
    assert calibrator.predict(primary).shape == (len(X),)
    assert (
        calibrator.certificate_.guaranteed_improvement
        == expected.certificate.guaranteed_improvement
    )


def test_on_models_it_needs_features_only(digits, calibrator):
    strong, weak, X, _ = digits
    calibrator.fit(X)
    expected = trueup.fit(strong.predict_proba(X), weak.predict_proba(X), cells="auto")

    assert np.array_equal(
        calibrator.predict_proba(X), expected.apply(strong.predict_proba(X))
    )
    assert set(calibrator.predict(X)) <= set(calibrator.classes_)
    assert calibrator.n_features_in_ == 64


def test_labels_change_nothing_where_models_are_frozen(digits, calibrator):
    _, _, X, y = digits
    with_labels = clone(calibrator).fit(X, y).predict_proba(X)

    assert np.array_equal(with_labels, calibrator.fit(X).predict_proba(X))


def test_options_reach_the_fit(digits):
    strong, weak, X, _ = digits
    calibrator = trueup.LabelFreeCalibrator(
        FrozenEstimator(strong),
        FrozenEstimator(weak),
        trust="confidence",
        reference_error=0.01,
        assume="informative",
        family="temperature",
    ).fit(X, groups=np.arange(len(X)) % 2)

    assert calibrator.certificate_.trust == "confidence"
    assert calibrator.certificate_.reference_error == 0.01
    assert calibrator.certificate_.n_groups == 2
    assert "'informative'" in calibrator.certificate_.assumption


def test_classes_keep_their_names(digits):
    strong, _, X, _ = digits
    names = np.array([f"digit {number}" for number in range(10)])
    y = names[strong.predict(X)]
    models = [DecisionTreeClassifier(max_depth=5).fit(X, y), GaussianNB().fit(X, y)]
    calibrator = trueup.LabelFreeCalibrator(*map(FrozenEstimator, models)).fit(X)

    assert calibrator.map_.outcomes == tuple(sorted(names))
    assert set(calibrator.predict(X)) <= set(names)


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_predict_bit_for_bit(digits, calibrator, again):
    _, _, X, _ = digits
    calibrator.fit(X)
    other = again(calibrator)

    assert np.array_equal(other.predict_proba(X), calibrator.predict_proba(X))
    assert other.certificate_.assumption == calibrator.certificate_.assumption


def test_clones_are_unfitted_and_equal(calibrator):
    other = clone(calibrator)

    assert (
        other.get_params(deep=False).keys() == calibrator.get_params(deep=False).keys()
    )
    assert not hasattr(other, "map_")


def test_it_is_the_last_step_of_a_pipeline(digits):
    _, _, X, y = digits
    scaler = StandardScaler().fit(X)
    models = [
        DecisionTreeClassifier(random_state=0).fit(scaler.transform(X[:500]), y[:500]),
        GaussianNB(var_smoothing=0.1).fit(scaler.transform(X[:500]), y[:500]),
    ]
    calibrator = trueup.LabelFreeCalibrator(*map(FrozenEstimator, models))
    pipeline = make_pipeline(StandardScaler(), calibrator).fit(X[500:])

    assert pipeline.predict_proba(X[500:]).sum(axis=1) == pytest.approx(1)
    assert pipeline.score(X[500:], y[500:]) > 0.5


def test_it_cross_predicts(digits, calibrator):
    _, _, X, y = digits
    rows = cross_val_predict(calibrator, X, y, cv=3, method="predict_proba")
    unlabelled = cross_val_predict(calibrator, X, cv=3, method="predict_proba")

    assert rows.shape == (len(X), 10)
    assert unlabelled.shape == (len(X), 10)


def test_feature_names_are_kept(digits):
    _, _, X, y = digits
    frame = pd.DataFrame(X, columns=[f"pixel{place}" for place in range(64)])
    models = [DecisionTreeClassifier().fit(frame, y), GaussianNB().fit(frame, y)]
    calibrator = trueup.LabelFreeCalibrator(*map(FrozenEstimator, models)).fit(frame)

    assert list(calibrator.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: trueup.LabelFreeCalibrator(GaussianNB()).fit(X, y), "or neither"),
        (lambda X, y: trueup.LabelFreeCalibrator().fit(X), "reports as y"),
        (
            lambda X, y: trueup.LabelFreeCalibrator().fit(np.eye(2)[y % 2], y),
            "y holds labels",
        ),
        (
            lambda X, y: trueup.LabelFreeCalibrator(
                FrozenEstimator(GaussianNB().fit(X, y)),
                FrozenEstimator(GaussianNB().fit(X, y % 5)),
            ).fit(X),
            "knows the classes",
        ),
    ],
)
def test_what_cannot_be_fitted_says_why(digits, make, message):
    _, _, X, y = digits

    with pytest.raises(trueup.TrueupError, match=message):
        make(X, y)


def test_nothing_is_predicted_before_fitting(digits, calibrator):
    with pytest.raises(NotFittedError):
        calibrator.predict_proba(digits[2])
    with pytest.raises(NotFittedError):
        trueup.LabelFreeCalibrator(
            FrozenEstimator(GaussianNB()), FrozenEstimator(GaussianNB())
        ).fit(digits[2])


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings of the two models
def test_scikit_learns_own_checks_pass():
    results = check_estimator(
        trueup.LabelFreeCalibrator(LogisticRegression(), GaussianNB()),
        expected_failed_checks=EXPECTED_FAILURES,
        on_skip=None,
        on_fail=None,
    )
    failed = [one["check_name"] for one in results if one["status"] == "failed"]
    expected = {one["check_name"] for one in results if one["status"] == "xfail"}

    assert failed == []
    assert expected == set(EXPECTED_FAILURES)
    assert len(EXPECTED_FAILURES) <= 10
    assert sum(one["status"] == "passed" for one in results) > 50
