"""Files and folders larger than memory, read by DuckDB in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from trueup.data.schema import Columns, detect_columns, is_key_like, listed
from trueup.errors import FileAccessError, PredictionFileError
from trueup.scale.stream import damaged

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BATCH_ROWS = 1 << 17
_READERS = {
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
_MEMORY = "1GB"
"""What DuckDB may hold; beyond that it spills to disk."""
NUMBER = "__trueup_number"


@dataclass(frozen=True, slots=True)
class Files:
    """Files of one format that together hold one table."""

    name: str
    """As the user wrote it."""
    paths: tuple[str, ...]
    reader: str

    @classmethod
    def find(cls, source: str | os.PathLike[str]) -> Files:
        """A file, every file of a folder, or what a pattern such as ``*.csv`` finds."""
        name = os.fspath(source)
        path = Path(name)
        if path.is_dir():
            found = sorted(str(p) for p in path.rglob("*") if _suffix(p) in _READERS)
        elif path.exists():
            found = [name]
        elif any(sign in name for sign in "*?["):
            found = sorted(str(p) for p in path.parent.glob(path.name))
        else:
            message = f"{name} does not exist.\nhint: check the path."
            raise FileAccessError(message)
        if not found:
            message = (
                f"{name} {'is a folder that ' * path.is_dir()}holds no file of "
                "predictions.\n"
                f"hint: names must end in {', '.join(_READERS)}."
            )
            raise FileAccessError(message)
        kinds = sorted({_READERS.get(_suffix(Path(one)), "?") for one in found})
        if len(kinds) > 1 or "?" in kinds:
            raise PredictionFileError.of(
                name,
                "files of one format are expected, not a mixture or another one.",
                f"names must end in one of {', '.join(_READERS)}",
            )
        return cls(name, tuple(found), kinds[0])

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(Path(path).stat().st_size for path in self.paths)

    def sql(self) -> str:
        """The table in SQL, with a whole number that tells rows apart."""
        paths = "[" + ", ".join(_quoted(path) for path in self.paths) + "]"
        if self.reader == "read_parquet":
            place = f"list_position({paths}, filename) * 1099511627776"
            return (
                f"(SELECT * EXCLUDE (filename, file_row_number), file_row_number + "
                f"{place} AS {NUMBER} FROM read_parquet({paths}, filename = true, "
                "file_row_number = true))"
            )
        if self.reader == "read_csv":
            return (
                f"(SELECT *, row_number() OVER () AS {NUMBER} FROM "
                f"read_csv({paths}, header = true))"
            )
        return f"(SELECT *, row_number() OVER () AS {NUMBER} FROM read_json({paths}))"


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes = suffixes[:-1]
    return suffixes[-1] if suffixes else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def named(column: str) -> str:
    """A column's name in SQL, whatever characters it holds."""
    return '"' + column.replace('"', '""') + '"'


@contextmanager
def connecting() -> Iterator[Callable[[], duckdb.DuckDBPyConnection]]:
    """A database in memory, made when it is first asked for."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(connection()))


@contextmanager
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that spills into a folder of its own."""
    import duckdb

    with TemporaryDirectory(prefix="trueup-") as folder:
        made = duckdb.connect(config={"threads": str(os.cpu_count() or 1)})
        try:
            made.execute(f"SET memory_limit = '{_MEMORY}'")
            made.execute(f"SET temp_directory = {_quoted(folder)}")
            made.execute("SET enable_progress_bar = false")
            yield made
        finally:
            made.close()


@dataclass(frozen=True, slots=True, eq=False)
class Database:
    """Tables of files in one connection; errors name the file."""

    connect: Callable[[], duckdb.DuckDBPyConnection]
    """The connection, made when it is first asked for."""
    files: tuple[Files, ...]

    @property
    def name(self) -> str:
        """How messages call the data."""
        return " and ".join(one.name for one in self.files)

    def columns(self, table: str) -> dict[str, bool]:
        """Column names and whether they hold numbers."""
        found = self.rows(f"DESCRIBE SELECT * FROM {table}")
        return {row[0]: _is_number(row[1]) for row in found if row[0] != NUMBER}

    def type_of(self, table: str, column: str) -> str:
        """The type of a column, as DuckDB calls it."""
        found = self.rows(f"DESCRIBE SELECT {named(column)} FROM {table}")
        return str(found[0][1])

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """A small result."""
        with self._naming_damage():
            return self.connect().execute(sql).fetchall()

    def reader(self, sql: str) -> Any:  # noqa: ANN401 - a relation
        """A large result, not computed yet."""
        return self.connect().sql(sql)

    @staticmethod
    def is_number(kind: str) -> bool:
        """Whether a type of DuckDB holds numbers."""
        return _is_number(kind)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """A large result in order, the next batch read while the last is used."""
        with self._naming_damage():
            reader = self.reader(sql).to_arrow_reader(BATCH_ROWS)
        with ThreadPoolExecutor(1) as pool:
            source = iter(reader)
            waiting = pool.submit(next, source, None)
            while True:
                with self._naming_damage():
                    batch = waiting.result()
                if batch is None:
                    return
                waiting = pool.submit(next, source, None)
                yield batch

    @contextmanager
    def _naming_damage(self) -> Iterator[None]:
        import duckdb
        import pyarrow as pa

        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self._named(error) from error

    def _named(self, error: Exception) -> PredictionFileError:
        for files in self.files:
            for path in files.paths if files.reader == "read_parquet" else ():
                found = _damage(path)
                if found is not None:
                    return damaged(path, found[0], found[1])
        reason = " ".join(str(error).split())[:300]
        return PredictionFileError.of(
            self.name, f"it cannot be read ({reason}).", "check the file and its format"
        )


def _damage(path: str) -> tuple[str, Exception] | None:
    """The first row group that cannot be read, and why."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        return "", error
    for group in range(file.num_row_groups):
        try:
            file.read_row_group(group)
        except (pa.ArrowException, OSError, ValueError) as error:
            return f"row group {group} of ", error
    return None


def _is_number(kind: str) -> bool:
    head = kind.partition("(")[0]
    return head in {
        "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
        "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL",
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """Columns of both predictors in one table."""

    primary: Columns
    reference: Columns
    id: str | None
    group: str | None


def choose_columns(
    numeric: Sequence[dict[str, bool]],
    names: Sequence[str],
    prefixes: tuple[str | None, str | None],
    *,
    id: str | None,  # noqa: A002 - what users call it
    group: str | None,
) -> Chosen:
    """Detect what each table says, and refuse what needs a look at all rows first."""
    found = [
        detect_columns(one, name=name, prefix=prefix, id=id, group=group)
        for one, name, prefix in zip(numeric, names, prefixes, strict=True)
    ]
    for columns, name in zip(found, names, strict=True):
        if columns.kind not in ("probabilities", "answers"):
            raise PredictionFileError.of(
                name,
                f"data of this size is read as probabilities or as answers with a "
                f"confidence, not as {columns.kind}.",
                "convert the columns first (a softmax of the logits is one SQL "
                "expression), or fit fewer items in memory",
            )
        if columns.weight is not None:
            raise PredictionFileError.of(
                name,
                f"column {columns.weight!r} weighs rows, which data of this size does "
                "not support.",
                "rename the column if it is not meant",
            )
    first, second = found
    return Chosen(first, second, first.item_id or second.item_id, first.group)


def check_pairing(numeric: Sequence[dict[str, bool]], name: str) -> None:
    """Without ids, refuse to pair by row what looks as if it had some."""
    shared = [
        column for column in numeric[0] if column in numeric[1] and is_key_like(column)
    ]
    if shared:
        raise PredictionFileError.of(
            name,
            f"both tables have {listed(shared)}, which look like names of items.",
            f"pair by it: --id {shared[0]} (in Python id={shared[0]!r})",
        )


def known_outcomes(
    columns: Iterable[Columns], given: tuple[Any, ...] | None
) -> tuple[Any, ...]:
    """The outcomes: as given, or as distributions name them."""
    from trueup.data.labels import outcome_names

    if given is not None:
        return given
    for one in columns:
        if one.outcomes:
            return outcome_names(one.outcomes)
    message = (
        "answers do not tell which outcomes exist.\n"
        "hint: list every outcome (--outcomes A,B,C; in Python outcomes=[...])."
    )
    raise PredictionFileError(message)
