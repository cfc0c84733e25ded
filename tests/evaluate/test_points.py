"""Point reports: the canonical loss of their property, and its calibration."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from trueup import PointReport
from trueup.evaluate import check_reference, evaluate

FEW = {"n_bootstrap": 20}


def test_a_mean_by_hand():
    """Reports 1, 1, 3 and outcomes 0, 2, 4: residuals -1, 1, 1."""
    reports = PointReport(value=[1, 1, 3], outcomes=[0, 2, 4], property="mean")
    result = evaluate(reports, [0, 2, 4], **FEW)

    assert result["squared_loss"].value == pytest.approx(1)
    assert result["mean_residual"].value == pytest.approx(1 / 3)
    # One cell says 1 (residuals cancel), the other 3 (residual 1).
    assert result["calibration_error"].value == pytest.approx((0 + 1) / 3)
    assert result.about == "mean"


def test_a_quantile_by_hand():
    """Median 2 of outcomes 1, 2, 2, 5: one below, three at or below."""
    reports = PointReport(value=[2] * 4, outcomes=[1, 2, 5], property="median")
    result = evaluate(reports, [1, 2, 2, 5], **FEW)

    assert result["pinball_loss"].value == pytest.approx((0.5 * 1 + 0.5 * 3) / 4)
    assert result["coverage_below"].value == 1 / 4
    assert result["coverage_at_or_below"].value == 3 / 4
    assert result["calibration_error"].value == 0  # 1/4 <= 1/2 <= 3/4


def test_a_quantile_that_is_too_low_has_the_excess_as_error():
    """Level 0.9 needs 90 % at or below; only half is."""
    reports = PointReport(
        value=[1] * 4, outcomes=[1, 2], property="quantile", level=0.9
    )
    result = evaluate(reports, [1, 1, 2, 2], **FEW)

    assert result["calibration_error"].value == pytest.approx(0.9 - 0.5)


def test_an_expectile_by_hand():
    """Level .8 at 1: weight .8 on the residual 1, .2 on the residual -1."""
    reports = PointReport(
        value=[1, 1], outcomes=[0, 1, 2], property="expectile", level=0.8
    )
    result = evaluate(reports, [0, 2], **FEW)

    assert result["expectile_loss"].value == pytest.approx((0.2 + 0.8) / 2)
    assert result["identification"].value == pytest.approx((-0.2 + 0.8) / 2)


def test_a_mode_by_hand():
    """Says A three times, where B is the more frequent: excess (2 - 1)/4; B once."""
    reports = PointReport(value=["A", "A", "A", "B"], outcomes="ABC", property="mode")
    result = evaluate(reports, ["B", "B", "A", "B"], **FEW)

    assert result["accuracy"].value == 0.5
    assert result["zero_one_loss"].value == 0.5
    assert result["calibration_error"].value == pytest.approx((2 - 1) / 4)


def test_scikit_learn_agrees_on_the_losses():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    outcomes = np.arange(6)
    labels, value = rng.choice(outcomes, 200), rng.choice(outcomes, 200)
    weights = rng.uniform(size=200)
    mean = PointReport(value=value + 0.0, outcomes=outcomes, property="mean")
    low = PointReport(value=value, outcomes=outcomes, property="quantile", level=0.2)

    squared = evaluate(mean, labels, sample_weight=weights, **FEW)["squared_loss"]
    pinball = evaluate(low, labels, sample_weight=weights, **FEW)["pinball_loss"]

    assert_allclose(
        squared.value, metrics.mean_squared_error(labels, value, sample_weight=weights)
    )
    assert_allclose(
        pinball.value,
        metrics.mean_pinball_loss(labels, value, sample_weight=weights, alpha=0.2),
    )


@pytest.mark.parametrize(
    ("property_", "level"),
    [("mean", None), ("median", None), ("quantile", 0.25), ("expectile", 0.75)],
)
def test_differences_of_point_reports_are_paired(property_, level):
    rng = np.random.default_rng(2)
    outcomes = np.arange(5)
    labels = rng.choice(outcomes, 100)

    def reports(value):
        return PointReport(
            value=value, outcomes=outcomes, property=property_, level=level
        )

    first = reports(rng.choice(outcomes, 100))
    result = evaluate(first, labels, against=reports(np.full(100, 2)), **FEW)

    assert set(result.differences) == set(result.metrics)


@pytest.mark.parametrize("shift", [0, 1])
def test_a_point_reference_is_checked_at_its_own_rung(shift):
    """The mean of 0..4 is 2: stated rightly it stands, shifted it is contradicted."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 5, size=400)
    reference = PointReport(
        value=np.full(400, 2.0 + shift), outcomes=range(5), property="mean"
    )
    check = check_reference(reference, labels, n_resamples=200)

    assert [one.rung for one in check] == ["point"]
    assert (check["point"].p_value < 0.05) == bool(shift)
    assert check["point"].error.lower <= shift <= check["point"].error.upper
    wanted = "contradict it" if shift else "do not contradict it"
    assert wanted in check.recommendation
