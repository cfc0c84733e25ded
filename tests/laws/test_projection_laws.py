"""The theorems of the method, over random worlds of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
from bridge import deployed_losses, projected
from strategies import ALL_LOSSES, worlds

seeds = st.integers(0, 2**32 - 1)


def parts(projection):
    """The deployed and, where there is one, the drawn reports."""
    both = [projection.deployed, projection.randomised]
    return [part for part in both if part is not None]


def losses_of(world, projection, part):
    return deployed_losses(world, projection.problem.atoms, part.deployment)


def size_of(world):
    return 1 + np.abs(oracle.loss_vectors(world)).max()


@pytest.mark.parametrize("loss", ALL_LOSSES)
@given(data=st.data(), seed=seeds)
def test_guarantee_holds_for_every_truth_the_reference_allows(loss, data, seed):
    """Vertices of the polytope included."""
    world = data.draw(worlds(losses=(loss,)))
    rng = np.random.default_rng(seed)
    projection = projected(world)

    for part in parts(projection):
        guaranteed = part.certificate.guaranteed_improvement
        deployed = losses_of(world, projection, part)
        for kind in ("vertex", "mixture"):
            truth = oracle.random_truth(world, rng, kind)
            gained = oracle.improvement(world, deployed, truth)
            assert gained >= guaranteed - 1e-8 * size_of(world)


@pytest.mark.parametrize("loss", ALL_LOSSES)
@given(data=st.data())
def test_certificate_is_the_exact_worst_case_of_the_deployed_map(loss, data):
    world = data.draw(worlds(losses=(loss,)))
    projection = projected(world)

    for part in parts(projection):
        worst = oracle.worst_case(world, losses_of(world, projection, part))
        guaranteed = part.certificate.guaranteed_improvement
        assert guaranteed <= worst + 1e-8 * size_of(world)
        assert guaranteed == pytest.approx(worst, abs=1e-6 * size_of(world))


@pytest.mark.parametrize("loss", ALL_LOSSES)
@given(data=st.data())
def test_certificate_oracle_and_feasible_value_are_in_order(loss, data):
    world = data.draw(worlds(losses=(loss,)))
    projection = projected(world)
    optimum = oracle.projection_optimum(world)
    best = parts(projection)[-1].certificate

    slack = 1e-6 * max(abs(optimum), size_of(world) * 1e-2)
    assert best.guaranteed_improvement <= optimum + slack
    assert optimum <= best.upper_bound + slack
    assert best.guaranteed_improvement == pytest.approx(
        optimum, rel=1e-6, abs=1e-7 * size_of(world)
    )
    assert best.gap <= best.tolerance


@pytest.mark.parametrize("loss", ALL_LOSSES)
@given(data=st.data())
def test_a_pair_is_mutually_calibrated_exactly_if_nothing_can_be_gained(loss, data):
    world = data.draw(worlds(losses=(loss,)))
    distance = oracle.min_total_error(world)
    assume(distance < 1e-9 or distance > world.reference_error + 1e-3)
    projection = projected(world)
    best = parts(projection)[-1].certificate

    if distance <= world.reference_error:
        assert best.upper_bound <= 1e-7 * size_of(world)
    else:
        assert best.guaranteed_improvement > 0


@given(world=worlds())
def test_the_witness_is_an_admissible_truth_that_fits_the_new_reports(world):
    projection = projected(world)
    problem = projection.problem

    for part in parts(projection):
        rates = part.witness.outcome_rates
        assert rates.min() >= 0
        np.testing.assert_allclose(rates.sum(axis=1), 1, atol=1e-12)
        mass = problem.node_mass(problem.linked, rates)
        spent = problem.moments.violations(mass).sum()
        assert spent <= world.reference_error + 1e-11


@given(world=worlds())
def test_the_drawn_map_is_never_worse_than_the_deterministic_one(world):
    projection = projected(world)
    assume(projection.randomised is not None)

    assert (
        projection.randomised.certificate.guaranteed_improvement
        >= projection.certificate.guaranteed_improvement - 1e-8 * size_of(world)
    )


@settings(max_examples=25)
@given(world=worlds())
def test_break_even_is_where_the_worst_case_of_the_map_reaches_zero(world):
    projection = projected(world)
    deployed = losses_of(world, projection, projection.deployed)
    exact = oracle.break_even(world, deployed)
    printed = projection.certificate.break_even_reference_error

    assert printed <= exact + 1e-7
    assert printed == pytest.approx(min(exact, 1e9), rel=1e-4, abs=1e-6)
