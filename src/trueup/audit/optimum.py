"""The best map for an assumption, certified, with caps taken in as they are needed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueup._validate import Floats
from trueup.core.losses import Deployment, ProperLoss
from trueup.solve.certificate import Bound, lower_bound
from trueup.solve.conic import Start
from trueup.solve.lazily import solve
from trueup.solve.problem import ProjectionProblem
from trueup.solve.rounding import gap_wanted
from trueup.solve.worst_case import worst_case


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
    start: Start | None
    """Where a similar problem may begin."""


def certified_optimum(
    problem: ProjectionProblem,
    loss: ProperLoss,
    start: Start | None = None,
    close: float = 0.0,
) -> Optimum:
    """Project once; the map may draw answers, which is then the best there is.

    ``start`` is where a similar problem ended, ``close`` a gap that is small enough.
    """
    iterate = solve(problem, loss, start=start, close=close)
    primary = loss.vectors(problem.atoms)
    deployed = loss.deploy(problem.atoms, iterate.solved)
    error, multipliers = problem.reference_error, iterate.multipliers
    bound = lower_bound(problem, primary, deployed, multipliers)
    wanted = max(gap_wanted(max(iterate.lower, 0.0), primary), close)
    if not iterate.lower - bound.at(error) <= wanted:
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
        distributions=iterate.distributions,
        multipliers=multipliers,
        line=line,
        start=iterate.start,
    )


def at_error(problem: ProjectionProblem, reference_error: float) -> ProjectionProblem:
    """The same problem with another error budget."""
    trust = replace(problem.trust, reference_error=float(reference_error))
    return replace(problem, trust=trust)
