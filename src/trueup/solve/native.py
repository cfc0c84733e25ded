"""Our own engine: a proximal Newton method that stops on a certified gap.

The outer method moves outcome rates K towards the optimum in steps that each solve

    min over K of  objective(K) + sum_p w_p |K_p - centre_p|^2 / (2 sigma)

by Newton's method on the dual, whose systems are sparse and solved by conjugate
gradients. After every step the rates are nearly admissible and the multipliers give a
lower bound, so the method can be interrupted anywhere and resumed from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from trueup._validate import Floats
from trueup.core.losses import ProperLoss, Solved
from trueup.core.reports import AnswerConfidence
from trueup.core.simplex import normalise_rows
from trueup.solve.conic import Iterate, Start
from trueup.solve.problem import ASSERTED, ProjectionProblem
from trueup.solve.rounding import Witness, gap_wanted, round_to_witness, upper_bound

_MOST_STEPS = 200
_MOST_NEWTON = 40
_ACCURACY = 0.1
"""Residual at which a proximal step ends, relative to how far it moved."""
_RISING = 6
"""First steps, which double sigma whatever happens."""
_SMALL, _POLISH = 2_000, 10
"""Coordinates of tables that are polished, and steps spent on it."""
_NEARLY = 1e-7
"""Residual at which rates count as admissible where they cannot be rounded."""
_FINISH = 0.9
"""Share of the gap asked for at which to stop; the rest is for rounding."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a projection stands: what is proved so far."""

    iteration: int
    lower: float
    """Certified: the optimum is at least this."""
    upper: float
    """Attained by an admissible truth: the optimum is at most this."""

    @property
    def gap(self) -> float:
        """How far the two are apart."""
        return self.upper - self.lower


Watch: TypeAlias = Callable[[Progress], object]


def knows(loss: ProperLoss) -> bool:
    """Whether the compiled loops know a loss."""
    from trueup.solve.layout import NATIVE  # noqa: PLC0415 - numba is heavy

    return isinstance(loss, NATIVE)


def solve(
    problem: ProjectionProblem,
    loss: ProperLoss,
    *,
    start: Start | None = None,
    watch: Watch | None = None,
) -> Iterate:
    """Project; ``reached`` says whether the gap asked for was reached.

    Interrupting from the keyboard ends the solve with the best that is proved.
    """
    run = _Run(problem, loss, start)
    try:
        for _ in range(_MOST_STEPS):
            run.step()
            if run.is_done(tell=watch is not None):
                break
            if watch is not None:
                watch(Progress(run.n_steps, run.lower, run.upper))
    except KeyboardInterrupt:
        run.is_interrupted = True
    return run.iterate()


class _Run:
    """One projection in progress."""

    def __init__(
        self, problem: ProjectionProblem, loss: ProperLoss, start: Start | None
    ) -> None:
        from trueup.solve.layout import lay_out  # noqa: PLC0415
        from trueup.solve.workspace import make_workspace  # noqa: PLC0415

        self.problem, self.loss = problem, loss
        self.primary = loss.vectors(problem.atoms)
        self.layout = lay_out(problem, loss)
        self.space = make_workspace(self.layout)
        self.sigma, self.damping = 1.0, 1.0
        if start is not None:
            self._resume(start)
        self.n_steps = self.n_newton = self.n_polished = 0
        self.residual = self.checked = np.inf
        self.lower, self.upper = -np.inf, np.inf
        self.best = self.space.at.x.copy()
        self.witness: Witness | None = None
        self.is_interrupted = self.reached = False

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
        from trueup.solve._descent import maximise  # noqa: PLC0415

        layout, space = self.layout, self.space
        self.residual, self.damping, n_newton = maximise(
            layout.table,
            layout.conditions,
            layout.atoms,
            space.tilted,
            space.at,
            space.active,
            space.work,
            self.sigma,
            _ACCURACY,
            self.damping,
            _MOST_NEWTON,
        )
        space.recentre()
        self.n_steps += 1
        self.n_newton += n_newton
        if self.n_steps <= _RISING:
            self.sigma = min(self.sigma * 2, 1e4)
        elif n_newton <= 1:
            self.sigma = min(self.sigma * 1.5, 1e4)
        elif n_newton > 12:
            self.sigma = max(self.sigma * 0.7, 1.0)

    def is_done(self, *, tell: bool) -> bool:
        """Whether feasible and certified values are near enough.

        Rates are rounded to admissible ones only where that may end the solve, or
        where somebody watches.
        """
        from trueup.solve._newton import dual_value  # noqa: PLC0415

        layout, problem, space = self.layout, self.problem, self.space
        x = self._signed(space.at.x)
        h = normalise_rows(space.tilted.h)
        lower = self._constant() + dual_value(
            layout.table, layout.conditions, layout.atoms, space.tilted, x
        )
        if lower > self.lower:
            self.lower, self.best = lower, x
        divergence = self.loss.divergence(h, problem.atoms)
        estimate = max(float(problem.atom_weight @ divergence), 0.0)
        wanted = gap_wanted(estimate, self.primary)
        near = estimate - self.lower <= wanted and self.residual <= self.checked / 3
        if near or tell:
            self.checked = self.residual
            self._round(h)
        gap = self.upper - self.lower
        self.reached = gap <= _FINISH * wanted
        if self.reached and len(layout.row) <= _SMALL and self.n_polished < _POLISH:
            # A few more steps cost nothing here and give all digits.
            self.n_polished += 1
            self.checked = np.inf
            return gap <= 1e-4 * wanted
        return self.reached

    def _round(self, h: Floats) -> None:
        rates = self._rates(h)
        witness = Witness(rates, h)
        if self.problem.moments.form != ASSERTED:
            witness = round_to_witness(self.problem, rates, h)
        elif self.residual > _NEARLY:  # no exact truth at hand: ask for more digits
            return
        upper = upper_bound(self.problem, self.loss, witness)
        if upper < self.upper or self.witness is None:
            self.upper, self.witness = upper, witness

    def _rates(self, h: Floats) -> Floats:
        shape = len(self.problem.linked.weight), self.problem.n_outcomes
        return self.layout.rates(self.space.at.centre, h, shape)

    def _constant(self) -> float:
        """What the loops leave out of the divergence of confidence losses."""
        if not isinstance(self.problem.atoms, AnswerConfidence):
            return 0.0
        return float(self.problem.atom_weight @ self.problem.atoms.confidence**2)

    def _signed(self, x: Floats) -> Floats:
        """Multipliers with the sign that inequalities need, centred where free."""
        moments, n_slots = self.problem.moments, self.layout.n_slots
        own = x[n_slots:]
        signed = np.where(moments.equality, own, np.minimum(own, 0.0))
        return np.append(x[:n_slots], moments.centred(signed))

    def iterate(self) -> Iterate:
        """What was found."""
        problem, layout, at = self.problem, self.layout, self.space.at
        h = normalise_rows(self.space.tilted.centre)
        if self.witness is None or not self.reached:
            self._round(h)
        witness = self.witness or Witness(self._rates(h), h)
        slopes = layout.slopes(self.best)
        cell = problem.cell_of_atom
        multipliers = self.best[layout.n_slots :]
        return Iterate(
            Solved(slopes[cell], layout.atoms.slot[cell] >= 0),
            witness.distributions,
            witness.outcome_rates,
            multipliers,
            f"native: {self.n_steps} proximal and {self.n_newton} Newton steps",
            self.n_newton,
            witness=witness,
            lower=self.lower,
            reached=self.reached,
            is_interrupted=self.is_interrupted,
            start=Start(
                slopes,
                multipliers,
                witness.outcome_rates,
                self.space.tilted.centre.copy(),
                at.slack_centre.copy(),
                self.sigma,
            ),
        )
