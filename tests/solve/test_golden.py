"""METHOD's golden numbers, with the arithmetic visible."""

from __future__ import annotations

import numpy as np
import pytest

import trueup


def certified(m):
    return m.certificate.guaranteed_improvement


class TestToy:
    """The paper's toy: primary .1 / .7 on halves, reference always .5."""

    m = trueup.fit(np.array([0.1, 0.7]), np.array([0.5, 0.5]), cells="exact")

    def test_both_reports_move_up_by_a_tenth(self):
        np.testing.assert_allclose(
            self.m.apply(np.array([0.1, 0.7])), [[0.8, 0.2], [0.2, 0.8]], atol=1e-9
        )

    def test_brier_gain_is_summed_over_outcomes(self):
        # (.2 - .1)^2 on each of two outcomes, on every item.
        assert certified(self.m) == pytest.approx(2 * 0.1**2, abs=1e-10)
        assert 0 <= self.m.certificate.gap < 1e-8

    def test_break_even_of_this_map_is_half_the_move(self):
        # The multiplier is 2 * .2 per unit of error and the gain .02: .02 / .4.
        assert self.m.certificate.break_even_reference_error == pytest.approx(0.05)

    def test_a_budget_of_the_whole_contradiction_leaves_nothing(self):
        m = trueup.fit([0.1, 0.7], [0.5, 0.5], reference_error=0.1, cells="exact")

        assert certified(m) == 0.0

    def test_half_the_budget_leaves_a_quarter_of_the_gain(self):
        m = trueup.fit([0.1, 0.7], [0.5, 0.5], reference_error=0.05, cells="exact")

        assert certified(m) == pytest.approx(2 * 0.05**2, abs=1e-9)
        np.testing.assert_allclose(m.apply([0.1, 0.7])[:, 1], [0.15, 0.75], atol=1e-6)


class TestTie:
    """Section 4: the reference always says (A, .7), the primary (A, .5) and (B, .6)."""

    primary = trueup.AnswerConfidence(
        answer=["A", "B"], confidence=[0.5, 0.6], outcomes=["A", "B"]
    )
    reference = trueup.AnswerConfidence(
        answer=["A", "A"], confidence=[0.7, 0.7], outcomes=["A", "B"]
    )
    m = trueup.fit(primary, reference, cells="exact")

    def test_the_optimum_draws_the_second_answer(self):
        drawn = self.m.randomised

        assert drawn.certificate.guaranteed_improvement == pytest.approx(0.085)
        np.testing.assert_allclose(
            drawn.weights(self.primary), [[1, 0], [0.3, 0.7]], atol=1e-6
        )
        np.testing.assert_allclose(
            drawn.distributions(self.primary), [[0.9, 0.1], [0.5, 0.5]], atol=1e-6
        )

    def test_the_deterministic_map_is_projected_again(self):
        better = self.m.apply(self.primary)

        assert certified(self.m) == pytest.approx(0.0625)
        assert better.labels() == ["A", "B"]
        np.testing.assert_allclose(better.confidence, [0.75, 0.35], atol=1e-6)

    def test_draws_follow_the_weights(self):
        many = trueup.AnswerConfidence(
            answer=["B"] * 4000, confidence=[0.6] * 4000, outcomes=["A", "B"]
        )
        drawn = self.m.randomised.apply(many, rng=np.random.default_rng(1))

        assert np.mean(drawn.answer == 0) == pytest.approx(0.3, abs=0.03)
        np.testing.assert_allclose(drawn.confidence, 0.5, atol=1e-6)


def test_per_report_reading_does_not_credit_the_literal_set():
    """Section 1: reference = truth in {.2, .8}; the primary says .45 / .55 there.

    The literal reading contains the constant .5 and "guarantees" .0025, although the
    change is then -.0275. Per report the groups are identified: h = (.2, .8), and the
    gain is 2 * .25^2.
    """
    m = trueup.fit([0.45, 0.55], [0.2, 0.8], cells="exact")

    np.testing.assert_allclose(m.apply([0.45, 0.55])[:, 1], [0.2, 0.8], atol=1e-9)
    assert certified(m) == pytest.approx(2 * 0.25**2)


class TestImperfectReference:
    """Section 8: reference constant .2, primary (1, .05), truth (1, 0)."""

    primary, weight = np.array([1.0, 0.05]), np.array([0.25, 0.75])
    truth = np.array([1.0, 0.0])
    m = trueup.fit(primary, np.array([0.2, 0.2]), sample_weight=weight, cells="exact")

    def brier(self, p):
        return 2 * (self.truth * (1 - p) ** 2 + (1 - self.truth) * p**2)

    def test_the_true_change_is_a_loss(self):
        # The reference is off by .05: it says .2 and the rate is .25.
        better = self.m.apply(self.primary)[:, 1]
        change = self.weight @ (self.brier(self.primary) - self.brier(better))

        assert change == pytest.approx(-0.01625, abs=1e-6)

    def test_the_corrected_bound_is_below_the_true_change(self):
        certificate = self.m.certificate
        bound = certificate.guaranteed_improvement - 0.05 * certificate.steepness

        assert bound <= -0.01625 + 1e-9
        assert certificate.break_even_reference_error < 0.05

    def test_fitted_with_that_error_nothing_is_promised_that_does_not_hold(self):
        m = trueup.fit(
            self.primary,
            np.array([0.2, 0.2]),
            sample_weight=self.weight,
            reference_error=0.05,
            cells="exact",
        )
        better = m.apply(self.primary)[:, 1]
        change = self.weight @ (self.brier(self.primary) - self.brier(better))

        assert certified(m) <= change + 1e-9


def test_confidence_below_one_over_k_gains_without_any_reference():
    """(c - 1/K)^2 with K = 4 and c = .05, shown apart: the draw earns it."""
    primary = trueup.AnswerConfidence(
        answer=[0, 1], confidence=[0.05, 0.6], outcomes=range(4)
    )
    reference = trueup.AnswerConfidence(
        answer=[0, 1], confidence=[0.25, 0.6], outcomes=range(4)
    )
    m = trueup.fit(primary, reference, trust="mean", cells="exact")

    free = m.randomised.certificate.reference_free_improvement
    assert free == pytest.approx((0.25 - 0.05) ** 2 / 2)
    assert m.randomised.certificate.guaranteed_improvement >= free - 1e-9


def test_two_equal_predictors_gain_exactly_nothing():
    with pytest.warns(trueup.errors.DoubtfulInputWarning, match="passed twice"):
        m = trueup.fit([0.1, 0.7], [0.1, 0.7], cells="exact")

    assert certified(m) == 0.0
    np.testing.assert_array_equal(m.apply([0.1, 0.7])[:, 1], [0.1, 0.7])


def test_the_assumption_sentence_names_rung_groups_and_budget():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(3), 40), rng.dirichlet(np.ones(3), 40)
    m = trueup.fit(
        p,
        q,
        trust="confidence",
        groups=np.arange(40) % 5,
        reference_error=0.02,
        cells="exact",
    )

    sentence = m.certificate.assumption
    assert (
        "for every truth under which the reference is top-label calibrated" in sentence
    )
    assert "within each of 5 groups, up to an error of 0.02" in sentence
    assert "40 items is taken as the population" in sentence
