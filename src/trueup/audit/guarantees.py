"""Certified improvements side by side: over reference errors, rungs and losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from trueup._render import json_number
from trueup._validate import Floats
from trueup.audit._curve import CurvePoints
from trueup.audit._render import Shown, Table, number
from trueup.audit.optimum import certified_optimum
from trueup.core.joint import JointTable
from trueup.core.losses import Deployment, ProperLoss, get_loss
from trueup.core.moments import RUNGS, Trust
from trueup.core.reports import Distributions, PointReport
from trueup.solve.problem import ProjectionProblem
from trueup.solve.worst_case import worst_case


@dataclass(frozen=True, eq=False)
class GuaranteeCurve(Shown):
    """Guaranteed improvement against the reference's error.

    Every value is certified; the values are convex and never increase, and from the
    pair's break-even on they are zero. On curves of more than ten points some maps are
    interpolated between two projections: their certified value is within a five
    hundredth of the curve's first value of what the best map would be guaranteed.

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
    """Certified values below the break-even (certified, attained), zeros beyond."""
    lower, upper = break_even
    points = CurvePoints(problem, loss, errors[errors < upper])
    points.find()
    own = np.zeros(len(errors))
    own[: len(points.values)] = points.values
    # The map of one point is certified at the others too, along a line; the best of
    # all lines is convex and falls, as the exact curve does.
    lines = [[line.at(float(error)) for line in points.lines] for error in errors]
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


def ladder(joint: JointTable, trust: Trust) -> list[tuple[str, bool]]:
    """The rungs a reference has, each with and without caps where that differs."""
    if isinstance(joint.reference, PointReport):
        return [(trust.rung, trust.caps)]
    steps = [(rung, False) for rung in RUNGS[:3]]
    # With two outcomes the cap follows from the confidence.
    if joint.n_outcomes > 2 or trust.caps:
        steps.append((RUNGS[2], True))
    if isinstance(joint.reference, Distributions):
        steps.append((RUNGS[3], False))
    return steps


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


def other_losses(
    problem: ProjectionProblem,
    better: Deployment,
    own: str,
    known: dict[str, float],
    population: str,
) -> OtherLosses:
    """Certify one map under every loss that fits the primary's property.

    ``better`` is what the map deploys under the loss named ``own``; under the others
    its reports are judged. ``known`` are best improvements that need no solving.
    """
    rows, undefined = [], []
    for name in problem.atoms.about.losses:
        loss = get_loss(name, problem.atoms.about)
        primary = loss.vectors(problem.atoms)
        if not np.isfinite(primary).all():
            undefined.append(name)
            continue
        judged = better
        if better.reports is not None:
            judged = Deployment(loss.vectors(better.reports), better.reports)
        bound, _ = worst_case(problem, primary, judged)
        if name not in known:
            known[name] = certified_optimum(problem, loss).value
        rows.append(
            OtherLoss(
                loss=name,
                worst_case_improvement=bound.at(problem.reference_error),
                best_improvement=known[name],
                is_own=name == own,
            )
        )
    assumption = problem.trust.sentence(population)
    return OtherLosses(tuple(rows), assumption, tuple(undefined))
