"""Pair counts as input: what a warehouse can compute without exporting rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from trueup import _validate
from trueup.core.joint import JointTable
from trueup.core.pairing import paired_reports
from trueup.data.convert import numbers
from trueup.data.predictions import read_predictions
from trueup.errors import PredictionFileError

COUNT_NAMES = ("count", "n", "n_items", "items")


def read_counts(
    source: object,
    *,
    primary_prefix: str = "primary",
    reference_prefix: str = "reference",
    count: str | None = None,
    group: str | None = None,
    outcomes: Iterable[Any] | None = None,
) -> JointTable:
    """Read pairs of reports and how often each occurs from a file or a dataframe.

    Parameters
    ----------
    source
        A path or a dataframe. One row a pair: the primary's columns
        (``primary__p_<outcome>``, or ``primary__answer`` and ``primary__confidence``),
        the reference's likewise, and a column ``count``.
    primary_prefix, reference_prefix
        Prefixes of the two predictors' columns.
    count
        The column of counts; ``count``, ``n``, ``n_items`` or ``items`` when left out.
    group
        A column of groups inside which the reference is trusted.
    outcomes
        All outcomes, where answers do not name them.

    Examples
    --------
    >>> import polars as pl
    >>> read_counts(pl.DataFrame({
    ...     "primary__p_no": [0.9, 0.3], "primary__p_yes": [0.1, 0.7],
    ...     "reference__p_no": [0.5, 0.5], "reference__p_yes": [0.5, 0.5],
    ...     "count": [3, 1],
    ... }))
    JointTable(2 primary x 1 reference reports, 2 pairs, 4 items, 2 outcomes)
    """
    named = None if outcomes is None else tuple(outcomes)
    first = read_predictions(source, prefix=primary_prefix, group=group, outcomes=named)
    second = read_predictions(
        first.table, prefix=reference_prefix, outcomes=named, name=first.name
    )
    if named is None and not (first.outcomes_given and second.outcomes_given):
        both = {*first.outcomes, *second.outcomes}
        known = tuple(sorted(both, key=lambda value: (str(type(value)), value)))
        first, second = first.with_outcomes(known), second.with_outcomes(known)
    column = _count_column(first.table.column_names, count, first.name)
    items = _whole(numbers(first.table, column, first.name), column, first.name)
    primary, reference = paired_reports(first.reports, second.reports, None)
    return JointTable.from_reports(
        primary, reference, counts=items, groups=None if group is None else first.groups
    )


def _count_column(names: list[str], count: str | None, source: str) -> str:
    wanted = (count,) if count else COUNT_NAMES
    found = next((name for name in wanted if name in names), None)
    if found is not None:
        return found
    raise PredictionFileError.of(
        source,
        f"there is no column of counts ({' or '.join(map(repr, wanted))}).",
        "say how often each pair of reports occurs: SELECT ..., COUNT(*) AS count "
        "... GROUP BY ALL",
    )


def _whole(values: _validate.Floats, column: str, source: str) -> _validate.Floats:
    bad = ~np.isfinite(values) | (values < 0) | (values != np.floor(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise PredictionFileError.of(
            source,
            f"column {column!r} must hold whole numbers; row {row:,} holds "
            f"{values[row]!r}.",
            "counts say how many items have this pair of reports",
        )
    return values
