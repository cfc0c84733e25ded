"""A proximal Newton method: for any table, any loss the loops know, and any start.

The outer method moves outcome rates K towards the optimum in steps that each solve

    min over K of  objective(K) + sum_p w_p |K_p - centre_p|^2 / (2 sigma)

by Newton's method on the dual, whose systems are sparse and solved by conjugate
gradients. After every step the rates are nearly admissible and the multipliers give a
lower bound, so the method can be interrupted anywhere and resumed from anywhere.
"""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats
from trueup.core.losses import ProperLoss
from trueup.solve._descent import maximise
from trueup.solve._prox import Tilted
from trueup.solve.conic import Start
from trueup.solve.layout import Layout
from trueup.solve.problem import ProjectionProblem
from trueup.solve.run import Run
from trueup.solve.workspace import make_workspace

_MOST_NEWTON = 40
_ACCURACY = 0.05
"""Residual at which a proximal step ends, relative to how far it moved."""
_FIRST_SIGMA, _LEAST_SIGMA, _LARGEST_SIGMA = 0.3, 0.1, 1e4


class ProximalRun(Run):
    """One projection by proximal steps."""

    most_steps = 200

    def __init__(
        self,
        problem: ProjectionProblem,
        loss: ProperLoss,
        layout: Layout,
        start: Start | None,
        *,
        before: str = "",
        close: float = 0.0,
    ) -> None:
        super().__init__(problem, loss, layout, close)
        self.before = before
        self.space = make_workspace(layout, problem.moments)
        self.sigma, self.damping, self.n_newton = _FIRST_SIGMA, 1.0, 0
        if start is not None:
            self._resume(start)
        self.best = self.space.at.x.copy()

    def _resume(self, start: Start) -> None:
        """Begin at the multipliers and rates of a similar problem."""
        layout, at = self.layout, self.space.at
        cells, outcomes = np.nonzero(layout.atoms.slot >= 0)
        at.x[layout.atoms.slot[cells, outcomes]] = start.slopes[cells, outcomes]
        at.x[layout.n_slots :] = start.multipliers
        at.centre[:] = layout.flat_rates(start.rates)
        at.slack_centre[:] = start.slack
        self.space.tilted.centre[:] = start.distributions
        self.sigma = start.sigma

    def step(self) -> None:
        """One proximal step."""
        layout, space = self.layout, self.space
        self.residual, self.damping, n_newton = maximise(
            layout.table,
            layout.conditions,
            layout.atoms,
            space.tilted,
            space.at,
            space.active,
            space.blocks,
            space.work,
            self.sigma,
            _ACCURACY,
            self.damping,
            _MOST_NEWTON,
        )
        space.recentre()
        self.n_steps += 1
        self.n_newton += n_newton
        self.sigma = _next_sigma(self.sigma, n_newton)

    @property
    def x(self) -> Floats:
        return self.space.at.x

    @property
    def flat_rates(self) -> Floats:
        return self.space.at.centre

    @property
    def h(self) -> Floats:
        return self.space.tilted.h

    @property
    def tilted(self) -> Tilted:
        return self.space.tilted

    def describe(self) -> tuple[str, int]:
        steps = f"{self.n_steps} proximal and {self.n_newton} Newton steps"
        return f"native: {steps}{self.before}", self.n_newton

    def resumable(self) -> tuple[Floats, Floats, float]:
        return self.space.tilted.centre, self.space.at.slack_centre, self.sigma


def _next_sigma(sigma: float, n_newton: int) -> float:
    """Longer proximal steps while they are easy, shorter ones when they are not."""
    if n_newton <= 2:
        return min(sigma * 2, _LARGEST_SIGMA)
    if n_newton <= 4:
        return min(sigma * 1.3, _LARGEST_SIGMA)
    return max(sigma * 0.6, _LEAST_SIGMA) if n_newton > 10 else sigma
