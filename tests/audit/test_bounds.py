"""Label-free bounds: exact, attained, and narrower with more trust."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import trueup
from bridge import arguments, fitted, primary_of, reference_of
from strategies import worlds
from trueup import errors
from trueup.audit.bounds import bounds, compare, worst_case_improvement

seeds = st.integers(0, 2**32 - 1)


def options(world):
    chosen = arguments(world) | {
        "groups": world.groups,
        "sample_weight": world.weights,
    }
    del chosen["loss"]
    return chosen


def loss_offset(world):
    """What the oracle's loss vectors leave out of the loss itself."""
    offsets = {"brier": 1.0, "zero-one": 1.0, "squared": world.numbers**2}
    return offsets.get(world.loss, 0.0)


@settings(max_examples=150)
@given(world=worlds())
def test_loss_bounds_are_the_linear_programmes(world):
    found = bounds(
        primary_of(world), reference_of(world), metric=world.loss, **options(world)
    )
    own = oracle.loss_vectors(world)
    lowest = oracle.worst_case(world, -loss_offset(world) * np.ones_like(own))
    highest = -oracle.worst_case(world, 2 * own + loss_offset(world))

    tolerance = 1e-9 if world.reference_kind != "mode" else 1e-7
    size = 1 + np.abs(own).max() + np.abs(np.max(loss_offset(world)))
    assert found.lower == pytest.approx(lowest, abs=tolerance * size)
    assert found.upper == pytest.approx(highest, abs=tolerance * size)


@given(world=worlds(primary_kinds=("distribution", "answer-confidence")), seed=seeds)
def test_accuracy_of_every_admissible_truth_lies_inside(world, seed):
    found = bounds(primary_of(world), reference_of(world), **options(world))
    truth = oracle.random_truth(world, np.random.default_rng(seed), "vertex")
    is_vector = world.primary_kind == "distribution"
    answers = oracle.as_answers(world.primary) if is_vector else world.primary
    right = truth[np.arange(world.n_rows), answers[:, 0].astype(int)]
    accuracy = float(world.weights @ right)

    assert found.lower - 1e-8 <= accuracy <= found.upper + 1e-8
    assert 0 <= found.lower <= found.upper + 1e-9 <= 1 + 2e-9


@settings(max_examples=25)
@given(world=worlds(reference_kinds=("distribution",), trusts=("distribution",)))
def test_bounds_shrink_as_trust_grows(world):
    rungs = ("mean", "confidence", "answer-confidence", "distribution")
    found = [
        bounds(
            primary_of(world),
            reference_of(world),
            metric=world.loss,
            **options(replace(world, trust=rung)),
        )
        for rung in rungs
    ]

    size = 1e-8 * (1 + np.abs(oracle.loss_vectors(world)).max())
    assert (np.diff([one.lower for one in found]) >= -size).all()
    assert (np.diff([one.upper for one in found]) <= size).all()


@given(world=worlds())
def test_worst_case_of_a_fitted_map_is_its_certificate(world):
    m = fitted(world)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TrueupWarning)
        used = world.weights > 0
        assume(used.all())
        found = worst_case_improvement(
            m,
            primary_of(world),
            reference_of(world),
            loss=world.loss,
            **options(world),
        )

    size = 1 + np.abs(oracle.loss_vectors(world)).max()
    assert float(found) == pytest.approx(
        m.certificate.guaranteed_improvement, abs=1e-7 * size
    )
    assert found.best >= float(found) - 1e-9 * size


@given(world=worlds(primary_kinds=("answer-confidence", "mode")))
def test_worst_case_of_a_draw_is_its_certificate(world):
    m = fitted(world)
    assume(m.randomised is not None and (world.weights > 0).all())
    found = worst_case_improvement(
        m.randomised, primary_of(world), reference_of(world), **options(world)
    )

    drawn = m.randomised.certificate
    assert float(found) == pytest.approx(drawn.guaranteed_improvement, abs=1e-7)


@given(world=worlds(), seed=seeds)
def test_comparing_is_antisymmetric(world, seed):
    order = np.random.default_rng(seed).permutation(world.n_rows)
    shuffled = primary_of(replace(world, primary=world.primary[order]))
    arguments_ = (primary_of(world), reference_of(world))
    one = compare(shuffled, arguments_[0], *arguments_, **options(world))
    other = compare(arguments_[0], shuffled, *arguments_, **options(world))

    size = 1e-8 * (1 + np.abs(oracle.loss_vectors(world)).max())
    assert one.lower == pytest.approx(-other.upper, abs=size)
    assert one.upper == pytest.approx(-other.lower, abs=size)


def test_new_reports_need_not_be_a_function_of_the_old():
    """Equal primary reports may be replaced differently, e.g. by the reference's."""
    p, q = np.array([0.5, 0.5]), np.array([0.2, 0.8])
    found = worst_case_improvement(q, p, q)

    # Copying a calibrated reference gains 2 * .3^2 under every admissible truth.
    assert float(found) == pytest.approx(0.18)
    assert found.best == pytest.approx(0.18)
    assert repr(found) == ("WorstCase(brier loss falls by at least 0.18, at most 0.18)")


def test_a_metric_can_be_a_function():
    p = trueup.AnswerConfidence(
        answer=["a", "b"], confidence=[0.9, 0.6], outcomes=["a", "b"]
    )

    def cost(report, outcome):
        answer, confidence = report
        return 0.0 if answer == outcome else 10 * confidence

    found = bounds(p, np.array([[0.7, 0.3], [0.5, 0.5]]), metric=cost)

    # P(wrong) is .3 on the first item and .5 on the second: (.3*9 + .5*6) / 2.
    assert found.lower == pytest.approx(2.85)
    assert found.upper == pytest.approx(2.85)
    assert found.metric == "cost"


def test_log_loss_of_an_exact_zero_has_no_upper_bound():
    found = bounds([1.0, 0.5], [0.9, 0.9], metric="log")

    assert found.upper == np.inf
    assert found.to_dict()["upper"] == "inf"


@pytest.mark.parametrize(
    ("metric", "match"),
    [
        ("acuracy", "Did you mean 'accuracy'"),
        ("squared", "does not fit"),
        (lambda report, outcome: float("nan"), "finite"),
    ],
)
def test_bad_metrics(metric, match):
    with pytest.raises(errors.TrueupError, match=match):
        bounds([0.1, 0.7], [0.5, 0.5], metric=metric)


def test_accuracy_needs_an_answer():
    mean = trueup.PointReport(value=[0.5, 1], outcomes=[0, 1, 2], property="mean")
    with pytest.raises(errors.InvalidInputError, match="metric='squared'"):
        bounds(mean, np.full((2, 3), 1 / 3))


def test_better_reports_of_another_kind_or_length():
    p = np.array([0.1, 0.7])
    with pytest.raises(errors.InvalidInputError, match="better has 3"):
        worst_case_improvement([0.1, 0.2, 0.3], p, p)
    answers = trueup.AnswerConfidence(answer=[0, 1], confidence=[1, 1], outcomes=[0, 1])
    with pytest.raises(errors.InvalidInputError, match="same kind"):
        worst_case_improvement(answers, p, p)


def test_the_result_prints_with_its_assumption():
    found = bounds([0.1, 0.7], [0.9, 0.9], outcomes=["<no>", "yes"])

    assert "accuracy: 0.4 to 0.6. Holds for every truth" in str(found)
    assert "<table>" in found._repr_html_()


def test_a_baseline_is_certified_like_any_map():
    from trueup.evaluate import TemperatureScaling

    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(3), 50), rng.dirichlet(np.ones(3), 50)
    scaled = TemperatureScaling.fit(p, rng.integers(0, 3, 50))
    by_map = worst_case_improvement(scaled, p, q)

    assert float(by_map) == pytest.approx(
        float(worst_case_improvement(scaled.apply(p), p, q)), abs=1e-12
    )
