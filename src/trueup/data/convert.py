"""Columns as reports, ids and numbers; what cannot be read names its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup import _validate
from trueup._validate import Floats
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.data.labels import matched, outcome_names, plain
from trueup.data.schema import Columns, listed
from trueup.data.values import python_values
from trueup.errors import PredictionFileError

if TYPE_CHECKING:
    import pyarrow as pa

Objects = NDArray[np.object_]


def item_ids(table: pa.Table, column: str, name: str) -> Objects:
    """Ids as text; a missing or repeated one is an error that names it."""
    values = objects(table.column(column))
    missing = [row for row, value in enumerate(values) if _validate.is_missing(value)]
    if missing:
        raise PredictionFileError.of(
            name,
            f"{len(missing):,} of {len(values):,} rows have no {column}; the first is "
            f"row {missing[0]:,}.",
            "every row must name its item",
        )
    texts = np.array([str(plain(value)) for value in values], dtype=object)
    unique, counts = np.unique(texts.astype(str), return_counts=True)
    twice = unique[counts > 1]
    if len(twice):
        raise PredictionFileError.of(
            name,
            f"{len(twice):,} values of {column} occur more than once: "
            f"{listed(map(repr, map(str, twice)), 3)}.",
            "keep one row an item",
        )
    return texts


def numbers(table: pa.Table, column: str, name: str) -> Floats:
    """A column of numbers; text and gaps are errors that name the first."""
    import pyarrow as pa

    values = table.column(column)
    if not is_numeric(values.type):
        raise _not_numbers(values, column, name)
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        raise PredictionFileError.of(
            name,
            f"column {column!r} has {values.null_count:,} missing values; the first is "
            f"in row {row:,}.",
            "fill them in, or remove these items from every file",
        )
    try:
        return np.asarray(values.cast(pa.float64(), safe=False).to_numpy())
    except pa.ArrowException as error:
        raise _not_numbers(values, column, name) from error


def reports_from(
    table: pa.Table,
    columns: Columns,
    name: str,
    *,
    outcomes: tuple[Any, ...] | None,
    stated: str | None = None,
    level: float | None = None,
) -> tuple[Reports, tuple[str, ...]]:
    """What the chosen columns say, and remarks on how it was read."""
    if columns.outcomes:
        return _distributions(table, columns, name, outcomes)
    if columns.answer is not None:
        answers = objects(table.column(columns.answer)).tolist()
        known, notes = _all_outcomes(answers, outcomes, name)
        answers = matched(answers, known)
        if columns.confidence is None:
            return PointReport(value=answers, outcomes=known, property="mode"), notes
        confidence = numbers(table, columns.confidence, name)
        return AnswerConfidence(
            answer=answers, confidence=confidence, outcomes=known
        ), notes
    if outcomes is None:
        raise PredictionFileError.of(
            name,
            "values are predictions of a number, but not which numbers can occur.",
            "list every outcome (--outcomes 0,1,2; in Python outcomes=[0, 1, 2])",
        )
    values = numbers(table, columns.value or "value", name)
    return (
        PointReport(
            value=values, outcomes=outcomes, property=stated or "mean", level=level
        ),
        (f"values state the {stated or 'mean'}",),
    )


def _all_outcomes(
    answers: list[Any], outcomes: tuple[Any, ...] | None, name: str
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    if outcomes is not None:
        return outcomes, ()
    found = {plain(answer) for answer in answers if not _validate.is_missing(answer)}
    known = tuple(sorted(found, key=lambda value: (str(type(value)), value)))
    if len(known) < 2:
        raise PredictionFileError.of(
            name,
            f"every answer is {known[0]!r}, so the other outcomes are not known."
            if known
            else "every answer is missing.",
            "list every outcome (--outcomes A,B,C; in Python outcomes=[...])",
        )
    return known, (f"outcomes are the {len(known)} answers that occur",)


def _distributions(
    table: pa.Table, columns: Columns, name: str, outcomes: tuple[Any, ...] | None
) -> tuple[Distributions, tuple[str, ...]]:
    names = outcome_names(columns.outcomes)
    rows = np.column_stack(
        [numbers(table, column, name) for column in columns.outcomes.values()]
    )
    notes: tuple[str, ...] = ()
    if columns.kind == "logits":
        rows = _softmax(rows, name, "logits")
        notes = ("probabilities are the softmax of the logits",)
    elif columns.kind == "log-probabilities":
        rows, notes = _exponentials(rows, name)
    reports = Distributions.parse(rows, name, names)
    if outcomes is not None:
        wanted = tuple(matched(outcomes, names))
        if set(wanted) != set(names):
            raise PredictionFileError.of(
                name,
                f"the outcomes {listed(map(str, outcomes))} were asked for, but the "
                f"columns are about {listed(map(str, names))}.",
                "name the same outcomes, or leave them out",
            )
        reports = reports.reordered(wanted)
    return reports, notes


def _softmax(rows: Floats, name: str, what: str) -> Floats:
    bad = np.isnan(rows).any(axis=1) | (rows == np.inf).any(axis=1)
    bad |= ~np.isfinite(rows.max(axis=1))
    if bad.any():
        row = int(np.argmax(bad))
        raise PredictionFileError.of(
            name,
            f"{int(bad.sum()):,} of {len(rows):,} rows of {what} are not finite; the "
            f"first is row {row:,}: {rows[row].tolist()}.",
            "repair these items, or remove them from every file",
        )
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _exponentials(rows: Floats, name: str) -> tuple[Floats, tuple[str, ...]]:
    shares = _softmax(rows, name, "log-probabilities")
    if (rows > _validate.ROW_SUM_TOLERANCE).any():
        row = int(np.argmax((rows > 0).any(axis=1)))
        raise PredictionFileError.of(
            name,
            f"log-probabilities cannot be above zero; row {row:,} holds "
            f"{rows[row].max():.6g}.",
            "name the columns logit_<outcome> if they are logits",
        )
    sums = np.exp(rows).sum(axis=1)
    if (np.abs(sums - 1) <= _validate.ROW_SUM_TOLERANCE).all():
        return shares, ()
    note = (
        "probabilities are divided by their sum, given that one of these outcomes "
        f"occurs (sums from {sums.min():.3g} to {sums.max():.3g})"
    )
    return shares, (note,)


def objects(column: pa.ChunkedArray) -> Objects:
    """A column as Python values."""
    values = python_values(column)
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers."""
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    )


def _not_numbers(
    values: pa.ChunkedArray, column: str, name: str
) -> PredictionFileError:
    items = python_values(values)
    place, item = next(
        ((row, item) for row, item in enumerate(items) if not _reads_as_number(item)),
        (0, items[0]),
    )
    hint = "every value of this column must be a number"
    text = str(item).strip()
    if text.endswith("%"):
        hint = "these are percentages: remove the sign and divide by 100"
    elif "," in text and _reads_as_number(text.replace(",", ".", 1)):
        hint = "write numbers with a decimal point"
    return PredictionFileError.of(
        name,
        f"column {column!r} must hold numbers; row {place:,} holds {str(item)[:60]!r}.",
        hint,
    )


def _reads_as_number(item: object) -> bool:
    try:
        float(item)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return item is None
    return not isinstance(item, bool)
