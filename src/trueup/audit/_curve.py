"""Guarantees for many reference errors from few projections.

Between two errors that were solved for, the mean of the two truths is admissible at the
mean error (budgets are convex), so what it attains bounds the optimum from above; the
mean of the slopes and multipliers is a map with a certificate, which bounds it from
below. Where the two bounds differ by too much another projection is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trueup._validate import Floats
from trueup.audit.optimum import Optimum, at_error, certified_optimum
from trueup.core.losses import ProperLoss, Solved
from trueup.solve.certificate import Bound, lower_bound
from trueup.solve.problem import ProjectionProblem

FEW = 10
"""Curves of so many points are solved point by point."""
_CLOSE, _CLOSER = 2e-3, 5e-4
"""Gap of an interpolated point and of one that is solved for between the ends of a long
curve, as shares of its highest guarantee."""


@dataclass(slots=True, eq=False)
class CurvePoints:
    """Certified values at some errors, ascending, all below the break-even."""

    problem: ProjectionProblem
    loss: ProperLoss
    errors: Floats
    values: Floats = field(init=False)
    lines: list[Bound] = field(init=False)
    """How each certified map fares at other errors."""
    solved: dict[int, Optimum] = field(init=False)
    close: float = 0.0
    """Gap at which a projection may end."""

    def __post_init__(self) -> None:
        self.values = np.zeros(len(self.errors))
        self.lines, self.solved = [], {}

    def find(self) -> None:
        """Project for every error, or for so few that the rest is known well enough."""
        last = len(self.errors) - 1
        if last < FEW:
            for place in range(last + 1):
                self._solve(place, place - 1)
            return
        self._solve(0, -1)
        if self.values[0] == 0:  # and so is the rest: it never rises
            return
        self.close = _CLOSER * self.values[0]
        self._solve(last, 0)
        self._refine(0, last)

    def _solve(self, place: int, begin: int) -> None:
        known = self.solved[begin].start if begin in self.solved else None
        known = None if known is None else known.for_another()
        problem = at_error(self.problem, self.errors[place])
        found = certified_optimum(problem, self.loss, known, self.close)
        self.solved[place] = found
        self.values[place] = found.value
        self.lines.append(found.line)

    def _refine(self, first: int, last: int) -> None:
        """Interpolate between two solved points; solve where that is not close."""
        inside = range(first + 1, last)
        if not inside:
            return
        bounds = [self._between(first, last, place) for place in inside]
        gaps = [
            upper - line.at(self.errors[p])
            for (line, upper), p in zip(bounds, inside, strict=True)
        ]
        if max(gaps) <= _CLOSE * self.values[0]:
            for (line, _), place in zip(bounds, inside, strict=True):
                self.values[place] = max(line.at(self.errors[place]), 0.0)
                self.lines.append(line)
            return
        middle = inside[int(np.argmax(gaps))]
        self._solve(middle, first)
        self._refine(first, middle)
        self._refine(middle, last)

    def _between(self, first: int, last: int, place: int) -> tuple[Bound, float]:
        """The mean map's certificate, and what the mean truth attains."""
        one, other = self.solved[first], self.solved[last]
        if one.start is None or other.start is None:  # an engine that gives no slopes
            return one.line, np.inf
        errors, problem = self.errors, self.problem
        share = (errors[place] - errors[first]) / (errors[last] - errors[first])

        def mixed(a: Floats, b: Floats) -> Floats:
            return (1 - share) * a + share * b

        reports, cell = problem.atoms, problem.cell_of_atom
        slopes = mixed(one.start.slopes, other.start.slopes)[cell]
        everywhere = np.ones_like(slopes, dtype=bool)
        deployed = self.loss.deploy(reports, Solved(slopes, everywhere))
        multipliers = mixed(one.multipliers, other.multipliers)
        primary = self.loss.vectors(reports)
        line = lower_bound(problem, primary, deployed, multipliers, reference_error=1.0)
        h = mixed(one.distributions, other.distributions)
        attained = float(problem.atom_weight @ self.loss.divergence(h, reports))
        return line, attained
