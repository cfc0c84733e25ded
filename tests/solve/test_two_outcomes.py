"""Two outcomes: exact against the oracle, against the other engines, at the edges."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueup
from bridge import projected
from oracle import projection_optimum
from strategies import worlds
from trueup.core.losses import BrierLoss, LogLoss
from trueup.core.moments import choose_trust
from trueup.solve import lazily, native, two_outcomes
from trueup.solve.problem import ProjectionProblem, merged_rows
from trueup.solve.rounding import upper_bound
from trueup.testing import shared_error_predictors

RUNGS = ("mean", "confidence", "answer-confidence", "distribution")
LOSSES = ("brier", "log", "spherical", "confidence")
EXACT = 1e-13
"""What rounding may cost; the other engines stop at 1e-8."""


def best(projection):
    return projection.randomised or projection.deployed


def make_table(loss, n_items=400, *, step=0.05, seed=0, n_groups=1):
    pair = shared_error_predictors(n_items, 2, rng=seed)
    groups = np.arange(n_items) % n_groups if n_groups > 1 else None
    if loss == "confidence":
        read, grid = trueup.AnswerConfidence.from_distributions, trueup.Step(step)
        sides = [grid.merge(read(one)) for one in (pair.primary, pair.reference)]
        return trueup.JointTable.from_reports(*sides, groups=groups)
    least = 1e-3 if loss == "log" else 0.0
    sides = [
        np.clip((one[:, 1] / step).round() * step, least, 1 - least)
        for one in (pair.primary, pair.reference)
    ]
    return trueup.JointTable.from_counts(*sides, groups=groups)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("trust", RUNGS)
@pytest.mark.parametrize("error", [0.0, 0.01])
@pytest.mark.parametrize("n_groups", [1, 3])
def test_exact_and_no_worse_than_the_other_engines(loss, trust, error, n_groups):
    if (loss, trust) == ("confidence", "distribution"):
        trust = "answer-confidence"
    table = make_table(loss, n_groups=n_groups)
    found = trueup.project(table, loss=loss, trust=trust, reference_error=error)
    problem, chosen = found.problem, found.loss

    exact = lazily.solve(problem, chosen)
    other = native.solve(problem, chosen)

    assert "two outcomes" in exact.status
    assert "two outcomes" in found.certificate.engine
    upper = upper_bound(problem, chosen, exact.witness)
    assert abs(upper - exact.lower) <= EXACT
    assert exact.lower >= other.lower - EXACT
    assert upper <= upper_bound(problem, chosen, other.witness) + EXACT


two_outcome_worlds = worlds(
    primary_kinds=("distribution", "answer-confidence"),
    reference_kinds=("distribution", "answer-confidence", "mean"),
    max_outcomes=2,
    max_rows=8,
)


@settings(max_examples=150)
@given(world=two_outcome_worlds)
def test_the_optimum_is_the_oracles(world):
    """Reports of 0, 1 and equal ones, ties, single cells and groups are all drawn."""
    found = best(projected(world)).certificate

    assert "two outcomes" in found.engine
    assert found.gap <= found.tolerance
    # The oracle's interior point is the less exact of the two.
    optimum = projection_optimum(world)
    assert found.upper_bound == pytest.approx(optimum, abs=2e-6)


@settings(max_examples=100)
@given(world=two_outcome_worlds)
def test_only_rounding_is_left_between_the_bounds(world):
    found = best(projected(world)).certificate

    assert -EXACT <= found.gap <= 2e-11


def test_the_papers_toy():
    table = trueup.JointTable.from_counts([0.1, 0.7], [0.5, 0.5])

    found = trueup.project(table)

    assert np.sort(found.outcome_rates[:, 1]) == pytest.approx([0.2, 0.8], abs=1e-15)
    assert found.certificate.upper_bound == pytest.approx(0.02, abs=1e-15)
    assert found.certificate.guaranteed_improvement == pytest.approx(0.02, abs=1e-11)


def test_a_draw_between_two_answers():
    """METHOD section 4: h = (.9, .1), (.5, .5), drawn (.3, .7), optimum .085."""
    outcomes = ["A", "B"]
    primary = trueup.AnswerConfidence(
        answer=["A", "B"], confidence=[0.5, 0.6], outcomes=outcomes
    )
    reference = trueup.AnswerConfidence(
        answer=["A", "A"], confidence=[0.7, 0.7], outcomes=outcomes
    )

    found = trueup.project(trueup.JointTable.from_reports(primary, reference))

    drawn = found.randomised
    assert drawn.certificate.upper_bound == pytest.approx(0.085, abs=1e-14)
    assert drawn.deployment.weights[1] == pytest.approx([0.3, 0.7], abs=1e-12)
    assert found.certificate.upper_bound == pytest.approx(0.0625, abs=1e-14)


@pytest.mark.parametrize("loss", ["brier", "log", "spherical"])
@pytest.mark.parametrize("trust", RUNGS)
def test_degenerate_tables(loss, trust):
    """Certain reports, one cell, equal reports and a pair that hardly occurs."""
    least = 1e-9 if loss == "log" else 0.0
    cases = [
        ([0.3], [1.0], [1]),
        ([0.3, 0.6], [0.0, 1.0], [1, 1]),
        ([1 - least, least], [0.5, 0.5], [1, 1]),
        ([0.4, 0.4, 0.4], [0.2, 0.7, 0.9], [1, 2, 3]),
        ([0.1, 0.9, 0.1], [0.4, 0.4, 0.6], [1, 1e-12, 1e12]),
        ([0.5] * 3, [0.5] * 3, [1, 1, 1]),
        ([0.2, 0.8, 0.2, 0.8], [0.0, 1.0, 1.0, 0.0], [3, 1, 1, 2]),
    ]
    for primary, reference, counts in cases:
        table = trueup.JointTable.from_counts(primary, reference, counts=counts)
        found = trueup.project(table, loss=loss, trust=trust).certificate
        assert "two outcomes" in found.engine
        assert found.gap <= 1e-10


def linked_problem(table, trust, error, n_cells):
    """Several reports in one primary cell."""
    belief = choose_trust(table, trust, None, error)
    problem = ProjectionProblem.from_joint(table, belief)
    order = np.argsort(table.primary.probabilities[:, 1])
    cell = np.empty(len(order), dtype=np.int64)
    cell[order] = np.arange(len(order)) * n_cells // len(order)
    return linked_by(problem, cell)


def linked_by(problem, cell):
    linked = merged_rows(
        problem.pairs.node, cell[problem.pairs.owner], problem.pairs.weight
    )
    return replace(problem, cell_of_atom=cell, linked=linked, pairs=linked)


@pytest.mark.parametrize("loss", [BrierLoss(), LogLoss()], ids=["brier", "log"])
@pytest.mark.parametrize("trust", RUNGS)
@pytest.mark.parametrize("error", [0.0, 0.01])
def test_reports_that_share_a_cell(loss, trust, error):
    problem = linked_problem(make_table(loss.name), trust, error, 5)

    exact = two_outcomes.solve(problem, loss)
    other = native.solve(problem, loss)

    upper = upper_bound(problem, loss, exact.witness)
    assert abs(upper - exact.lower) <= EXACT
    assert exact.lower >= other.lower - EXACT
    assert upper <= upper_bound(problem, loss, other.witness) + EXACT


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), error=st.sampled_from([0.0, 0.003, 0.03]))
def test_slopes_and_multipliers_explain_every_row(seed, error):
    """Full rows where the reference's slope is the higher one, empty ones elsewhere."""
    table = make_table("brier", 200, seed=seed)
    found = trueup.project(table, trust="distribution", reference_error=error)
    problem = found.problem

    exact = two_outcomes.solve(problem, found.loss)

    rows = problem.linked
    tilt = exact.start.slopes[:, 1] - exact.start.slopes[:, 0]
    push = problem.moments.pull(exact.multipliers)
    ahead = (push[:, 1] - push[:, 0])[rows.node] - tilt[rows.owner]
    rate = exact.outcome_rates[:, 1]
    assert (rate[ahead > 1e-12] >= 1 - 1e-9).all()
    assert (rate[ahead < -1e-12] <= 1e-9).all()


def test_what_it_does_not_solve_goes_elsewhere():
    """A quantile reference gives inequalities; the general engine takes them."""
    primary = [0.2, 0.6, 0.9]
    reference = trueup.PointReport(
        value=[0, 1, 1], outcomes=[0, 1], property="quantile", level=0.5
    )
    table = trueup.JointTable.from_counts(primary, reference)

    found = trueup.project(table)

    assert "two outcomes" not in found.certificate.engine
    assert found.certificate.gap <= found.certificate.tolerance


def test_progress_is_told_and_may_interrupt():
    told = []
    table = make_table("brier")

    trueup.project(table, progress=told.append)

    assert len(told) == 1
    assert told[0].gap <= EXACT

    def interrupt(_):
        raise KeyboardInterrupt

    stopped = trueup.project(table, progress=interrupt).certificate
    assert any("interrupted" in note for note in stopped.notes)
    assert stopped.gap <= 1e-10


def test_a_default_fit_uses_it(monkeypatch):
    statuses = []

    def spied(*args, **options):
        found = two_outcomes.solve(*args, **options)
        statuses.append(found.status)
        return found

    monkeypatch.setattr(
        lazily,
        "two_outcomes",
        SimpleNamespace(applies=two_outcomes.applies, solve=spied),
    )
    pair = shared_error_predictors(600, 2, rng=3)

    trueup.fit(pair.primary, pair.reference)

    assert len(statuses) == 2
    assert all("two outcomes" in one for one in statuses)
