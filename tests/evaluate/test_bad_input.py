"""What cannot be meant is refused, with the place, the value and the next step."""

from __future__ import annotations

import numpy as np
import pytest

from trueup import AnswerConfidence, PointReport, TrueupError
from trueup.evaluate import (
    TemperatureScaling,
    check_reference,
    cross_fitted,
    evaluate,
    get_baseline,
    reliability_curve,
)

P = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
POINTS = PointReport(value=[1, 2, 2], outcomes=[1, 2], property="mean")
ANSWERS = AnswerConfidence(
    answer=[0, 1, 0], confidence=[0.6, 0.7, 0.5], outcomes=["A", "B"]
)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((P, [0, 1]), {}, "predictions has 3 rows but labels has 2"),
        ((P, [0, 1, 2]), {}, "1 of 3 values that are not among the outcomes; the fir"),
        ((P, [0, 1, -1]), {}, "the first is -1 at row 2"),
        ((P, ["A", "B", "A"]), {}, "name them with outcomes="),
        ((P, [0, 1, None]), {}, "drop items without a label"),
        ((P, [0, 1, [1]]), {}, "labels"),
        ((P, np.eye(3)[:, :2]), {}, "labels.argmax"),
        ((P * 2, [0, 1, 0]), {}, "predictions holds"),
        ((P, [0, 1, 0]), {"against": P[:2]}, "predictions has 3 rows but against ha"),
        ((P, [0, 1, 0]), {"against": np.ones((3, 3)) / 3}, "against is about 3 outcom"),
        ((P, [0, 1, 0]), {"level": 1}, "level must lie strictly between"),
        ((P, [0, 1, 0]), {"n_bootstrap": 0}, "n_bootstrap must be a whole number >= 10"),
        ((P, [0, 1, 0]), {"n_bins": 2.5}, "n_bins must be a whole number"),
        ((P, [0, 1, 0]), {"rng": 7}, r"default_rng\(7\)"),
        ((P, [0, 1, 0]), {"blocks": [1, 2]}, "labels has 3 rows but blocks has 2"),
        ((P, [0, 1, 0]), {"blocks": [1, None, 2]}, "blocks holds 1 of 3 missing"),
        ((P, [0, 1, 0]), {"sample_weight": [1, 2]}, "sample_weight has 2"),
        ((P, [0, 1, 0]), {"sample_weight": [0, 0, 0]}, "zero everywhere"),
        ((POINTS, [1, 2, 2]), {"against": ANSWERS}, "against"),
        ((POINTS, [1, 2, 3]), {}, "the outcomes are 1, 2"),
    ],
)
def test_evaluate_refuses(arguments, options, message):
    with pytest.raises(TrueupError, match=message):
        evaluate(*arguments, **options)


def test_predictors_without_a_common_metric_are_not_compared():
    mode = PointReport(value=[1, 2, 2], outcomes=[1, 2], property="mode")
    median = PointReport(value=[1, 2, 2], outcomes=[1, 2], property="median")

    assert list(evaluate(mode, [1, 2, 2], against=P).differences) == ["accuracy"]
    with pytest.raises(TrueupError, match="no metric in common"):
        evaluate(median, [1, 2, 2], against=P)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_resamples": 10}, "n_resamples must be a whole number >= 100"),
        ({"n_bins": 0}, "n_bins must be a whole number >= 1"),
        ({"groups": ["a", "b"]}, "labels has 3 rows but groups has 2"),
        ({"tolerable_error": -1}, "tolerable_error must be"),
    ],
)
def test_check_reference_refuses(options, message):
    with pytest.raises(TrueupError, match=message):
        check_reference(P, [0, 1, 0], **options)


def test_an_absent_rung_says_why():
    check = check_reference(ANSWERS, ["A", "B", "B"], n_resamples=100)

    with pytest.raises(TrueupError, match="'distribution' is absent: the reference rep"):
        check["distribution"]
    with pytest.raises(TrueupError, match="Did you mean 'confidence'"):
        check["confidense"]


@pytest.mark.parametrize(
    ("reports", "options", "message"),
    [
        (POINTS, {}, "about probabilities, but the predictions report a mean"),
        (ANSWERS, {"outcome": "A"}, "needs a probability for every outcome"),
        (P, {"outcome": "C"}, "'C' at row 0"),
        (P, {"binning": "equal-with"}, "Did you mean 'equal-width'"),
    ],
)
def test_reliability_curve_refuses(reports, options, message):
    labels = [1, 2, 1] if reports is POINTS else [0, 1, 0]
    with pytest.raises(TrueupError, match=message):
        reliability_curve(reports, labels, **options)


def test_baselines_refuse():
    fitted = TemperatureScaling.fit(np.tile(P, (2, 1)), [0, 1, 0, 0, 0, 1])

    with pytest.raises(TrueupError, match="Did you mean 'temperature'"):
        get_baseline("temprature")
    with pytest.raises(TrueupError, match="'confidence-temperature' scales"):
        TemperatureScaling.fit(ANSWERS, ["A", "B", "A"])
    with pytest.raises(TrueupError, match="fitted on distributions, but primary"):
        fitted.apply(AnswerConfidence(answer=[0], confidence=[0.5], outcomes=[0, 1]))
    with pytest.raises(TrueupError, match="a mean, but baselines calibrate"):
        get_baseline("platt").fit(POINTS, [1, 2, 1])
    with pytest.raises(TrueupError, match="primary is about 3 outcomes"):
        fitted.apply(np.ones((2, 3)) / 3)


def test_choices_need_the_reference_again():
    rule = get_baseline("max-confidence").fit(P, P[::-1])

    with pytest.raises(TrueupError, match=r"apply\(primary, reference=\.\.\.\)"):
        rule.apply(P)
    with pytest.raises(TrueupError, match="primary has 3 rows but reference has 2"):
        rule.apply(P, reference=P[:2])


def test_daca_needs_agreement():
    with pytest.raises(TrueupError, match="same answer on none of 2 items"):
        get_baseline("daca").fit([[0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.7, 0.3]])


def test_cross_fitting_refuses():
    with pytest.raises(TrueupError, match="'daca' is fitted without labels"):
        cross_fitted("daca", P, [0, 1, 0])
    with pytest.raises(TrueupError, match="1 items cannot be split into 2 folds"):
        cross_fitted("platt", P[:1], [0])
    with pytest.raises(TrueupError, match="2 blocks cannot be split into 3 folds"):
        cross_fitted("platt", P, [0, 1, 0], n_folds=3, blocks=[1, 1, 2])
    with pytest.raises(TrueupError, match="n_folds must be a whole number >= 2"):
        cross_fitted("platt", P, [0, 1, 0], n_folds=1)
