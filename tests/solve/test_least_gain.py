"""The exact cell programmes against linear programmes through HiGHS."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from bridge import arguments, joint_of, primary_of
from strategies import worlds
from trueup.core.losses import Deployment
from trueup.core.moments import choose_trust
from trueup.core.pairing import parse_reports
from trueup.maps.lookup import match
from trueup.solve.exact import FORMS
from trueup.solve.problem import ProjectionProblem
from trueup.solve.worst_case import _by_linear_programme, break_even, least_gain


def problem_of(world):
    joint = joint_of(world)
    options = arguments(world)
    del options["loss"]
    return ProjectionProblem.from_joint(joint, choose_trust(joint, **options))


def random_losses(problem, world, seed):
    """Losses of an arbitrary map, as (atoms, K) and as the oracle's (N, K)."""
    rng = np.random.default_rng(seed)
    shape = (len(problem.atoms), world.n_outcomes)
    losses = rng.normal(size=shape) if seed % 2 else rng.integers(-2, 3, shape) / 2.0
    found = match(parse_reports(primary_of(world), "primary", None), problem.atoms)
    own = oracle.loss_vectors(world)
    rows = np.where(found.is_exact[:, None], losses[found.index], own)
    return losses, rows


def own_losses(problem, world):
    found = match(parse_reports(primary_of(world), "primary", None), problem.atoms)
    own = np.zeros((len(problem.atoms), world.n_outcomes))
    own[found.index[found.is_exact]] = oracle.loss_vectors(world)[found.is_exact]
    return own


@settings(max_examples=300)
@given(world=worlds(), seed=st.integers(0, 10**6))
def test_least_gain_is_the_linear_programme(world, seed):
    problem = problem_of(world)
    losses, rows = random_losses(problem, world, seed)
    primary = own_losses(problem, world)
    bound, _ = least_gain(
        problem.moments,
        problem.pairs,
        (primary - losses)[problem.pairs.owner],
        reference_error=world.reference_error,
        size=float(np.abs(primary).max()),
    )
    exact = oracle.worst_case(world, rows)

    tolerance = 1e-9 if problem.moments.form in FORMS else 1e-7
    size = 1 + np.abs(primary).max()
    assert bound.at(world.reference_error) <= exact + 1e-9 * size
    assert bound.at(world.reference_error) == pytest.approx(exact, abs=tolerance * size)


@settings(max_examples=150)
@given(world=worlds(reference_errors=(0.0,)), seed=st.integers(0, 10**6))
def test_break_even_is_the_linear_programme(world, seed):
    problem = problem_of(world)
    losses, rows = random_losses(problem, world, seed)
    # Shift so that about half of these arbitrary maps are guaranteed to gain.
    worst = oracle.worst_case(world, rows)
    shift = min(worst, 0) - 0.1 * (seed % 3)
    losses, rows = losses + shift, rows + shift
    primary = own_losses(problem, world)
    printed = break_even(problem, primary, Deployment(losses, None))
    exact = oracle.break_even(world, rows)

    if math.isinf(exact):
        assert printed > 1e3 or math.isinf(printed)
    else:
        assert printed <= exact + 1e-8
        assert printed == pytest.approx(exact, rel=1e-5, abs=1e-7)


@given(world=worlds(), seed=st.integers(0, 10**6))
def test_the_generic_programme_agrees_with_the_exact_one(world, seed):
    problem = problem_of(world)
    losses, _ = random_losses(problem, world, seed)
    gain = (own_losses(problem, world) - losses)[problem.pairs.owner]
    if world.reference_error == 0:
        gain = np.where(problem.moments.allowed[problem.pairs.node], gain, np.inf)
    rows, error = problem.pairs, world.reference_error
    generic = _by_linear_programme(problem.moments, rows, gain, error)

    assert generic.shape == (problem.moments.n_rows,)
    assert np.isfinite(generic).all()
