"""Legal but extreme input: each case gives a number or says why there is none."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from evaluate.labelled import random_world

import trueup
from trueup import AnswerConfidence
from trueup.evaluate import check_reference, evaluate, reliability_curve

FEW = {"n_bootstrap": 50}


def answers(confidence, outcomes=("A", "B")):
    return AnswerConfidence(
        answer=[0] * len(confidence), confidence=confidence, outcomes=outcomes
    )


@pytest.mark.parametrize(("label", "every"), [("A", "right"), ("B", "wrong")])
def test_one_class_present(label, every):
    """Nothing to rank, and an accuracy whose interval cannot be trusted."""
    result = evaluate(answers([0.6, 0.7, 0.8]), [label] * 3, **FEW)

    assert "auroc" not in result
    assert result.absent["auroc"].startswith(f"every answer is {every}")
    assert any("too narrow" in note for note in result.notes)
    assert result["accuracy"] == ((1, 1, 1) if label == "A" else (0, 0, 0))


@pytest.mark.parametrize("certainty", [0.0, 1.0])
def test_confidence_all_zero_or_one(certainty):
    result = evaluate(answers([certainty] * 4), ["A", "A", "A", "B"], **FEW)

    assert result["ece"].value == pytest.approx(abs(certainty - 3 / 4))
    assert result["ece_equal_mass"].value == result["ece"].value
    assert result["auroc"].value == 0.5


def test_a_certain_error_makes_log_loss_infinite_and_says_so():
    p = np.array([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]])
    result = evaluate(p, [0, 0, 1], **FEW)

    assert result["log_loss"] == (math.inf, math.inf, math.inf)
    assert "1 of 3 items" in result.notes[0]
    assert "row 2" in result.notes[0]
    assert json.loads(json.dumps(result.to_dict()))["metrics"]["log_loss"] == {
        "value": "inf",
        "lower": "inf",
        "upper": "inf",
    }
    assert "inf" in result.table()


def test_two_infinite_losses_have_no_difference():
    p = np.array([[1.0, 0.0], [0.5, 0.5]])
    result = evaluate(p, [1, 1], against=p[:, ::-1] @ np.eye(2)[::-1], **FEW)

    assert "log_loss" not in result.differences
    assert any("both are infinite" in note for note in result.notes)


def test_one_infinite_loss_has_an_infinite_difference():
    p, other = np.array([[1.0, 0.0], [0.5, 0.5]]), np.full((2, 2), 0.5)

    there = evaluate(p, [1, 1], against=other, **FEW).differences["log_loss"]
    back = evaluate(other, [1, 1], against=p, **FEW).differences["log_loss"]

    assert there == (math.inf, math.inf, math.inf)
    assert back == (-math.inf, -math.inf, -math.inf)


def test_ties_between_outcomes_go_to_the_lowest_index():
    result = evaluate(np.full((2, 4), 0.25), [0, 3], **FEW)

    assert result["accuracy"].value == 0.5
    assert result["auroc"].value == 0.5


def test_empty_bins_count_nothing():
    """Two of ten bins hold items."""
    result = evaluate(answers([0.05, 0.95]), ["B", "A"], **FEW)

    assert result["ece"].value == pytest.approx((0.05 + 0.05) / 2)


def test_one_item():
    result = evaluate([0.7], [1], **FEW)

    assert result["ece"].value == pytest.approx(0.3)
    assert result["brier"] == pytest.approx((0.18, 0.18, 0.18))


@pytest.mark.parametrize("n_items", [1, 10])
def test_few_items_can_be_checked(n_items):
    p, _, labels = random_world(np.random.default_rng(1), n_items, 3)
    check = check_reference(p, labels, n_resamples=100)

    for one in check:
        assert 0 <= one.error.lower <= one.error.value <= one.error.upper
        assert 0 < one.p_value <= 1
    assert check["mean"].n_cells == check["confidence"].n_cells == 1


def test_ten_items_with_ties_everywhere():
    result = evaluate(answers([0.5] * 10), ["A"] * 5 + ["B"] * 5, n_bins=20, **FEW)

    assert result["ece"].value == result["ece_equal_mass"].value == 0
    assert result["ece_debiased"].value == 0
    assert result["ece"].upper > 0.1


def test_a_thousand_outcomes():
    p, _, labels = random_world(np.random.default_rng(2), 60, 1000)
    result = evaluate(p, labels, **FEW)
    check = check_reference(p, labels, n_resamples=100)

    assert len(result.absent) <= 1
    assert result["brier"].value == pytest.approx(
        np.mean((p**2).sum(axis=1) - 2 * p[np.arange(60), labels] + 1)
    )
    assert check["distribution"].n_moments == 1000
    assert check["distribution"].error.value <= 2


def test_zero_weights_take_no_part():
    p, _, labels = random_world(np.random.default_rng(3), 40)
    weights = np.repeat([1.0, 0.0], 20)
    result = evaluate(p, labels, sample_weight=weights, **FEW)

    assert result.n_items == 20
    assert result.to_dict() == evaluate(p[:20], labels[:20], **FEW).to_dict()


def test_a_reliability_curve_leaves_empty_bins_out():
    curve = reliability_curve(answers([0.05, 0.95, 0.96]), ["B", "A", "A"])

    assert curve.lower_edge.tolist() == [0.0, 0.9]
    assert curve.upper_edge.tolist() == [0.1, 1.0]
    assert not np.isnan(curve.observed).any()


def test_outcomes_that_never_happen():
    """Only A and B of six options are ever right."""
    p, _, labels = random_world(np.random.default_rng(4), 50, 6)
    result = evaluate(p, labels % 2, **FEW)

    assert 0 <= result["ece_classwise"].value <= 1


def test_text_and_numbers_as_outcomes():
    reports = AnswerConfidence(
        answer=[10, 20], confidence=[0.6, 0.7], outcomes=[10, 20, 30]
    )

    assert evaluate(reports, [10, 30], **FEW)["accuracy"].value == 0.5
    with pytest.raises(trueup.TrueupError, match="1 of 2 values"):
        evaluate(reports, [10, 1], **FEW)  # numbers are names here, not positions
