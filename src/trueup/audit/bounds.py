"""Bounds without labels, for anything linear in the truth.

Accuracy, a proper loss, the improvement of any post-processing, the difference of two
maps: each is an expectation of some number per item and outcome. The least and the
greatest value over all admissible truths are exact, cell by cell.

Cells round the reference only. The primary's reports, and whatever replaces them, are
taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self, TypeAlias, cast

import numpy as np

from trueup import _validate
from trueup._validate import Floats, Ints, Label
from trueup.core.cells import Cells, get_cells
from trueup.core.joint import JointTable, paired_reports
from trueup.core.losses import LOSSES, ProperLoss, get_loss
from trueup.core.moments import MomentRows, Trust, choose_trust, moment_rows
from trueup.core.properties import Property
from trueup.core.reports import (
    AnswerConfidence,
    Distributions,
    PointReport,
    Reports,
    parse_reports,
    same_outcomes,
)
from trueup.errors import InvalidInputError, UnknownNameError
from trueup.maps.report_map import RandomisedMap, ReportMap
from trueup.solve.problem import Rows, merged_rows
from trueup.solve.projection import POPULATION
from trueup.solve.worst_case import least_gain

Metric: TypeAlias = Callable[[Any, Any], float]


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
        ends = {"lower": _number(self.lower), "upper": _number(self.upper)}
        return asdict(self) | ends

    def __repr__(self) -> str:
        return f"Bounds({self.metric} in [{self.lower:.6g}, {self.upper:.6g}])"

    def __str__(self) -> str:
        return f"{self.metric}: {self.lower:.6g} to {self.upper:.6g}. {self.assumption}"

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415 - only notebooks need it

        cells = (self.metric, f"{self.lower:.6g}", f"{self.upper:.6g}")
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        return (
            "<table><thead><tr><th>metric</th><th>at least</th><th>at most</th></tr>"
            f"</thead><tbody><tr>{row}</tr></tbody></table>"
            f"<p>{escape(self.assumption)}</p>"
        )


class WorstCase(float):
    """A certified worst-case improvement: a number that knows what it rests on."""

    best: float
    """The improvement under the most favourable admissible truth."""
    loss: str
    assumption: str

    @classmethod
    def of(cls, bounds: Bounds, loss: str) -> Self:
        """The lower end, with the rest attached."""
        made = cls(bounds.lower)
        made.best, made.loss, made.assumption = bounds.upper, loss, bounds.assumption
        return made

    def to_dict(self) -> dict[str, Any]:
        """The number and its assumption as one JSON object."""
        return {
            "worst_case_improvement": _number(float(self)),
            "best_case_improvement": _number(self.best),
            "loss": self.loss,
            "assumption": self.assumption,
        }

    def __repr__(self) -> str:
        return (
            f"WorstCase({self.loss} loss falls by at least {float(self):.6g}, "
            f"at most {self.best:.6g})"
        )


def bounds(
    primary: object,
    reference: object,
    *,
    metric: str | Metric = "accuracy",
    trust: str | None = None,
    caps: bool | None = None,
    groups: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    cells: str | Cells = "exact",
    reference_error: float = 0.0,
    outcomes: Iterable[Any] | None = None,
) -> Bounds:
    """Bound the primary's accuracy or loss without labels.

    Parameters
    ----------
    primary, reference, trust, caps, groups, sample_weight, reference_error, outcomes
        As in :func:`trueup.fit`.
    metric
        ``"accuracy"``, the name of a loss that fits the primary, or a function of
        (report, outcome). A report is a row of probabilities, an (answer, confidence)
        tuple, or a value; an outcome is its name.
    cells
        How the reference's reports are rounded; the primary's are not.

    Returns
    -------
    Bounds
        Least and greatest value over every truth the assumption admits.

    Examples
    --------
    The reference says 0.5 on every item. Whatever the primary answers, with K = 2
    nothing links the two, and it may be always wrong or always right:

    >>> import numpy as np
    >>> bounds(np.array([.1, .7]), np.array([.5, .5]))
    Bounds(accuracy in [0, 1])

    A reference that says 0.9 leaves less room:

    >>> bounds(np.array([.1, .7]), np.array([.9, .9]))
    Bounds(accuracy in [0.4, 0.6])
    """
    items = Items.read(primary, reference, outcomes, cells)
    chosen, name = _metric_values(items.primary, metric)
    believed = items.believe(
        chosen.keys,
        trust=trust,
        caps=caps,
        groups=groups,
        sample_weight=sample_weight,
        reference_error=reference_error,
    )
    return believed.range_of(chosen.values, name)


def worst_case_improvement(
    better: object,
    primary: object,
    reference: object,
    *,
    loss: str | None = None,
    trust: str | None = None,
    caps: bool | None = None,
    groups: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    cells: str | Cells = "exact",
    reference_error: float = 0.0,
    outcomes: Iterable[Any] | None = None,
) -> WorstCase:
    """Certify the worst-case improvement of any post-processing, ours or not.

    Parameters
    ----------
    better
        New reports, one an item and of the primary's kind, however they were made, or
        a fitted map (:class:`ReportMap`, or its ``randomised`` map).
    primary, reference, loss, trust, caps, groups, sample_weight, reference_error
        As in :func:`trueup.fit`.
    cells
        How the reference's reports are rounded; the primary's are not.

    Examples
    --------
    >>> import numpy as np
    >>> p, q = np.array([.1, .7]), np.array([.5, .5])
    >>> worst_case_improvement(np.array([.2, .8]), p, q)
    WorstCase(brier loss falls by at least 0.02, at most 0.02)
    """
    items = Items.read(primary, reference, outcomes, cells)
    chosen = get_loss(loss, items.primary.about)
    new = _losses_of(better, items.primary, chosen, "better")
    old = chosen.vectors(items.primary)
    believed = items.believe(
        np.column_stack([items.primary.keys(), new.keys]),
        trust=trust,
        caps=caps,
        groups=groups,
        sample_weight=sample_weight,
        reference_error=reference_error,
    )
    found = believed.range_of(
        _difference(old, new.values), f"{chosen.name} improvement"
    )
    return WorstCase.of(found, chosen.name)


def compare(
    map_a: object,
    map_b: object,
    primary: object,
    reference: object,
    *,
    loss: str | None = None,
    trust: str | None = None,
    caps: bool | None = None,
    groups: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    cells: str | Cells = "exact",
    reference_error: float = 0.0,
    outcomes: Iterable[Any] | None = None,
) -> Bounds:
    """Bound the loss of one candidate minus the loss of another.

    An upper end below zero means that the first is better under every truth the
    assumption admits; a lower end above zero, the second.

    Parameters
    ----------
    map_a, map_b
        Fitted maps, or reports of the primary's kind, one an item.
    primary, reference, loss, trust, caps, groups, sample_weight, reference_error
        As in :func:`trueup.fit`.
    cells
        How the reference's reports are rounded; the primary's are not.

    Examples
    --------
    >>> import numpy as np
    >>> p, q = np.array([.1, .7]), np.array([.5, .5])
    >>> compare(np.array([.2, .8]), p, p, q)
    Bounds(brier loss of a minus b in [-0.02, -0.02])
    """
    items = Items.read(primary, reference, outcomes, cells)
    chosen = get_loss(loss, items.primary.about)
    first = _losses_of(map_a, items.primary, chosen, "map_a")
    second = _losses_of(map_b, items.primary, chosen, "map_b")
    believed = items.believe(
        np.column_stack([first.keys, second.keys]),
        trust=trust,
        caps=caps,
        groups=groups,
        sample_weight=sample_weight,
        reference_error=reference_error,
    )
    name = f"{chosen.name} loss of a minus b"
    return believed.range_of(_difference(first.values, second.values), name)


@dataclass(frozen=True, slots=True, eq=False)
class _PerItem:
    """A number per item and outcome, and keys that tell different items apart."""

    values: Floats
    keys: Floats


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
        return cls(first, get_cells(cells).merge(second))

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
            tags, self.reference, counts=sample_weight, groups=groups
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


def _metric_values(primary: Reports, metric: str | Metric) -> tuple[_PerItem, str]:
    if callable(metric):
        return _called(primary, metric), getattr(metric, "__name__", "metric")
    if metric == "accuracy":
        answers = primary.answers()
        if answers is None:
            message = (
                f"accuracy needs an answer, but the primary reports a "
                f"{primary.about.title}.\nhint: use metric={primary.about.losses[0]!r}."
            )
            raise InvalidInputError(message)
        values = (answers[:, None] == np.arange(primary.n_outcomes)).astype(np.float64)
        return _PerItem(values, answers[:, None].astype(np.float64)), metric
    if metric not in LOSSES:
        raise UnknownNameError.of("metric", metric, ("accuracy", *LOSSES))
    loss = get_loss(metric, primary.about)
    values = loss.vectors(primary) + loss.constants(primary.n_outcomes)
    return _PerItem(values, primary.keys()), f"{metric} loss"


def _called(primary: Reports, metric: Metric) -> _PerItem:
    """Ask the user's function once for every distinct report and outcome."""
    from trueup._arrays import distinct_rows  # noqa: PLC0415

    first, inverse = distinct_rows(primary.keys())
    reports = _as_python(primary.take(first))
    table = np.array([[float(metric(r, y)) for y in primary.outcomes] for r in reports])
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        message = (
            f"the metric is {table[row, column]} for report {reports[row]!r} and "
            f"outcome {primary.outcomes[column]!r}; it must be a finite number."
        )
        raise InvalidInputError(message)
    return _PerItem(table[inverse], primary.keys())


def _as_python(reports: Reports) -> list[Any]:
    if isinstance(reports, AnswerConfidence):
        return list(zip(reports.labels(), reports.confidence.tolist(), strict=True))
    if isinstance(reports, PointReport):
        return reports.labels()
    return list(cast("Distributions", reports).probabilities)


def _losses_of(
    candidate: object, primary: Reports, loss: ProperLoss, name: str
) -> _PerItem:
    """(items, K) losses of new reports, of a map, or of a draw."""
    if isinstance(candidate, RandomisedMap):
        losses = candidate.expected_losses(primary)
        return _PerItem(losses, losses)
    given = candidate.apply(primary) if isinstance(candidate, ReportMap) else candidate
    reports = parse_reports(given, name, None)
    if type(reports.about) is not type(primary.about):
        message = (
            f"{name} reports {reports.about.title} but the primary "
            f"{primary.about.title}.\nhint: both must be of the same kind."
        )
        raise InvalidInputError(message)
    if len(reports) != len(primary):
        raise InvalidInputError.lengths("primary", len(primary), name, len(reports))
    known = same_outcomes(reports, primary, name, "primary")
    return _PerItem(loss.vectors(known), known.keys())


def _difference(first: Floats, second: Floats) -> Floats:
    """First - second, where both being infinite means that nothing changes."""
    both = np.isinf(first) & np.isinf(second)
    return np.where(both, 0.0, np.where(both, 0.0, first) - np.where(both, 0.0, second))


def _number(value: float) -> float | str:
    """JSON has no infinity."""
    return value if np.isfinite(value) else str(value)
