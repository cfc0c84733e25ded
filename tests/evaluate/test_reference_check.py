"""check_reference(): errors by hand, exact tests, honest intervals, sound advice."""

from __future__ import annotations

import json

import numpy as np
import pytest
from evaluate.labelled import draw_labels, random_world, softmax
from hypothesis import given
from hypothesis import strategies as st

from trueup import AnswerConfidence
from trueup.evaluate import check_reference

FEW = {"n_resamples": 100}


def error(check, rung):
    return check[rung].error.value


def test_errors_by_hand():
    """Eight items, answers A and B with .6 and .8; bins are {.6} and {.8}."""
    reference = AnswerConfidence(
        answer=list("AABBAABB"),
        confidence=[0.6] * 4 + [0.8] * 4,
        outcomes=list("ABC"),
    )
    labels = list("ACBBAABC")
    check = check_reference(reference, labels, n_bins=2, min_items=1, **FEW)

    # Right: 1 0 1 1 | 1 1 1 0, stated .6 * 4 | .8 * 4.
    assert error(check, "mean") == pytest.approx(abs(6 - 5.6) / 8)
    assert error(check, "confidence") == pytest.approx(
        (abs(3 - 2.4) + abs(3 - 3.2)) / 8
    )
    # A at .6: 1 of 2; B at .6: 2 of 2; A at .8: 2 of 2; B at .8: 1 of 2.
    by_answer = [abs(1 - 1.2), abs(2 - 1.2), abs(2 - 1.6), abs(1 - 1.6)]
    assert error(check, "answer-confidence") == pytest.approx(sum(by_answer) / 8)
    assert check["answer-confidence"].n_cells == 4
    # No other outcome exceeds its cell's confidence: caps add nothing.
    assert error(check, "answer-confidence with caps") == pytest.approx(
        sum(by_answer) / 8
    )
    assert "distribution" in check.absent


def test_caps_by_hand():
    """The answer A is given with .4, but C happens in 6 of 10 cases: .2 too often."""
    reference = AnswerConfidence(
        answer=["A"] * 10, confidence=[0.4] * 10, outcomes=list("ABC")
    )
    labels = list("AAAA" + "CCCCCC")
    check = check_reference(reference, labels, **FEW)

    assert error(check, "answer-confidence") == pytest.approx(0)
    assert error(check, "answer-confidence with caps") == pytest.approx(0.6 - 0.4)
    # 6 or more of 10 at .4: .166; two caps, then the half for the equality.
    assert check["answer-confidence with caps"].p_value == pytest.approx(
        2 * 2 * 0.16624, rel=1e-3
    )


def test_distribution_errors_by_hand():
    """Stated (.5, .3, .2) ten times, counted 3, 4, 3: L1 distance .2 + .1 + .1."""
    p = np.tile([0.5, 0.3, 0.2], (10, 1))
    check = check_reference(p, [0] * 3 + [1] * 4 + [2] * 3, **FEW)

    assert error(check, "distribution") == pytest.approx(0.2 + 0.1 + 0.1)
    assert error(check, "mean") == pytest.approx(0.2)


def test_two_outcomes_have_one_moment():
    """Then the distribution's error is the binary ECE, not twice it."""
    check = check_reference(np.full(10, 0.7), [1] * 5 + [0] * 5, **FEW)

    assert check["distribution"].n_moments == 1
    assert error(check, "distribution") == pytest.approx(0.2)
    assert "answer-confidence with caps" not in [one.title for one in check]


@given(seed=st.integers(0, 2**32 - 1), n_outcomes=st.integers(2, 4))
def test_a_higher_rung_shows_at_least_the_error_below_it(seed, n_outcomes):
    """Cells are nested, so splitting them can only uncover more."""
    rng = np.random.default_rng(seed)
    p, _, labels = random_world(rng, 60, n_outcomes, 0.7)
    groups = rng.integers(0, 2, size=60)
    plain = check_reference(p, labels, n_bins=3, min_items=1, **FEW)
    split = check_reference(p, labels, n_bins=3, min_items=1, groups=groups, **FEW)

    for check in (plain, split):
        rungs = ["mean", "confidence", "answer-confidence", "distribution"]
        errors = [error(check, rung) for rung in rungs]
        assert errors == sorted(errors) or np.allclose(errors, sorted(errors))
        assert errors[2] <= error(check, "answer-confidence with caps") + 1e-12 if (
            n_outcomes > 2
        ) else True
    for rung in rungs:
        assert error(plain, rung) <= error(split, rung) + 1e-12


def test_rare_answers_are_pooled_inside_their_bin():
    reference = AnswerConfidence(
        answer=["A"] * 30 + ["B"] * 5 + ["C"] * 5,
        confidence=[0.5] * 40,
        outcomes=list("ABC"),
    )
    labels = ["A"] * 20 + ["B"] * 20

    pooled = check_reference(reference, labels, min_items=10, **FEW)
    split = check_reference(reference, labels, min_items=5, **FEW)

    assert pooled["answer-confidence"].n_cells == 2
    assert split["answer-confidence"].n_cells == 3
    # A pooled cell of B and C answers can cap neither of them, only A.
    assert pooled["answer-confidence with caps"].n_moments == (1 + 2) + (1 + 1)


def _rejections(worlds, **options):
    """Share of worlds in which each rung is contradicted at level 95 %."""
    rejected = {}
    for reference, labels, rng in worlds:
        for one in check_reference(reference, labels, rng=rng, **options):
            rejected.setdefault(one.title, []).append(one.p_value <= 0.05)
    return {rung: np.mean(several) for rung, several in rejected.items()}


@pytest.mark.parametrize(("n_items", "n_outcomes"), [(40, 2), (150, 4)])
def test_a_calibrated_reference_is_rarely_contradicted(n_items, n_outcomes):
    rng = np.random.default_rng(11)
    n_worlds = 200

    def worlds():
        for _ in range(n_worlds):
            stated = softmax(rng.choice([0.5, 3]) * rng.normal(size=(n_items, n_outcomes)))
            yield stated, draw_labels(stated, rng), rng

    shares = _rejections(worlds(), n_resamples=119, n_bins=3, min_items=5)

    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_worlds)
    assert all(share <= limit for share in shares.values()), shares


def test_the_mean_rung_believes_no_more_than_the_mean():
    """Confidence .9 is right in half of the cases and .5 in 90 %: fine on average."""
    rng = np.random.default_rng(12)

    def worlds():
        for _ in range(200):
            confidence = np.tile([0.9, 0.5], 50)
            right = rng.random(100) < np.tile([0.5, 0.9], 50)
            reference = AnswerConfidence(
                answer=np.zeros(100, int), confidence=confidence, outcomes=["A", "B"]
            )
            yield reference, np.where(right, "A", "B"), rng

    shares = _rejections(worlds(), n_resamples=119)

    assert shares["mean"] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert shares["confidence"] > 0.95


def _true_errors(stated, truth, n_bins):
    """Error of the truth itself over the cells of a check without pooling."""
    answer, confidence = stated.argmax(axis=1), stated.max(axis=1)
    order = np.sort(confidence)
    edges = order[np.ceil(len(order) * np.arange(1, n_bins) / n_bins).astype(int) - 1]
    cell = np.searchsorted(edges, confidence, side="left")
    gap = truth[np.arange(len(truth)), answer] - confidence
    whole = truth - stated if stated.shape[1] > 2 else (truth - stated)[:, 1:]
    cells = cell * stated.shape[1] + answer

    def size(index, moments):
        sums = [np.bincount(index, column) for column in moments.T]
        return np.abs(sums).sum() / len(stated)

    return {
        "mean": size(np.zeros_like(cell), gap[:, None]),
        "confidence": size(cell, gap[:, None]),
        "answer-confidence": size(cells, gap[:, None]),
        "distribution": size(cells, whole),
    }


@pytest.mark.parametrize("sharpness", [1.0, 0.6, 1.7])
@pytest.mark.parametrize(("n_items", "n_outcomes"), [(60, 2), (240, 4)])
def test_intervals_hold_the_true_error(n_items, n_outcomes, sharpness):
    rng = np.random.default_rng(13)
    n_worlds, held = 60, {}
    for _ in range(n_worlds):
        stated, truth, labels = random_world(rng, n_items, n_outcomes, sharpness)
        check = check_reference(
            stated, labels, n_bins=2, min_items=1, rng=rng, n_resamples=150
        )
        for rung, true in _true_errors(stated, truth, 2).items():
            one = check[rung].error
            inside = one.lower - 1e-12 <= true <= one.upper + 1e-12
            held.setdefault(rung, []).append(inside)

    limit = 0.95 - 3 * np.sqrt(0.05 * 0.95 / n_worlds)
    assert all(np.mean(several) >= limit for several in held.values()), {
        rung: np.mean(several) for rung, several in held.items()
    }


def test_the_measured_error_is_compared_with_chance():
    """On average a calibrated reference shows what is called chance."""
    rng = np.random.default_rng(14)
    shown, chance = [], []
    for _ in range(60):
        stated, _, labels = random_world(rng, 100, 3)
        one = check_reference(stated, labels, rng=rng, **FEW)["distribution"]
        shown.append(one.error.value)
        chance.append(one.by_chance)
        assert one.debiased <= one.error.value

    assert np.mean(shown) == pytest.approx(np.mean(chance), rel=0.1)


def test_the_advice_climbs_to_the_last_rung_that_holds():
    """Right for each answer, but its other options are in the wrong order."""
    rng = np.random.default_rng(15)
    truth = softmax(1.5 * rng.normal(size=(1500, 4)))
    top = truth.argmax(axis=1)
    stated = truth.copy()
    rest = np.argsort(truth, axis=1)[:, :3]
    rows = np.arange(1500)[:, None]
    stated[rows, rest] = truth[rows, rest[:, ::-1]]
    assert (stated.argmax(axis=1) == top).all()
    check = check_reference(stated, draw_labels(truth, rng))

    assert check.recommended.rung == "answer-confidence"
    assert check.recommended.reference_error == check["answer-confidence"].error.upper
    assert "Stand on trust='answer-confidence' with reference_error=0." in (
        check.recommendation
    )
    assert "'distribution' is contradicted (p-value <0.001" in check.recommendation


def test_the_advice_accepts_a_small_error_that_many_labels_uncover():
    rng = np.random.default_rng(16)
    chance = rng.uniform(0.1, 0.9, size=20_000)
    labels = (rng.random(20_000) < np.clip(chance + 0.02, 0, 1)).astype(int)
    check = check_reference(chance, labels, **FEW)
    strict = check_reference(chance, labels, tolerable_error=0.01, **FEW)

    assert check["distribution"].p_value < 0.05
    assert check.recommended.rung == "distribution"
    assert "not exactly right" in check.recommendation
    assert strict.recommended.reference_error < check.recommended.reference_error


def test_the_advice_says_when_nothing_holds():
    reference = AnswerConfidence(
        answer=[0] * 200, confidence=[0.9] * 200, outcomes=["A", "B", "C"]
    )
    check = check_reference(reference, ["A", "B"] * 100, **FEW)

    assert check.recommended.rung == "mean"
    assert check.recommendation.startswith("These 200 labels contradict every rung")


@pytest.mark.parametrize("other", ["B", "BC"])
def test_the_advice_says_whether_caps_hold(other):
    """With answer A at .4: the rest all B breaks the cap, B and C in turn does not."""
    wrong = (list(other) * 180)[:180]
    reference = AnswerConfidence(
        answer=["A"] * 300, confidence=[0.4] * 300, outcomes=list("ABC")
    )
    check = check_reference(reference, ["A"] * 120 + wrong, **FEW)

    assert check.recommended.caps == (other == "BC")
    assert f"trust='answer-confidence', caps={other == 'BC'}" in check.recommendation


def test_groups_uncover_errors_that_cancel():
    """Too high in one group, too low in the other: fine together, not apart."""
    rng = np.random.default_rng(17)
    groups = np.repeat(["north", "south"], 400)
    chance = np.full(800, 0.5)
    labels = (rng.random(800) < np.where(groups == "north", 0.3, 0.7)).astype(int)

    together = check_reference(chance, labels, **FEW)
    apart = check_reference(chance, labels, groups=groups, **FEW)

    assert together["distribution"].p_value > 0.05
    assert apart["mean"].p_value < 0.05
    assert apart.n_groups == 2
    assert error(apart, "mean") == pytest.approx(0.2, abs=0.05)


def test_weights_move_the_error_and_repeat_items():
    p, _, labels = random_world(np.random.default_rng(18), 50, 3)
    weights = np.random.default_rng(19).integers(1, 4, size=50)
    options = {"n_bins": 2, "min_items": 1, **FEW}
    weighted = check_reference(p, labels, sample_weight=weights, **options)
    repeated = check_reference(
        np.repeat(p, weights, axis=0), np.repeat(labels, weights), **options
    )

    for one, two in zip(weighted, repeated, strict=True):
        assert one.error.value == pytest.approx(two.error.value)
        assert one.error.upper >= two.error.upper - 0.01  # fewer items know less


def test_checks_repeat_print_and_serialise():
    p, _, labels = random_world(np.random.default_rng(20), 80, 3)
    one, two = check_reference(p, labels, **FEW), check_reference(p, labels, **FEW)

    assert one.to_dict() == two.to_dict()
    told = json.loads(json.dumps(one.to_dict()))
    assert told["recommended"] == one.recommended.title
    assert "\n" not in repr(one)
    assert one.recommendation in one.table()
    assert one._repr_html_().count("<tr>") == 1 + len(one)
    assert [rung.rung for rung in one] == [rung["rung"] for rung in told["rungs"]]
