"""Our search for trades against independent programmes, at every rung and by hand.

Small tables are left to Clarabel; here the search is made to take all of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

import oracle
import trueup
from audit import programmes
from audit.worlds import audited, scale_of
from strategies import worlds
from trueup.audit import programme
from trueup.audit.arbitrage import _BoundedPayoffs
from trueup.audit.audit import audit
from trueup.audit.mutual import _LeastError, _LeastReferenceError
from trueup.audit.reach import most_earned
from trueup.core.losses import ConfidenceLoss
from trueup.solve.problem import ProjectionProblem
from trueup.solve.worst_case import break_even_within
from trueup.testing import shared_error_predictors

QUESTIONS = (_BoundedPayoffs, _LeastError, _LeastReferenceError)


@pytest.fixture(autouse=True, scope="module")
def _every_table_is_large():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programme, "SMALL", -1)
        yield


def answers(n_items, *, caps, step=0.05, rng=3):
    made = shared_error_predictors(n_items, 4, rng=rng)
    read = trueup.AnswerConfidence.from_distributions
    primary, reference = read(made.primary), read(made.reference)
    cells = trueup.Step(step)
    return audit(primary, reference, cells=cells, trust="answer-confidence", caps=caps)


@settings(max_examples=150)
@given(world=worlds())
def test_min_ece_is_that_of_the_linear_program(world):
    found, scale = audited(world).nearest, scale_of(world)

    assert found.engine.startswith("native")
    assert 0 <= found.gap <= 1e-9 * scale
    exact = programmes.min_ece(world)
    assert found.lower == pytest.approx(exact, abs=2e-9 * scale)


@settings(max_examples=150)
@given(world=worlds())
def test_arbitrage_is_that_of_the_linear_program(world):
    found, exact = audited(world).arbitrage, programmes.arbitrage(world)

    found.check()
    assert found.engine.startswith("native")
    assert found.value == pytest.approx(exact, abs=2e-7)
    assert found.upper >= exact - 1e-9


@settings(max_examples=150)
@given(world=worlds())
def test_the_break_even_of_the_pair_is_that_of_the_linear_program(world):
    found = audited(world)._break_even
    assume(np.isfinite(found.upper))
    scale = scale_of(world)

    assert found.engine.startswith("native")
    assert 0 <= found.upper - found.lower <= 1e-9 * scale
    exact = oracle.min_total_error(world)
    assert found.lower == pytest.approx(exact, abs=1e-8 * scale)


@settings(max_examples=60)
@given(world=worlds())
def test_no_rates_bound_arbitrage_from_below(world):
    """Under any truth trades with each predictor alone earn at least as much."""
    found = audited(world)
    rates = np.random.default_rng(1).dirichlet(
        np.ones(world.n_outcomes), found._pair.shape[0]
    )

    assert most_earned(found._pair, rates) >= programmes.arbitrage(world) - 1e-9


@pytest.mark.parametrize("rung", ["mean", "confidence", "answer-confidence", None])
@pytest.mark.parametrize("ask", QUESTIONS)
def test_both_engines_agree_on_tables_of_distributions(ask, rung):
    made = shared_error_predictors(1_500, 4, rng=7)
    groups = np.arange(1_500) % 2
    found = audit(
        made.primary,
        made.reference,
        cells=trueup.Step(0.25),
        trust=rung or "distribution",
        groups=groups,
    )
    question = ask(found._pair)
    own, other = question.solve(), question.judge(question._by_clarabel())

    assert own.trade.engine.startswith("native")
    assert own.gap <= 1e-9
    assert own.lower == pytest.approx(other.lower, abs=1e-8)
    assert own.upper == pytest.approx(other.upper, abs=1e-8)


@pytest.mark.parametrize("caps", [True, False])
@pytest.mark.parametrize("ask", QUESTIONS)
def test_both_engines_agree_on_tables_of_answers(ask, caps):
    question = ask(answers(3_000, caps=caps)._pair)
    own, other = question.solve(), question.judge(question._by_clarabel())

    assert own.gap <= 1e-9
    assert own.lower == pytest.approx(other.lower, abs=1e-8)
    assert own.lower > 1e-3


def test_the_toy():
    """The paper's: arbitrage 1/9, MinECE and the pair's break-even 1/10."""
    a = audit([0.1, 0.7], [0.5, 0.5])

    assert a.arbitrage.value == pytest.approx(1 / 9, abs=1e-9)
    assert a.arbitrage.upper == pytest.approx(1 / 9, abs=1e-9)
    assert a.min_ece == pytest.approx(0.1, abs=1e-9)
    assert a.break_even_reference_error == pytest.approx(0.1, abs=1e-9)


def test_a_mutually_calibrated_pair_leaves_nothing():
    """Both report the mean truth, the one over columns, the other over rows."""
    truth = np.random.default_rng(5).dirichlet(np.ones(3), (30, 20))
    row, column = np.divmod(np.arange(600), 20)
    reference, primary = truth.mean(axis=1)[row], truth.mean(axis=0)[column]
    a = audit(primary, reference, trust="distribution")

    assert a.min_ece == a.arbitrage.value == 0
    assert a.break_even_reference_error == 0
    assert a.nearest.gap <= 1e-9
    assert a.arbitrage.gap <= 1e-9
    assert a.verdict == "none-found"


def test_one_report_each():
    # Total variation between the two; against the reference alone its double.
    a = audit(
        np.array([[0.7, 0.2, 0.1]]), np.array([[0.4, 0.4, 0.2]]), trust="distribution"
    )

    assert a.min_ece == pytest.approx(0.3, abs=1e-9)
    assert a.break_even_reference_error == pytest.approx(0.6, abs=1e-9)
    assert a.arbitrage.gap <= 1e-9
    a.arbitrage.check()


def test_outcomes_that_are_ruled_out():
    """The reference rules the last outcome out, the primary half expects it."""
    p, q = np.array([[0.5, 0.0, 0.5]]), np.array([[0.5, 0.5, 0.0]])
    a = audit(p, q, trust="distribution")

    assert a.min_ece == pytest.approx(0.5, abs=1e-9)
    assert a.break_even_reference_error == pytest.approx(1.0, abs=1e-9)
    # (-1/3, 1/3, -1) and (-1/3, -1, 1/3): both pay 1 where they see no chance, and
    # together they pay 2/3 whatever happens.
    assert a.arbitrage.value == pytest.approx(2 / 3, abs=1e-9)
    a.arbitrage.check()


def test_a_search_that_gives_up_is_taken_over(monkeypatch):
    a = answers(600, caps=True)
    exact = a.min_ece
    monkeypatch.setattr("trueup.audit.search._MOST_PRODUCTS", 0)
    again = answers(600, caps=True)

    assert again.min_ece == pytest.approx(exact, abs=1e-8)
    assert again.nearest.engine.startswith("clarabel")
    assert "(after native" in again.nearest.engine


def test_outcomes_may_be_worth_thousands():
    rng = np.random.default_rng(2)
    values = [0.0, 1000.0, 5000.0]

    def means(scale):
        stated = np.round(rng.dirichlet([1, 1, 1], 60) @ values, -2) * scale
        outcomes = [scale * v for v in values]
        return trueup.PointReport(value=stated, outcomes=outcomes, property="mean")

    rng = np.random.default_rng(2)
    large = audit(means(1.0), means(1.0))
    rng = np.random.default_rng(2)
    small = audit(means(1e-3), means(1e-3))

    assert large.nearest.engine.startswith("native")
    assert large.min_ece == pytest.approx(1e3 * small.min_ece, abs=1e-5)
    assert large.arbitrage.value == pytest.approx(small.arbitrage.value, abs=1e-8)


@settings(max_examples=60)
@given(world=worlds(primary_kinds=("answer-confidence",)))
def test_the_break_even_of_a_map_lies_between_two_proofs(world):
    found = audited(world)
    loss = ConfidenceLoss()
    problem: ProjectionProblem = found._pair.problem
    primary = loss.vectors(problem.atoms)
    rng = np.random.default_rng(0)
    changed = replace(
        loss.identity(problem.atoms), losses=primary + rng.normal(size=primary.shape)
    )
    lower, upper = break_even_within(problem, primary, changed)

    assert lower <= upper
    if np.isfinite(upper):
        assert upper - lower <= 1e-8
    else:
        nothing_is_lost = (primary - changed.losses).min() > 0
        no_programme = problem.moments.form not in {"single", "vector", "capped"}
        assert lower == np.inf or no_programme or nothing_is_lost
