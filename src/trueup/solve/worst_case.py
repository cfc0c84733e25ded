"""The exact worst case of anything fixed, and the error at which it breaks even."""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats
from trueup.core.losses import Deployment
from trueup.core.moments import MomentRows
from trueup.solve.certificate import Bound, certified_minimum
from trueup.solve.conic import Kernels, add_kernels
from trueup.solve.exact import FORMS, CellPrograms, best_multipliers
from trueup.solve.model import Block, ConicModel
from trueup.solve.problem import ProjectionProblem, Rows

NOTHING = Bound(base=-np.inf, steepness=0.0, rounding=0.0)
_DISTANCES = (1e-11, 1e-9, 1e-7, 1e-5)
"""From the best bound on multipliers, tried in turn: both sides of it are needed."""


def worst_case(
    problem: ProjectionProblem, primary_losses: Floats, deployed: Deployment
) -> tuple[Bound, Floats]:
    """Best certificate for a fixed map, and its multipliers.

    Its value is the smallest improvement over all admissible truths.
    """
    gain = (primary_losses - deployed.losses)[problem.pairs.owner]
    size = float(np.abs(primary_losses).max())
    return least_gain(
        problem.moments,
        problem.pairs,
        gain,
        reference_error=problem.reference_error,
        size=size,
    )


def least_gain(
    moments: MomentRows,
    rows: Rows,
    gain: Floats,
    *,
    reference_error: float,
    size: float,
) -> tuple[Bound, Floats]:
    """Certify the least expected gain over all admissible truths, exactly.

    Parameters
    ----------
    moments, rows
        What is believed of the reference, and where the truth is free.
    gain
        (rows, K) what is gained on a row under each outcome; any numbers.
    reference_error
        Error budget.
    size
        Magnitude of the losses the gains are differences of, for rounding.
    """
    usable = gain
    if reference_error == 0:
        usable = np.where(moments.allowed[rows.node], gain, np.inf)
    if (usable == -np.inf).any():
        return NOTHING, np.zeros(moments.n_rows)
    if moments.form in FORMS:
        programs = FORMS[moments.form](moments, rows, usable)
        multipliers = best_multipliers(programs, reference_error)
    else:
        multipliers = _by_linear_programme(moments, rows, usable, reference_error)
    bound = certified_minimum(
        moments, rows, gain, multipliers, reference_error=reference_error, size=size
    )
    return bound, multipliers


def break_even(
    problem: ProjectionProblem, primary_losses: Floats, deployed: Deployment
) -> float:
    """Largest reference error below which the map is guaranteed to improve.

    The multipliers that certify the largest ratio of bound to steepness; what is
    returned is the ratio they certify.
    """
    gain = (primary_losses - deployed.losses)[problem.pairs.owner]
    if not np.isfinite(gain).all() or not gain.any():
        return 0.0  # nothing gained, or a zero that any error may fill
    programs = _programs(problem, gain)
    multipliers = _breaking_even(problem, gain, programs)
    return _certified_ratio(problem, primary_losses, gain, multipliers)


def break_even_within(
    problem: ProjectionProblem, primary_losses: Floats, deployed: Deployment
) -> tuple[float, float]:
    """The break-even of a map between two numbers, both recomputed.

    The first is :func:`break_even`. The second is the reference error of a truth under
    which nothing is gained; it is infinite where none was looked for, with moments
    that have no programme of their own.
    """
    gain = (primary_losses - deployed.losses)[problem.pairs.owner]
    if not np.isfinite(gain).all() or not gain.any():
        return 0.0, 0.0
    programs = _programs(problem, gain)
    multipliers = _breaking_even(problem, gain, programs)
    lower = _certified_ratio(problem, primary_losses, gain, multipliers)
    rows, rates = problem.pairs, None
    if programs is not None:
        rates = _without_gain(programs, rows, gain, multipliers)
    if rates is None:
        return lower, np.inf
    error = problem.moments.violations(problem.node_mass(rows, rates)).sum()
    return lower, max(float(error), lower)


def _programs(problem: ProjectionProblem, gain: Floats) -> CellPrograms | None:
    """The programmes of the cells, where their moments have one."""
    form = FORMS.get(problem.moments.form)
    return None if form is None else form(problem.moments, problem.pairs, gain)


def _breaking_even(
    problem: ProjectionProblem, gain: Floats, programs: CellPrograms | None
) -> Floats:
    if programs is not None:
        return _best_ratio(programs)
    return _least_error_without_gain(problem.moments, problem.pairs, gain)


def _certified_ratio(
    problem: ProjectionProblem,
    primary_losses: Floats,
    gain: Floats,
    multipliers: Floats,
) -> float:
    return certified_minimum(
        problem.moments,
        problem.pairs,
        gain,
        multipliers,
        reference_error=1.0,
        size=float(np.abs(primary_losses).max()),
    ).break_even


def _without_gain(
    programs: CellPrograms, rows: Rows, gain: Floats, multipliers: Floats
) -> Floats | None:
    """Rates under which nothing is gained, with as little reference error as possible.

    At the best bound on the multipliers two truths are equally bad, one with more
    error and one with more gain; a mixture of both gains nothing.
    """
    bound = programs.size_of(multipliers)
    if bound == 0:  # nothing is gained even where the reference is right
        bound = np.inf
    for distance in _DISTANCES:
        rates = [programs.truth(bound * (1 + side)) for side in (-distance, distance)]
        gains = [float(rows.weight @ (gain * one).sum(axis=1)) for one in rates]
        if gains[1] <= 0:
            return rates[1]
        if gains[0] <= 0:
            share = gains[1] / (gains[1] - gains[0])
            share = min(share * (1 + 1e-14) + 1e-15, 1.0)  # never short of it
            return share * rates[0] + (1 - share) * rates[1]
    return None


def _best_ratio(programs: CellPrograms) -> Floats:
    """Dinkelbach: price the size of the multipliers at the ratio reached so far."""
    ratio, best = 0.0, np.zeros(programs.moments.n_rows)
    if programs.value(best) > 0:
        return best  # a gain under every truth whatever: no error can undo it
    for _ in range(50):
        multipliers = best_multipliers(programs, ratio)
        steepness = programs.size_of(multipliers)
        reached = programs.value(multipliers) / steepness if steepness > 0 else 0.0
        if reached <= ratio * (1 + 1e-13):
            break
        ratio, best = reached, multipliers
    return best


def _by_linear_programme(
    moments: MomentRows, rows: Rows, gain: Floats, reference_error: float
) -> Floats:
    model = ConicModel()
    kernels = add_kernels(model, moments, rows, reference_error)
    present = (kernels.index >= 0) & np.isfinite(gain)
    cost = rows.weight[:, None] * np.where(present, gain, 0.0)
    model.cost(kernels.index[present], cost[present])
    return kernels.multipliers(model.solve())


def _least_error_without_gain(moments: MomentRows, rows: Rows, gain: Floats) -> Floats:
    """Multipliers from the least reference error under which nothing is gained."""
    model = ConicModel()
    kernels = add_kernels(model, moments, rows, None)
    no_gain = _forbid_gain(model, kernels, gain)
    solution = model.solve()
    price = float(solution.dual(no_gain)[0])
    if price <= 0:
        return np.zeros(moments.n_rows)
    return kernels.multipliers(solution) / price


def _forbid_gain(model: ConicModel, kernels: Kernels, gain: Floats) -> Block:
    numbers = kernels.index.ravel()
    weighted = (kernels.rows.weight[:, None] * gain).ravel()
    entries = [(np.zeros_like(numbers), numbers, weighted)]
    return model.constrain("nonnegative", entries, np.zeros(1))
