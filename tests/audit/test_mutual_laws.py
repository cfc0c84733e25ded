"""Verdict, arbitrage and MinECE against independent linear programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
from audit import programmes
from audit.worlds import audited, scale_of, truth_of
from strategies import worlds


@settings(max_examples=60)
@given(world=worlds())
def test_break_even_is_the_least_error_that_fits_the_primary(world):
    found = audited(world)
    exact = oracle.min_total_error(world)

    assert found.break_even_reference_error <= exact + 1e-8 * scale_of(world)
    assert found.break_even_reference_error == pytest.approx(
        exact, abs=1e-8 * scale_of(world)
    )


@settings(max_examples=60)
@given(world=worlds())
def test_verdict_is_whether_the_break_even_exceeds_the_error_allowed(world):
    exact, allowed = oracle.min_total_error(world), world.reference_error
    found = audited(world)

    if abs(exact - allowed) > 2 * found.tolerance:
        assert found.verdict == ("contradiction" if exact > allowed else "none-found")
    else:
        assert found.verdict in {"none-found", "undecided"}
    assert found.is_mutually_calibrated is {
        "contradiction": False,
        "none-found": True,
        "undecided": None,
    }.get(found.verdict)


@settings(max_examples=60)
@given(world=worlds(reference_errors=(0.0, 0.2, 2.0)))
def test_the_witness_makes_both_predictors_right(world):
    found = audited(world)
    assert (found.witness is None) == (not found.is_mutually_calibrated)
    assume(found.witness is not None)
    truth = truth_of(found, world, found.witness)

    assert oracle.is_admissible(world, truth, 2 * found.tolerance)
    equal, upper = oracle.property_moments(
        world.primary_kind,
        world.primary,
        level=world.primary_level,
        values=world.numbers,
    )
    shares = oracle.atoms_of(world).shares
    for block, size in ((equal, np.abs), (upper, lambda x: np.maximum(x, 0))):
        rows = oracle._aggregate(shares, block)
        wrong = size(rows.coefficients @ truth.ravel() - rows.targets)
        assert wrong.max(initial=0) <= 1e-10 * scale_of(world)


@settings(max_examples=60)
@given(world=worlds())
def test_min_ece_is_the_least_error_of_both(world):
    found = audited(world)
    exact = programmes.min_ece(world)

    assert found.min_ece <= exact + 1e-9 * scale_of(world)
    assert found.min_ece == pytest.approx(exact, abs=1e-8 * scale_of(world))
    assert 0 <= found.nearest.gap <= 1e-8 * scale_of(world)


@settings(max_examples=60)
@given(world=worlds())
def test_the_moves_of_the_nearest_pair_add_up_to_min_ece(world):
    nearest = audited(world).nearest
    parts = sum(move.contribution for move in nearest.moves)

    assert parts == pytest.approx(nearest.lower, abs=1e-6 * scale_of(world))
    assert parts == pytest.approx(nearest.reference_part + nearest.primary_part)


@settings(max_examples=60)
@given(world=worlds())
def test_contracts_earn_the_value_of_the_linear_program(world):
    found = audited(world).arbitrage

    found.check()
    assert found.value == pytest.approx(programmes.arbitrage(world), abs=2e-7)


@settings(max_examples=60)
@given(world=worlds())
def test_contributions_add_up_to_the_profit(world):
    found = audited(world).arbitrage
    parts = [contract.contribution for contract in found.contracts]

    assert sum(parts) == pytest.approx(found.value, abs=1e-8)
    assert (np.diff(np.round(parts, 10)) <= 0).all()


@settings(max_examples=60)
@given(world=worlds(), margin=st.sampled_from((0.001, 0.05, 0.9)))
def test_a_margin_is_paid_out_of_the_profit(world, margin):
    contracts = audited(world).arbitrage.contracts
    assume(len(contracts))
    paid = contracts(margin=margin)
    offered = sum(contract.share for contract in contracts)

    paid.check()
    assert paid.profit == pytest.approx(
        (1 - margin) * contracts.profit - margin * offered, abs=1e-12
    )
    at_most = contracts(margin=contracts.largest_margin)
    assert at_most.profit == pytest.approx(0, abs=1e-12)


@settings(max_examples=60)
@given(
    world=worlds(
        primary_kinds=("distribution",),
        reference_kinds=("distribution",),
        trusts=("distribution",),
    )
)
def test_arbitrage_lies_between_min_ece_and_twice_that(world):
    found = audited(world)

    assert found.min_ece <= found.arbitrage.value + 2e-7
    assert found.arbitrage.value <= 2 * found.min_ece + 2e-7


@settings(max_examples=60)
@given(world=worlds(reference_errors=(0.0,)))
def test_contradiction_arbitrage_and_distance_go_together(world):
    found = audited(world)
    assume(found.verdict != "undecided")
    assume(found.min_ece == 0 or found.min_ece > 1e-5)

    contradicts = found.verdict == "contradiction"
    assert (found.arbitrage.value > 0) == contradicts
    assert bool(found.arbitrage.contracts) == contradicts
    assert (found.min_ece > 0) == contradicts
    assert bool(found.nearest.moves) == contradicts


@settings(max_examples=25)
@given(
    world=worlds(
        reference_kinds=("distribution",),
        trusts=("distribution",),
        reference_errors=(0.0,),
    )
)
def test_more_trust_never_lowers_min_ece(world):
    rungs = ("mean", "confidence", "answer-confidence", "distribution")
    values = [audited(replace(world, trust=rung)).min_ece for rung in rungs]

    assert (np.diff(values) >= -1e-8 * scale_of(world)).all()


@settings(max_examples=25)
@given(world=worlds())
def test_groups_never_hide_a_contradiction(world):
    assume(world.groups is not None)
    apart, together = audited(world), audited(replace(world, groups=None))
    slack = 1e-8 * scale_of(world)

    assert apart.min_ece >= together.min_ece - slack
    assert apart.arbitrage.value >= together.arbitrage.value - 1e-7
    assert (
        apart.break_even_reference_error >= together.break_even_reference_error - slack
    )
