"""Guarantees over errors, rungs and losses, and the theorem for a wrong reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
from audit.worlds import audited, scale_of
from bridge import deployed_losses, fitted, primary_of
from strategies import LOSS_OF_KIND, worlds

seeds = st.integers(0, 2**32 - 1)


def slack(world):
    return 1e-6 * (1 + np.abs(oracle.loss_vectors(world)).max())


@settings(max_examples=40)
@given(world=worlds())
def test_the_guarantee_is_the_optimum_and_the_worst_case_of_its_map(world):
    found = audited(world)
    best = found._optimum
    atoms = found._pair.problem.atoms
    worst = oracle.worst_case(world, deployed_losses(world, atoms, best.deployed))
    optimum = oracle.projection_optimum(world)

    assert found.guaranteed_improvement <= max(worst, 0) + 1e-8 * slack(world) / 1e-6
    assert found.guaranteed_improvement == pytest.approx(worst, abs=slack(world))
    assert found.guaranteed_improvement == pytest.approx(optimum, abs=slack(world))


@settings(max_examples=40)
@given(world=worlds())
def test_some_map_improves_exactly_where_there_is_a_contradiction(world):
    exact = oracle.min_total_error(world)
    assume(exact < 1e-9 or exact > world.reference_error + 1e-3)
    found = audited(world)

    if found.verdict == "contradiction":
        assert found.guaranteed_improvement > 0
    else:
        assert found.guaranteed_improvement <= slack(world) / 10


@settings(max_examples=25)
@given(world=worlds())
def test_the_curve_is_convex_falls_and_ends_at_the_break_even(world):
    curve = audited(world).guarantee_curve()
    values, errors = curve.guaranteed_improvement, curve.errors
    slopes = np.diff(values) / np.diff(errors)

    assert (values >= 0).all()
    assert (slopes <= 1e-9).all()
    assert (np.diff(slopes) >= -slack(world) / np.diff(errors).min()).all()
    beyond = errors > curve.break_even_reference_error + 1e-6
    assert (values[beyond] == 0).all()


@settings(max_examples=15)
@given(world=worlds())
def test_every_point_of_the_curve_is_the_optimum_at_its_error(world):
    errors = [0.0, 0.01, 0.1]
    curve = audited(world).guarantee_curve(errors)

    exact = [
        oracle.projection_optimum(replace(world, reference_error=error))
        for error in errors
    ]
    np.testing.assert_allclose(curve.guaranteed_improvement, exact, atol=slack(world))


@settings(max_examples=25)
@given(world=worlds(reference_kinds=("distribution", "answer-confidence")))
def test_no_rung_guarantees_less_than_the_one_before(world):
    low = world.reference_kind == "answer-confidence" and (
        world.reference[:, 1] < 1 / world.n_outcomes
    )
    assume(not np.any(low))
    found = audited(world)
    values = [row.guaranteed_improvement for row in found.rungs]

    assert (np.diff(values) >= -slack(world)).all()
    (own,) = [row for row in found.rungs if row.chosen]
    assert own.guaranteed_improvement == found.guaranteed_improvement


@settings(max_examples=25)
@given(world=worlds(primary_kinds=("distribution",), losses=("brier", "spherical")))
def test_the_worst_case_of_a_map_under_every_loss_is_exact(world):
    assume((world.weights > 0).all())
    better = fitted(world)
    rows = audited(world).other_losses(better)
    moved = better.apply(primary_of(world))

    positive = (world.primary > 0).all()
    names = [loss for loss in LOSS_OF_KIND["distribution"] if loss != "log" or positive]
    assert [row.loss for row in rows] == names
    assert [row.loss for row in rows if row.is_own] == [world.loss]
    for row in rows:
        judged = replace(world, loss=row.loss)
        worst = oracle.worst_case(judged, oracle.report_losses(judged, moved))
        assert row.worst_case_improvement == pytest.approx(worst, abs=slack(judged))
        assert row.worst_case_improvement <= row.best_improvement + slack(judged)


@settings(max_examples=60)
@given(world=worlds(), seed=seeds)
def test_the_bound_for_a_wrong_reference_holds_for_every_truth(world, seed):
    found = audited(world)
    pair, best = found._pair, found._optimum
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.full(world.n_outcomes, 0.5), pair.shape[0])
    gain = (found.loss.vectors(pair.problem.atoms) - best.deployed.losses)[
        pair.rows.owner
    ]
    with np.errstate(invalid="ignore"):
        true = float(pair.rows.weight @ (rates * gain).sum(axis=1))
    moments, share = pair.reference.moments, pair.reference.cell_share
    mass = pair.problem.node_mass(pair.rows, rates)
    errors = moments.residuals(mass) / share[moments.cell_of_row]
    excess = np.where(moments.equality, np.abs(errors), np.maximum(errors, 0))
    weight = share[moments.cell_of_row]

    size = 1e-9 * slack(world) / 1e-6
    assert found.imperfect_reference(errors).value <= true + size
    for norm, total in (("l1", weight @ excess), ("l2", np.sqrt(weight @ excess**2))):
        assert found.imperfect_reference(total, norm=norm).value <= true + size


@settings(max_examples=40)
@given(world=worlds(reference_errors=(0.0,)))
def test_without_error_the_bound_for_a_wrong_reference_is_the_guarantee(world):
    """Also where the reference says zero or one and outcomes are ruled out."""
    found = audited(world)
    base = found.imperfect_reference(0.0).value
    assume(np.isfinite(base))

    assert base == pytest.approx(found.guaranteed_improvement, abs=slack(world))


@settings(max_examples=30)
@given(
    world=worlds(primary_kinds=("distribution", "answer-confidence", "mean")),
    seed=seeds,
)
def test_the_compatible_set_of_the_figure_is_the_shadow_of_the_admissible_truths(
    world, seed
):
    found = audited(world)
    assume(len(found.joint.primary) > 1)
    figure = found.figure()
    atoms = oracle.atoms_of(world)
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi)
    direction = np.array([np.cos(angle), np.sin(angle)])

    cost = np.zeros((world.n_rows, world.n_outcomes))
    for axis, part in zip(figure.axes, direction, strict=True):
        cost += part * atom_share(found, world, atoms, axis)[:, None] * axis.function
    exact = -oracle._minimise(world, -cost, budget=world.reference_error).fun
    reached = (figure.compatible @ direction).max()
    assert reached == pytest.approx(exact, abs=1e-3 * scale_of(world))


def atom_share(found, world, atoms, axis):
    """Which part of the axis's primary report each row is."""
    stated = found.joint.primary.keys()[axis.atom]
    for first, share in zip(atoms.first, atoms.shares, strict=True):
        if np.allclose(world.primary[first], stated):
            return share
    raise AssertionError(axis)
