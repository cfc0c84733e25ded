"""Projection under a user's own generator: Newton's method with Clarabel inside.

Around the current distributions the generator is replaced by its second-order model,
whose curvature is measured by differences of the gradient inside the simplex; the
quadratic programme that results is solved by Clarabel and the step shortened until the
true objective falls. Nothing here is trusted: certificates use the loss itself.
"""

from __future__ import annotations

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats
from trueup.core.generator_loss import GeneratorLoss
from trueup.core.losses import Solved
from trueup.core.simplex import normalise_rows
from trueup.solve import conic
from trueup.solve.model import ConicModel
from trueup.solve.problem import ProjectionProblem
from trueup.solve.rounding import Witness, gap_wanted, round_to_witness, upper_bound

_MOST_STEPS = 60
_INSIDE = 1e-9
"""How far iterates stay from the border, where gradients may be infinite."""
_DIFFERENCE = 1e-6


def solve(problem: ProjectionProblem, loss: GeneratorLoss) -> conic.Iterate:
    """Project by a sequence of quadratic programmes."""
    anchors = problem.moments.anchors[problem.linked.node]
    witness = round_to_witness(problem, anchors, _means(problem, anchors))
    value = upper_bound(problem, loss, witness)
    wanted = 0.01 * gap_wanted(value, loss.vectors(problem.atoms))
    multipliers = np.zeros(problem.moments.n_rows)
    status = "stopped"
    for step in range(1, _MOST_STEPS + 1):
        rates, h, multipliers, promised = _quadratic_step(problem, loss, witness)
        aim = round_to_witness(problem, rates, h)
        if promised <= wanted:
            status = "Solved"
            break
        witness, fell = _shortened(problem, loss, witness, aim, value)
        value -= fell
        if fell <= 1e-3 * wanted:
            status = "Solved"
            break
    inside = _inside(witness.distributions)
    stated = problem.atoms.probabilities  # type: ignore[attr-defined]
    tilt = loss.gradient(inside) - loss.gradient(_inside(stated))
    return conic.Iterate(
        Solved(tilt, problem.possible, inside),
        witness.distributions,
        witness.outcome_rates,
        multipliers,
        f"clarabel: {status}, {step} quadratic programmes for a given generator",
        step,
        witness=witness,
    )


def _means(problem: ProjectionProblem, rates: Floats) -> Floats:
    rows = problem.linked
    mass = group_sums(rows.owner, rows.weight[:, None] * rates, problem.n_cells)
    return normalise_rows(mass)[problem.cell_of_atom]


def _inside(rows: Floats) -> Floats:
    return normalise_rows(np.maximum(rows, _INSIDE))


def _quadratic_step(
    problem: ProjectionProblem, loss: GeneratorLoss, witness: Witness
) -> tuple[Floats, Floats, Floats, float]:
    """Rates, distributions and multipliers of the model's optimum, and its fall."""
    centre = _inside(witness.distributions)
    slope = loss.gradient(centre) + loss.vectors(problem.atoms)
    root = _curvature_roots(loss, centre)
    model = ConicModel()
    kernels = conic.add_kernels(
        model, problem.moments, problem.linked, problem.reference_error
    )
    h = model.variables(len(centre), problem.n_outcomes)
    conic.add_links(model, problem, kernels, h)
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
    found = normalise_rows(solution.x[h])
    move = found - centre
    promised = -float((weight * slope * move).sum())
    return kernels.rates(solution), found, kernels.multipliers(solution), promised


def _curvature_roots(loss: GeneratorLoss, centre: Floats) -> Floats:
    """(atoms, K, K) matrices R with R'R the curvature along the simplex."""
    n_atoms, k = centre.shape
    slope = loss.gradient(centre)
    columns = np.empty((n_atoms, k, k))
    for y in range(k):
        nudged = (1 - _DIFFERENCE) * centre
        nudged[:, y] += _DIFFERENCE
        columns[:, :, y] = (loss.gradient(nudged) - slope) / _DIFFERENCE
    flat = np.eye(k) - 1 / k
    columns = flat @ columns @ flat
    values, vectors = np.linalg.eigh((columns + columns.transpose(0, 2, 1)) / 2)
    scale = np.sqrt(np.maximum(values, 1e-9))
    return scale[:, :, None] * vectors.transpose(0, 2, 1)


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
