"""The best map for an assumption, certified, with caps taken in as they are needed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Bools, Floats
from trueup.audit.programme import CAPPED
from trueup.core.losses import Deployment, ProperLoss
from trueup.core.moments import MomentRows
from trueup.core.simplex import normalise_rows
from trueup.solve import conic
from trueup.solve.certificate import Bound, lower_bound
from trueup.solve.problem import ProjectionProblem
from trueup.solve.worst_case import worst_case

_ROUNDS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best map for one assumption, with what it is certified to gain."""

    value: float
    """Certified, and never below zero: the primary may always be left alone."""
    deployed: Deployment
    distributions: Floats
    """(primary reports, K) the compatible distributions behind the map."""
    multipliers: Floats
    line: Bound
    """The same map and multipliers under any other reference error."""
    needed: Bools
    """(moment rows,) the moments that were needed to find it."""


def certified_optimum(
    problem: ProjectionProblem, loss: ProperLoss, needed: Bools | None = None
) -> Optimum:
    """Project once; the map may draw answers, which is then the best there is.

    ``needed`` are moments to begin with, from a similar problem.
    """
    start = _all_but_caps(problem.moments) if needed is None else needed
    iterate, needed = _solve(problem, loss, start)
    primary = loss.vectors(problem.atoms)
    deployed = loss.deploy(problem.atoms, iterate.solved)
    error, multipliers = problem.reference_error, iterate.multipliers
    bound = lower_bound(problem, primary, deployed, multipliers)
    exact, best = worst_case(problem, primary, deployed)
    if exact.at(error) > bound.at(error):
        bound, multipliers = exact, best
    if bound.at(error) <= 0:  # nothing is certified, so nothing is changed
        deployed = loss.identity(problem.atoms)
        multipliers = np.zeros(problem.moments.n_rows)
    # Without an error some outcomes are ruled out; with any they are not.
    line = lower_bound(problem, primary, deployed, multipliers, reference_error=1.0)
    return Optimum(
        value=max(bound.at(error), 0.0),
        deployed=deployed,
        distributions=iterate.solved.distributions,
        multipliers=multipliers,
        line=line,
        needed=needed,
    )


def at_error(problem: ProjectionProblem, reference_error: float) -> ProjectionProblem:
    """The same problem with another error budget."""
    trust = replace(problem.trust, reference_error=float(reference_error))
    return replace(problem, trust=trust)


def _all_but_caps(moments: MomentRows) -> Bools:
    return moments.equality | (moments.form not in CAPPED)


def _solve(
    problem: ProjectionProblem, loss: ProperLoss, needed: Bools
) -> tuple[conic.Iterate, Bools]:
    """Solve with the moments needed so far until those left out hold by themselves.

    Of thousands of caps a few dozen bind, and the others cost most of the time. What
    is left out only costs optimality, which the certificate measures against all.
    """
    moments = problem.moments
    threshold = _threshold(problem)
    for attempt in range(_ROUNDS):
        smaller = replace(problem, moments=_with_rows(moments, needed))
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
    return 1e-11 + 1e-8 * mass[moments.cell_of_row]


def _with_rows(moments: MomentRows, kept: Bools) -> MomentRows:
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
