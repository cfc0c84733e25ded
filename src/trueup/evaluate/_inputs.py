"""What every evaluation starts from: reports, labels, weights, blocks and an rng."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup import _validate
from trueup._validate import Floats, Ints, Label
from trueup.core.pairing import parse_reports, same_outcomes
from trueup.core.reports import Reports
from trueup.errors import InvalidInputError

DEFAULT_SEED = 0
"""Seed of the random numbers when no ``rng`` is given, so that results repeat."""


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Reports on items whose outcome is known; items of weight zero are gone."""

    reports: Reports
    labels: Ints
    """(n,) index of what happened, in the order of ``reports.outcomes``."""
    weights: Floats
    used: Ints
    """(n,) positions of these items in the caller's arrays."""
    n_given: int
    """How many items the caller's arrays hold."""

    def __len__(self) -> int:
        return len(self.labels)


def read_labelled(
    predictions: object,
    labels: object,
    *,
    name: str,
    outcomes: Iterable[Any] | None,
    sample_weight: object | None,
) -> Labelled:
    """Read one predictor and what happened, on the same items in the same order."""
    reports = read_reports(predictions, name, outcomes)
    happened = read_labels(labels, reports.outcomes)
    if len(happened) != len(reports):
        raise InvalidInputError.lengths(name, len(reports), "labels", len(happened))
    weights = read_weights(sample_weight, len(reports), name)
    used = np.flatnonzero(weights > 0)
    kept = reports.take(used)
    return Labelled(kept, happened[used], weights[used], used, len(reports))


def read_reports(
    predictions: object, name: str, outcomes: Iterable[Any] | None
) -> Reports:
    """Read reports; outcomes that are named also fix their order."""
    named = None if outcomes is None else tuple(outcomes)
    reports = parse_reports(predictions, name, named)
    if named is None or reports.outcomes == named:
        return reports
    return reports.reordered(_validate.outcome_labels(named, "outcomes"))


def read_like(
    predictions: object, name: str, other: Reports, other_name: str
) -> Reports:
    """Read a second predictor and bring it to the outcomes and length of the first."""
    reports = parse_reports(predictions, name, None)
    if len(reports) != len(other):
        raise InvalidInputError.lengths(other_name, len(other), name, len(reports))
    return same_outcomes(reports, other, name, other_name)


def read_labels(labels: object, outcomes: tuple[Label, ...]) -> Ints:
    """Positions of the labels among the outcomes.

    A label is an outcome's name; where no outcome is itself a number, also its
    position.
    """
    array = _as_array(labels)
    if array.ndim != 1:
        message = (
            f"labels must be one outcome per item, got {array.ndim}-D.\n"
            "hint: turn one-hot rows into positions with labels.argmax(axis=1)."
        )
        raise InvalidInputError(message)
    is_numbered = outcomes == tuple(range(len(outcomes)))
    if is_numbered and array.dtype.kind in "iub":  # no look-up for a million integers
        happened = array.astype(np.int64)
        if ((happened >= 0) & (happened < len(outcomes))).all():
            return happened
    return _looked_up(np.asarray(labels, dtype=object).tolist(), outcomes)


def _as_array(labels: object) -> NDArray[Any]:
    try:
        return np.asarray(labels)
    except ValueError as error:  # rows of different lengths
        message = f"labels must be one outcome per item: {error}."
        raise InvalidInputError(message) from error


def _looked_up(items: list[Any], outcomes: tuple[Label, ...]) -> Ints:
    position: dict[Any, int] = {label: index for index, label in enumerate(outcomes)}
    if not any(isinstance(label, int | float) for label in outcomes):
        position |= {index: index for index in range(len(outcomes))}
    found = [_find(position, item) for item in items]
    unknown = [row for row, index in enumerate(found) if index is None]
    if unknown:
        shown = ", ".join(map(repr, outcomes[:6])) + (", ..." * (len(outcomes) > 6))
        raise InvalidInputError.rows(
            "labels",
            "values that are not among the outcomes",
            bad=len(unknown),
            total=len(items),
            first=f"{items[unknown[0]]!r} at row {unknown[0]:,}",
            hint=f"the outcomes are {shown}; name them with outcomes=[...], and drop "
            "items without a label",
        )
    return np.array(found, dtype=np.int64)


def _find(position: dict[Any, int], item: object) -> int | None:
    plain = item.item() if isinstance(item, np.generic) else item
    try:
        return position.get(plain)
    except TypeError:  # unhashable: certainly not an outcome
        return None


def read_weights(values: object | None, n_items: int, name: str) -> Floats:
    """Sample weights, with the length error naming this predictor."""
    if values is not None and np.ndim(np.asarray(values)) == 1:
        n_weights = len(np.asarray(values))
        if n_weights != n_items:
            raise InvalidInputError.lengths(name, n_items, "sample_weight", n_weights)
    return _validate.sample_weights(values, n_items)


def read_codes(values: Iterable[Any] | None, n_items: int, name: str) -> Ints | None:
    """Number the distinct values (blocks, groups) from zero; None stays None."""
    if values is None:
        return None
    items = np.asarray(values, dtype=object).ravel().tolist()
    if len(items) != n_items:
        raise InvalidInputError.lengths("labels", n_items, name, len(items))
    missing = [row for row, value in enumerate(items) if _validate.is_missing(value)]
    if missing:
        raise InvalidInputError.rows(
            name,
            "missing values",
            bad=len(missing),
            total=n_items,
            first=f"{items[missing[0]]!r} at row {missing[0]:,}",
            hint="give these items a value of their own, or drop them",
        )
    code: dict[Any, int] = {}
    return np.array([code.setdefault(item, len(code)) for item in items])


def read_rng(rng: np.random.Generator | None) -> np.random.Generator:
    """The caller's generator, or a fresh one with the documented seed."""
    if rng is None:
        return np.random.default_rng(DEFAULT_SEED)
    if not isinstance(rng, np.random.Generator):
        message = (
            f"rng must be a numpy.random.Generator, got {rng!r}.\n"
            f"hint: numpy.random.default_rng({rng!r})."
        )
        raise InvalidInputError(message)
    return rng


def read_whole_number(value: int, name: str, *, at_least: int) -> int:
    """A whole number that is large enough."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < at_least:
        message = f"{name} must be a whole number >= {at_least}, got {value!r}."
        raise InvalidInputError(message)
    return int(value)
