"""Both predictors of files larger than memory, as batches of arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trueup._validate import Label
from trueup.core.reports import Distributions
from trueup.data.schema import Columns
from trueup.errors import PredictionFileError, TrueupError
from trueup.scale.batch_counts import Batch, SideBatch
from trueup.scale.files import (
    NUMBER,
    Chosen,
    Database,
    Files,
    check_pairing,
    choose_columns,
    connection,
    known_outcomes,
    named,
)

if TYPE_CHECKING:
    import pyarrow as pa


class PairSource(Protocol):
    """Something that can be gone through several times, batch by batch."""

    @property
    def name(self) -> str:
        """How messages call the data."""

    @property
    def outcomes(self) -> tuple[Label, ...]:
        """Names of the outcomes."""

    @property
    def groups(self) -> tuple[Any, ...]:
        """Names of the groups."""

    @property
    def n_items(self) -> int:
        """Items in all."""

    @property
    def kinds(self) -> tuple[str, str]:
        """What the primary and the reference report."""

    def batches(self, share: int = 1) -> Iterator[Batch]:
        """All items, or one in ``share`` chosen by their number."""

    def refuse(self, batch: Batch, block: int, n_before: int) -> TrueupError:
        """The error for a batch that holds a report which is none."""


@dataclass(frozen=True, slots=True, eq=False)
class FilePair:
    """A table in DuckDB that holds both predictors."""

    database: Database
    table: str
    chosen: Chosen
    outcomes: tuple[Label, ...]
    groups: tuple[Any, ...]
    n_items: int

    @property
    def name(self) -> str:
        """How messages call the data."""
        return self.database.name

    @property
    def kinds(self) -> tuple[str, str]:
        """What the primary and the reference report."""
        first, second = self.chosen.primary, self.chosen.reference
        return _kind(first), _kind(second)

    @property
    def explanation(self) -> tuple[str, ...]:
        """What was read from which column, one sentence each."""
        first, second = self.chosen.primary, self.chosen.reference
        told = (
            f"primary: {first.explanation[0]}",
            f"reference: {second.explanation[0]}",
        )
        how = self.chosen.id or "their place in the files"
        return (*told, f"items are split in halves by {how}")

    def batches(self, share: int = 1) -> Iterator[Batch]:
        """All items in the order of the files, or one in ``share``."""
        first, second = self.chosen.primary, self.chosen.reference
        columns = [*_selected(first), *_selected(second)]
        if self.groups:
            columns.append(f"CAST({named(self.chosen.group or '')} AS VARCHAR)")
        number = self._number()
        kept = f"WHERE {_mixed(number)} // 2 % {share} = 0" if share > 1 else ""
        listed = ", ".join(f"{c} AS c{i}" for i, c in enumerate(columns))
        sql = f"SELECT {number} AS n, {listed} FROM {self.table} {kept}"
        for batch in self.database.batches(sql):
            if len(batch):
                yield self._read(batch)

    def refuse(self, batch: Batch, block: int, n_before: int) -> TrueupError:
        """The error for a report that is none, found again with its place."""
        part = slice(block, block + 256)
        where = f"{self.name}, rows {n_before + block:,} and on"
        for side, columns in (
            (batch.primary, self.chosen.primary),
            (batch.reference, self.chosen.reference),
        ):
            try:
                if columns.outcomes:
                    rows = np.ascontiguousarray(side.rows[part])
                    Distributions.parse(rows, where, None)
                elif (side.answers[part] < 0).any():
                    return self._unknown_answer(columns)
            except TrueupError as error:
                return PredictionFileError(str(error))
        return PredictionFileError.of(
            where, "a confidence lies outside [0, 1].", "repair or remove these items"
        )

    def _unknown_answer(self, columns: Columns) -> TrueupError:
        column = named(columns.answer or "")
        texts = ", ".join(_text(outcome) for outcome in self.outcomes)
        found = self.database.rows(
            f"SELECT CAST({column} AS VARCHAR) AS a, count(*) FROM {self.table} "
            f"WHERE a NOT IN ({texts}) GROUP BY a ORDER BY 2 DESC LIMIT 1"
        )
        value, times = found[0] if found else ("?", 0)
        return PredictionFileError.of(
            self.name,
            f"the answer {value!r} occurs {times:,} times and is not among the "
            f"outcomes {', '.join(map(str, self.outcomes))}.",
            "list every outcome (--outcomes; in Python outcomes=[...])",
        )

    def _number(self) -> str:
        column = self.chosen.id
        if column is None:
            return NUMBER
        kind = self.database.type_of(self.table, column)
        if kind in ("VARCHAR", "UUID"):
            digest = f"md5(CAST({named(column)} AS VARCHAR))"
            return f"CAST('0x' || substr({digest}, 1, 8) AS BIGINT)"
        if "INT" in kind:
            return f"CAST({named(column)} AS BIGINT)"
        raise PredictionFileError.of(
            self.name,
            f"column {column!r} is of type {kind}; items are named by whole numbers or "
            "text.",
            "convert the column",
        )

    def _read(self, batch: pa.RecordBatch) -> Batch:
        if any(batch.column(i).null_count for i in range(batch.num_columns)):
            raise self._gaps()
        first, second = self.chosen.primary, self.chosen.reference
        split = 1 + len(_selected(first))
        stop = split + len(_selected(second))
        groups = np.empty(0, dtype=np.int64)
        if self.groups:
            groups = positions(batch.column(stop), self.groups)
        return Batch(
            _side(batch, first, 1, split, self.outcomes),
            _side(batch, second, split, stop, self.outcomes),
            batch.column(0).to_numpy(),
            groups,
        )

    def _gaps(self) -> TrueupError:
        """Which columns have missing values, and how many."""
        first, second = self.chosen.primary, self.chosen.reference
        special = [name for name in (self.chosen.id, self.chosen.group) if name]
        columns = [*first.predictions, *second.predictions, *special]
        listed = ", ".join(f"count(*) - count({named(c)})" for c in columns)
        counts = self.database.rows(f"SELECT {listed} FROM {self.table}")[0]
        found = [(c, n) for c, n in zip(columns, counts, strict=True) if n]
        told = ", ".join(f"{column!r} has {n:,}" for column, n in found)
        return PredictionFileError.of(
            self.name,
            f"missing values: column {told} in {self.n_items:,} rows.",
            "fill them in, or remove these items",
        )


@contextmanager
def open_pair(
    primary: str | os.PathLike[str],
    reference: str | os.PathLike[str] | None = None,
    *,
    primary_prefix: str | None = None,
    reference_prefix: str | None = None,
    id: str | None = None,  # noqa: A002 - what users call it
    group: str | None = None,
    outcomes: Iterable[Any] | None = None,
) -> Iterator[FilePair]:
    """Open files of both predictors; two sources are joined by id, or by row."""
    files = [Files.find(one) for one in (primary, reference) if one is not None]
    given = None if outcomes is None else tuple(outcomes)
    with connection() as made, TemporaryDirectory(prefix="trueup-") as folder:
        database = Database(made, tuple(files))
        numeric = [database.columns(one.sql()) for one in files]
        if reference is None:
            numeric, files = numeric * 2, files * 2
        chosen = choose_columns(
            numeric,
            [one.name for one in files],
            (primary_prefix, reference_prefix),
            id=id,
            group=group,
        )
        table = files[0].sql()
        if reference is not None:
            table, chosen = _joined(database, files, numeric, chosen, Path(folder))
        known = known_outcomes((chosen.primary, chosen.reference), given)
        groups: tuple[Any, ...] = ()
        if group is not None:
            rows = database.rows(f"SELECT DISTINCT {named(group)} FROM {table}")
            groups = tuple(
                sorted((r[0] for r in rows), key=lambda v: (str(type(v)), str(v)))
            )
        n_items = int(database.rows(f"SELECT count(*) FROM {table}")[0][0])
        if n_items == 0:
            raise PredictionFileError.of(database.name, "it has no rows.", "pass some")
        yield FilePair(database, table, chosen, known, groups, n_items)


def _joined(
    database: Database,
    files: list[Files],
    numeric: list[dict[str, bool]],
    chosen: Chosen,
    folder: Path,
) -> tuple[str, Chosen]:
    """Both tables as one file, written once and read by every pass."""
    first, second = chosen.primary, chosen.reference
    ours, theirs = first.item_id, second.item_id
    kept = [*first.predictions, *([ours] if ours else [])]
    kept += [first.group] if first.group else []
    left = ", ".join(f"a.{named(c)}" for c in dict.fromkeys(kept))
    renamed = {c: f"__reference_{i}" for i, c in enumerate(second.predictions)}
    right = ", ".join(f"b.{named(c)} AS {new}" for c, new in renamed.items())
    target = folder / "joined.parquet"
    a, b = files[0].sql(), files[1].sql()
    if ours and theirs:
        join = f"{a} a JOIN {b} b ON a.{named(ours)} = b.{named(theirs)}"
    else:
        check_pairing(numeric, database.name)
        join = f"{a} a POSITIONAL JOIN {b} b"
    written = _text(str(target))
    database.rows(
        f"COPY (SELECT a.{NUMBER}, {left}, {right} FROM {join}) TO {written} "
        "(FORMAT parquet)"
    )
    counts = [
        int(database.rows(f"SELECT count(*) FROM {t}")[0][0]) for t in (a, b, written)
    ]
    if len(set(counts)) > 1:
        raise _not_paired(database, counts, ours if ours and theirs else None)
    outcomes = {name: renamed[c] for name, c in second.outcomes.items()}
    moved = Columns(
        second.kind,
        outcomes,
        answer=renamed.get(second.answer or ""),
        confidence=renamed.get(second.confidence or ""),
        explanation=second.explanation,
    )
    own = ours if ours and theirs else None
    return f"{written}", Chosen(first, moved, own, chosen.group)


def _not_paired(database: Database, counts: list[int], id_: str | None) -> TrueupError:
    n_first, n_second, n_joined = counts
    if id_ is None:
        problem = f"{n_first:,} and {n_second:,} rows cannot be paired row by row."
        return PredictionFileError.of(database.name, problem, "name items with an id")
    return PredictionFileError.of(
        database.name,
        f"{n_first:,} and {n_second:,} rows make {n_joined:,} pairs by {id_!r}: ids "
        "are missing on one side, or occur more than once.",
        "every item must occur once on both sides",
    )


def _kind(columns: Columns) -> str:
    return "distribution" if columns.outcomes else "answer-confidence"


def _selected(columns: Columns) -> list[str]:
    """A predictor's columns in SQL, as numbers and text."""
    if columns.outcomes:
        return [f"CAST({named(c)} AS DOUBLE)" for c in columns.outcomes.values()]
    return [
        f"CAST({named(columns.answer or '')} AS VARCHAR)",
        f"CAST({named(columns.confidence or '')} AS DOUBLE)",
    ]


def _side(
    batch: pa.RecordBatch,
    columns: Columns,
    start: int,
    stop: int,
    outcomes: tuple[Label, ...],
) -> SideBatch:
    if not columns.outcomes:
        answers = positions(batch.column(start), outcomes)
        return SideBatch(batch.column(start + 1).to_numpy()[:, None], answers)
    from trueup.data.labels import outcome_names

    names = outcome_names(columns.outcomes)
    rows = np.empty((stop - start, len(batch)))
    for k, outcome in enumerate(outcomes):
        rows[k] = batch.column(start + names.index(outcome)).to_numpy()
    return SideBatch(rows.T, np.empty(0, dtype=np.int64))


def positions(column: pa.Array, names: Iterable[Any]) -> Any:  # noqa: ANN401 - array
    """Place of each value among the names, compared as text; -1 where it is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array([str(name) for name in names], type=pa.string())
    found = pc.index_in(column.cast(pa.string()), value_set=texts)
    return pc.fill_null(found, -1).to_numpy().astype(np.int64)


def _mixed(number: str) -> str:
    """``core.folds.mixed`` in SQL."""
    from trueup.core.folds import FIRST, PRIME, SECOND

    inside = f"(({number}) % {PRIME} + {PRIME}) % {PRIME}"
    once = f"(({inside}) * {FIRST} + 11) % {PRIME}"
    return f"((({once}) * ({once}) % {PRIME} * {SECOND} + 7) % {PRIME})"


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"
