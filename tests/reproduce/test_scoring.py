"""Scores of tables against those of evaluate(), and of drawn answers by drawing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluate.labelled import answer_worlds
from trueup import AnswerConfidence, evaluate
from trueup.reproduce.scoring import Said, gain, scores


@given(answer_worlds())
def test_scores_are_those_of_evaluate(world):
    reports, labels = world[0], np.asarray(world[1])
    found = scores(Said.of(reports), labels)
    names = [reports.outcomes[k] for k in labels]
    wanted = evaluate(reports, names, n_bootstrap=10)

    for metric in ("accuracy", "brier_top", "ece", "confidence_loss"):
        assert getattr(found, metric) == pytest.approx(wanted[metric].value, abs=1e-12)


@given(st.integers(0, 10_000))
def test_drawn_answers_score_as_their_expectation(seed):
    rng = np.random.default_rng(seed)
    answers = rng.dirichlet(np.ones(3), size=5)
    confidence = rng.random(5)
    labels = rng.integers(0, 3, size=5)
    expected = scores(Said(confidence, answers), labels)
    # Every way in which the five answers can fall, with its chance.
    losses, hits = 0.0, 0.0
    for code in range(3**5):
        drawn = np.array([code // 3**k % 3 for k in range(5)])
        chance = answers[np.arange(5), drawn].prod()
        one = scores(Said(confidence, np.eye(3)[drawn]), labels)
        losses += chance * one.brier_top
        hits += chance * one.accuracy

    assert expected.brier_top == pytest.approx(losses, abs=1e-12)
    assert expected.accuracy == pytest.approx(hits, abs=1e-12)
    assert expected.confidence_loss == pytest.approx(losses - hits, abs=1e-12)


def test_the_gain_is_the_fall_in_confidence_loss():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=200)
    sides = [
        Said.of(
            AnswerConfidence(
                answer=rng.integers(0, 3, size=200),
                confidence=rng.random(200),
                outcomes=range(3),
            )
        )
        for _ in range(2)
    ]
    fall = gain(*sides, labels)
    before, after = (scores(side, labels).confidence_loss for side in sides)

    assert fall.value == pytest.approx(before - after, abs=1e-12)
    assert 0 < fall.error < 0.2
    assert gain(sides[0], sides[0], labels).value == 0
