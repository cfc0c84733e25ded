"""METHOD's numbers for audits, with the arithmetic visible."""

from __future__ import annotations

import numpy as np
import pytest

import trueup
from trueup.audit.audit import audit


class TestToy:
    """The paper's toy: primary .1 / .7 on halves, reference always .5."""

    a = audit([0.1, 0.7], [0.5, 0.5])

    def test_it_is_a_contradiction(self):
        assert self.a.verdict == "contradiction"
        assert self.a.is_mutually_calibrated is False
        assert self.a.witness is None

    def test_the_reference_would_have_to_be_off_by_a_tenth(self):
        # The primary says (.1 + .7) / 2 = .4 on average, the reference .5.
        assert self.a.break_even_reference_error == pytest.approx(0.1, abs=1e-9)

    def test_min_ece_is_that_tenth_however_it_is_shared(self):
        nearest = self.a.nearest

        assert self.a.min_ece == pytest.approx(0.1, abs=1e-9)
        total = nearest.reference_part + nearest.primary_part
        assert total == pytest.approx(0.1, abs=1e-8)

    def test_arbitrage_is_a_ninth(self):
        assert self.a.arbitrage.value == pytest.approx(1 / 9, abs=1e-9)
        self.a.arbitrage.check()

    def test_the_contracts_are_those_of_the_best_trade(self):
        """On .1 a zero-trade pays at most (1/9, -1), and all else hedges that.

        With +-5/9 from the reference the totals are equal for both outcomes:
        1/9 - 5/9 = -1 + 5/9 = -4/9 where the primary says .1, and 7/9 - 5/9 = -1/3 +
        5/9 = 2/9 where it says .7. On average (4/9 - 2/9) / 2 = 1/9 is left.
        """
        payoffs = {
            (one.who, round(one.report[1], 9)): one.payoffs
            for one in self.a.arbitrage.contracts
        }

        assert payoffs["primary", 0.1] == pytest.approx((1 / 9, -1), abs=1e-8)
        assert payoffs["primary", 0.7] == pytest.approx((7 / 9, -1 / 3), abs=1e-8)
        assert payoffs["reference", 0.5] == pytest.approx((-5 / 9, 5 / 9), abs=1e-8)

    def test_all_of_the_profit_comes_from_the_bet_that_is_at_its_limit(self):
        first, *others = self.a.arbitrage.contracts

        assert (first.who, first.report[1]) == ("primary", pytest.approx(0.1))
        assert first.contribution == pytest.approx(1 / 9, abs=1e-8)
        assert [one.contribution for one in others] == pytest.approx([0, 0], abs=1e-8)

    def test_the_largest_margin_uses_up_the_profit(self):
        # Everybody is offered a contract on every item: 1/9 / (1/9 + 2) = 1/19.
        contracts = self.a.arbitrage.contracts

        assert contracts.largest_margin == pytest.approx(1 / 19)
        assert contracts(margin=0.01).profit == pytest.approx(0.99 / 9 - 0.02)

    def test_the_guarantee_falls_as_the_square_of_what_is_left(self):
        # Both reports move up by .1 - error: 2 (.1 - error)^2 in summed Brier.
        curve = self.a.guarantee_curve([0, 0.025, 0.05, 0.1, 0.3])

        expected = [2 * (0.1 - e) ** 2 for e in (0, 0.025, 0.05, 0.1)] + [0]
        np.testing.assert_allclose(curve.guaranteed_improvement, expected, atol=1e-9)
        assert curve.break_even_reference_error == pytest.approx(0.1, abs=1e-9)

    def test_no_map_is_best_for_all_losses(self):
        rows = {row.loss: row for row in self.a.other_losses()}

        assert rows["brier"].worst_case_improvement == pytest.approx(0.02)
        assert rows["spherical"].worst_case_improvement < 0
        assert rows["spherical"].best_improvement > 0
        assert rows["log"].worst_case_improvement < rows["log"].best_improvement - 0.02

    def test_the_figure_is_the_papers(self):
        figure = self.a.figure()

        assert figure.primary == pytest.approx((0.7, 0.1))
        assert figure.projection == pytest.approx((0.8, 0.2), abs=1e-6)
        # The line x + y = 1: the mean of both rates is the reference's .5.
        assert len(figure.compatible) == 2
        np.testing.assert_allclose(figure.compatible.sum(axis=1), 1, atol=1e-6)


def test_a_budget_beyond_the_break_even_is_no_contradiction():
    a = audit([0.1, 0.7], [0.5, 0.5], reference_error=0.15)

    assert a.verdict == "none-found"
    # The witness has the primary's own rates, .4 on average.
    np.testing.assert_allclose(np.sort(a.witness[:, 1]), [0.1, 0.7], atol=1e-9)
    # What they say still contradicts; the budget only excuses it.
    assert a.arbitrage.value == pytest.approx(1 / 9, abs=1e-9)


def test_a_budget_at_the_break_even_is_within_tolerance():
    a = audit([0.1, 0.7], [0.5, 0.5], reference_error=0.1)

    assert a.verdict == "none-found"


class TestImperfectReference:
    """Section 8: reference constant .2, primary (1, .05), truth (1, 0)."""

    share = np.array([0.25, 0.75])
    a = audit([1.0, 0.05], [0.2, 0.2], sample_weight=share)

    def test_the_bound_is_below_the_true_change(self):
        # The truth is .25 on average, the reference's .2 off by .05.
        bound = self.a.imperfect_reference([0.05])

        assert bound.value <= -0.01625 + 1e-9
        assert bound.base == pytest.approx(self.a.guaranteed_improvement, abs=1e-8)

    def test_the_papers_bound_would_have_promised_a_gain(self):
        assert self.a.imperfect_reference([0.05]).value < 0.00196

    @pytest.mark.parametrize("norm", ["l1", "l2"])
    def test_one_cell_has_one_error_in_every_norm(self, norm):
        worst = self.a.imperfect_reference(0.05, norm=norm).value
        signed = [self.a.imperfect_reference([e]).value for e in (0.05, -0.05)]

        assert worst == pytest.approx(min(signed), abs=1e-9)


def test_at_rung_distribution_a_free_shift_is_used_and_nowhere_else():
    """Three outcomes; the norm of the multipliers is that of their shifted version."""
    p, q = np.array([[0.7, 0.2, 0.1]]), np.array([[0.4, 0.4, 0.2]])
    a = audit(p, q, trust="distribution")
    # One cell, and h = q: the map is the reference itself, lambda = 2 (q - p) + const.
    slopes = 2 * (q - p)[0]

    half_range = (slopes.max() - slopes.min()) / 2
    change = a.imperfect_reference(0.1).change
    assert change == pytest.approx(-0.1 * half_range, abs=1e-6)
    deviation = np.sqrt(((slopes - slopes.mean()) ** 2).sum())
    change = a.imperfect_reference(0.1, norm="l2").change
    assert change == pytest.approx(-0.1 * deviation, abs=1e-6)


class TestImpossibleConfidence:
    """An answer below 1/K cannot be the mode: no reference is needed to see it."""

    primary = trueup.AnswerConfidence(
        answer=["a", "b"], confidence=[0.1, 0.6], outcomes=list("abcd")
    )
    reference = trueup.AnswerConfidence(
        answer=["a", "b"], confidence=[0.4, 0.6], outcomes=list("abcd")
    )
    a = audit(primary, reference, trust="mean")

    def test_the_break_even_is_infinite(self):
        assert self.a.verdict == "contradiction"
        assert self.a.break_even_reference_error == np.inf
        assert "without any reference" in self.a.explanation
        assert "50.0% of the items" in self.a.explanation

    def test_the_primary_can_be_sold_a_loss_whatever_happens(self):
        (contract,) = [
            one for one in self.a.arbitrage.contracts if one.report == ("a", 0.1)
        ]

        assert contract.payoffs == pytest.approx((-1, -1, -1, -1), abs=1e-8)
        assert contract.terms == "pays 1.0000 whatever happens"
        self.a.arbitrage.check()

    def test_min_ece_is_the_missing_mass(self):
        # 1 - 4 * .1 is missing where (a, .1) is said, on half of the items; with one
        # cell for everything the reference can be right on average all the same.
        assert self.a.min_ece == pytest.approx(0.3, abs=1e-8)

    def test_part_of_the_guarantee_survives_any_reference_error(self):
        curve = self.a.guarantee_curve()
        least = (0.25 - 0.1) ** 2 / 2

        assert curve.break_even_reference_error == np.inf
        assert (curve.guaranteed_improvement >= least - 1e-8).all()
        assert curve.guaranteed_improvement[-1] == pytest.approx(least, abs=1e-7)


def test_two_outcomes_also_know_impossible_confidences():
    primary = trueup.AnswerConfidence(answer=[0], confidence=[0.3], outcomes=[0, 1])
    a = audit(primary, np.array([0.7]))

    assert a.break_even_reference_error == np.inf
    a.arbitrage.check()
    assert a.arbitrage.value == pytest.approx(1)


def test_groups_bring_a_contradiction_to_light():
    """Right on average, wrong in each group."""
    primary, reference = [0.2, 0.8], [0.5, 0.5]

    assert audit(primary, reference).verdict == "none-found"
    apart = audit(primary, reference, groups=["x", "y"])
    assert apart.verdict == "contradiction"
    # .3 off in each group.
    assert apart.break_even_reference_error == pytest.approx(0.3, abs=1e-9)
    texts = [one.text for one in apart.arbitrage.contracts if one.who == "reference"]
    assert sorted(texts) == ["P(1) = 0.5 in group x", "P(1) = 0.5 in group y"]
    apart.arbitrage.check()


def test_the_rungs_of_a_reference_are_those_it_has():
    answers = trueup.AnswerConfidence.from_distributions([[0.5, 0.3, 0.2]])
    mean = trueup.PointReport(value=[1.0], outcomes=[0, 1, 2], property="mean")
    p = np.array([[0.8, 0.1, 0.1]])

    names = [row.name for row in audit(p, np.array([[0.5, 0.3, 0.2]])).rungs]
    ladder = ["mean", "confidence", "answer-confidence", "answer-confidence with caps"]
    assert names == [*ladder, "distribution"]
    assert [row.name for row in audit(p, answers).rungs] == ladder
    assert [row.name for row in audit(p, mean, outcomes=[0, 1, 2]).rungs] == ["point"]
    assert [row.name for row in audit([0.1], [0.5]).rungs] == [
        *ladder[:3],
        "distribution",
    ]
