"""Assertions, the frame of ranks they are written in, and step lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueup
from maps.test_adaptive import brier_gain, sample_of, trust_of, world
from trueup import errors
from trueup.core.assertions import make_assertions
from trueup.core.losses import BrierLoss
from trueup.core.reports import AnswerConfidence, Distributions
from trueup.core.resolution import (
    PrimaryCells,
    Resolution,
    in_order,
    out_of_order,
    ranking,
)
from trueup.solve.adaptive import project_linked
from trueup.solve.crossfit import fit_half
from trueup.solve.sampling import per_item_bounds

BY_CONFIDENCE = "informative-by-confidence"


def test_ranks_put_the_likeliest_outcome_first_and_ties_by_index():
    rows = Distributions(np.array([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4]]), (0, 1, 2))

    assert ranking(rows).tolist() == [[1, 2, 0], [0, 2, 1]]


def test_a_bare_answer_changes_places_with_the_first_outcome():
    stated = AnswerConfidence._of(
        np.array([2, 0]), np.array([0.6, 0.7]), ("A", "B", "C")
    )

    assert ranking(stated).tolist() == [[2, 1, 0], [0, 1, 2]]
    assert in_order(stated, ranking(stated)).answer.tolist() == [0, 0]


@given(st.integers(0, 2**32 - 1))
def test_going_into_the_frame_and_back_changes_nothing(seed):
    rows = np.random.default_rng(seed).dirichlet(np.ones(4), 5)
    reports = Distributions(rows, (0, 1, 2, 3))
    order = ranking(reports)
    ranked = in_order(reports, order).probabilities

    assert (np.diff(ranked, axis=1) <= 0).all()
    np.testing.assert_array_equal(out_of_order(ranked, order), rows)


def test_a_map_in_the_frame_of_ranks_does_not_know_the_names_of_outcomes():
    _, reference, primary = world(900, 4, seed=1)
    shuffled = np.random.default_rng(0).permuted(
        np.tile(np.arange(4), (900, 1)), axis=1
    )
    options = {"trust": "mean", "assume": "informative", "cells": "auto"}
    plain = trueup.fit(primary, reference, **options)
    take = [np.take_along_axis(x, shuffled, axis=1) for x in (primary, reference)]
    mixed = trueup.fit(*take, **options)

    np.testing.assert_allclose(
        mixed.apply(take[0]),
        np.take_along_axis(plain.apply(primary), shuffled, axis=1),
        atol=1e-6,
    )


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), assume=st.sampled_from(["informative", None]))
def test_an_asserted_bound_holds_for_the_truth_of_the_sample(seed, assume):
    """With rates that satisfy every row on the sample, the bound is at most the gain.

    The truth here is the rates per item; the reference reports their means, and a row
    that they violate is relaxed to where they satisfy it.
    """
    truth, reference, primary = world(240, 3, seed)
    sample, trust = sample_of(primary, reference), trust_of("mean")
    names = () if assume is None else (assume,)
    half = fit_half(
        sample,
        BrierLoss(),
        trust,
        assume=names,
        family=None,
        resolution=Resolution(),
    )
    new = half.tilt.deploy(BrierLoss(), sample.primary).reports.probabilities
    gain = BrierLoss().vectors(sample.primary) - BrierLoss().vectors(
        Distributions(new, (0, 1, 2))
    )
    z = per_item_bounds(half.multipliers, sample, gain, trust).mean()
    # What the truth misses the believed and asserted rows by, at their multipliers.
    found = half.multipliers
    right = truth[np.arange(240), reference.argmax(axis=1)]
    missed = float(found.table[0, 0]) * (right - reference.max(axis=1)).mean()
    cell, order = found.primary_cells.assign(sample.primary), ranking(sample.primary)
    for one, weight in zip(found.asserted, found.weights, strict=True):
        pulled = out_of_order(one.coefficients[cell], order)
        rows = (pulled * truth).sum(axis=1) - one.targets(sample.reference)
        missed += weight * rows.mean()

    assert z <= (gain * truth).sum(axis=1).mean() - missed + 1e-9


def test_levels_of_confidence_add_up_to_the_plain_assertion():
    _, reference, primary = world(2500, 3, seed=5)
    sample, resolution = sample_of(primary, reference), Resolution()
    cells = PrimaryCells.build(sample.primary, sample.shares, resolution, frame="rank")
    made = {
        name: make_assertions(
            (name,),
            sample.primary,
            sample.reference,
            sample.shares,
            cells=cells,
            resolution=resolution,
        )
        for name in ("informative", BY_CONFIDENCE)
    }
    levels, (whole,) = made[BY_CONFIDENCE], made["informative"]

    assert len(levels) == 10
    summed = sum(one.coefficients for one in levels)
    np.testing.assert_allclose(summed, whole.coefficients, atol=1e-12)
    targets = sum(one.targets(sample.reference) for one in levels)
    np.testing.assert_array_equal(targets, whole.targets(sample.reference))


def test_levels_of_confidence_need_a_reference_trusted_there():
    _, reference, primary = world(300, 3, seed=0)
    with pytest.raises(errors.InvalidInputError, match="trust='confidence' or higher"):
        trueup.fit(primary, reference, trust="mean", assume=BY_CONFIDENCE)


def test_a_temperature_by_levels_asks_for_about_as_much_or_more():
    truth, reference, primary = world(6000, 4, seed=3)
    options = {"family": "temperature", "trust": "confidence", "cells": "auto"}
    one = trueup.fit(primary, reference, assume="informative", **options)
    many = trueup.fit(primary, reference, assume=BY_CONFIDENCE, **options)
    confidence = [m.apply(primary).max(axis=1).mean() for m in (one, many)]

    # Each of several rows may be missed by its standard error, a single one may not.
    assert confidence[1] <= confidence[0] + 0.02
    assert brier_gain(truth, primary, many.apply(primary)) > 0


def test_linked_solutions_in_the_frame_of_ranks_satisfy_the_asserted_row():
    _, reference, primary = world(1500, 4, seed=4)
    sample, trust = sample_of(primary, reference), trust_of("mean")
    linked = project_linked(
        sample, BrierLoss(), trust, ("informative",), Resolution(micro_cells=10_000)
    )
    new = linked.tilt.deploy(BrierLoss(), sample.primary).reports.probabilities
    (row,) = make_assertions(
        ("informative",),
        sample.primary,
        sample.reference,
        sample.shares,
        cells=linked.cells,
        resolution=Resolution(),
    )
    ranked = np.take_along_axis(new, ranking(sample.primary), axis=1)
    given = (row.coefficients[linked.cells.assign(sample.primary)] * ranked).sum(axis=1)

    assert linked.cells.frame == "rank"
    assert given.mean() <= reference.max(axis=1).mean() + 1e-5


def test_the_break_even_error_is_at_least_what_the_multipliers_show():
    _, reference, primary = world(4000, 3, seed=2)
    m = trueup.fit(primary, reference, trust="confidence", assume="informative")
    proof = m.certificate

    assert proof.supported
    quick = proof.certified / proof.steepness
    assert proof.break_even_reference_error >= quick
    careful = trueup.fit(
        primary,
        reference,
        trust="confidence",
        assume="informative",
        reference_error=2 * proof.break_even_reference_error,
    )
    assert careful.certificate.certified < proof.certified


def test_a_calibrated_primary_is_hardly_moved_at_the_highest_rung():
    """Noise alone once moved it by more than twice this."""
    rng = np.random.default_rng(7)
    truth = rng.dirichlet(np.ones(4), 300)
    group = rng.integers(0, 8, 300)
    reference = np.stack([truth[group == g].mean(axis=0) for g in range(8)])[group]
    m = trueup.fit(truth, reference, trust="distribution")

    assert brier_gain(truth, truth, m.apply(truth)) > -0.004


def test_the_other_engine_takes_over_where_ours_does_not_arrive(monkeypatch):
    """Asserted rows belong to no cell of the reference; that must not matter there."""
    _, reference, primary = world(900, 4, seed=1)
    options = {
        "trust": "confidence",
        "assume": BY_CONFIDENCE,
        "reference_error": 0.02,
        "cells": "auto",
    }
    ours = trueup.fit(primary, reference, **options)
    monkeypatch.setattr("trueup.solve.lazily.native.knows", lambda _loss: False)
    other = trueup.fit(primary, reference, **options)

    assert other.certificate.certified == pytest.approx(
        ours.certificate.certified, abs=1e-4
    )
    np.testing.assert_allclose(other.apply(primary), ours.apply(primary), atol=0.01)
