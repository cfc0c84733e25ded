"""Our engine against Clarabel, begun anew, watched and interrupted."""

from __future__ import annotations

import numpy as np
import pytest

import trueup
from trueup.solve import native
from trueup.testing import shared_error_predictors

CASES = [
    (loss, options)
    for loss in ("brier", "log", "spherical", "confidence")
    for options in (
        {"trust": "mean"},
        {"trust": "confidence"},
        {"trust": "answer-confidence"},
        {"trust": "answer-confidence", "caps": True},
        {"trust": "answer-confidence", "reference_error": 0.02},
        {"trust": "answer-confidence", "caps": True, "reference_error": 0.02},
        {"trust": "distribution"},
        {"trust": "distribution", "reference_error": 0.05},
    )
    if (loss, options["trust"]) != ("confidence", "distribution")
]


def make_table(loss="brier", n_items=150, n_outcomes=3, *, seed=0, n_groups=1):
    """A small table of predictors that share errors, on a grid."""
    pair = shared_error_predictors(n_items, n_outcomes, rng=seed)
    sides = pair.primary, pair.reference
    if loss == "confidence":
        read = trueup.AnswerConfidence.from_distributions
        step = trueup.Step(0.05)
        sides = [step.merge(read(one)) for one in sides]
        groups = np.arange(n_items) % n_groups if n_groups > 1 else None
        return trueup.JointTable.from_reports(*sides, groups=groups)
    primary, reference = (np.maximum((10 * one).round(), 0.3) for one in sides)
    primary /= primary.sum(axis=1, keepdims=True)
    reference /= reference.sum(axis=1, keepdims=True)
    groups = np.arange(n_items) % n_groups if n_groups > 1 else None
    return trueup.JointTable.from_counts(primary, reference, groups=groups)


def with_clarabel(monkeypatch, *args, **options):
    with monkeypatch.context() as patched:
        patched.setattr(native, "knows", lambda _: False)
        return trueup.project(*args, **options)


@pytest.mark.parametrize(("loss", "options"), CASES)
@pytest.mark.parametrize("n_groups", [1, 2])
def test_both_engines_prove_the_same(loss, options, n_groups, monkeypatch):
    table = make_table(loss, n_groups=n_groups)

    ours = trueup.project(table, loss=loss, **options).deployed.certificate
    theirs = with_clarabel(monkeypatch, table, loss=loss, **options)
    theirs = theirs.deployed.certificate

    wanted = max(ours.tolerance, theirs.tolerance)
    assert "clarabel" not in ours.engine.lower()
    assert "clarabel" in theirs.engine.lower()
    assert ours.gap <= ours.tolerance
    assert ours.guaranteed_improvement == pytest.approx(
        theirs.guaranteed_improvement, abs=2 * wanted
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"reference_error": 0.01},
        {"trust": "confidence"},
        {"caps": True},
    ],
)
def test_a_start_changes_nothing_but_the_time(changed):
    table = make_table()
    options = {"trust": "answer-confidence"}
    first = trueup.project(table, **options)

    cold = trueup.project(table, **(options | changed)).deployed.certificate
    warm = trueup.project(table, start=first, **(options | changed))
    warm = warm.deployed.certificate

    assert warm.gap <= warm.tolerance
    assert warm.guaranteed_improvement == pytest.approx(
        cold.guaranteed_improvement, abs=2 * cold.tolerance
    )


def test_a_start_from_fewer_items_serves_more():
    few, many = make_table(n_items=140), make_table(n_items=150)
    first = trueup.project(few, trust="distribution")

    cold = trueup.project(many, trust="distribution").deployed.certificate
    warm = trueup.project(many, trust="distribution", start=first).deployed.certificate

    assert warm.guaranteed_improvement == pytest.approx(
        cold.guaranteed_improvement, abs=2 * cold.tolerance
    )


def test_progress_tells_bounds_that_close_in():
    told = []

    found = trueup.project(make_table(), progress=told.append).deployed.certificate

    assert [one.iteration for one in told] == list(range(1, len(told) + 1))
    assert told
    optimum = found.guaranteed_improvement
    assert all(one.lower <= optimum + 2 * found.tolerance for one in told)
    assert all(one.upper >= optimum - 2 * found.tolerance for one in told)


def test_an_interrupted_solve_gives_what_is_certified_so_far():
    table = make_table(n_items=400, n_outcomes=4)

    def interrupt(progress):
        if progress.iteration >= 2:
            raise KeyboardInterrupt

    whole = trueup.project(table, trust="distribution").deployed.certificate
    part = trueup.project(table, trust="distribution", progress=interrupt)
    proof = part.deployed.certificate

    assert proof.guaranteed_improvement <= whole.upper_bound
    assert any("interrupted" in note for note in proof.notes)
    worst = trueup.worst_case_improvement(
        part.deployed.deployment.reports.probabilities[table.primary_index],
        table.primary.probabilities[table.primary_index],
        table.reference.probabilities[table.reference_index],
        loss="brier",
        trust="distribution",
        sample_weight=table.counts,
        cells="exact",
    )
    assert float(worst) >= proof.guaranteed_improvement - 1e-9


@pytest.mark.parametrize("trust", ["mean", "answer-confidence", "distribution"])
def test_a_generator_of_ones_own_is_the_loss_it_generates(trust):
    mine = trueup.GeneratorLoss(lambda p: (p**2).sum(axis=1), lambda p: 2 * p)
    table = make_table(n_items=60)

    own = trueup.project(table, loss=mine, trust=trust).deployed.certificate
    known = trueup.project(table, loss="brier", trust=trust).deployed.certificate

    assert own.gap <= own.tolerance
    assert own.guaranteed_improvement == pytest.approx(
        known.guaranteed_improvement, abs=2 * known.tolerance
    )


def test_a_generator_of_ones_own_is_watched_begun_anew_and_interrupted():
    mine = trueup.GeneratorLoss(lambda p: (p**4).sum(axis=1), lambda p: 4 * p**3)
    table, told = make_table(n_items=60), []

    cold = trueup.project(table, loss=mine, progress=told.append)
    again = []
    warm = trueup.project(table, loss=mine, start=cold, progress=again.append)

    proof = cold.deployed.certificate
    assert told[-1].gap <= proof.tolerance
    assert len(again) < len(told)
    assert warm.deployed.certificate.guaranteed_improvement == pytest.approx(
        proof.guaranteed_improvement, abs=2 * proof.tolerance
    )

    def interrupt(_):
        raise KeyboardInterrupt

    part = trueup.project(table, loss=mine, progress=interrupt).deployed.certificate
    assert part.guaranteed_improvement <= proof.upper_bound
    assert any("interrupted" in note for note in part.notes)
