"""Predictions: one predictor's reports with ids, labels, groups and weights."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from trueup import _validate
from trueup._validate import Floats, Ints, Label
from trueup.core.reports import Reports
from trueup.data import files, frames
from trueup.data.convert import (
    Objects,
    is_numeric,
    item_ids,
    numbers,
    objects,
    reports_from,
)
from trueup.data.schema import Columns, detect_columns, listed
from trueup.errors import PredictionFileError, TrueupError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Predictions:
    """One predictor's reports, read from a file or a dataframe.

    Made by :func:`read_predictions`; two of them are brought together by
    :func:`pair_predictions`.
    """

    name: str
    """The file, or what else messages should call it."""
    reports: Reports
    columns: Columns
    table: pa.Table
    """Everything that was read."""
    outcomes_given: bool
    """Whether all outcomes are known; if not, they are the answers that occur."""
    notes: tuple[str, ...] = ()

    @property
    def outcomes(self) -> tuple[Label, ...]:
        """Names of the outcomes."""
        return self.reports.outcomes

    @property
    def explanation(self) -> tuple[str, ...]:
        """What was read from which column, one sentence each."""
        return (*self.columns.explanation, *self.notes)

    @property
    def item_ids(self) -> Objects | None:
        """Names of the items as text, in order."""
        if self.columns.item_id is None:
            return None
        return item_ids(self.table, self.columns.item_id, self.name)

    @property
    def labels(self) -> Objects | None:
        """What happened, as the column holds it."""
        return self._special(self.columns.label)

    @property
    def groups(self) -> Objects | None:
        """The context of each item."""
        return self._special(self.columns.group)

    @property
    def weights(self) -> Floats | None:
        """How many items each row stands for."""
        column = self.columns.weight
        if column is None:
            return None
        values = numbers(self.table, column, self.name)
        return _validate.sample_weights(values, len(self), f"{self.name}: {column}")

    @property
    def extra(self) -> pa.Table:
        """Columns without a meaning here; writers carry them over."""
        rest = [c for c in self.table.column_names if c not in self.columns.used]
        return self.table.select(rest)

    def column(self, name: str) -> Objects:
        """Any column of the table as Python values."""
        if name not in self.table.column_names:
            raise PredictionFileError.of(
                self.name,
                f"there is no column {name!r}.",
                f"the columns are {listed(self.table.column_names)}",
            )
        return objects(self.table.column(name))

    def take(self, index: Ints) -> Self:
        """The predictions at these positions."""
        return replace(
            self, reports=self.reports.take(index), table=self.table.take(index)
        )

    def with_outcomes(self, outcomes: Iterable[Label]) -> Self:
        """The same answers among more outcomes than occur here."""
        names = tuple(outcomes)
        if names == self.outcomes:
            return self
        told = (*self.notes, f"outcomes: {listed(map(str, names))}")
        reports = reports_from(self.table, self.columns, self.name, outcomes=names)
        return replace(self, reports=reports[0], outcomes_given=True, notes=told)

    def describe(self) -> str:
        """Everything that was chosen, as lines for people."""
        lines = [f"{self.name}: {len(self):,} items", *self.explanation]
        return "\n  ".join(lines)

    def __len__(self) -> int:
        return len(self.reports)

    def __repr__(self) -> str:
        return (
            f"Predictions({self.name}: {len(self):,} items, "
            f"{len(self.outcomes)} outcomes: {listed(map(str, self.outcomes))})"
        )

    def _special(self, column: str | None) -> Objects | None:
        return None if column is None else self.column(column)


def read_predictions(
    source: object,
    *,
    prefix: str | None = None,
    id: str | None = None,  # noqa: A002 - what users call it
    label: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    outcomes: Iterable[Any] | None = None,
    property: str | None = None,  # noqa: A002 - the word users know
    level: float | None = None,
    name: str | None = None,
) -> Predictions:
    """Read one predictor from a file, ``-`` (standard input) or a dataframe.

    Parameters
    ----------
    source
        A path to CSV, Parquet, JSON lines or Arrow (also gzipped), or a dataframe of
        pandas, polars, pyarrow or DuckDB.
    prefix
        Which predictor, where several share the table as ``<model>__p_<outcome>``.
    id, label, group, weight
        Columns that are not named ``item_id``, ``label``, ``group``, ``weight``.
    outcomes
        All outcomes, where answers or values do not name them; with distributions,
        their order.
    property, level
        What values state: ``mean`` (the default), ``quantile``, ``expectile`` with
        its level, or ``median``.
    name
        How messages call the source.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"item_id": ["a", "b"], "p_yes": [0.5, 0.9],
    ...                       "p_no": [0.5, 0.1]})
    >>> read = read_predictions(frame)
    >>> read
    Predictions(the dataframe: 2 items, 2 outcomes: yes, no)
    >>> read.item_ids.tolist()
    ['a', 'b']
    """
    table, called = _table(source, id, name)
    numeric = {field.name: is_numeric(field.type) for field in table.schema}
    columns = detect_columns(
        numeric,
        name=called,
        prefix=prefix,
        id=id,
        label=label,
        group=group,
        weight=weight,
    )
    named = None if outcomes is None else tuple(outcomes)
    try:
        reports, notes = reports_from(
            table, columns, called, outcomes=named, stated=property, level=level
        )
    except TrueupError as error:
        if str(error).startswith(called):
            raise
        raise PredictionFileError(f"{called}: {error}") from error  # noqa: EM102, TRY003
    given = named is not None or columns.kind not in ("answers", "modes")
    return Predictions(called, reports, columns, table, given, notes)


def _table(
    source: object, id_column: str | None, name: str | None
) -> tuple[pa.Table, str]:
    if isinstance(source, str | os.PathLike):
        keep = tuple({"item_id", *([id_column] if id_column else [])})
        return files.read_table(source, keep_text=keep), name or files.source_name(
            source
        )
    called = name or "the dataframe"
    if frames.is_frame(source):
        return frames.to_table(source, called), called
    message = (
        f"cannot read predictions from {type(source).__name__}.\n"
        "hint: pass a path, or a dataframe of pandas, polars, pyarrow or DuckDB."
    )
    raise PredictionFileError(message)
