"""The interior-point method: its factorisation, and against the proximal method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueup
from solve.test_native import CASES, make_table
from trueup.core.losses import get_loss
from trueup.core.moments import choose_trust
from trueup.solve import interior
from trueup.solve._dense import TILE, factorise_core, solve_core
from trueup.solve._elimination import factorise, solve_factorised
from trueup.solve._jit import entry
from trueup.solve.elimination import meeting, plan_elimination, stride_of
from trueup.solve.interior import InteriorRun, plan_for
from trueup.solve.layout import lay_out
from trueup.solve.problem import ProjectionProblem
from trueup.solve.proximal import ProximalRun


@entry
def solved(matrix, n, tiles, x):
    factorise_core(matrix, n, tiles)
    solve_core(tiles, n, x)


@entry
def solved_in_blocks(plan, matrix, tiles, x):
    factorise(plan, matrix)
    factorise_core(matrix[plan.core :], plan.n_core, tiles)
    solve_factorised(plan, matrix, tiles, x)


def room_for(n):
    n_tiles = -(-n // TILE)
    return np.empty((n_tiles * (n_tiles + 1) // 2, TILE, TILE))


@pytest.mark.parametrize("n", [1, 5, TILE, TILE + 1, 3 * TILE, 200])
def test_tiles_solve_what_numpy_solves(n):
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n))
    matrix, x = root @ root.T + np.eye(n), rng.normal(size=n)

    found = x.copy()
    solved(matrix.ravel(), n, room_for(n), found)

    np.testing.assert_allclose(found, np.linalg.solve(matrix, x), rtol=1e-9, atol=1e-9)


def test_directions_without_curvature_are_left_alone():
    matrix = np.zeros((3, 3))
    matrix[0, 0] = 4.0

    x = np.array([8.0, 1.0, 0.0])
    solved(matrix.ravel(), 3, room_for(3), x)

    np.testing.assert_allclose(x, [2.0, 0.0, 0.0], atol=1e-90)


@settings(max_examples=60)
@given(
    n_left=st.integers(1, 12),
    n_right=st.integers(1, 12),
    density=st.floats(0.05, 1.0),
    seed=st.integers(0, 10**6),
)
def test_eliminating_blocks_solves_what_numpy_solves(n_left, n_right, density, seed):
    """Blocks of a bipartite pattern, whatever order and core the plan chooses."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 5, n_left + n_right)
    a, b = np.nonzero(rng.random((n_left, n_right)) < density)
    pairs = a, n_left + b
    plan = plan_elimination(size, pairs, 10**6)
    whole, flat = matrix_of(plan, size, pairs, rng)

    x = rng.normal(size=len(whole))
    found = x.copy()
    solved_in_blocks(plan, flat, room_for(plan.n_core), found)

    np.testing.assert_allclose(found, np.linalg.solve(whole, x), rtol=1e-8, atol=1e-8)


def matrix_of(plan, size, pairs, rng):
    """A random positive definite matrix of the pattern, dense and as planned."""
    n, first = size.sum(), np.cumsum(size) - size
    whole, flat = np.zeros((n, n)), np.zeros(plan.n_entries)
    address, along, across = meeting(plan, *pairs)
    for i, (left, right) in enumerate(zip(*pairs, strict=True)):
        block = rng.normal(size=(size[left], size[right]))
        rows = first[left] + np.arange(size[left])[:, None]
        columns = first[right] + np.arange(size[right])
        whole[rows, columns] = block
        whole[columns[:, None], rows.T] = block.T
        k, m = np.indices(block.shape)
        flat[address[i] + k * along[i] + m * across[i]] = block
    diagonal = np.abs(whole).sum(axis=1) + 1.0
    whole[np.arange(n), np.arange(n)] = diagonal
    stride = stride_of(plan)
    for block in range(len(size)):
        own = np.arange(size[block])
        at = plan.pivot[block] + own * (stride[block] + 1)
        flat[at] = diagonal[first[block] + own]
    return whole, flat


def test_a_core_that_would_be_large_has_no_plan():
    everything = tuple(np.indices((30, 30)).reshape(2, -1))
    pairs = everything[0], 30 + everything[1]

    assert plan_elimination(np.full(60, 4), pairs, 100) is None
    assert plan_elimination(np.full(60, 4), pairs, 400) is not None


SMOOTH = [case for case in CASES if case[0] in {"brier", "log"}]


@pytest.mark.parametrize(("loss", "options"), SMOOTH)
def test_both_methods_prove_the_same(loss, options):
    chosen = get_loss(loss, make_table(loss).primary.about)
    options = {"caps": None, "reference_error": 0.0} | options
    table = make_table(loss, n_groups=2)
    belief = choose_trust(
        table, options["trust"], options["caps"], options["reference_error"]
    )
    problem = ProjectionProblem.from_joint(table, belief)
    layout = lay_out(problem, chosen)

    inside = InteriorRun(problem, chosen, layout, plan_for(problem, layout))
    proximal = ProximalRun(problem, chosen, layout, None)
    for run in (inside, proximal):
        run.go(None)

    assert inside.reached
    assert proximal.reached
    assert inside.lower <= proximal.upper + 1e-12
    assert proximal.lower <= inside.upper + 1e-12


@pytest.mark.parametrize("loss", ["brier", "log"])
@pytest.mark.parametrize("trust", ["confidence", "answer-confidence", "distribution"])
def test_tied_reports_agree_too(loss, trust, monkeypatch):
    pair = trueup.testing.shared_error_predictors(600, 4, rng=3)
    options = {"loss": loss, "trust": trust, "floor": 1e-3 if loss == "log" else None}

    inside = trueup.fit(pair.primary, pair.reference, **options)
    monkeypatch.setattr(interior, "plan_for", lambda *_: None)
    proximal = trueup.fit(pair.primary, pair.reference, **options)

    assert "interior-point" in inside.certificate.engine
    assert "proximal" in proximal.certificate.engine
    assert inside.certificate.lower == pytest.approx(
        proximal.certificate.lower, abs=1e-5
    )
    # Where an outcome is ruled out in a cell, any slope that is low enough will do.
    np.testing.assert_allclose(
        inside.apply(pair.primary), proximal.apply(pair.primary), atol=1e-2
    )


def test_where_it_gets_stuck_the_proximal_method_goes_on(monkeypatch):
    table = make_table()
    whole = trueup.project(table, trust="distribution").deployed.certificate
    monkeypatch.setattr(InteriorRun, "most_steps", 4)

    found = trueup.project(table, trust="distribution").deployed.certificate

    assert "proximal" in found.engine
    assert "after native: 4 interior-point steps" in found.engine
    assert found.gap <= found.tolerance
    assert found.guaranteed_improvement == pytest.approx(
        whole.guaranteed_improvement, abs=2 * whole.tolerance
    )
