"""Intervals of evaluate(): repeatable, paired, honest."""

from __future__ import annotations

import time

import numpy as np
import pytest
from evaluate.labelled import draw_labels, random_world, softmax

from trueup import AnswerConfidence
from trueup.evaluate import evaluate


def test_results_repeat_without_and_with_a_generator():
    p, _, labels = random_world(np.random.default_rng(1))

    default = evaluate(p, labels, n_bootstrap=50)
    seeded = evaluate(p, labels, n_bootstrap=50, rng=np.random.default_rng(0))
    other = evaluate(p, labels, n_bootstrap=50, rng=np.random.default_rng(1))

    assert default.to_dict() == seeded.to_dict()
    assert default["accuracy"] != other["accuracy"]
    assert default["accuracy"].value == other["accuracy"].value


def test_a_higher_level_is_a_wider_interval():
    p, _, labels = random_world(np.random.default_rng(2))
    narrow = evaluate(p, labels, n_bootstrap=400, level=0.8)
    wide = evaluate(p, labels, n_bootstrap=400, level=0.99)

    for name in narrow:
        assert wide[name].lower <= narrow[name].lower
        assert wide[name].upper >= narrow[name].upper


def test_the_interval_of_a_mean_is_the_binomial_one():
    """200 items of which 120 are right: standard error .0346."""
    reports = AnswerConfidence(
        answer=np.zeros(200, int), confidence=np.full(200, 0.6), outcomes=["A", "B"]
    )
    labels = np.repeat(["A", "B"], [120, 80])
    found = evaluate(reports, labels, n_bootstrap=4000)["accuracy"]

    wanted = 1.96 * np.sqrt(0.6 * 0.4 / 200)
    assert found.upper - 0.6 == pytest.approx(wanted, rel=0.1)
    assert 0.6 - found.lower == pytest.approx(wanted, rel=0.1)


def test_pairing_narrows_the_interval_of_a_difference():
    """Two predictors that err on the same items differ by little noise."""
    rng = np.random.default_rng(3)
    p, _, labels = random_world(rng, 400)
    near = softmax(np.log(p) + 0.05 * rng.normal(size=p.shape))
    result = evaluate(near, labels, against=p, n_bootstrap=300)

    paired = result.differences["brier"]
    alone, other = result["brier"], result.against["brier"]
    assert paired.upper - paired.lower < 0.2 * (
        (alone.upper - alone.lower) + (other.upper - other.lower)
    )
    assert paired.value == pytest.approx(alone.value - other.value)


def test_blocks_of_copies_count_once():
    """Every item four times: with blocks the interval is that of the single items."""
    p, _, labels = random_world(np.random.default_rng(4), 150)
    copies = {"n_bootstrap": 2000, "blocks": np.tile(np.arange(150), 4)}
    tiled = (np.tile(p, (4, 1)), np.tile(labels, 4))

    once = evaluate(p, labels, n_bootstrap=2000)
    blocked = evaluate(*tiled, **copies)
    naive = evaluate(*tiled, n_bootstrap=2000)

    def width(result, name):
        return result[name].upper - result[name].lower

    for name in ("accuracy", "brier", "auroc", "ece"):
        assert width(blocked, name) == pytest.approx(width(once, name), rel=0.15)
        assert width(naive, name) < 0.75 * width(once, name)


def _coverage(sharpness, n_worlds, n_items):
    """How often the intervals hold the true values of the items' population."""
    rng = np.random.default_rng(5)
    population = softmax(1.5 * rng.normal(size=(40_000, 4)))
    truth = population**sharpness
    truth /= truth.sum(axis=1, keepdims=True)
    answer, confidence = population.argmax(axis=1), population.max(axis=1)
    chance = truth[np.arange(len(truth)), answer]
    cell = np.searchsorted(np.arange(1, 10) / 10, confidence)
    ece = np.abs(np.bincount(cell, chance - confidence)).sum() / len(truth)
    held = {"accuracy": 0, "ece": 0, "ece_debiased": 0}
    for _ in range(n_worlds):
        drawn = rng.integers(len(truth), size=n_items)
        found = evaluate(
            AnswerConfidence.from_distributions(population[drawn]),
            draw_labels(truth[drawn], rng),
            n_bootstrap=200,
            rng=rng,
        )
        for name, true in (
            ("accuracy", chance.mean()),
            ("ece", ece),
            ("ece_debiased", ece),
        ):
            held[name] += found[name].lower <= true <= found[name].upper
    return {name: count / n_worlds for name, count in held.items()}


@pytest.mark.parametrize("sharpness", [1.0, 0.8, 0.4])
def test_intervals_hold_the_truth_also_for_a_calibrated_predictor(sharpness):
    """At sharpness 1 the true ECE is zero, where percentiles would never hold it."""
    held = _coverage(sharpness, n_worlds=150, n_items=300)

    # 95 % less three standard errors of 150 worlds.
    assert all(share > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 150) for share in held.values())


def test_five_thousand_items_take_seconds():
    p, _, labels = random_world(np.random.default_rng(6), 5700, 4)
    evaluate(p[:50], labels[:50], n_bootstrap=10)  # load what is loaded once

    start = time.perf_counter()
    evaluate(p, labels)

    # About one second alone; the limit allows for a busy machine.
    assert time.perf_counter() - start < 8
