"""The corrected theorem for an imperfect reference (METHOD section 8).

For any map and any multipliers, if the reference's moment m in cell b is off by e_bm
(truth minus report), the improvement is at least

    LB(no error) + sum_b W_b sum_m lambda_bm e_bm,

W_b being the share of items in the cell; hence at least LB(no error) minus the dual
norm of lambda times a norm of e. The paper's own bound rests on a kernel with negative
entries and fails; it is not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from trueup import _validate
from trueup._render import json_number
from trueup._validate import Floats
from trueup.audit import _render
from trueup.audit._render import Shown, Table, number, percent
from trueup.audit.mutual import cell_text
from trueup.audit.pair import Pair
from trueup.core.losses import Deployment, ProperLoss
from trueup.core.moments import MomentRows
from trueup.errors import InvalidInputError, UnknownNameError
from trueup.solve.certificate import lower_bound
from trueup.solve.problem import ProjectionProblem, Rows

NORMS = ("l1", "l2")


@dataclass(frozen=True, slots=True)
class MomentRow:
    """One thing the reference is trusted for."""

    report: str
    moment: str
    """What is compared: a quantity of the truth and what the report says of it."""
    is_equality: bool
    share: float
    """Share of items in the row's cell."""


@dataclass(frozen=True, eq=False)
class ReferenceMoments(Shown, Sequence[MomentRow]):
    """Everything the reference is trusted for, in the order of an error vector."""

    rows: tuple[MomentRow, ...]

    @overload
    def __getitem__(self, index: int) -> MomentRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[MomentRow, ...]: ...
    def __getitem__(self, index: int | slice) -> MomentRow | tuple[MomentRow, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def _table(self) -> Table:
        rows = [
            (
                str(place),
                row.report,
                row.moment,
                "right" if row.is_equality else "not exceeded",
                percent(row.share),
            )
            for place, row in enumerate(self.rows)
        ]
        shown, more = _render.shortened(rows)
        header = ("", "reference reports", "moment", "trusted to be", "items")
        return Table("What the reference is trusted for", header, shown, more)

    def to_dict(self) -> dict[str, Any]:
        """All rows as one JSON object."""
        return {
            "moments": [
                {
                    "report": row.report,
                    "moment": row.moment,
                    "is_equality": row.is_equality,
                    "share": row.share,
                }
                for row in self.rows
            ]
        }

    def __repr__(self) -> str:
        return f"ReferenceMoments({len(self.rows):,} moments)"


def reference_moments(pair: Pair) -> ReferenceMoments:
    """Name the moment rows of the reference."""
    side = pair.reference
    moments, share = side.moments, side.cell_share
    texts = [cell_text(pair, side, cell) for cell in range(moments.n_cells)]
    return ReferenceMoments(
        tuple(
            MomentRow(
                report=texts[cell],
                moment=_moment_text(pair, slot),
                is_equality=bool(equality),
                share=float(share[cell]),
            )
            for cell, slot, equality in zip(
                moments.cell_of_row.tolist(),
                moments.slot_of_row.tolist(),
                moments.equality.tolist(),
                strict=True,
            )
        )
    )


def _moment_text(pair: Pair, slot: int) -> str:
    outcomes, about = pair.joint.reference.outcomes, pair.reference.reports.about
    form = pair.reference.moments.form
    if form == "vector":
        return f"P({outcomes[slot]})"
    if about.name == "distribution":
        return f"P({outcomes[1]})"
    if about.name == "answer-confidence":
        return "P(its answer)" if slot == 0 else f"P({outcomes[slot - 1]})"
    if about.name == "quantile":
        return "P(below it)" if slot == 0 else "-P(at or below it)"
    if about.name == "mode":
        return "P(another outcome) - P(it)"
    return "mean" if about.name == "mean" else "balance of weighted deviations"


@dataclass(frozen=True, eq=False)
class ImperfectBound(Shown):
    """A lower bound on the improvement when the reference errs as assumed.

    Attributes
    ----------
    value
        The bound.
    base
        The bound for a reference without error, with the same map and multipliers.
    change
        What the assumed errors add, usually less than nothing.
    """

    base: float
    change: float
    loss: str
    described: str
    """The assumed errors in words."""

    @property
    def value(self) -> float:
        """The improvement is at least this."""
        return self.base + self.change

    def _table(self) -> Table:
        rows = [
            ("improvement without error, at least", number(self.base)),
            (f"{self.described}", number(self.change)),
            ("improvement, at least", number(self.value)),
        ]
        caption = f"{self.loss} loss with an imperfect reference"
        return Table(caption, ("", "bound"), rows)

    def to_dict(self) -> dict[str, Any]:
        """The bound as one JSON object."""
        return {
            "value": json_number(self.value),
            "base": json_number(self.base),
            "change": json_number(self.change),
            "loss": self.loss,
            "described": self.described,
        }

    def __repr__(self) -> str:
        return (
            f"ImperfectBound({self.loss} loss falls by at least {number(self.value)}; "
            f"{self.described})"
        )


def imperfect_bound(
    pair: Pair,
    loss: ProperLoss,
    deployed: Deployment,
    multipliers: Floats,
    *,
    errors: object,
    norm: str,
) -> ImperfectBound:
    """Bound the improvement of a map from the reference's assumed errors."""
    if norm not in NORMS:
        raise UnknownNameError.of("norm", norm, NORMS)
    problem = pair.problem
    primary = loss.vectors(problem.atoms)
    gain = (primary - deployed.losses)[problem.pairs.owner]
    lifted = _lifted(problem, gain, pair.reference.signed(multipliers))
    bound = lower_bound(problem, primary, deployed, lifted, reference_error=1.0)
    base = bound.base - bound.rounding
    if np.ndim(errors) == 0:  # type: ignore[arg-type]
        size = _validate.non_negative(errors, "errors")  # type: ignore[arg-type]
        steepness = _dual_norm(pair, lifted, norm)
        described = f"reference error of {number(size)} ({norm.upper()})"
        return ImperfectBound(base, -size * steepness, loss.name, described)
    given = _validate.floats(errors, "errors")
    _check_vector(pair, given)
    share = pair.reference.cell_share[problem.moments.cell_of_row]
    change = float((share * lifted) @ given)
    described = f"the {given.size:,} reference errors given"
    return ImperfectBound(base, change, loss.name, described)


def _dual_norm(pair: Pair, multipliers: Floats, norm: str) -> float:
    """How fast the bound falls per unit of the errors' norm.

    A shift of a whole distribution's multipliers is free: mid-range makes their
    largest smallest, the mean their squares. Nowhere else is there such freedom.
    """
    moments = pair.reference.moments
    table = multipliers
    if moments.shiftable:
        rows = multipliers.reshape(moments.n_cells, -1)
        middle = (rows.min(axis=1) + rows.max(axis=1)) / 2
        centre = middle if norm == "l1" else rows.mean(axis=1)
        table = (rows - centre[:, None]).ravel()
    if norm == "l1":
        return float(np.abs(table).max(initial=0.0))
    share = pair.reference.cell_share[moments.cell_of_row]
    return float(np.sqrt(share @ table**2))


def _check_vector(pair: Pair, errors: Floats) -> None:
    moments = pair.reference.moments
    _validate.check_finite(errors, "errors")
    if errors.shape != (moments.n_rows,):
        message = (
            f"errors must be one number, or one for each of the {moments.n_rows:,} "
            f"moments of the reference, got shape {errors.shape}.\n"
            "hint: reference_moments lists them in order."
        )
        raise InvalidInputError(message)
    if not moments.shiftable:
        return
    sums = errors.reshape(moments.n_cells, -1).sum(axis=1)
    off = np.abs(sums) > 1e-9
    if off.any():
        cell = int(np.argmax(off))
        message = (
            f"errors of a distribution must sum to zero; those of "
            f"{cell_text(pair, pair.reference, cell)} sum to {sums[cell]:.4g}.\n"
            "hint: what one outcome has too much of, others have too little of."
        )
        raise InvalidInputError(message)


def _lifted(problem: ProjectionProblem, gain: Floats, multipliers: Floats) -> Floats:
    """Multipliers that need no outcome to be ruled out.

    A reference that says zero or one rules outcomes out, and certificates without
    error make use of it. A large enough multiplier does the same, at its price once
    there are errors; without them it changes nothing.
    """
    moments, rows = problem.moments, problem.pairs
    allowed = moments.allowed[rows.node]
    if allowed.all():
        return multipliers
    slack = gain - moments.pull(multipliers)[rows.node]
    worst = np.where(allowed, slack, np.inf).min(axis=1)
    short = np.where(allowed, 0.0, worst[:, None] - slack)
    short = np.where(np.isfinite(short), np.maximum(short, 0.0), 0.0)
    if moments.shiftable:
        excess = np.zeros((moments.n_cells, short.shape[1]))
        np.maximum.at(excess, moments.cell_of_node[rows.node], short)
        return multipliers - excess.ravel()
    return multipliers + _steeper(moments, rows, short)


def _steeper(moments: MomentRows, rows: Rows, short: Floats) -> Floats:
    """What to add to the one equality of cells at the end of their range."""
    coefficients = np.zeros(moments.anchors.shape)
    first = moments.equality[moments.row]
    place = moments.node[first], moments.outcome[first]
    coefficients[place] = moments.coefficient[first]
    level = np.where(moments.allowed, coefficients, -np.inf).max(axis=1)
    distance = level[:, None] - coefficients
    spread = distance[rows.node]
    ratio = np.where(short > 0, short / np.where(spread == 0, 1.0, spread), 0.0)
    cell = moments.cell_of_node[rows.node]
    up, down = np.zeros(moments.n_cells), np.zeros(moments.n_cells)
    np.maximum.at(up, cell, np.maximum(ratio, 0).max(axis=1))
    np.minimum.at(down, cell, np.minimum(ratio, 0).min(axis=1))
    change = (up + down)[moments.cell_of_row]
    return np.where(moments.equality, change, 0.0)
