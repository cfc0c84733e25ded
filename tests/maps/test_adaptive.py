"""Maps on adaptive cells: formulas, honest certificates, sensible extremes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueup
from trueup import errors
from trueup.core.losses import BrierLoss, LogLoss
from trueup.core.moments import _TITLES, Trust
from trueup.core.reports import Distributions
from trueup.core.resolution import PrimaryCells, Resolution, equal_mass_edges
from trueup.solve.adaptive import project_linked
from trueup.solve.crossfit import fit_half
from trueup.solve.rounding import round_to_witness, upper_bound
from trueup.solve.sample import Sample

FINE = Resolution(
    least_items=1,
    certify_items=1,
    certify_bins=10_000,
    reference_bins=10_000,
    primary_bins=10_000,
    primary_items=1,
)
RUNGS = ("mean", "confidence", "answer-confidence", "distribution")


def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def world(n, k, seed, *, sharpness=3.5):
    """Truth, a calibrated weak reference on coarse signals, and a sharp primary.

    The reference is the exact mean of the truth given its signal, so it is calibrated.
    """
    rng = np.random.default_rng(seed)
    signal = rng.integers(0, 12, n)
    common = rng.normal(size=(12, k))[signal]
    own = rng.normal(size=(n, k))
    truth = softmax(common + own)
    cells = np.zeros((12, k))
    np.add.at(cells, signal, truth)
    reference = (cells / np.bincount(signal, minlength=12)[:, None].clip(1))[signal]
    return truth, reference, softmax(sharpness * (common + own))


def brier_gain(truth, old, new):
    """Exact improvement in Brier loss when the truth is known."""
    return float((((truth - old) ** 2) - ((truth - new) ** 2)).sum(axis=1).mean())


def sample_of(primary, reference):
    k = primary.shape[1]
    names = tuple(range(k))
    n = len(primary)
    return Sample(
        Distributions(primary, names),
        Distributions(reference, names),
        np.zeros(n, dtype=np.int64),
        0,
        np.ones(n),
    )


def trust_of(rung, error=0.0):
    return Trust(
        rung, caps=False, n_groups=0, reference_error=error, title=_TITLES[rung]
    )


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), loss=st.sampled_from([BrierLoss(), LogLoss()]))
def test_tilts_reproduce_the_exact_solution_when_cells_are_singletons(seed, loss):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.05, 0.2, 0.45, 0.7, 0.9], 60)
    q = rng.choice([0.3, 0.6, 0.8], 60)
    both = [np.column_stack([1 - x, x]) for x in (p, q)]
    linked = project_linked(sample_of(*both), loss, trust_of("distribution"), (), FINE)
    tilted = linked.tilt.deploy(loss, Distributions(both[0], (0, 1))).reports
    exact = trueup.fit(p, q, loss=loss.name, cells="exact").apply(p)

    np.testing.assert_allclose(tilted.probabilities, exact, atol=1e-5)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), rung=st.sampled_from(RUNGS))
def test_the_bound_holds_against_the_unrounded_primary(seed, rung):
    """The certificate on coarse cells is below the worst case on the exact ones."""
    _, reference, primary = world(150, 3, seed)
    half = fit_half(
        sample_of(primary, reference),
        BrierLoss(),
        trust_of(rung),
        assume=(),
        family=None,
        resolution=Resolution(),
    )
    new = half.tilt.deploy(BrierLoss(), Distributions(primary, (0, 1, 2))).reports
    worst = trueup.worst_case_improvement(
        new.probabilities, primary, reference, trust=rung, caps=None, cells="exact"
    )

    assert half.fitted <= float(worst) + 1e-7


@pytest.mark.parametrize("trust", RUNGS)
def test_the_map_of_permuted_outcomes_is_the_permuted_map(trust):
    _, reference, primary = world(600, 4, seed=3)
    order = np.array([2, 0, 3, 1])
    plain = trueup.fit(primary, reference, trust=trust, cells="auto")
    moved = trueup.fit(
        primary[:, order], reference[:, order], trust=trust, cells="auto"
    )

    np.testing.assert_allclose(
        moved.apply(primary[:, order]), plain.apply(primary)[:, order], atol=1e-6
    )


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_more_trust_and_less_error_never_lower_the_projected_distance(seed):
    _, reference, primary = world(200, 3, seed)
    sample = sample_of(primary, reference)

    def distance(rung, error):
        trust = trust_of(rung, error)
        linked = project_linked(sample, BrierLoss(), trust, (), Resolution())
        solved = linked.iterate.distributions
        witness = round_to_witness(linked.problem, linked.iterate.outcome_rates, solved)
        return upper_bound(linked.problem, BrierLoss(), witness)

    by_rung = [distance(rung, 0.0) for rung in RUNGS]
    by_error = [distance("distribution", error) for error in (0.0, 0.05, 0.2)]
    assert (np.diff(by_rung) >= -1e-7).all()
    assert (np.diff(by_error) <= 1e-7).all()


def test_the_guarantee_is_below_the_true_gain_in_fresh_worlds():
    for seed in range(12):
        truth, reference, primary = world(1500, 3, seed)
        m = trueup.fit(primary, reference, trust="distribution", cells="auto")
        gain = brier_gain(truth, primary, m.apply(primary))

        assert m.certificate.guaranteed_improvement <= gain + 1e-3
        assert m.certificate.lower <= m.certificate.certified


def test_a_sharp_primary_is_improved_with_a_guarantee():
    truth, reference, primary = world(4000, 3, seed=5)
    m = trueup.fit(primary, reference, trust="distribution", cells="auto")

    assert m.certificate.supported
    assert m.certificate.guaranteed_improvement > 0
    assert brier_gain(truth, primary, m.apply(primary)) > 0.01
    assert m.certificate.break_even_reference_error > 0
    assert m.certificate.n_cells > 1
    assert m.certificate.n0 >= 8


def test_unseen_reports_are_mapped_by_formula_without_a_warning():
    _, reference, primary = world(800, 3, seed=1)
    m = trueup.fit(primary[:400], reference[:400], cells="auto")
    new = m.apply(primary[400:])

    np.testing.assert_allclose(new.sum(axis=1), 1)
    assert m.apply(primary[400:401]).shape == (1, 3)


@pytest.mark.parametrize("assume", [(), ("informative",), ("informative", "stronger")])
@pytest.mark.parametrize("loss", ["brier", "log", "spherical"])
def test_a_saved_map_applies_and_certifies_the_same(tmp_path, loss, assume):
    _, reference, primary = world(500, 3, seed=2)
    groups = np.where(np.arange(500) % 2, "even", "odd")
    m = trueup.fit(
        primary, reference, loss=loss, assume=assume, groups=groups, cells="auto"
    )
    m.save(tmp_path / "map.json")
    loaded = trueup.load(tmp_path / "map.json")

    np.testing.assert_array_equal(loaded.apply(primary), m.apply(primary))
    before = m.recertify(primary, reference, groups=groups)
    after = loaded.recertify(primary, reference, groups=groups)
    assert before.certified == after.certified
    assert loaded.certificate.assumption == m.certificate.assumption


def test_recertifying_on_fresh_items_agrees_with_the_cross_fitted_estimate():
    _, reference, primary = world(6000, 3, seed=8)
    m = trueup.fit(primary[:3000], reference[:3000], trust="distribution", cells="auto")
    fresh = m.recertify(primary[3000:], reference[3000:])

    assert fresh.certified == pytest.approx(m.certificate.certified, abs=0.01)


def test_groups_never_seen_claim_nothing():
    _, reference, primary = world(400, 3, seed=4)
    m = trueup.fit(
        primary, reference, trust="distribution", groups=["a"] * 400, cells="auto"
    )
    unknown = m.recertify(primary, reference, groups=["b"] * 400)

    assert not unknown.supported
    with pytest.raises(errors.InvalidInputError, match="needs groups"):
        m.recertify(primary, reference)


def test_asserted_facts_are_printed_and_unknown_ones_refused():
    _, reference, primary = world(300, 3, seed=6)
    m = trueup.fit(
        primary,
        reference,
        trust="mean",
        assume="informative",
        reference_error=0.02,
        cells="auto",
    )

    assert "not evidence against itself ('informative')" in m.certificate.assumption
    with pytest.raises(errors.UnknownNameError, match="Did you mean 'informative'"):
        trueup.fit(primary, reference, assume="informativ", cells="auto")
    with pytest.raises(errors.InvalidInputError, match="assume needs adaptive cells"):
        trueup.fit(primary, reference, assume="informative", cells="exact")


def test_a_temperature_satisfies_what_is_asserted():
    _, reference, primary = world(2000, 3, seed=7)
    m = trueup.fit(
        primary,
        reference,
        trust="mean",
        assume="informative",
        family="temperature",
        cells="auto",
    )
    new = m.apply(primary)
    answers = reference.argmax(axis=1)

    # The row: mean probability given to the reference's answer at most its confidence.
    given = new[np.arange(2000), answers].mean()
    assert given <= reference.max(axis=1).mean() + 0.02
    assert (new.argmax(axis=1) == primary.argmax(axis=1)).all()


def test_a_temperature_needs_an_assertion():
    _, reference, primary = world(100, 3, seed=7)
    with pytest.raises(errors.InvalidInputError, match="assume='informative'"):
        trueup.fit(primary, reference, family="temperature", cells="auto")


def test_without_a_guarantee_the_map_is_marked_or_left_out():
    truth, _, _ = world(200, 3, seed=9)
    flat = np.full_like(truth, 1 / 3)
    offered = trueup.fit(truth, flat, cells="auto")
    left = trueup.fit(truth, flat, cells="auto", fallback="identity")

    assert not offered.certificate.supported
    assert offered.certificate.guaranteed_improvement == 0.0
    assert "no guarantee" in offered.certificate.reason
    np.testing.assert_array_equal(left.apply(truth), truth)


def test_too_few_items_say_so():
    _, reference, primary = world(12, 3, seed=0)
    m = trueup.fit(primary, reference, cells="auto")

    assert "too few" in m.certificate.reason
    assert "cells='exact'" in m.certificate.reason
    np.testing.assert_array_equal(m.apply(primary), primary)


def test_items_of_a_block_are_never_split():
    """Ten copies of each item: with blocks the lower limit knows they are not new."""
    _, reference, primary = world(200, 3, seed=10)
    many = {"trust": "distribution", "cells": "auto"}
    copies = np.repeat(np.arange(200), 10)
    alone = trueup.fit(primary[copies], reference[copies], **many)
    blocked = trueup.fit(primary[copies], reference[copies], blocks=copies, **many)

    width = [m.certificate.certified - m.certificate.lower for m in (alone, blocked)]
    assert width[1] > 2 * width[0]


def test_a_reference_without_skill_is_warned_about():
    _, _, primary = world(200, 3, seed=0)
    dull = np.tile([0.2, 0.3, 0.5], (200, 1))
    with pytest.warns(errors.DoubtfulInputWarning, match="little skill"):
        trueup.fit(primary, dull, assume="informative", cells="auto")


@pytest.mark.parametrize("n_items", [20, 50, 300])
@pytest.mark.parametrize("kind", ["hard labels", "two values", "zeros", "equal"])
@pytest.mark.parametrize("loss", ["brier", "spherical"])
def test_extreme_reports_behave(kind, n_items, loss):
    rng = np.random.default_rng(n_items)
    reference = rng.dirichlet(np.ones(3), n_items)
    primary = {
        "hard labels": np.eye(3)[rng.integers(0, 3, n_items)],
        "two values": np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])[
            rng.integers(0, 2, n_items)
        ],
        "zeros": rng.dirichlet([0.1, 0.1, 0.1], n_items).round(1),
        "equal": np.tile([0.5, 0.3, 0.2], (n_items, 1)),
    }[kind]
    primary = primary / primary.sum(axis=1, keepdims=True)
    m = trueup.fit(primary, reference, loss=loss, trust="distribution", cells="auto")
    new = m.apply(primary)

    assert np.isfinite(new).all()
    np.testing.assert_allclose(new.sum(axis=1), 1)
    assert np.isfinite(m.certificate.certified)


@pytest.mark.parametrize("prop", ["mean", "median", "expectile", "mode"])
def test_point_reports_on_adaptive_cells(prop):
    rng = np.random.default_rng(0)
    values = [0, 1, 2, 5]
    level = {"level": 0.3} if prop == "expectile" else {}
    choose = rng.choice(values, 200) if prop in ("median", "mode") else None
    stated = rng.uniform(0, 5, 200) if choose is None else choose
    primary = trueup.PointReport(value=stated, outcomes=values, property=prop, **level)
    m = trueup.fit(primary, rng.dirichlet(np.ones(4), 200), cells="auto")

    assert len(m.apply(primary)) == 200
    if prop == "mode":
        assert "answers are kept" in m.certificate.reason


@pytest.mark.parametrize("prop", ["mean", "median", "expectile"])
def test_point_references_on_adaptive_cells(prop):
    """A reference without answers: nothing about answers may be asked of it."""
    rng = np.random.default_rng(1)
    values, level = [0, 1, 2, 5], {"level": 0.3} if prop == "expectile" else {}
    stated = rng.choice(values, 300) if prop == "median" else rng.uniform(1, 4, 300)
    reference = trueup.PointReport(
        value=stated, outcomes=values, property=prop, **level
    )
    other = trueup.PointReport(
        value=stated[::-1], outcomes=values, property=prop, **level
    )
    for primary in (other, rng.dirichlet(np.ones(4), 300)):
        m = trueup.fit(primary, reference)

        assert len(m.apply(primary)) == 300
        assert np.isfinite(m.certificate.certified)


def test_answers_are_kept_and_confidence_moves():
    truth, reference, primary = world(3000, 4, seed=11)
    answers = trueup.AnswerConfidence.from_distributions(primary)
    m = trueup.fit(
        answers, reference, trust="answer-confidence", caps=True, cells="auto"
    )
    new = m.apply(answers)
    right = truth[np.arange(3000), answers.answer]

    assert (new.answer == answers.answer).all()
    before = np.mean((answers.confidence - right) ** 2)
    assert np.mean((new.confidence - right) ** 2) <= before + 1e-3


def test_equal_scores_never_straddle_an_edge():
    scores = np.array([0.1, 0.5, 0.5, 0.5, 0.5, 0.9])
    edges = equal_mass_edges(scores, np.ones(6), 3)

    assert not np.isin(edges, scores).any()
    place = np.searchsorted(edges, scores, side="right")
    assert len(np.unique(place[1:5])) == 1


def test_primary_cells_cover_answers_never_given():
    reports = Distributions(np.tile([0.7, 0.2, 0.1], (100, 1)), (0, 1, 2))
    cells = PrimaryCells.build(reports, np.full(100, 0.01), Resolution())
    other = Distributions(np.array([[0.1, 0.1, 0.8]]), (0, 1, 2))

    assert cells.assign(other)[0] < cells.n_cells


def test_warnings_are_not_raised_on_ordinary_input():
    _, reference, primary = world(300, 3, seed=12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trueup.fit(primary, reference, cells="auto").apply(primary)


def test_a_map_that_moves_nothing_does_not_decide_ties():
    """Slopes of 1e-12 once changed the answer of reports of exactly one half."""
    p = np.repeat([[0.5, 0.5], [0.2, 0.8]], 60, axis=0)
    m = trueup.fit(p, p[::-1].copy(), trust="mean", cells="auto")
    moved = np.abs(m.apply(p) - p).max()

    assert moved == 0 or moved > 1e-10
