"""The exact worst case of a fixed map, and the error at which it breaks even."""

from __future__ import annotations

import numpy as np

from trueup._validate import Bools, Floats
from trueup.core.losses import Deployment
from trueup.solve.certificate import Bound, lower_bound
from trueup.solve.conic import add_kernels
from trueup.solve.model import ConicModel
from trueup.solve.problem import ProjectionProblem


def worst_case(
    problem: ProjectionProblem, primary_losses: Floats, deployed: Deployment
) -> tuple[Bound, Floats]:
    """Best certificate for a fixed map, by linear programming, and its multipliers.

    Its dual value is the smallest improvement over all admissible truths.
    """
    advantage, impossible = _advantage(problem, primary_losses, deployed)
    model = ConicModel()
    kernels = add_kernels(model, problem, problem.pairs)
    present = (kernels.index >= 0) & ~impossible
    cost = problem.pairs.weight[:, None] * advantage
    model.cost(kernels.index[present], cost[present])
    multipliers = kernels.multipliers(model.solve())
    return lower_bound(problem, primary_losses, deployed, multipliers), multipliers


def break_even(
    problem: ProjectionProblem, primary_losses: Floats, deployed: Deployment
) -> float:
    """Largest reference error below which the map is guaranteed to improve.

    Minimises the reference's error over all truths under which the map gains nothing;
    the dual of that linear programme is a set of multipliers, and what is returned is
    the bound they certify.
    """
    advantage, impossible = _advantage(problem, primary_losses, deployed)
    if not np.any(advantage):
        return 0.0
    if impossible.any():  # a zero that any error may fill, at infinite loss
        return 0.0
    model = ConicModel()
    kernels = add_kernels(model, problem, problem.pairs, price_budget=True)
    numbers = kernels.index.ravel()
    gain = (problem.pairs.weight[:, None] * advantage).ravel()
    no_gain = model.constrain(
        "nonnegative", [(np.zeros_like(numbers), numbers, gain)], np.zeros(1)
    )
    solution = model.solve()
    price = float(solution.dual(no_gain)[0])
    if price <= 0:
        return 0.0
    multipliers = kernels.multipliers(solution) / price
    bound = lower_bound(
        problem, primary_losses, deployed, multipliers, reference_error=1.0
    )
    return bound.break_even


def _advantage(
    problem: ProjectionProblem, primary_losses: Floats, deployed: Deployment
) -> tuple[Floats, Bools]:
    """(pairs, K) what the map gains under each outcome; where that is -infinity."""
    advantage = (primary_losses - deployed.losses)[problem.pairs.owner]
    impossible = ~np.isfinite(advantage)
    return np.where(impossible, 0.0, advantage), impossible
