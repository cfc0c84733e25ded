"""The oracle against arithmetic done by hand, and against itself where it must agree.

Golden numbers are those of the method's own examples; the arithmetic is left visible.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from oracle import (
    Floats,
    Kind,
    Loss,
    Trust,
    World,
    as_answers,
    atoms_of,
    best_reports,
    break_even,
    divergence,
    improvement,
    is_admissible,
    loss_vectors,
    min_total_error,
    normalise,
    projection,
    projection_optimum,
    random_truth,
    reference_cells,
    report_losses,
    total_error,
    worst_case,
)
from strategies import ALL_LOSSES, LOSS_OF_KIND, NUMERIC_KINDS, worlds

KIND_OF_LOSS = {loss: kind for kind, losses in LOSS_OF_KIND.items() for loss in losses}
SMOOTH: dict[Loss, float] = {
    "brier": 1e-7,
    "squared": 1e-7,
    "spherical": 1e-4,
    "expectile": 1e-4,
    "log": 1e-3,
}
"""Losses whose optimal map is unique, with how well a solver's optimum pins it."""

laws = settings(max_examples=60, deadline=None)


def binary(probabilities: list[float]) -> Floats:
    """Read probabilities of outcome 1 as distributions."""
    p = np.array(probabilities)
    return np.column_stack([1 - p, p])


def binary_world(
    primary: list[float], reference: list[float], *, loss: Loss = "brier"
) -> World:
    """Build a world of two outcomes, equal weights and a fully trusted reference."""
    return World(
        n_outcomes=2,
        weights=normalise(np.ones(len(primary))),
        primary_kind="distribution",
        primary=binary(primary),
        reference_kind="distribution",
        reference=binary(reference),
        trust="distribution",
        loss=loss,
    )


def deployed_optimum(world: World) -> Floats:
    """Give the losses of the reports that are best for the projection's rates."""
    return report_losses(world, best_reports(world, projection(world)[1]))


def randoms() -> st.SearchStrategy[np.random.Generator]:
    """Draw generators by seed, so that failures can be replayed."""
    return st.integers(0, 2**16).map(np.random.default_rng)


# Hand-computed values


class TestToy:
    """Section 7: primary .1 and .7 on two halves, reference .5."""

    world = binary_world([0.1, 0.7], [0.5, 0.5])

    def test_both_reports_move_by_the_missing_tenth(self) -> None:
        value, rates = projection(self.world)

        assert_allclose(rates[:, 1], [0.2, 0.8], atol=1e-6)
        assert value == pytest.approx(2 * 0.1**2, abs=1e-9)

    def test_the_projected_map_earns_the_optimum_in_the_worst_case(self) -> None:
        deployed = report_losses(self.world, binary([0.2, 0.8]))

        assert worst_case(self.world, deployed) == pytest.approx(0.02, abs=1e-9)

    def test_an_error_of_a_tenth_would_explain_the_primary(self) -> None:
        # Mean report (.1 + .7) / 2 = .4 against .5.
        assert min_total_error(self.world) == pytest.approx(0.1, abs=1e-9)

    def test_the_map_breaks_even_at_half_of_that(self) -> None:
        # Improvement is 4 * .1 * (mean truth - .45): zero when the mean is .45.
        deployed = report_losses(self.world, binary([0.2, 0.8]))

        assert break_even(self.world, deployed) == pytest.approx(0.05, abs=1e-9)


class TestTie:
    """Section 4: reference always (A, .7), primary (A, .5) and (B, .6)."""

    world = World(
        n_outcomes=2,
        weights=np.array([0.5, 0.5]),
        primary_kind="answer-confidence",
        primary=np.array([[0, 0.5], [1, 0.6]]),
        reference_kind="answer-confidence",
        reference=np.array([[0, 0.7], [0, 0.7]]),
        trust="answer-confidence",
        caps=True,
        loss="confidence",
    )

    def drawn(self, confidences: list[float], answers: list[list[float]]) -> Floats:
        """Give m^2 - 2 m theta_y, the loss of an answer drawn from theta."""
        m = np.array(confidences)[:, None]
        return m**2 - 2 * m * np.array(answers)

    def test_optimum(self) -> None:
        # h = (.9, .1), (.5, .5):
        # (.81 - .9 + .25) / 2 + (.25 - .6 + .36) / 2 = .08 + .005.
        value, rates = projection(self.world)

        assert_allclose(rates, [[0.9, 0.1], [0.5, 0.5]], atol=1e-5)
        assert value == pytest.approx(0.085, abs=1e-8)

    @pytest.mark.parametrize(
        ("confidences", "answers", "expected"),
        [
            ([0.9, 0.5], [[1, 0], [0.3, 0.7]], 0.085),
            ([0.9, 0.5], [[1, 0], [0.5, 0.5]], 0.065),
            ([0.9, 0.5], [[1, 0], [0, 1]], -0.065),
            ([0.75, 0.35], [[1, 0], [0, 1]], 0.0625),
        ],
        ids=["theta", "uniform ties", "argmax theta", "projected again"],
    )
    def test_worst_cases(
        self, confidences: list[float], answers: list[list[float]], expected: float
    ) -> None:
        deployed = self.drawn(confidences, answers)

        assert worst_case(self.world, deployed) == pytest.approx(expected, abs=1e-9)


class TestImperfectReference:
    """Section 8: reference .2, primary (1, .05) with masses (.25, .75)."""

    world = replace(binary_world([1, 0.05], [0.2, 0.2]), weights=np.array([0.25, 0.75]))

    def test_projection(self) -> None:
        # h = (.8, 0): 2 (.25 * .2^2 + .75 * .05^2) = .02375.
        value, rates = projection(self.world)

        assert_allclose(rates[:, 1], [0.8, 0], atol=1e-6)
        assert value == pytest.approx(0.02375, abs=1e-9)

    def test_the_truth_that_refutes_the_paper(self) -> None:
        # 2 (.75 * .05^2) - 2 (.25 * .2^2) = .00375 - .02.
        deployed = report_losses(self.world, binary([0.8, 0]))
        truth = binary([1, 0])

        assert total_error(self.world, truth) == pytest.approx(0.05)
        assert improvement(self.world, deployed, truth) == pytest.approx(-0.01625)
        allowed = replace(self.world, reference_error=0.05)
        assert is_admissible(allowed, truth, 1e-12)
        assert worst_case(allowed, deployed) == pytest.approx(-0.01625, abs=1e-9)

    def test_break_evens(self) -> None:
        # The price of error is |lambda| = .8 here; the pair: .25 + .0375 - .2.
        deployed = report_losses(self.world, binary([0.8, 0]))

        assert break_even(self.world, deployed) == pytest.approx(0.02375 / 0.8)
        assert min_total_error(self.world) == pytest.approx(0.0875)


def test_the_literal_compatible_set_would_promise_what_is_false() -> None:
    """Section 1: the constant .5 loses .0275 in squared error, twice in Brier."""
    world = binary_world([0.45, 0.55], [0.2, 0.8])
    constant = report_losses(world, binary([0.5, 0.5]))

    # (.45 - .2)^2 - (.5 - .2)^2 = .0625 - .09, twice.
    assert worst_case(world, constant) == pytest.approx(-0.055, abs=1e-9)
    assert projection_optimum(world) == pytest.approx(2 * 0.25**2, abs=1e-9)


@pytest.mark.parametrize(
    ("loss", "report", "level", "expected"),
    [
        ("brier", [0.2, 0.3, 0.5], None, [-0.02, -0.22, -0.62]),
        ("log", [0.25, 0.25, 0.5], None, [math.log(4), math.log(4), math.log(2)]),
        ("spherical", [0.0, 0.6, 0.8], None, [0, -0.6, -0.8]),
        ("confidence", [2, 0.7], None, [0.49, 0.49, -0.91]),
        ("zero-one", 1, None, [0, -1, 0]),
        ("squared", 2, None, [4, 0, -12]),
        ("pinball", 1, 0.25, [0.75, 0, 0.75]),
        ("expectile", 1, 0.25, [0.75, 0, 2.25]),
    ],
)
def test_loss_table(
    loss: Loss, report: object, level: float | None, expected: list[float]
) -> None:
    """Section 2's l(r, y) for outcomes worth 0, 1 and 4."""
    world = World(
        n_outcomes=3,
        weights=np.ones(1),
        primary_kind=KIND_OF_LOSS[loss],
        primary=np.array([report], dtype=float),
        reference_kind="distribution",
        reference=np.full((1, 3), 1 / 3),
        trust="distribution",
        loss=loss,
        values=np.array([0.0, 1.0, 4.0]),
        primary_level=level,
    )

    assert_allclose(loss_vectors(world)[0], expected, atol=1e-12)


class TestRungs:
    """Cells and residuals of one reference at every rung, by hand."""

    world = World(
        n_outcomes=3,
        weights=np.full(4, 0.25),
        primary_kind="mode",
        primary=np.zeros(4),
        reference_kind="distribution",
        reference=np.array(
            [[0.5, 0.3, 0.2], [0.5, 0.2, 0.3], [0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]
        ),
        trust="mean",
        loss="zero-one",
    )
    truth = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])

    @pytest.mark.parametrize(
        ("trust", "cells", "error"),
        [
            # Answers A A B A with confidences .5 .5 .5 .4; right, wrong, wrong, right:
            # residuals .5, -.5, -.5, .6.
            ("mean", [0, 0, 0, 0], 0.25 * 0.1),
            ("confidence", [1, 1, 1, 0], 0.25 * (0.5 + 0.6)),
            ("answer-confidence", [1, 1, 2, 0], 0.25 * (0.0 + 0.5 + 0.6)),
            # L1 distances 1.0, 1.6, 1.4 and 1.2.
            ("distribution", [3, 2, 0, 1], 0.25 * 5.2),
        ],
    )
    def test_cells_and_error(
        self, trust: Trust, cells: list[int], error: float
    ) -> None:
        world = replace(self.world, trust=trust)

        assert reference_cells(world).tolist() == cells
        assert total_error(world, self.truth) == pytest.approx(error)

    def test_caps_add_what_exceeds_the_confidence(self) -> None:
        world = replace(self.world, trust="answer-confidence", caps=True)

        # (A, .5): others 0 and 1 on two rows, cap .5 each: B has 1 - 2 * .5 = 0.
        # (B, .5): C has 1 - .5. (A, .4): B and C have nothing.
        extra = 0.25 * 0.5
        uncapped = total_error(replace(world, caps=False), self.truth)
        assert total_error(world, self.truth) == pytest.approx(uncapped + extra)

    def test_a_confidence_below_one_over_k_carries_no_caps(self) -> None:
        reports = np.array([[0, 0.3]])
        truth = np.array([[0.3, 0.7, 0]])
        world = replace(
            self.world,
            weights=np.ones(1),
            primary=np.zeros(1),
            reference_kind="answer-confidence",
            reference=reports,
            trust="answer-confidence",
            caps=True,
        )

        assert total_error(world, truth) == pytest.approx(0)

    def test_groups_split_every_cell(self) -> None:
        world = replace(self.world, groups=np.array([0, 0, 1, 1]))

        # Residuals .5 - .5 in one group, -.5 + .6 in the other.
        assert total_error(world, self.truth) == pytest.approx(0.25 * 0.1)
        swapped = replace(self.world, groups=np.array([0, 1, 1, 0]))
        assert total_error(swapped, self.truth) == pytest.approx(0.25 * (1.1 + 1.0))


def test_two_outcomes_have_one_moment_so_the_budget_is_the_binary_ece() -> None:
    world = binary_world([0.5], [0.3])

    assert total_error(world, binary([0.45])) == pytest.approx(0.15)


def test_caps_of_two_outcomes_spend_no_budget() -> None:
    """At (A, .6) a truth of .35 is off by .25; that B then exceeds .6 is implied."""
    world = replace(binary_world([0.5], [0.4]), trust="answer-confidence")
    truth = binary([0.65])

    assert total_error(world, truth) == pytest.approx(0.25)
    assert total_error(replace(world, caps=True), truth) == pytest.approx(0.25)


def test_point_references_state_their_own_property() -> None:
    """Residuals for outcomes 0, 1, 4 with rates .5, .3, .2 and report 1."""
    world = World(
        n_outcomes=3,
        weights=np.ones(1),
        primary_kind="mode",
        primary=np.zeros(1),
        reference_kind="mean",
        reference=np.ones(1),
        trust="point",
        loss="zero-one",
        values=np.array([0.0, 1.0, 4.0]),
        reference_level=0.25,
    )
    truth = np.array([[0.5, 0.3, 0.2]])

    errors: dict[Kind, float] = {
        "mean": 0.3 + 4 * 0.2 - 1,
        "quantile": 0.5 - 0.25,
        "expectile": 0.75 * 0.5 - 0.25 * 0.2 * 3,
        # The first outcome exceeds the second; the last does not.
        "mode": 0.5 - 0.3,
    }
    for kind, error in errors.items():
        trusted = replace(world, reference_kind=kind)
        assert total_error(trusted, truth) == pytest.approx(error), kind


class TestConfidenceBelowChance:
    """A primary confidence below 1/K is wrong whatever the truth is."""

    world = World(
        n_outcomes=4,
        weights=np.ones(1),
        primary_kind="answer-confidence",
        primary=np.array([[0, 0.1]]),
        reference_kind="answer-confidence",
        reference=np.array([[0, 0.25]]),
        trust="answer-confidence",
        loss="confidence",
        reference_error=2.0,
    )

    def test_no_budget_explains_it(self) -> None:
        assert min_total_error(self.world) == math.inf

    def test_moving_to_chance_needs_no_reference(self) -> None:
        assert projection_optimum(self.world) == pytest.approx(0.15**2, abs=1e-8)

    def test_a_dominating_map_never_breaks_even(self) -> None:
        # Draw A with .55, the others with .15, confidence 1/4. On A
        # (.01 - .2) - (.0625 - .275) = .0225, elsewhere .01 - (.0625 - .075) = .0225.
        deployed = 0.25**2 - 2 * 0.25 * np.array([[0.55, 0.15, 0.15, 0.15]])

        assert worst_case(self.world, deployed) == pytest.approx(0.0225)
        assert break_even(self.world, deployed) == math.inf


class TestInfiniteLoss:
    """A deployed zero is harmless only where no admissible truth reaches it."""

    def test_excluded_outcomes_do_not_count(self) -> None:
        world = binary_world([0.5], [1.0], loss="log")
        deployed = report_losses(world, binary([1.0]))

        assert worst_case(world, deployed) == pytest.approx(math.log(2))
        assert break_even(world, deployed) == 0
        assert improvement(world, deployed, binary([1.0])) == pytest.approx(math.log(2))

    def test_reachable_outcomes_ruin_the_map(self) -> None:
        world = binary_world([0.5], [0.9], loss="log")
        deployed = report_losses(world, binary([1.0]))

        assert worst_case(world, deployed) == -math.inf
        assert improvement(world, deployed, binary([0.9])) == -math.inf

    def test_rows_without_weight_do_not_count(self) -> None:
        world = binary_world([0.5, 0.5], [0.5, 0.5], loss="log")
        world = replace(world, weights=np.array([1.0, 0.0]))
        deployed = report_losses(world, binary([0.5, 1.0]))

        assert worst_case(world, deployed) == pytest.approx(0)


# Laws


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_drawn_worlds_keep_their_promises(world: World) -> None:
    k, v = world.n_outcomes, world.numbers
    for kind, reports in (
        (world.primary_kind, world.primary),
        (world.reference_kind, world.reference),
    ):
        if kind == "distribution":
            assert_allclose(reports.sum(axis=1), 1)
        elif kind == "answer-confidence":
            assert np.isin(reports[:, 0], np.arange(k)).all()
            assert ((reports[:, 1] >= 0) & (reports[:, 1] <= 1)).all()
        elif kind == "quantile":
            assert np.isin(reports, v).all()
        elif kind in NUMERIC_KINDS:
            assert (np.diff(v) > 0).all()
            assert ((reports >= v[0]) & (reports <= v[-1])).all()
        else:
            assert np.isin(reports, np.arange(k)).all()
    assert math.isclose(world.weights.sum(), 1)
    assert np.isfinite(loss_vectors(world)).all()


@given(st.floats(0, 1), st.integers(0, 3), st.integers(0, 3))
def test_confidence_loss_is_top_label_brier_minus_accuracy(
    c: float, answer: int, outcome: int
) -> None:
    world = replace(TestConfidenceBelowChance.world, primary=np.array([[answer, c]]))
    right = answer == outcome

    assert loss_vectors(world)[0, outcome] == pytest.approx((c - right) ** 2 - right)


@laws
@given(worlds(), randoms())
def test_divergence_is_never_negative_and_zero_for_best_reports(
    world: World, rng: np.random.Generator
) -> None:
    rates = rng.dirichlet(np.ones(world.n_outcomes), size=world.n_rows)
    fitted = replace(world, primary=best_reports(world, rates))

    assert divergence(world, rates).min() >= -1e-12
    assert_allclose(divergence(fitted, rates), 0, atol=1e-12)


@laws
@given(worlds(primary_kinds=("expectile", "quantile")), randoms())
def test_point_divergence_agrees_with_a_grid_search(
    world: World, rng: np.random.Generator
) -> None:
    rates = rng.dirichlet(np.ones(world.n_outcomes), size=world.n_rows)
    grid = np.linspace(world.numbers[0], world.numbers[-1], 20_001)
    one = replace(world, weights=np.ones(1))
    table = report_losses(one, grid)

    best = (table @ rates.T).min(axis=0)
    actual = (loss_vectors(world) * rates).sum(axis=1) - best
    # A kink or a parabola is missed by at most one grid step times the slope.
    assert_allclose(divergence(world, rates), actual, atol=1e-3)


@pytest.mark.parametrize("loss", ALL_LOSSES)
@laws
@given(data=st.data(), rng=randoms())
def test_a_pinned_truth_leaves_only_its_own_divergence(
    loss: Loss, data: st.DataObject, rng: np.random.Generator
) -> None:
    """With one reference per row, fully trusted, every CVXPY form is checked alone."""
    world = data.draw(worlds(losses=(loss,), max_rows=3, groups=False))
    rates = rng.dirichlet(np.ones(world.n_outcomes), size=world.n_rows)
    pinned = replace(
        world,
        reference_kind="distribution",
        reference=rates,
        trust="distribution",
        caps=False,
        reference_error=0.0,
    )
    atoms = atoms_of(pinned)
    pooled = atoms.member.T @ (atoms.shares @ rates)
    assume(atoms.member.any(axis=0).all())

    expected = world.weights @ divergence(pinned, pooled)
    assert projection_optimum(pinned) == pytest.approx(expected, abs=1e-7)


@laws
@given(worlds(), randoms(), st.sampled_from(("vertex", "mixture")))
def test_no_admissible_truth_is_worse_than_the_worst_case(
    world: World, rng: np.random.Generator, kind: Literal["vertex", "mixture"]
) -> None:
    deployed = deployed_optimum(world)
    truth = random_truth(world, rng, kind)

    assert is_admissible(world, truth, 1e-8)
    assert improvement(world, deployed, truth) >= worst_case(world, deployed) - 1e-7


@laws
@given(worlds(), randoms())
def test_the_optimum_lies_between_every_map_and_every_truth(
    world: World, rng: np.random.Generator
) -> None:
    """Minimax: a map's worst case <= D* <= a truth's divergence."""
    value = projection_optimum(world)
    anything = rng.dirichlet(np.ones(world.n_outcomes), size=world.n_rows)
    deployed = report_losses(world, best_reports(world, anything))
    atoms, truth = atoms_of(world), random_truth(world, rng, "mixture")
    pooled = (atoms.shares @ truth)[atoms.member.argmax(axis=0)]

    assert worst_case(world, deployed) <= value + 1e-7
    assert value <= world.weights @ divergence(world, pooled) + 1e-7


@laws
@given(worlds(losses=tuple(SMOOTH)))
def test_the_projected_map_attains_the_optimum(world: World) -> None:
    """Strong duality: HiGHS and Clarabel meet from the two sides."""
    value, rates = projection(world)
    deployed = report_losses(world, best_reports(world, rates))

    assert worst_case(world, deployed) == pytest.approx(value, abs=SMOOTH[world.loss])


@laws
@given(worlds())
def test_the_optimum_vanishes_exactly_from_the_pairs_break_even_on(
    world: World,
) -> None:
    error = min_total_error(world)
    assume(math.isfinite(error))

    assert projection_optimum(replace(world, reference_error=error)) <= 1e-6
    if error > 0.05:
        below = replace(world, reference_error=0.5 * error)
        assert projection_optimum(below) > 1e-6


@laws
@given(worlds())
def test_a_map_improves_exactly_below_its_break_even(world: World) -> None:
    deployed = deployed_optimum(world)
    assume(np.isfinite(deployed).all())
    budget = break_even(world, deployed)

    def worst(error: float) -> float:
        return worst_case(replace(world, reference_error=error), deployed)

    if math.isinf(budget):
        assert worst(1e3) > 0
    else:
        assert worst(budget) <= 1e-8
        assert budget == 0 or worst(0.5 * budget) >= -1e-8


@laws
@given(worlds(reference_kinds=("distribution",), trusts=("distribution",)))
def test_the_guarantee_grows_down_the_ladder(world: World) -> None:
    """Each rung's admissible set contains the next one's, at every budget."""
    rungs: list[tuple[Trust, bool]] = [
        ("mean", False),
        ("confidence", False),
        ("answer-confidence", False),
        ("answer-confidence", True),
        ("distribution", False),
    ]
    values = [
        projection_optimum(replace(world, trust=trust, caps=caps))
        for trust, caps in rungs
    ]

    assert (np.diff(values) >= -1e-7).all()


@laws
@given(worlds())
def test_groups_can_only_help(world: World) -> None:
    assume(world.groups is not None)

    pooled = projection_optimum(replace(world, groups=None))
    assert projection_optimum(world) >= pooled - 1e-7


def test_ties_are_read_as_the_lowest_index() -> None:
    reports = np.array([[0.25, 0.375, 0.375]])

    assert_allclose(as_answers(reports), [[1, 0.375]])
