"""Many outcomes: merging those that a report does not tell apart changes nothing."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueup
from trueup.core.answer_losses import drawn_answers
from trueup.solve import fewer_outcomes, projection

RUNGS = [
    {"trust": "mean"},
    {"trust": "confidence"},
    {"trust": "answer-confidence", "caps": False},
    {"trust": "answer-confidence", "caps": True},
    {"trust": "answer-confidence", "caps": False, "reference_error": 0.02},
]


def make_table(n_items, n_outcomes, seed, *, n_answers=None, n_groups=1):
    """Answers of two predictors that often agree; some confidences are extreme."""
    rng = np.random.default_rng(seed)
    known = n_outcomes if n_answers is None else n_answers
    first = rng.integers(known, size=n_items)
    second = np.where(
        rng.random(n_items) < 0.5, first, rng.integers(known, size=n_items)
    )
    stated = rng.choice([0.3, 0.5, 0.7, 0.9, 1.0], size=n_items)
    low = max(0.1, 1.5 / n_outcomes)
    trusted = rng.choice([low, 0.2, 0.4, 0.8, 1.0], size=n_items)
    outcomes = list(range(n_outcomes))
    sides = [
        trueup.AnswerConfidence(answer=a, confidence=c, outcomes=outcomes)
        for a, c in ((first, stated), (second, trusted))
    ]
    groups = np.arange(n_items) % n_groups if n_groups > 1 else None
    return trueup.JointTable.from_reports(*sides, groups=groups)


def unmerged(monkeypatch, *args, **options):
    with monkeypatch.context() as patched:
        patched.setattr(projection, "with_fewer_outcomes", lambda *_: None)
        return trueup.project(*args, **options)


@pytest.mark.parametrize("options", RUNGS)
@pytest.mark.parametrize("n_groups", [1, 2])
def test_with_and_without_the_merge_the_optimum_is_the_same(
    options, n_groups, monkeypatch
):
    table = make_table(60, 30, seed=1, n_groups=n_groups)

    merged = trueup.project(table, **options)
    whole = unmerged(monkeypatch, table, **options)

    assert "of 30 outcomes" in merged.randomised.certificate.engine
    assert "of 30 outcomes" not in whole.randomised.certificate.engine
    ours, theirs = merged.randomised.certificate, whole.randomised.certificate
    assert ours.gap <= ours.tolerance
    assert ours.guaranteed_improvement <= theirs.upper_bound + 1e-12
    assert theirs.guaranteed_improvement <= ours.upper_bound + 1e-12
    assert merged.certificate.gap <= merged.certificate.tolerance


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), options=st.sampled_from(RUNGS[:4]))
def test_the_optimum_does_not_know_outcomes_that_nobody_names(seed, options):
    """The same answers among 40 outcomes and, by the general engine, all of them."""
    table = make_table(25, 40, seed, n_answers=20)
    merged = trueup.project(table, **options).randomised.certificate
    context = pytest.MonkeyPatch()
    whole = unmerged(context, table, **options).randomised.certificate

    assert merged.guaranteed_improvement <= whole.upper_bound + 1e-12
    assert whole.guaranteed_improvement <= merged.upper_bound + 1e-12


@pytest.mark.parametrize("options", RUNGS)
def test_what_is_returned_speaks_of_all_outcomes(options):
    table = make_table(60, 30, seed=2)
    found = trueup.project(table, **options)

    drawn, held = found.randomised, found.deployed
    rates = found.outcome_rates
    assert rates.shape[1] == held.distributions.shape[1] == 30
    np.testing.assert_allclose(rates.sum(axis=1), 1)
    if drawn.certificate.supported:
        np.testing.assert_allclose(drawn.deployment.weights.sum(axis=1), 1)
    stated = held.deployment.reports
    assert stated.outcomes == table.primary.outcomes
    assert ((stated.answer >= 0) & (stated.answer < 30)).all()
    # Losses are those of what is deployed, outcome by outcome.
    expected = np.repeat(stated.confidence[:, None] ** 2, 30, axis=1)
    expected[np.arange(len(stated)), stated.answer] -= 2 * stated.confidence
    np.testing.assert_allclose(held.deployment.losses, expected, atol=1e-12)


@pytest.mark.parametrize("caps", [False, True])
def test_the_witness_is_admissible_in_all_outcomes(caps):
    """Calibrated answers, and no outcome of a cell likelier than its answer."""
    table = make_table(80, 25, seed=3)
    found = trueup.project(table, trust="answer-confidence", caps=caps)
    rows, moments = found.problem.linked, found.problem.moments
    cell = moments.cell_of_node[rows.node]
    for part in (found.randomised, found.deployed):
        rates = part.witness.outcome_rates
        assert (rates >= 0).all()
        mass = np.zeros((moments.n_cells, 25))
        np.add.at(mass, cell, rows.weight[:, None] * rates)
        # Reference cells are its distinct reports, in the order of the table.
        reference = table.reference
        total = mass.sum(axis=1)
        answered = mass[np.arange(len(total)), reference.answer]
        np.testing.assert_allclose(answered, total * reference.confidence, atol=1e-12)
        if caps:
            assert (mass.max(axis=1) <= answered + 1e-12).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), tied=st.booleans())
def test_a_column_of_several_answers_is_drawn_like_them(seed, tied):
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=(20, 5)).round(1 if tied else 9)
    members = rng.integers(1, 4, size=5)

    merged = drawn_answers(slopes, np.tile(members, (20, 1)).astype(float))
    whole = drawn_answers(np.repeat(slopes, members, axis=1))

    np.testing.assert_allclose(merged[0], whole[0], atol=1e-10)
    np.testing.assert_allclose(
        np.repeat(merged[1], members, axis=1), whole[1], atol=1e-10
    )


def test_reports_from_merged_projections_keep_their_word():
    table = make_table(60, 30, seed=4)
    merged = trueup.project(table, caps=False)
    worst = trueup.worst_case_improvement(
        merged.deployed.deployment.reports.take(table.primary_index),
        table.primary.take(table.primary_index),
        table.reference.take(table.reference_index),
        trust="answer-confidence",
        caps=False,
        sample_weight=table.counts,
        cells="exact",
    )

    assert float(worst) >= merged.certificate.guaranteed_improvement - 1e-9


def test_where_bounds_do_not_meet_all_outcomes_are_taken(monkeypatch):
    table = make_table(60, 30, seed=5)
    monkeypatch.setattr(fewer_outcomes.FewerOutcomes, "upper_bound", lambda *_: 1.0)

    found = trueup.project(table, caps=False)

    assert found.deployed.fewer is None
    assert found.certificate.gap <= found.certificate.tolerance


def test_memory_does_not_grow_with_the_number_of_outcomes():
    peaks = []
    for n_outcomes in (100, 1_000):
        table = make_table(400, n_outcomes, seed=6, n_answers=50)
        tracemalloc.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trueup.project(table, caps=False)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[1] < 1.3 * peaks[0]
