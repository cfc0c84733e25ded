"""Bounds without labels, for anything linear in the truth.

Accuracy, a proper loss, the improvement of any post-processing, the difference of two
maps: each is an expectation of some number per item and outcome. The least and the
greatest value over all admissible truths are exact, cell by cell.

Cells round the reference only. The primary's reports, and whatever replaces them, are
taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, cast

import numpy as np

from trueup._render import json_number
from trueup._validate import Floats
from trueup.audit._items import Bounds, Items
from trueup.core.cells import Cells
from trueup.core.losses import LOSSES, ProperLoss, get_loss
from trueup.core.pairing import parse_reports, same_outcomes
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.errors import InvalidInputError, UnknownNameError
from trueup.maps.report_map import RandomisedMap

Metric: TypeAlias = Callable[[Any, Any], float]


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
            "worst_case_improvement": json_number(float(self)),
            "best_case_improvement": json_number(self.best),
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
    given = candidate
    # Any saved kind of map, baselines included; a data frame has `apply` but no `save`.
    if hasattr(candidate, "apply") and hasattr(candidate, "save"):
        stated: object = primary
        if isinstance(primary, Distributions):
            stated = primary.probabilities
        given = candidate.apply(stated)
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
