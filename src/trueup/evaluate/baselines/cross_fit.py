"""cross_fitted(): supervised baselines where no labelled split exists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.pairing import parse_reports
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.errors import InvalidInputError
from trueup.evaluate._inputs import (
    read_codes,
    read_labels,
    read_reports,
    read_rng,
    read_weights,
    read_whole_number,
)
from trueup.evaluate.baselines.base import LABELS, BaselineMap, SupervisedMap
from trueup.evaluate.baselines.registry import get_baseline


@runtime_checkable
class Applies(Protocol):
    """Anything that replaces reports."""

    def apply(self, primary: object, /) -> Any:  # noqa: ANN401 - the primary's kind
        """Replace the primary's reports."""


@runtime_checkable
class SupervisedBaseline(Protocol):
    """Anything with a ``fit`` on reports and labels; it need not be ours."""

    def fit(self, primary: object, labels: object, /) -> Applies:
        """Fit to what happened."""


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitted:
    """A supervised baseline on items whose own labels it was not fitted to.

    Attributes
    ----------
    reports
        The new reports in the order of the items, ready for :func:`trueup.evaluate`:
        an (n, K) array or ``AnswerConfidence``.
    maps
        The map of each fold, fitted on all *other* folds.
    fold
        (n,) the fold of each item.
    title
        The method's name, marked as cross-fitted.

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.tile([.6, .9], 50), np.tile([0, 1, 1, 1], 25)
    >>> done = cross_fitted("histogram", p, y)
    >>> done.is_cross_fitted, done.reports.shape
    (True, (100, 2))
    """

    reports: Any
    maps: tuple[Applies, ...]
    fold: Ints
    title: str

    @property
    def is_cross_fitted(self) -> bool:
        """Always true: such numbers must not be mistaken for a held-out split's."""
        return True

    def __repr__(self) -> str:
        return f"CrossFitted({self.title}, {len(self.fold):,} items)"


def cross_fitted(
    baseline: str | SupervisedBaseline,
    primary: object,
    labels: object,
    *,
    outcomes: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    blocks: Iterable[Any] | None = None,
    n_folds: int = 2,
    rng: np.random.Generator | None = None,
) -> CrossFitted:
    """Fit a supervised baseline on random halves, and apply each to the other half.

    For comparing with supervised methods where there is no labelled split beside the
    items of the evaluation. No item's report depends on its own label, but the
    baseline still sees labels that ours never does.

    Parameters
    ----------
    baseline
        A name such as ``"temperature"``, or anything with ``fit(primary, labels)``
        that returns something with ``apply(primary)``; what is not ours gets an (n, K)
        array (or ``AnswerConfidence``) and the positions of the outcomes.
    primary, labels, outcomes, sample_weight
        As in :func:`trueup.evaluate`.
    blocks
        One value an item; items with the same value stay in one fold.
    n_folds
        2 for halves.
    rng
        Draws the folds; ``numpy.random.default_rng(0)`` when left out.

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.tile([.6, .9], 50), np.tile([0, 1, 1, 1], 25)
    >>> done = cross_fitted("histogram", p, y)
    >>> done
    CrossFitted(histogram, cross-fitted on 2 halves, 100 items)
    >>> done.maps[0]
    HistogramBinning(2 of 10 bins filled, fitted on 50 items, all but fold 1 of 2)
    """
    method = get_baseline(baseline) if isinstance(baseline, str) else baseline
    if getattr(method, "needs", LABELS) != LABELS:
        message = (
            f"baseline {_name(method)!r} is fitted without labels.\n"
            "hint: fit it on all items; there is nothing to cross-fit."
        )
        raise InvalidInputError(message)
    n_parts = read_whole_number(n_folds, "n_folds", at_least=2)
    reports = read_reports(primary, "primary", outcomes)
    happened = read_labels(labels, reports.outcomes)
    if len(happened) != len(reports):
        raise InvalidInputError.lengths(
            "primary", len(reports), "labels", len(happened)
        )
    weights = None
    if sample_weight is not None:
        weights = read_weights(sample_weight, len(reports), "primary")
    fold = _folds(len(reports), n_parts, blocks, read_rng(rng))
    maps: list[Applies] = []
    parts: list[tuple[Ints, Reports]] = []
    for part in range(n_parts):
        others, mine = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        fitted = _fit(method, reports.take(others), happened[others], weights, others)
        maps.append(_marked(fitted, part, n_parts))
        better = fitted.apply(_native(reports.take(mine)))
        parts.append((mine, parse_reports(better, "the baseline", None)))
    halves = "2 halves" if n_parts == 2 else f"{n_parts} folds"
    return CrossFitted(
        reports=_stitched(parts, reports),
        maps=tuple(maps),
        fold=fold,
        title=f"{_name(method)}, cross-fitted on {halves}",
    )


def _folds(
    n_items: int, n_folds: int, blocks: Iterable[Any] | None, rng: np.random.Generator
) -> Ints:
    """Random folds of equal size, up to one unit; blocks stay whole."""
    codes = read_codes(blocks, n_items, "blocks")
    unit = np.arange(n_items) if codes is None else codes
    n_units = int(unit.max()) + 1
    if n_units < n_folds:
        units = "items" if codes is None else "blocks"
        message = (
            f"{n_units:,} {units} cannot be split into {n_folds} folds.\n"
            "hint: label more items."
        )
        raise InvalidInputError(message)
    return rng.permutation(np.arange(n_units) % n_folds)[unit]


def _fit(
    method: type[BaselineMap] | SupervisedBaseline,
    reports: Reports,
    happened: Ints,
    weights: Floats | None,
    index: Ints,
) -> Applies:
    """Ours get everything; others an array and positions, and weights if there are."""
    if isinstance(method, type) and issubclass(method, SupervisedMap):
        names = [reports.outcomes[label] for label in happened]
        chosen = None if weights is None else weights[index]
        return method.fit(reports, names, sample_weight=chosen)
    other = cast("SupervisedBaseline", method)
    if weights is None:
        return other.fit(_native(reports), happened)
    message = (
        f"sample_weight is not passed on to {_name(method)!r}, which is not one of "
        "trueup's baselines.\nhint: leave it out."
    )
    raise InvalidInputError(message)


def _marked(fitted: Applies, part: int, n_parts: int) -> Applies:
    """Note on our own maps that they are one of several folds."""
    if not isinstance(fitted, BaselineMap):
        return fitted
    fold = f"all but fold {part + 1} of {n_parts}"
    return replace(fitted, fitted_on=replace(fitted.fitted_on, fold=fold))


def _stitched(parts: list[tuple[Ints, Reports]], given: Reports) -> Any:  # noqa: ANN401
    """The folds' reports in the order of the items."""
    order = np.argsort(np.concatenate([index for index, _ in parts]))
    several = [reports for _, reports in parts]
    if all(isinstance(reports, Distributions) for reports in several):
        rows = [cast("Distributions", reports).probabilities for reports in several]
        return np.concatenate(rows)[order]
    if not all(isinstance(reports, AnswerConfidence) for reports in several):
        message = (
            "the baseline returned different kinds of reports for different folds.\n"
            "hint: apply must always return the same kind."
        )
        raise InvalidInputError(message)
    answers = [cast("AnswerConfidence", reports) for reports in several]
    return AnswerConfidence._of(
        np.concatenate([one.answer for one in answers])[order],
        np.concatenate([one.confidence for one in answers])[order],
        given.outcomes,
    )


def _native(reports: Reports) -> Any:  # noqa: ANN401 - an array, or the reports
    return reports.probabilities if isinstance(reports, Distributions) else reports


def _name(method: object) -> str:
    named = getattr(method, "name", None)
    return named if isinstance(named, str) else type(method).__name__
