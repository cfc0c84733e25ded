"""What must not matter, and what may only help: the ladder, groups, the budget."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import trueup
from bridge import as_array, fitted, primary_of, projected, reference_of
from strategies import ALL_KINDS, worlds

RUNGS = [
    ("mean", False),
    ("confidence", False),
    ("answer-confidence", False),
    ("answer-confidence", True),
    ("distribution", False),
]


def guaranteed(world):
    """The certified optimum: of the draw where there is one."""
    projection = projected(world)
    best = projection.randomised or projection.deployed
    return best.certificate.guaranteed_improvement


def slack(world):
    return 1e-7 * (1 + np.abs(world.numbers).max() ** 2)


@settings(max_examples=25)
@given(world=worlds(reference_kinds=("distribution",), trusts=("distribution",)))
def test_more_trust_never_lowers_the_guarantee(world):
    values = [
        guaranteed(replace(world, trust=trust, caps=caps)) for trust, caps in RUNGS
    ]

    assert (np.diff(values) >= -slack(world)).all()


@settings(max_examples=25)
@given(world=worlds(reference_kinds=("answer-confidence",)))
def test_more_trust_in_answers_never_lowers_the_guarantee(world):
    low = world.reference[:, 1] < 1 / world.n_outcomes
    assume(not low.any())
    values = [
        guaranteed(replace(world, trust=trust, caps=caps)) for trust, caps in RUNGS[:4]
    ]

    assert (np.diff(values) >= -slack(world)).all()


@given(world=worlds())
def test_groups_never_lower_the_guarantee(world):
    assume(world.groups is not None)

    assert guaranteed(world) >= guaranteed(replace(world, groups=None)) - slack(world)


@settings(max_examples=20)
@given(world=worlds())
def test_the_guarantee_is_convex_and_falls_with_the_reference_error(world):
    errors = np.array([0.0, 0.05, 0.1, 0.15, 0.2])
    values = [guaranteed(replace(world, reference_error=error)) for error in errors]

    steps = np.diff(values)
    assert (steps <= slack(world)).all()
    assert (np.diff(steps) >= -2 * slack(world)).all()


@given(world=worlds(), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_items_does_not_matter(world, seed):
    order = np.random.default_rng(seed).permutation(world.n_rows)
    shuffled = replace(
        world,
        weights=world.weights[order],
        primary=world.primary[order],
        reference=world.reference[order],
        groups=None if world.groups is None else world.groups[order],
    )

    assert guaranteed(shuffled) == pytest.approx(guaranteed(world), abs=slack(world))


@given(world=worlds())
def test_counting_an_item_twice_is_the_same_as_doubling_its_weight(world):
    doubled = replace(
        world,
        weights=np.concatenate([world.weights, world.weights]) / 2,
        primary=np.concatenate([world.primary, world.primary]),
        reference=np.concatenate([world.reference, world.reference]),
        groups=None if world.groups is None else np.tile(world.groups, 2),
    )

    assert guaranteed(doubled) == pytest.approx(guaranteed(world), abs=slack(world))


@given(world=worlds(), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_outcomes_does_not_matter(world, seed):
    """Ties of the argmax go to the lowest index, so tied references are left out."""
    vector = world.reference_kind == "distribution" and world.trust != "distribution"
    if vector:
        top = np.sort(world.reference, axis=1)
        assume((top[:, -1] > top[:, -2]).all())
    order = np.random.default_rng(seed).permutation(world.n_outcomes)
    renamed = replace(
        world,
        primary=permuted(world.primary_kind, world.primary, order),
        reference=permuted(world.reference_kind, world.reference, order),
        values=None if world.values is None else world.values[order],
    )

    assert guaranteed(renamed) == pytest.approx(guaranteed(world), abs=slack(world))


def permuted(kind, stated, order):
    """The same reports when outcome order[k] moves to place k."""
    place = np.argsort(order)
    if kind == "distribution":
        return stated[:, order]
    if kind == "answer-confidence":
        moved = place[stated[:, 0].astype(int)]
        return np.column_stack([moved, stated[:, 1]])
    return place[stated.astype(int)].astype(float) if kind == "mode" else stated


@pytest.mark.parametrize("kind", ALL_KINDS)
@settings(max_examples=15)
@given(data=st.data())
def test_a_loaded_map_applies_bit_for_bit_as_the_saved_one(
    kind, data, tmp_path_factory
):
    world = data.draw(worlds(primary_kinds=(kind,)))
    path = tmp_path_factory.mktemp("maps") / "map.json"
    original = fitted(world)
    original.save(path)
    loaded = trueup.load(path)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trueup.TrueupWarning)
        before, after = (
            original.apply(primary_of(world)),
            loaded.apply(primary_of(world)),
        )
        np.testing.assert_array_equal(as_array(before), as_array(after))
        np.testing.assert_array_equal(
            original.distributions(primary_of(world)),
            loaded.distributions(primary_of(world)),
        )
        if original.randomised is not None:
            np.testing.assert_array_equal(
                original.randomised.weights(primary_of(world)),
                loaded.randomised.weights(primary_of(world)),
            )
    for name in ("guaranteed_improvement", "gap", "break_even_reference_error"):
        assert getattr(loaded.certificate, name) == getattr(original.certificate, name)


@settings(max_examples=25)
@given(world=worlds(reference_kinds=("distribution",), groups=False))
def test_naming_the_outcomes_in_another_order_on_one_side_changes_nothing(world):
    """Named outcomes are aligned by name, not by position."""
    assume(world.values is None and world.trust == "distribution")
    assume(world.primary_kind == "answer-confidence")
    backwards = trueup.core.reports.Distributions(
        world.reference[:, ::-1], tuple(range(world.n_outcomes))[::-1]
    )
    joint = trueup.JointTable.from_counts(
        primary_of(world), backwards, counts=world.weights
    )
    plain = trueup.JointTable.from_counts(
        primary_of(world), reference_of(world), counts=world.weights
    )

    first, second = (
        trueup.project(table, trust="distribution").certificate
        for table in (joint, plain)
    )
    assert first.guaranteed_improvement == pytest.approx(
        second.guaranteed_improvement, abs=1e-8
    )
