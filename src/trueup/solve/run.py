"""A projection in progress: what is proved so far, whatever method takes the steps."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from trueup._validate import Floats
from trueup.core.losses import ProperLoss, Solved
from trueup.core.reports import AnswerConfidence
from trueup.core.simplex import normalise_rows
from trueup.solve._newton import dual_value
from trueup.solve._prox import Tilted
from trueup.solve.conic import Iterate, Start
from trueup.solve.layout import Layout
from trueup.solve.problem import ASSERTED, ProjectionProblem
from trueup.solve.progress import Progress, Watch
from trueup.solve.rounding import Witness, gap_wanted, round_to_witness, upper_bound

_SMALL, _POLISH = 2_000, 10
"""Coordinates of tables that are polished, and steps spent on it."""
_NEARLY = 1e-7
"""Residual at which rates count as admissible where they cannot be rounded."""
_FINISH = 0.9
"""Share of the gap asked for at which to stop; the rest is for rounding."""


class Run(ABC):
    """One projection in progress."""

    most_steps: int

    def __init__(
        self,
        problem: ProjectionProblem,
        loss: ProperLoss,
        layout: Layout,
        close: float = 0.0,
    ) -> None:
        self.problem, self.loss, self.layout = problem, loss, layout
        self.close = close
        """A gap that is small enough even where more is usually asked for."""
        self.primary = loss.vectors(problem.atoms)
        self.n_steps = self.n_polished = 0
        self.residual = self.checked = np.inf
        self.lower, self.upper = -np.inf, np.inf
        self.best = np.zeros(layout.n_slots + problem.moments.n_rows)
        self.witness: Witness | None = None
        self.is_interrupted = self.reached = self.is_stuck = False

    @abstractmethod
    def step(self) -> None:
        """Go on; sets ``residual`` and, where nothing more is to be had, ``is_stuck``.

        The residual says how far the rates are from admissible, or products from zero.
        """

    @property
    @abstractmethod
    def x(self) -> Floats:
        """Slopes, then multipliers."""

    @property
    @abstractmethod
    def flat_rates(self) -> Floats:
        """(coordinates,) outcome rates."""

    @property
    @abstractmethod
    def h(self) -> Floats:
        """(atoms, K) distributions."""

    @property
    @abstractmethod
    def tilted(self) -> Tilted:
        """Arrays the tilts of a bound may be written to."""

    @abstractmethod
    def describe(self) -> tuple[str, int]:
        """What was done in words, and the number of Newton steps."""

    @abstractmethod
    def resumable(self) -> tuple[Floats, Floats, float]:
        """Distributions, slacks and step length from which to go on."""

    def go(self, watch: Watch | None) -> None:
        """Step until the gap asked for is reached, or nothing more is to be had."""
        try:
            for _ in range(self.most_steps):
                self.step()
                if self.is_done(tell=watch is not None) or self.is_stuck:
                    break
                if watch is not None:
                    watch(Progress(self.n_steps, self.lower, self.upper))
        except KeyboardInterrupt:
            self.is_interrupted = True

    def is_done(self, *, tell: bool) -> bool:
        """Whether feasible and certified values are near enough.

        Rates are rounded to admissible ones only where that may end the solve, or
        where somebody watches.
        """
        layout, problem = self.layout, self.problem
        x, h = self._signed(self.x), normalise_rows(self.h)
        lower = self._constant() + dual_value(
            layout.table, layout.conditions, layout.atoms, self.tilted, x
        )
        if lower > self.lower:
            self.lower, self.best = lower, x
        divergence = self.loss.divergence(h, problem.atoms)
        estimate = max(float(problem.atom_weight @ divergence), 0.0)
        wanted = max(gap_wanted(estimate, self.primary), self.close)
        near = estimate - self.lower <= wanted and self.residual <= self.checked / 3
        if near or tell:
            self.checked = self.residual
            self._round(h)
        gap = self.upper - self.lower
        self.reached = gap <= _FINISH * wanted
        is_small = len(layout.row) <= _SMALL and self.close == 0
        if self.reached and is_small and self.n_polished < _POLISH:
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
        return self.layout.rates(self.flat_rates, h, shape)

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
        problem, layout = self.problem, self.layout
        distributions, slack, sigma = self.resumable()
        h = normalise_rows(distributions)
        if self.witness is None or not self.reached:
            self._round(h)
        witness = self.witness or Witness(self._rates(h), h)
        slopes = layout.slopes(self.best)
        cell = problem.cell_of_atom
        multipliers = self.best[layout.n_slots :]
        status, n_newton = self.describe()
        return Iterate(
            Solved(slopes[cell], layout.atoms.slot[cell] >= 0),
            witness.distributions,
            witness.outcome_rates,
            multipliers,
            status,
            n_newton,
            witness=witness,
            lower=self.lower,
            reached=self.reached,
            is_interrupted=self.is_interrupted,
            start=Start(
                slopes,
                multipliers,
                witness.outcome_rates,
                distributions.copy(),
                slack.copy(),
                sigma,
            ),
        )
