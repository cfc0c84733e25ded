"""The numbers of evaluate(): by hand, against other implementations, and as laws."""

from __future__ import annotations

import numpy as np
import pytest
from evaluate.labelled import answer_worlds, distribution_worlds, random_world
from hypothesis import given
from numpy.testing import assert_allclose

import trueup
from trueup import AnswerConfidence
from trueup.evaluate import evaluate

FEW = {"n_bootstrap": 10}


def values(result):
    return {name: one.value for name, one in result.metrics.items()}


def test_every_metric_by_hand():
    """Four items, three outcomes; answers 0, 0, 1, 2 of which the first three match."""
    p = np.array([[0.9, 0.1, 0.0], [0.6, 0.2, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    found = values(evaluate(p, [0, 0, 1, 0], **FEW))

    # Confidences .9 .6 .6 .6, right 1 1 1 0.
    assert found["accuracy"] == pytest.approx(3 / 4)
    assert found["overconfidence"] == pytest.approx((0.9 + 3 * 0.6) / 4 - 3 / 4)
    # (.8, .9] holds .9 (right); (.5, .6] holds three .6, two of them right.
    assert found["ece"] == pytest.approx((abs(1 - 0.9) + abs(2 - 1.8)) / 4)
    assert found["brier_top"] == pytest.approx((0.01 + 0.16 + 0.16 + 0.36) / 4)
    assert found["confidence_loss"] == pytest.approx(
        (0.81 - 1.8 + 0.36 - 1.2 + 0.36 - 1.2 + 0.36) / 4
    )
    brier = [0.01 + 0.01, 0.16 + 0.04 + 0.04, 0.01 + 0.16 + 0.09, 0.64 + 0.04 + 0.36]
    assert found["brier"] == pytest.approx(sum(brier) / 4)
    assert found["log_loss"] == pytest.approx(
        -(np.log(0.9) + np.log(0.6) + np.log(0.6) + np.log(0.2)) / 4
    )
    # Right answers have .9, .6, .6, the wrong one .6: one win and two ties of three.
    assert found["auroc"] == pytest.approx((1 + 0.5 + 0.5) / 3)


def test_classwise_ece_by_hand():
    """Mean over outcomes of the binary ECE of each column."""
    p = np.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.55, 0.45]])
    labels = [0, 1, 1, 0]
    # Column 0 in bins: .75 .75 with hits 1 0; .25 with 0; .55 with 1.
    first = (abs(1 - 1.5) + abs(0 - 0.25) + abs(1 - 0.55)) / 4
    # Column 1: .25 .25 with hits 0 1; .75 with 1; .45 with 0.
    second = (abs(1 - 0.5) + abs(1 - 0.75) + abs(0 - 0.45)) / 4

    found = values(evaluate(p, labels, **FEW))

    assert found["ece_classwise"] == pytest.approx((first + second) / 2)


def test_a_bin_holds_its_upper_edge_and_the_first_also_zero():
    """.1 and 0 share (0, .1]; .30000000000000004 is above the edge .3."""
    reports = AnswerConfidence(
        answer=[0] * 4, confidence=[0.0, 0.1, 0.3, 0.1 + 0.2], outcomes=["A", "B"]
    )
    # Bins {0, .1}, {.3}, {.3000...4}; right are the first and the last.
    expected = (abs(1 - 0.1) + abs(0 - 0.3) + abs(1 - 0.3)) / 4

    found = values(evaluate(reports, ["A", "B", "B", "A"], **FEW))

    assert found["ece"] == pytest.approx(expected)


def test_equal_mass_bins_keep_equal_confidences_together():
    """Six of eight items say .5, so three of the four wanted bins are one."""
    confidence = [0.2, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.9]
    reports = AnswerConfidence(
        answer=[0] * 8, confidence=confidence, outcomes=["A", "B"]
    )
    labels = ["A", "A", "A", "A", "B", "B", "B", "A"]

    found = values(evaluate(reports, labels, n_bins=4, **FEW))

    # Quartile edges are .5, .5, .5: bins (-, .5] and (.5, -].
    assert found["ece_equal_mass"] == pytest.approx((abs(4 - 3.2) + abs(1 - 0.9)) / 8)


@pytest.mark.parametrize("n_outcomes", [2, 5])
def test_scikit_learn_agrees(n_outcomes):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    p, _, labels = random_world(rng, 400, n_outcomes)
    weights = rng.integers(1, 5, size=400).astype(float)
    hit = labels == p.argmax(axis=1)

    found = values(evaluate(p, labels, sample_weight=weights, **FEW))

    named = {"labels": range(n_outcomes), "sample_weight": weights}
    assert_allclose(found["log_loss"], metrics.log_loss(labels, p, **named))
    assert_allclose(
        found["brier"], metrics.brier_score_loss(labels, p, **named, scale_by_half=False)
    )
    top = metrics.brier_score_loss(hit, p.max(axis=1), sample_weight=weights)
    assert_allclose(found["brier_top"], top)
    area = metrics.roc_auc_score(hit, p.max(axis=1), sample_weight=weights)
    assert_allclose(found["auroc"], area)
    assert_allclose(
        found["accuracy"],
        metrics.accuracy_score(labels, p.argmax(axis=1), sample_weight=weights),
    )


@pytest.mark.parametrize("n_outcomes", [2, 4])
def test_a_published_implementation_agrees(n_outcomes):
    """uncertainty-calibration (Kumar, Liang, Ma 2019), with its own binning."""
    published = pytest.importorskip("calibration")
    p, _, labels = random_world(np.random.default_rng(4), 600, n_outcomes, 1.6)

    found = values(evaluate(p, labels, **FEW))

    top = published.get_ece(p, labels, num_bins=10)
    assert_allclose(found["ece"], top)
    assert_allclose(
        found["ece_classwise"],
        published.get_ece(p, labels, num_bins=10, mode="marginal"),
    )
    assert_allclose(
        found["ece_equal_mass"], published.get_ece_em(p, labels, num_bins=10)
    )


def test_the_debiased_ece_is_the_published_one_without_its_resampling():
    published = pytest.importorskip("calibration")
    rng = np.random.default_rng(5)
    confidence = rng.uniform(0.05, 0.95, size=800)
    hit = rng.random(800) < confidence
    reports = AnswerConfidence(
        answer=np.zeros(800, int), confidence=confidence, outcomes=["A", "B"]
    )

    found = evaluate(reports, np.where(hit, "A", "B"), **FEW)["ece_debiased"].value

    np.random.seed(0)  # its resampling uses the global generator
    runs = [
        published.get_ece(confidence, hit.astype(int), debias=True, num_bins=10)
        for _ in range(20)
    ]
    assert found == pytest.approx(np.mean(runs), abs=4 * np.std(runs) / np.sqrt(20))


@given(world=answer_worlds())
def test_confidence_loss_is_top_label_brier_minus_accuracy(world):
    reports, labels, weights = world
    found = values(evaluate(reports, labels, sample_weight=weights, **FEW))

    assert found["confidence_loss"] == pytest.approx(
        found["brier_top"] - found["accuracy"], abs=1e-12
    )


@given(world=distribution_worlds())
def test_reading_distributions_as_answers_keeps_the_top_label_metrics(world):
    p, labels, weights = world
    whole = values(evaluate(p, labels, sample_weight=weights, **FEW))
    answers = AnswerConfidence.from_distributions(p)
    top = values(evaluate(answers, labels, sample_weight=weights, **FEW))

    assert set(whole) - set(top) == {"brier", "log_loss", "ece_classwise"}
    assert top == {name: whole[name] for name in top}


@given(world=distribution_worlds())
def test_a_weight_is_a_repetition(world):
    p, labels, weights = world
    times = weights.astype(int)
    weighted = values(evaluate(p, labels, sample_weight=weights, **FEW))
    repeated = values(
        evaluate(np.repeat(p, times, axis=0), np.repeat(labels, times), **FEW)
    )

    # One item that counts twice tells less than two items, and the bias knows it.
    for name in set(weighted) - {"ece_debiased"}:
        assert weighted[name] == pytest.approx(repeated[name], abs=1e-12), name


@given(world=distribution_worlds())
def test_the_order_of_items_does_not_matter(world):
    p, labels, weights = world
    there = values(evaluate(p, labels, sample_weight=weights, **FEW))
    back = values(evaluate(p[::-1], labels[::-1], sample_weight=weights[::-1], **FEW))

    assert there == pytest.approx(back, abs=1e-12)


@given(world=answer_worlds())
def test_ece_is_at_least_the_mean_gap_and_at_most_one(world):
    reports, labels, weights = world
    found = values(evaluate(reports, labels, sample_weight=weights, **FEW))

    for name in ("ece", "ece_equal_mass"):
        assert abs(found["overconfidence"]) <= found[name] + 1e-12
        assert found[name] <= 1 + 1e-12
    assert 0 <= found["ece_debiased"] <= found["ece"] + 1e-12


@given(world=distribution_worlds())
def test_an_interval_contains_its_value(world):
    p, labels, weights = world
    other = p[::-1]
    result = evaluate(p, labels, sample_weight=weights, against=other, **FEW)

    for one in (*result.metrics.values(), *result.differences.values()):
        assert one.lower <= one.value <= one.upper


def test_a_predictor_against_itself_differs_by_nothing():
    p, _, labels = random_world(np.random.default_rng(6))
    result = evaluate(p, labels, against=p, n_bootstrap=50)

    for name, gap in result.differences.items():
        assert gap.value == 0, name
    means = {"accuracy", "brier", "brier_top", "log_loss", "confidence_loss", "auroc"}
    for name in means:
        assert result.differences[name] == (0, 0, 0), name


def test_labels_by_name_and_by_position_are_the_same():
    p, _, labels = random_world(np.random.default_rng(7), 30, 3)
    names = np.array(["cat", "dog", "emu"])
    by_name = evaluate(p, names[labels], outcomes=names, n_bootstrap=20)
    by_position = evaluate(p, labels, outcomes=names, n_bootstrap=20)

    assert values(by_name) == values(by_position)


def test_named_outcomes_fix_the_order_of_positions():
    reports = AnswerConfidence(
        answer=["B", "A"], confidence=[0.8, 0.7], outcomes=["A", "B"]
    )
    result = evaluate(reports, [0, 1], outcomes=["B", "A"], **FEW)

    assert result["accuracy"].value == 1


def test_a_one_dimensional_array_is_the_chance_of_outcome_one():
    chance = np.array([0.9, 0.2, 0.6])
    found = values(evaluate(chance, [1, 0, 0], **FEW))

    # Two outcomes: the sum over outcomes is twice the binary squared error.
    assert found["brier"] == pytest.approx(2 * (0.01 + 0.04 + 0.36) / 3)


def test_the_package_is_the_function():
    """Importing a part of the package must not hide the function of the same name."""
    import trueup.evaluate.reliability  # noqa: F401

    result = trueup.evaluate([0.9, 0.2], [1, 0], **FEW)

    assert result["accuracy"].value == 1
    assert trueup.evaluate.__module__ == evaluate.__module__
    assert trueup.evaluate.__qualname__ == evaluate.__qualname__


def test_asking_for_what_is_absent_says_why():
    reports = AnswerConfidence(answer=[0], confidence=[0.5], outcomes=["A", "B"])
    result = evaluate(reports, ["A"], **FEW)

    assert "brier" not in result
    with pytest.raises(trueup.TrueupError, match="'brier' is absent: it needs a prob"):
        result["brier"]
    with pytest.raises(trueup.TrueupError, match="Did you mean 'brier_top'"):
        result["brier_to"]


def test_results_print_and_serialise():
    import json

    p, _, labels = random_world(np.random.default_rng(8), 40, 3)
    answers = AnswerConfidence.from_distributions(p)
    result = evaluate(answers, labels, against=p, n_bootstrap=20)

    assert "\n" not in repr(result)
    assert repr(result).startswith("Evaluation(40 items, 3 outcomes: accuracy 0.")
    assert "brier_top" in result.table()
    assert "absent: log_loss" in result.table()
    assert "&lt;" not in result.table()
    assert result._repr_html_().count("<tr>") == 1 + len(result)
    told = json.loads(json.dumps(result.to_dict()))
    assert told["metrics"]["ece"]["value"] == result["ece"].value
    assert set(told["differences"]) == set(result.differences)
    assert list(result) == list(result.metrics)


def test_html_is_escaped():
    p = np.array([[0.9, 0.1], [0.4, 0.6]])
    names = ["<b>", "&"]
    curve = trueup.evaluate.reliability_curve(p, names, outcome="<b>", outcomes=names)

    assert "<b>" not in curve._repr_html_()
    assert "&lt;b&gt;" in curve._repr_html_()
