"""The compiled transport solver against HiGHS, ties and rounding included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from trueup.solve._kernels import transport_cells


def by_highs(weight, cost, demand):
    n, k = cost.shape
    rows = sparse.kron(sparse.eye(n), np.ones((1, k)))
    columns = sparse.kron(np.ones((1, n)), sparse.eye(k))
    result = linprog(
        cost.ravel(),
        A_eq=sparse.vstack([rows, columns]),
        b_eq=np.concatenate([weight, demand]),
        method="highs",
    )
    return result.fun


def solved(weight, cost, demand):
    """Dual value, primal value and flow of one cell."""
    flow = np.zeros_like(cost)
    start = np.array([0, len(weight)])
    potential = transport_cells(start, weight, cost, demand[None], flow)[0]
    dual = demand @ potential + weight @ (cost - potential).min(axis=1)
    return dual, float((flow * cost).sum()), flow


@settings(max_examples=200)
@given(
    n_rows=st.integers(1, 25),
    n_sinks=st.integers(2, 6),
    ties=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_transport_is_the_linear_programme(n_rows, n_sinks, ties, seed):
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, n_rows).astype(float)
    cost = rng.normal(size=(n_rows, n_sinks))
    if ties:
        cost = np.rint(cost)
    demand = rng.dirichlet(np.full(n_sinks, 0.5)) * weight.sum()
    dual, primal, flow = solved(weight, cost, demand)

    assert dual == pytest.approx(by_highs(weight, cost, demand), abs=1e-9)
    assert primal == pytest.approx(dual, abs=1e-9)
    np.testing.assert_allclose(flow.sum(axis=0), demand, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_costs_that_nearly_tie_do_not_make_it_run_in_circles(seed):
    """An optimal map has gains tied up to 1e-14; such a cycle once never ended."""
    rng = np.random.default_rng(seed)
    weight = np.full(200, 1 / 200)
    potential = rng.normal(size=6) * 0.1
    cost = rng.normal(size=(200, 1)) + potential + rng.normal(size=(200, 6)) * 1e-14
    demand = rng.dirichlet(np.ones(6))
    dual, primal, _ = solved(weight, cost, demand)

    assert primal == pytest.approx(dual, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_costs_clipped_to_many_ties_end_and_are_exact(seed):
    """Under an error budget costs are clipped, and long chains of ties moved crumbs."""
    rng = np.random.default_rng(seed)
    n_rows, n_sinks = 150, 10
    cost = rng.normal(size=(n_rows, n_sinks)) * 0.3
    bound = cost.min(axis=1, keepdims=True) + 2 * rng.uniform(0.01, 0.2)
    cost = np.minimum(cost, bound)
    weight = rng.dirichlet(np.ones(n_rows))
    demand = rng.dirichlet(np.full(n_sinks, 0.5))
    dual, primal, _ = solved(weight, cost, demand)

    assert dual == pytest.approx(by_highs(weight, cost, demand), abs=1e-9)
    assert primal == pytest.approx(dual, abs=1e-9)
