"""Projection under a user's own generator: Newton's method with Clarabel inside.

Around the current distributions the generator is replaced by its second-order model,
whose curvature is measured by differences of the gradient inside the simplex; the
quadratic programme that results is solved by Clarabel and the step shortened until the
true objective falls. Nothing here is trusted: certificates use the loss itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats
from trueup.core.generator_loss import GeneratorLoss
from trueup.core.losses import Solved
from trueup.core.reports import Distributions
from trueup.core.simplex import normalise_rows
from trueup.solve import conic
from trueup.solve.certificate import lower_bound
from trueup.solve.model import ConicModel
from trueup.solve.problem import ProjectionProblem
from trueup.solve.progress import Progress, Watch
from trueup.solve.rounding import Witness, gap_wanted, round_to_witness, upper_bound

_MOST_STEPS = 60
_INSIDE = 1e-9
"""How far iterates stay from the border, where gradients may be infinite."""


@dataclass(slots=True, eq=False)
class _Best:
    """What is proved so far."""

    witness: Witness
    upper: float
    solved: Solved | None = None
    multipliers: Floats | None = None
    slopes: Floats | None = None
    lower: float = -np.inf


def solve(
    problem: ProjectionProblem,
    loss: GeneratorLoss,
    *,
    start: conic.Start | None = None,
    watch: Watch | None = None,
) -> conic.Iterate:
    """Project by a sequence of quadratic programmes.

    Interrupting from the keyboard ends it with the best that is proved, after the
    first programme, before which nothing is.
    """
    best = _begin(problem, loss, start)
    primary = loss.vectors(problem.atoms)
    n_steps, reached, is_interrupted, fell = 0, False, False, np.inf
    try:
        while n_steps < _MOST_STEPS and not reached and (fell > 0 or n_steps < 2):
            n_steps += 1
            step = _quadratic_step(problem, loss, best.witness)
            _prove(problem, loss, primary, best, step)
            aim = round_to_witness(problem, step.rates, step.distributions)
            best.witness, fell = _shortened(
                problem, loss, best.witness, aim, best.upper
            )
            best.upper -= fell
            reached = best.upper - best.lower <= 0.5 * gap_wanted(best.upper, primary)
            if watch is not None:
                watch(Progress(n_steps, best.lower, best.upper))
    except KeyboardInterrupt:
        if best.solved is None:
            raise
        is_interrupted = True
    status = f"clarabel: {n_steps} quadratic programmes for a given generator"
    found = _iterate(best, status, n_steps)
    return replace(found, reached=reached, is_interrupted=is_interrupted)


def _begin(
    problem: ProjectionProblem, loss: GeneratorLoss, start: conic.Start | None
) -> _Best:
    """At rates that satisfy the moments, or where a similar problem ended if better."""
    anchors = problem.moments.anchors[problem.linked.node]
    candidates = [(anchors, _means(problem, anchors))]
    if start is not None:
        candidates.append((start.rates, start.distributions))
    rounded = [round_to_witness(problem, rates, h) for rates, h in candidates]
    values = [upper_bound(problem, loss, one) for one in rounded]
    which = int(np.argmin(values))
    return _Best(rounded[which], values[which])


def _iterate(best: _Best, status: str, n_steps: int) -> conic.Iterate:
    assert best.solved is not None  # the first step proves something
    assert best.multipliers is not None
    assert best.slopes is not None
    rates, h = best.witness.outcome_rates, best.witness.distributions
    return conic.Iterate(
        best.solved,
        h,
        rates,
        best.multipliers,
        status,
        n_steps,
        witness=best.witness,
        lower=best.lower,
        start=conic.Start(
            best.slopes,
            best.multipliers,
            rates,
            h,
            np.zeros_like(best.multipliers),
            1.0,
        ),
    )


def _prove(
    problem: ProjectionProblem,
    loss: GeneratorLoss,
    primary: Floats,
    best: _Best,
    step: _Step,
) -> None:
    """Deploy what the step's slopes give, and keep it if more is certified."""
    tilt = step.slopes[problem.cell_of_atom]
    solved = Solved(tilt, problem.possible)
    reports = cast("Distributions", problem.atoms)
    h = loss.tilted(reports.probabilities, solved)
    solved = replace(solved, distributions=h)
    deployed = loss.deploy(reports, solved)
    bound = lower_bound(problem, primary, deployed, step.multipliers)
    lower = bound.at(problem.reference_error)
    if lower > best.lower or best.solved is None:
        best.solved, best.lower = solved, lower
        best.multipliers, best.slopes = step.multipliers, step.slopes


def _means(problem: ProjectionProblem, rates: Floats) -> Floats:
    rows = problem.linked
    mass = group_sums(rows.owner, rows.weight[:, None] * rates, problem.n_cells)
    return normalise_rows(mass)[problem.cell_of_atom]


def _inside(rows: Floats) -> Floats:
    return normalise_rows(np.maximum(rows, _INSIDE))


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """Optimum of a quadratic model."""

    rates: Floats
    distributions: Floats
    slopes: Floats
    """(primary cells, K)."""
    multipliers: Floats


def _quadratic_step(
    problem: ProjectionProblem, loss: GeneratorLoss, witness: Witness
) -> _Step:
    """Replace the generator by its second-order model around a witness."""
    centre = _inside(witness.distributions)
    slope = loss.gradient(centre) + loss.vectors(problem.atoms)
    root = _curvature_roots(loss, centre)
    model = ConicModel()
    kernels = conic.add_kernels(
        model, problem.moments, problem.linked, problem.reference_error
    )
    h = model.variables(len(centre), problem.n_outcomes)
    link = conic.add_links(model, problem, kernels, h)
    weight = problem.atom_weight[:, None]
    model.cost(h, weight * slope)
    along = model.variables(*h.shape)
    model.square(along, np.broadcast_to(weight / 2, h.shape))
    n_atoms, k = h.shape
    row = np.arange(n_atoms * k).reshape(n_atoms, k)
    model.constrain(
        "zero",
        [
            (row, along, np.ones(h.shape)),
            (
                np.repeat(row[:, :, None], k, axis=2),
                np.repeat(h[:, None, :], k, axis=1),
                -root,
            ),
        ],
        -np.einsum("aij,aj->ai", root, centre).ravel(),
    )
    solution = model.solve()
    mass = group_sums(problem.cell_of_atom, problem.atom_weight, problem.n_cells)
    return _Step(
        kernels.rates(solution),
        normalise_rows(solution.x[h]),
        -solution.dual(link).reshape(-1, k) / mass[:, None],
        kernels.multipliers(solution),
    )


def _curvature_roots(loss: GeneratorLoss, centre: Floats) -> Floats:
    """(atoms, K, K) matrices R with R'R the curvature along the simplex."""
    values, vectors = np.linalg.eigh(loss.curvature(centre))
    scale = np.sqrt(np.maximum(values, 1e-9))
    return cast("Floats", scale[:, :, None] * vectors.transpose(0, 2, 1))


def _shortened(
    problem: ProjectionProblem,
    loss: GeneratorLoss,
    witness: Witness,
    aim: Witness,
    value: float,
) -> tuple[Witness, float]:
    """The longest of a few steps that lowers the objective, and by how much."""
    length = 1.0
    for _ in range(30):
        trial = Witness(
            (1 - length) * witness.outcome_rates + length * aim.outcome_rates,
            (1 - length) * witness.distributions + length * aim.distributions,
        )
        fell = value - upper_bound(problem, loss, trial)
        if fell > 0:
            return trial, fell
        length /= 2
    return witness, 0.0
