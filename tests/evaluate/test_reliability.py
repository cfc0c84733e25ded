"""Reliability curves and what a calibrated predictor would show."""

from __future__ import annotations

import json

import numpy as np
import pytest
from evaluate.labelled import draw_labels, random_world
from numpy.testing import assert_allclose

from trueup import AnswerConfidence
from trueup.evaluate import evaluate, reliability_curve


def test_a_curve_by_hand():
    reports = AnswerConfidence(
        answer=[0] * 5, confidence=[0.12, 0.2, 0.74, 0.8, 0.8], outcomes=["A", "B"]
    )
    curve = reliability_curve(reports, ["A", "B", "A", "A", "B"])

    assert curve.lower_edge.tolist() == [0.1, 0.7]
    assert_allclose(curve.upper_edge, [0.2, 0.8])
    assert_allclose(curve.stated, [0.32 / 2, 2.34 / 3])
    assert_allclose(curve.observed, [1 / 2, 2 / 3])
    assert curve.n_items.tolist() == [2, 3]
    assert_allclose(curve.share, [0.4, 0.6])
    assert curve.ece == pytest.approx((abs(1 - 0.32) + abs(2 - 2.34)) / 5)


@pytest.mark.parametrize(
    ("binning", "strategy"), [("equal-width", "uniform"), ("equal-mass", "quantile")]
)
def test_scikit_learn_draws_the_same_curve(binning, strategy):
    calibration = pytest.importorskip("sklearn.calibration")
    rng = np.random.default_rng(1)
    chance = rng.uniform(size=500)
    labels = (rng.random(500) < chance**2).astype(int)

    curve = reliability_curve(
        chance, labels, outcome=1, binning=binning, n_bins=5, n_resamples=10
    )

    observed, stated = calibration.calibration_curve(
        labels, chance, n_bins=5, strategy=strategy
    )
    # Its quantiles lie between items, ours are items: at most one moves a bin.
    tolerance = 1e-12 if binning == "equal-width" else 0.02
    assert_allclose(curve.observed, observed, atol=tolerance)
    assert_allclose(curve.stated, stated, atol=tolerance)


def test_the_curve_has_the_ece_of_evaluate():
    p, _, labels = random_world(np.random.default_rng(2), 300, 3, 2.0)
    result = evaluate(p, labels, n_bootstrap=10)

    width = reliability_curve(p, labels, n_resamples=10)
    mass = reliability_curve(p, labels, n_resamples=10, binning="equal-mass")

    assert width.ece == pytest.approx(result["ece"].value)
    assert mass.ece == pytest.approx(result["ece_equal_mass"].value)


def test_the_band_of_one_bin_is_binomial():
    """1,000 items at .3: the observed share has standard error .0145."""
    curve = reliability_curve(
        np.full(1000, 0.3), [1] * 300 + [0] * 700, outcome=1, n_resamples=4000
    )

    wanted = 1.96 * np.sqrt(0.3 * 0.7 / 1000)
    assert_allclose(curve.band_lower, 0.3 - wanted, atol=0.003)
    assert_allclose(curve.band_upper, 0.3 + wanted, atol=0.003)
    assert not curve.is_outside.any()
    assert curve.p_value > 0.5


def test_bands_hold_for_a_calibrated_predictor_and_not_for_another():
    rng = np.random.default_rng(3)
    outside, p_values = [], []
    for _ in range(60):
        p, _, labels = random_world(rng, 300)
        curve = reliability_curve(p, labels, n_resamples=200, rng=rng)
        outside.append(curve.is_outside.mean())
        p_values.append(curve.p_value)
    p, _, labels = random_world(rng, 300, sharpness=0.3)
    bad = reliability_curve(p, labels)

    assert np.mean(outside) < 0.05 + 0.02
    assert np.mean(np.array(p_values) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    assert bad.p_value < 0.01
    assert bad.is_outside.sum() > 3


def test_one_outcome_can_be_followed():
    rng = np.random.default_rng(4)
    p, _, _ = random_world(rng, 100, 3)
    labels = draw_labels(p, rng)
    names = ["cat", "dog", "emu"]
    curve = reliability_curve(p, labels, outcomes=names, outcome="dog")

    assert curve.of == "probability of 'dog'"
    assert curve.observed @ curve.share == pytest.approx(np.mean(labels == 1))


def test_curves_repeat_print_and_serialise():
    p, _, labels = random_world(np.random.default_rng(5), 80, 3)
    one, two = reliability_curve(p, labels), reliability_curve(p, labels)

    assert one.to_dict() == two.to_dict()
    assert json.loads(json.dumps(one.to_dict()))["n_items"] == one.n_items.tolist()
    assert "\n" not in repr(one)
    assert one.table().count("\n") == 2 + len(one)
    assert one._repr_html_().count("<tr>") == 1 + len(one)
