"""The certificate: a lower bound recomputed without trusting any solver.

For ANY deployed losses L and ANY multipliers (of the right sign on inequalities) the
number below is at most the true fall in expected loss, for every truth the assumption
admits. This module shares no code with the engines; it reads the pairs of the joint
table, what is deployed, and the multipliers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from trueup._validate import Floats
from trueup.core.losses import Deployment
from trueup.core.moments import MomentRows
from trueup.solve.problem import ProjectionProblem, Rows

ROUNDING = 1e-12
"""Relative allowance for floating-point sums, subtracted from every bound."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A certified lower bound, in the parts it is made of."""

    base: float
    """The bound for a reference without error."""
    steepness: float
    """max |multiplier|: how fast the bound falls with the reference's error."""
    rounding: float

    def at(self, reference_error: float) -> float:
        """The bound when the reference's error is at most this."""
        penalty = self.steepness * reference_error if reference_error else 0.0
        return self.base - penalty - self.rounding

    @property
    def break_even(self) -> float:
        """Reference error up to which the bound stays positive."""
        if self.base <= self.rounding:
            return 0.0
        if self.steepness == 0:
            return float("inf")
        return (self.base - self.rounding) / self.steepness


def lower_bound(
    problem: ProjectionProblem,
    primary_losses: Floats,
    deployed: Deployment,
    multipliers: Floats,
    *,
    reference_error: float | None = None,
) -> Bound:
    """Certify the improvement of what is deployed over the primary's own losses."""
    return certified_minimum(
        problem.moments,
        problem.pairs,
        (primary_losses - deployed.losses)[problem.pairs.owner],
        multipliers,
        reference_error=(
            problem.reference_error if reference_error is None else reference_error
        ),
        size=float(np.abs(primary_losses).max()),
    )


def certified_minimum(
    moments: MomentRows,
    rows: Rows,
    gain: Floats,
    multipliers: Floats,
    *,
    reference_error: float,
    size: float,
) -> Bound:
    """Certify the least expected gain over all admissible truths.

    METHOD section 4, general form, for any (rows, K) gains and any multipliers:
    sum_m lambda_m t_m + sum_n w_n min_y [ gain_n(y) - lambda_n(y) ], less max|lambda|
    per unit of reference error and an allowance for rounding.
    """
    signed = np.where(moments.equality, multipliers, np.minimum(multipliers, 0))
    signed = moments.centred(signed)
    slack = gain - moments.pull(signed)[rows.node]
    if reference_error == 0:  # outcomes that a right reference rules out cannot hurt
        slack = np.where(moments.allowed[rows.node], slack, np.inf)
    worst = slack.min(axis=1)
    steepness = float(np.abs(signed).max(initial=0.0))
    is_identity = steepness == 0 and not gain.any()
    return Bound(
        base=float(signed @ moments.target + rows.weight @ worst),
        steepness=steepness,
        rounding=0.0 if is_identity else ROUNDING * (1 + size + steepness),
    )


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is guaranteed of one deployed map, and on which assumption.

    Attributes
    ----------
    guaranteed_improvement
        Certified lower bound on the fall in expected loss. True for every truth the
        assumption admits, whatever the solver did.
    gap
        Feasible upper bound on the optimum minus the certified lower bound: how much
        a better map could at most gain.
    assumption
        The sentence a reader needs.

    Examples
    --------
    >>> import trueup
    >>> proof = trueup.fit([0.1, 0.7], [0.5, 0.5], cells="exact").certificate
    >>> round(proof.guaranteed_improvement, 6), round(proof.gap, 6)
    (0.02, 0.0)
    >>> round(proof.break_even_reference_error, 6)
    0.05
    >>> print(proof.assumption)
    Holds for every truth under which the reference is calibrated as a whole
    distribution; the joint table of 2 items is taken as the population.
    """

    guaranteed_improvement: float
    upper_bound: float
    loss: str
    assumption: str
    trust: str
    caps: bool
    n_groups: int
    reference_error: float
    reference_free_improvement: float
    """Part of the optimum that needs no reference: impossible primary reports."""
    steepness: float
    """Fall of this bound per unit of reference error, with these multipliers."""
    tolerance: float
    """Gap asked of the solver."""
    engine: str
    n_items: int
    notes: tuple[str, ...] = ()
    supported: bool = True
    """Whether anything positive is guaranteed."""
    reason: str = ""
    """Why nothing is, in words."""
    fitted: float = 0.0
    """The bound on the items the map was fitted on: optimistic on a sample."""
    certified: float = 0.0
    """The bound estimated on other items, everything fixed beforehand."""
    lower: float = 0.0
    """One-sided 95 % lower limit of ``certified``."""
    n0: int = 0
    """Items in the smallest reference cell, remainders of a bin aside."""
    n_cells: int = 0
    """Number of reference cells."""
    _compute_break_even: Callable[[], float] | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """Feasible upper bound minus certified lower bound.

        For confidence and zero-one loss the upper bound is that of maps which give
        the same answers; a map that draws answers may do better and has its own.
        """
        return self.upper_bound - self.guaranteed_improvement

    @property
    def optimism(self) -> float:
        """How much better the map looks on the items it was fitted on."""
        return self.fitted - self.certified

    @cached_property
    def break_even_reference_error(self) -> float:
        """Reference error below which this map is still guaranteed to improve.

        In the units of ``reference_error``; computed on first use by a linear
        programme whose dual is checked like every other bound.
        """
        if self._compute_break_even is None:
            return 0.0
        return self._compute_break_even()

    def __repr__(self) -> str:
        return (
            f"Certificate({self.loss} loss falls by at least "
            f"{self.guaranteed_improvement:.6g}, gap {self.gap:.1e}; {self.assumption})"
        )
