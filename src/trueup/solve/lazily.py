"""Solving with caps taken in as they are needed.

Of thousands of caps a few dozen bind, and the others cost most of the time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Bools, Floats
from trueup.core.losses import GeneratorLoss, ProperLoss
from trueup.core.moments import MomentRows
from trueup.core.simplex import normalise_rows
from trueup.errors import SolverError
from trueup.solve import conic, generic, native, two_outcomes
from trueup.solve.problem import ProjectionProblem

CAPPED = ("capped", "pooled caps")
"""Forms of moments that hold an equality and caps."""
_ROUNDS = 20


def solve(
    problem: ProjectionProblem,
    loss: ProperLoss,
    *,
    start: conic.Start | None = None,
    watch: native.Watch | None = None,
) -> conic.Iterate:
    """Project with our own engines, or with Clarabel where they do not do.

    Two outcomes have an exact one. Clarabel begins without caps.
    """
    if isinstance(loss, GeneratorLoss):
        return generic.solve(problem, loss)
    if not native.knows(loss):
        return solve_from(problem, loss, all_but_caps(problem.moments))[0]
    if two_outcomes.applies(problem, loss):
        exact = two_outcomes.solve(problem, loss, watch=watch)
        if exact.reached or exact.is_interrupted:
            return exact
    own = native.solve(problem, loss, start=start, watch=watch)
    if own.reached or own.is_interrupted:
        return own
    try:
        other = solve_from(problem, loss, all_but_caps(problem.moments))[0]
    except SolverError:
        return own
    return replace(other, status=f"{other.status} (after {own.status})")


def all_but_caps(moments: MomentRows) -> Bools:
    """(rows,) the moments to begin with."""
    return moments.equality | (moments.form not in CAPPED)


def solve_from(
    problem: ProjectionProblem, loss: ProperLoss, needed: Bools
) -> tuple[conic.Iterate, Bools]:
    """Solve with the moments needed so far until those left out hold by themselves.

    What is left out only costs optimality, which the certificate measures against all.
    """
    moments = problem.moments
    threshold = _threshold(problem)
    for attempt in range(_ROUNDS):
        smaller = replace(problem, moments=with_rows(moments, needed))
        iterate = conic.solve(smaller, loss)
        mass = problem.node_mass(problem.linked, normalise_rows(iterate.outcome_rates))
        missing = ~needed & (moments.violations(mass) > threshold)
        if not missing.any():
            break
        # A loop that does not settle ends with everything.
        needed = needed | missing | (attempt == _ROUNDS - 2)
    multipliers = np.zeros(moments.n_rows)
    multipliers[needed] = iterate.multipliers
    return replace(iterate, multipliers=multipliers), needed


def _threshold(problem: ProjectionProblem) -> Floats:
    moments, rows = problem.moments, problem.linked
    cells = moments.cell_of_node[rows.node]
    mass = group_sums(cells, rows.weight, moments.n_cells)
    # An asserted row is about all items; its cell has no nodes of its own.
    n_asserted = int(moments.cell_of_row.max(initial=-1)) + 1 - moments.n_cells
    mass = np.append(mass, np.full(max(n_asserted, 0), rows.weight.sum()))
    return np.asarray(1e-11 + 1e-8 * mass[moments.cell_of_row])


def with_rows(moments: MomentRows, kept: Bools) -> MomentRows:
    """Some of the moment rows, over the same nodes and cells."""
    if kept.all():
        return moments
    entries = kept[moments.row]
    return replace(
        moments,
        equality=moments.equality[kept],
        target=moments.target[kept],
        cell_of_row=moments.cell_of_row[kept],
        slot_of_row=moments.slot_of_row[kept],
        row=(np.cumsum(kept) - 1)[moments.row[entries]],
        node=moments.node[entries],
        outcome=moments.outcome[entries],
        coefficient=moments.coefficient[entries],
    )
