"""Both predictors of files larger than memory, as batches of arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trueup._validate import Floats, Label
from trueup.core.reports import Distributions
from trueup.data.schema import Columns
from trueup.errors import PredictionFileError, TrueupError
from trueup.scale._arrow import in_numpy
from trueup.scale.batch_counts import Batch, SideBatch
from trueup.scale.files import (
    NUMBER,
    Chosen,
    Database,
    Files,
    choose_columns,
    connecting,
    known_outcomes,
    named,
)
from trueup.scale.joining import joined, n_items_of, text
from trueup.scale.parquet import BATCH_ROWS, ParquetTable, RowGroup
from trueup.scale.passes import Piece

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

    def pieces(self) -> Iterator[Piece]:
        """All items in order; pieces may be read at the same time."""

    def sample(self, share: int) -> tuple[Iterator[Piece], int]:
        """Pieces with at least one item in ``share``, and the share still to choose."""

    def refuse(self, batch: Batch, block: int, n_before: int) -> TrueupError:
        """The error for a batch that holds a report which is none."""


@dataclass(frozen=True, slots=True, eq=False)
class FilePair:
    """A table in files or in DuckDB that holds both predictors."""

    database: Database
    table: str
    chosen: Chosen
    outcomes: tuple[Label, ...]
    groups: tuple[Any, ...]
    n_items: int
    parquet: ParquetTable | None = None
    """The same table, where it can be read without DuckDB."""
    rooms: list[Floats] = field(default_factory=list)
    """Memory of batches that are done with, for the next ones."""

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

    def batches(self) -> Iterator[Batch]:
        """Every piece, one after the other."""
        for piece in self.pieces():
            yield from piece.read()

    def pieces(self) -> Iterator[Piece]:
        """Row groups of Parquet files, or batches of DuckDB, in the order of files."""
        if self.parquet is None:
            yield from self._from_database()
        else:
            yield from self._from_groups(self.parquet.groups())

    def sample(self, share: int) -> tuple[Iterator[Piece], int]:
        """Some row groups, or of every one the items that their numbers choose."""
        if self.parquet is None:
            return self._from_database(share), 1
        chosen = self.parquet.sampled(_floats(self.chosen), share)
        n_chosen = sum(group.n_rows for _, group in chosen)
        stands_for = round(self.n_items / n_chosen)
        left = max(1, share * n_chosen // self.n_items)
        return self._from_groups(chosen, stands_for), left

    def _from_groups(
        self, groups: Iterable[tuple[int, RowGroup]], stands_for: int = 1
    ) -> Iterator[Piece]:
        first, second = self.chosen.primary, self.chosen.reference
        columns = [*_columns(first), *_columns(second)]
        for n_before, group in groups:
            read = partial(self._from_file, group, columns)
            yield Piece(n_before, read, stands_for)

    def _from_file(self, group: RowGroup, columns: list[str]) -> Iterator[Batch]:
        """Batches that share their memory: each is gone when the next one is read."""
        room = self.rooms.pop() if self.rooms else np.empty(len(columns) * BATCH_ROWS)
        for arrays in group.batches(columns, self.chosen.id):
            yield self._read(arrays, room)
        self.rooms.append(room)

    def _from_database(self, share: int = 1) -> Iterator[Piece]:
        first, second = self.chosen.primary, self.chosen.reference
        columns = [*_selected(first), *_selected(second)]
        if self.groups:
            columns.append(f"CAST({named(self.chosen.group or '')} AS VARCHAR)")
        number = self._number()
        kept = f"WHERE {_mixed(number)} // 2 % {share} = 0" if share > 1 else ""
        listed = ", ".join(f"{c} AS c{i}" for i, c in enumerate(columns))
        sql = f"SELECT {number} AS n, {listed} FROM {self.table} {kept}"
        n_before = 0
        for batch in self.database.batches(sql):
            if len(batch):
                yield Piece(n_before, partial(self._read_one, batch.columns), share)
                n_before += len(batch)

    def _read_one(self, arrays: list[pa.Array]) -> Iterator[Batch]:
        yield self._read(arrays)

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
        texts = ", ".join(text(outcome) for outcome in self.outcomes)
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

    def _read(self, arrays: list[pa.Array], room: Floats | None = None) -> Batch:
        if any(array.null_count for array in arrays):
            raise self._gaps()
        first, second = self.chosen.primary, self.chosen.reference
        split = 1 + len(_selected(first))
        stop = split + len(_selected(second))
        if room is None:
            room = np.empty((stop - 1) * len(arrays[0]))
        middle = (split - 1) * len(arrays[0])
        halves = room[:middle], room[middle:]
        groups = np.empty(0, dtype=np.int64)
        if self.groups:
            groups = positions(arrays[stop], self.groups)
        return Batch(
            _side(arrays[1:split], first, self.outcomes, halves[0]),
            _side(arrays[split:stop], second, self.outcomes, halves[1]),
            in_numpy(arrays[0]).astype(np.int64, copy=False),
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
    with connecting() as connect, ExitStack() as stack:
        database = Database(connect, tuple(files))
        parquet = _parquet(files) if reference is None else None
        numeric = [
            database.columns(one.sql()) if parquet is None else parquet.columns()
            for one in files
        ]
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
            folder = stack.enter_context(TemporaryDirectory(prefix="trueup-"))
            table, chosen = joined(database, files, numeric, chosen, Path(folder))
        known = known_outcomes((chosen.primary, chosen.reference), given)
        groups = _group_names(database, table, group)
        if parquet is not None and (
            group is not None or not _is_plain(parquet, chosen)
        ):
            parquet = None
        n_items = n_items_of(database, table) if parquet is None else parquet.n_items
        if n_items == 0:
            raise PredictionFileError.of(database.name, "it has no rows.", "pass some")
        yield FilePair(database, table, chosen, known, groups, n_items, parquet)


def _parquet(files: list[Files]) -> ParquetTable | None:
    one = files[0]
    return ParquetTable.open(one.paths) if one.reader == "read_parquet" else None


def _is_plain(parquet: ParquetTable, chosen: Chosen) -> bool:
    both = (chosen.primary, chosen.reference)
    texts = [side.answer for side in both if side.answer and not side.outcomes]
    return parquet.is_plain(_floats(chosen), texts, chosen.id)


def _floats(chosen: Chosen) -> list[str]:
    """Columns of numbers that reports consist of."""
    found: list[str] = []
    for side in (chosen.primary, chosen.reference):
        found += side.outcomes.values() or [side.confidence or ""]
    return found


def _group_names(database: Database, table: str, group: str | None) -> tuple[Any, ...]:
    if group is None:
        return ()
    rows = database.rows(f"SELECT DISTINCT {named(group)} FROM {table}")
    return tuple(sorted((r[0] for r in rows), key=lambda v: (str(type(v)), str(v))))


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


def _columns(columns: Columns) -> list[str]:
    """A predictor's columns, as ``_selected`` lists them."""
    if columns.outcomes:
        return list(columns.outcomes.values())
    return [columns.answer or "", columns.confidence or ""]


def _side(
    arrays: list[pa.Array],
    columns: Columns,
    outcomes: tuple[Label, ...],
    room: Floats,
) -> SideBatch:
    if not columns.outcomes:
        answers = positions(arrays[0], outcomes)
        confidence = in_numpy(arrays[1]).astype(np.float64, copy=False)
        return SideBatch(confidence[:, None], answers)
    from trueup.data.labels import outcome_names

    names = outcome_names(columns.outcomes)
    shape = len(arrays), len(arrays[0])
    rows = room[: shape[0] * shape[1]].reshape(shape)
    for k, outcome in enumerate(outcomes):
        rows[k] = in_numpy(arrays[names.index(outcome)])
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
