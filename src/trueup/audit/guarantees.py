"""Certified improvements side by side: over reference errors, rungs and losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from trueup._validate import Floats
from trueup.audit._render import Shown, Table, json_number, number
from trueup.core.losses import Deployment, ProperLoss
from trueup.core.moments import Trust
from trueup.solve import conic
from trueup.solve.certificate import Bound, lower_bound
from trueup.solve.problem import ProjectionProblem
from trueup.solve.worst_case import worst_case


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best map for one assumption, with what it is certified to gain."""

    value: float
    """Certified, and never below zero: the primary may always be left alone."""
    deployed: Deployment
    multipliers: Floats
    line: Bound
    """The same map and multipliers under any other reference error."""


def certified_optimum(problem: ProjectionProblem, loss: ProperLoss) -> Optimum:
    """Project once; the map may draw answers, which is then the best there is."""
    iterate = conic.solve(problem, loss)
    primary = loss.vectors(problem.atoms)
    deployed = loss.deploy(problem.atoms, iterate.solved)
    error, multipliers = problem.reference_error, iterate.multipliers
    bound = lower_bound(problem, primary, deployed, multipliers)
    exact, best = worst_case(problem, primary, deployed)
    if exact.at(error) > bound.at(error):
        bound, multipliers = exact, best
    # Without an error some outcomes are ruled out; with any they are not.
    line = lower_bound(problem, primary, deployed, multipliers, reference_error=1.0)
    return Optimum(max(bound.at(error), 0.0), deployed, multipliers, line)


def at_error(problem: ProjectionProblem, reference_error: float) -> ProjectionProblem:
    """The same problem with another error budget."""
    trust = replace(problem.trust, reference_error=float(reference_error))
    return replace(problem, trust=trust)


@dataclass(frozen=True, eq=False)
class GuaranteeCurve(Shown):
    """Guaranteed improvement against the reference's error.

    Each point is projected for its own error and certified; the values are convex and
    never increase, and from the pair's break-even on they are zero.

    Attributes
    ----------
    errors
        Error budgets, ascending.
    guaranteed_improvement
        What the best map for each budget is guaranteed to gain, the draw included
        where the best map draws answers.
    break_even_reference_error
        Smallest budget at which nothing is guaranteed any more.
    """

    errors: Floats
    guaranteed_improvement: Floats
    break_even_reference_error: float
    loss: str
    unit: str

    def _table(self) -> Table:
        rows = [
            (number(error), number(value))
            for error, value in zip(
                self.errors, self.guaranteed_improvement, strict=True
            )
        ]
        return Table(
            f"Guaranteed improvement in {self.loss} loss, zero from a reference error "
            f"of {number(self.break_even_reference_error)} on",
            ("reference error", "guaranteed improvement"),
            rows,
            (f"The reference error is the {self.unit}.",),
        )

    def to_dict(self) -> dict[str, Any]:
        """The curve as one JSON object."""
        return {
            "loss": self.loss,
            "unit": self.unit,
            "errors": self.errors.tolist(),
            "guaranteed_improvement": self.guaranteed_improvement.tolist(),
            "break_even_reference_error": json_number(self.break_even_reference_error),
        }

    def __repr__(self) -> str:
        return (
            f"GuaranteeCurve({self.loss} loss, {len(self.errors)} points from "
            f"{number(float(self.guaranteed_improvement[0]))} at error "
            f"{number(float(self.errors[0]))}, zero from "
            f"{number(self.break_even_reference_error)} on)"
        )


def guarantee_curve(
    problem: ProjectionProblem,
    loss: ProperLoss,
    errors: Floats,
    break_even: tuple[float, float],
) -> GuaranteeCurve:
    """Project again for every error below the break-even (certified, attained)."""
    lower, upper = break_even
    solved = [
        certified_optimum(at_error(problem, error), loss)
        for error in errors
        if error < upper
    ]
    own = np.zeros(len(errors))
    own[: len(solved)] = [optimum.value for optimum in solved]
    # The map of one point is certified at the others too, along a line; the best of
    # all lines is convex and falls, as the exact curve does.
    lines = [[optimum.line.at(float(error)) for optimum in solved] for error in errors]
    along = np.array([max([0.0, *values]) for values in lines])
    values = np.where(errors < upper, np.maximum(own, along), 0.0)
    return GuaranteeCurve(errors, values, lower, loss.name, problem.trust.unit)


@dataclass(frozen=True, slots=True)
class RungGuarantee:
    """What one rung of the ladder guarantees."""

    rung: str
    caps: bool
    guaranteed_improvement: float
    """Of the best map, the draw included where the best map draws answers."""
    assumption: str
    chosen: bool
    """Whether this is the rung of the audit."""

    @property
    def name(self) -> str:
        """The rung, and whether the answer is trusted to be the most likely one."""
        return f"{self.rung} with caps" if self.caps else self.rung

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as one JSON object."""
        return {
            "rung": self.rung,
            "caps": self.caps,
            "guaranteed_improvement": self.guaranteed_improvement,
            "assumption": self.assumption,
            "chosen": self.chosen,
        }


@dataclass(frozen=True, eq=False)
class Rungs(Shown, Sequence[RungGuarantee]):
    """The guarantee at every rung the reference has, least trust first.

    More trust never lowers the guarantee; whether it is deserved, no guarantee says.
    """

    rows: tuple[RungGuarantee, ...]
    loss: str

    @overload
    def __getitem__(self, index: int) -> RungGuarantee: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RungGuarantee, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> RungGuarantee | tuple[RungGuarantee, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def _table(self) -> Table:
        rows = [
            (
                one.name,
                number(one.guaranteed_improvement),
                "<- this audit" if one.chosen else "",
            )
            for one in self.rows
        ]
        header = ("the reference is trusted for", "guaranteed improvement", "")
        notes = ("A guarantee is worth what its assumption is worth.",)
        caption = f"Guaranteed improvement in {self.loss} loss at every rung"
        return Table(caption, header, rows, notes)

    def to_dict(self) -> dict[str, Any]:
        """All rungs as one JSON object."""
        return {"loss": self.loss, "rungs": [one.to_dict() for one in self.rows]}

    def __repr__(self) -> str:
        parts = [
            f"{one.name} {number(one.guaranteed_improvement)}" for one in self.rows
        ]
        return f"Rungs({self.loss} loss: {', '.join(parts)})"


def rung_guarantee(
    problem: ProjectionProblem, loss: ProperLoss, population: str, chosen: Trust
) -> RungGuarantee:
    """What the rung of one problem guarantees."""
    trust = problem.trust
    return RungGuarantee(
        rung=trust.rung,
        caps=trust.caps,
        guaranteed_improvement=certified_optimum(problem, loss).value,
        assumption=trust.sentence(population),
        chosen=(trust.rung, trust.caps) == (chosen.rung, chosen.caps),
    )


@dataclass(frozen=True, slots=True)
class OtherLoss:
    """One map under one loss."""

    loss: str
    worst_case_improvement: float
    """Of this map, over every truth the assumption admits; may be negative."""
    best_improvement: float
    """What the best map for this loss would guarantee."""
    is_own: bool
    """Whether the map was fitted for this loss."""

    def to_dict(self) -> dict[str, Any]:
        """The row as one JSON object."""
        return {
            "loss": self.loss,
            "worst_case_improvement": json_number(self.worst_case_improvement),
            "best_improvement": json_number(self.best_improvement),
            "is_own": self.is_own,
        }


@dataclass(frozen=True, eq=False)
class OtherLosses(Shown, Sequence[OtherLoss]):
    """The certificate of one map under every loss that fits what it reports.

    No map is best for all losses: a map may lose under a loss it was not fitted for.
    """

    rows: tuple[OtherLoss, ...]
    assumption: str
    undefined: tuple[str, ...] = ()
    """Losses that are infinite for the primary already."""

    @overload
    def __getitem__(self, index: int) -> OtherLoss: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[OtherLoss, ...]: ...
    def __getitem__(self, index: int | slice) -> OtherLoss | tuple[OtherLoss, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def _table(self) -> Table:
        rows = [
            (
                one.loss + (" (fitted for)" if one.is_own else ""),
                number(one.worst_case_improvement),
                number(one.best_improvement),
            )
            for one in self.rows
        ]
        notes = [self.assumption]
        notes += [
            f"{name} loss is infinite where the primary reports a zero: left out."
            for name in self.undefined
        ]
        header = ("loss", "this map, at worst", "the best map for it")
        caption = "One map under every loss that fits; no map is best for all"
        return Table(caption, header, rows, notes)

    def to_dict(self) -> dict[str, Any]:
        """All losses as one JSON object."""
        return {
            "assumption": self.assumption,
            "losses": [one.to_dict() for one in self.rows],
            "undefined": list(self.undefined),
        }

    def __repr__(self) -> str:
        parts = [f"{one.loss} {number(one.worst_case_improvement)}" for one in self]
        return f"OtherLosses(worst case of one map: {', '.join(parts)})"
