"""Items under an assumption, and the range of a mean over all admissible truths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self, cast

import numpy as np

from trueup import _validate
from trueup._render import html_table, json_number
from trueup._validate import Floats, Ints, Label
from trueup.core.cells import Auto, Cells, get_cells
from trueup.core.joint import JointTable
from trueup.core.moments import MomentRows, Trust, choose_trust, moment_rows
from trueup.core.pairing import paired_reports
from trueup.core.properties import Property
from trueup.core.reports import Reports
from trueup.errors import InvalidInputError
from trueup.solve.problem import Rows, merged_rows
from trueup.solve.projection import POPULATION
from trueup.solve.worst_case import least_gain


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value any admissible truth allows.

    Not a confidence interval: the joint table is taken as the population, and both
    ends are attained by some truth that fits the assumption.
    """

    lower: float
    upper: float
    metric: str
    assumption: str

    def to_dict(self) -> dict[str, Any]:
        """The bounds as one JSON object."""
        ends = {"lower": json_number(self.lower), "upper": json_number(self.upper)}
        return asdict(self) | ends

    def __repr__(self) -> str:
        return f"Bounds({self.metric} in [{self.lower:.6g}, {self.upper:.6g}])"

    def __str__(self) -> str:
        return f"{self.metric}: {self.lower:.6g} to {self.upper:.6g}. {self.assumption}"

    def _repr_html_(self) -> str:
        ends = (f"{self.lower:.6g}", f"{self.upper:.6g}")
        header = ("metric", "at least", "at most")
        return html_table("Bounds", header, [(self.metric, *ends)], [self.assumption])


@dataclass(frozen=True, slots=True, eq=False)
class _Tags(Reports):
    """Stands in for primary reports where only their identity matters."""

    tags: Floats
    item: Ints
    outcomes: tuple[Label, ...] = field(default=())

    @property
    def about(self) -> Property:
        message = "tags state no property"
        raise AttributeError(message)

    def keys(self) -> Floats:
        return self.tags

    def answers(self) -> None:
        return None

    def take(self, index: Ints) -> Self:
        return type(self)(self.tags[index], self.item[index], self.outcomes)

    def reordered(self, outcomes: Sequence[Label]) -> Self:
        del outcomes
        return self


def population_cells(cells: str | Cells, what: str) -> Cells:
    """Cells that take the table as the population; others are refused."""
    chosen = get_cells(cells)
    if isinstance(chosen, Auto):
        message = (
            f"{what} takes the table as the population, which adaptive cells do not.\n"
            "hint: use cells=trueup.Step(0.01), or cells='exact'."
        )
        raise InvalidInputError(message)
    return chosen


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Both predictors on the same items, the reference rounded to its cells."""

    primary: Reports
    reference: Reports

    @classmethod
    def read(
        cls,
        primary: object,
        reference: object,
        outcomes: Iterable[Any] | None,
        cells: str | Cells,
    ) -> Self:
        """Read user input as :func:`trueup.fit` does."""
        named = None if outcomes is None else tuple(outcomes)
        first, second = paired_reports(primary, reference, named)
        return cls(first, population_cells(cells, "a bound").merge(second))

    def believe(
        self,
        keys: Floats,
        *,
        trust: str | None,
        caps: bool | None,
        groups: Iterable[Any] | None,
        sample_weight: object | None,
        reference_error: float,
    ) -> Believed:
        """Items that share a reference report and a key, under an assumption."""
        error = _validate.non_negative(reference_error, "reference_error")
        tags = _Tags(keys, np.arange(len(self.primary)), self.primary.outcomes)
        joint = JointTable.from_reports(
            tags,
            self.reference,
            counts=sample_weight,
            groups=groups,
            counted_as="sample_weight",
        )
        belief = choose_trust(joint, trust, caps, error)
        moments = moment_rows(joint, belief)
        rows = merged_rows(moments.node_of_pair, joint.primary_index, joint.weights)
        item = cast("_Tags", joint.primary).item
        return Believed(moments, rows, item, belief, len(self.primary))


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """Rows of the table and what is believed of the reference on them."""

    moments: MomentRows
    rows: Rows
    item: Ints
    """(owners,) an item that stands for each owner of rows."""
    trust: Trust
    n_items: int

    def range_of(self, values: Floats, name: str) -> Bounds:
        """Least and greatest mean of (items, K) values over all admissible truths."""
        per_row = values[self.item][self.rows.owner]
        return Bounds(
            lower=self._least(per_row),
            upper=-self._least(-per_row),
            metric=name,
            assumption=self.trust.sentence(POPULATION.format(n_items=self.n_items)),
        )

    def _least(self, per_row: Floats) -> float:
        finite = per_row[np.isfinite(per_row)]
        error = self.trust.reference_error
        bound, _ = least_gain(
            self.moments,
            self.rows,
            per_row,
            reference_error=error,
            size=float(np.abs(finite).max(initial=0.0)),
        )
        # A mean is never below the least value, whatever rounding is allowed for.
        return max(bound.at(error), float(per_row.min()))
