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
from trueup.solve.progress import Watch
from trueup.solve.rounding import gap_wanted, round_to_witness, upper_bound

CAPPED = ("capped", "pooled caps")
"""Forms of moments that hold an equality and caps."""
_ROUNDS = 20
_MANY = 2_000
"""Caps from which on our own engine begins without them too."""


def solve(
    problem: ProjectionProblem,
    loss: ProperLoss,
    *,
    start: conic.Start | None = None,
    watch: Watch | None = None,
    close: float = 0.0,
) -> conic.Iterate:
    """Project with our own engines, or with Clarabel where they do not do.

    Two outcomes have an exact one. Ours may stop at a gap of ``close``. Clarabel begins
    without caps.
    """
    if isinstance(loss, GeneratorLoss):
        return generic.solve(problem, loss, start=start, watch=watch)
    if not native.knows(loss):
        return solve_from(problem, loss, all_but_caps(problem.moments))[0]
    if two_outcomes.applies(problem, loss):
        exact = two_outcomes.solve(problem, loss, watch=watch)
        if exact.reached or exact.is_interrupted:
            return exact
    if _has_many_caps(problem):
        own = _natively_from(problem, loss, start, watch)
    else:
        own = native.solve(problem, loss, start=start, watch=watch, close=close)
    if own.reached or own.is_interrupted:
        return own
    try:
        other = solve_from(problem, loss, all_but_caps(problem.moments))[0]
    except SolverError:
        return own
    return replace(other, status=f"{other.status} (after {own.status})")


def _has_many_caps(problem: ProjectionProblem) -> bool:
    moments = problem.moments
    return moments.form in CAPPED and int((~moments.equality).sum()) > _MANY


def _natively_from(
    problem: ProjectionProblem,
    loss: ProperLoss,
    start: conic.Start | None,
    watch: Watch | None,
) -> conic.Iterate:
    """Solve with our own engine, taking in caps until those left out hold."""
    # What is left out is paid for in the upper bound: leave out less than Clarabel.
    moments, threshold = problem.moments, 0.01 * cap_threshold(problem)
    needed = all_but_caps(moments)
    if start is not None:
        needed = needed | (start.multipliers != 0)
    for attempt in range(_ROUNDS):
        smaller = replace(problem, moments=with_rows(moments, needed))
        begin = None if start is None else _for_rows(start, needed)
        own = native.solve(smaller, loss, start=begin, watch=watch)
        start = None if own.start is None else _for_all(own.start, needed)
        mass = problem.node_mass(problem.linked, own.outcome_rates)
        missing = ~needed & (moments.violations(mass) > threshold)
        if own.is_interrupted or not (own.reached and missing.any()):
            break
        needed = needed | missing | (attempt == _ROUNDS - 2)
    multipliers = np.zeros(moments.n_rows)
    multipliers[needed] = own.multipliers
    witness = round_to_witness(problem, own.outcome_rates, own.distributions)
    upper = upper_bound(problem, loss, witness)
    wanted = gap_wanted(upper, loss.vectors(problem.atoms))
    return replace(
        own,
        outcome_rates=witness.outcome_rates,
        distributions=witness.distributions,
        witness=witness,
        multipliers=multipliers,
        reached=upper - own.lower <= wanted,
        start=start,
    )


def _for_rows(start: conic.Start, kept: Bools) -> conic.Start:
    """A start without the moments that are left out."""
    return replace(
        start, multipliers=start.multipliers[kept], slack=start.slack[kept]
    ).for_another()


def _for_all(start: conic.Start, kept: Bools) -> conic.Start:
    """A start for all moments from one without some of them."""
    multipliers, slack = np.zeros(len(kept)), np.zeros(len(kept))
    multipliers[kept], slack[kept] = start.multipliers, start.slack
    return replace(start, multipliers=multipliers, slack=slack)


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
    threshold = cap_threshold(problem)
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


def cap_threshold(problem: ProjectionProblem) -> Floats:
    """(rows,) how far a moment that is left out may be from holding."""
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
