"""Applying a map to a Parquet file of any size: read, tilt and write in step."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.data.convert import is_numeric
from trueup.data.files import check_target
from trueup.data.schema import detect_columns
from trueup.errors import FileAccessError, PredictionFileError
from trueup.maps._files import temporary_beside
from trueup.scale.batches import BatchApplier

if TYPE_CHECKING:
    import pyarrow as pa

    from trueup.maps.report_map import ReportMap

Progress = Callable[[int, int], None]
"""Called with rows done and rows in all."""

BATCH_ROWS = 1 << 17
BY_PAGES: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 18}
"""How Parquet is opened: row groups may be larger than memory."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a file."""

    n_items: int
    n_changed: int
    outcomes: tuple[Any, ...]


def apply_parquet(
    fitted: ReportMap,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    prefix: str | None = None,
    id: str | None = None,  # noqa: A002 - what users call it
    label: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Applied:
    """Apply a map to a Parquet file in bounded memory, in one step or not at all.

    Row order and all other columns are kept. The target appears when it is complete.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> import trueup
    >>> rows = [[0.9, 0.1], [0.3, 0.7]]
    >>> fitted = trueup.fit(rows, [[0.5, 0.5]] * 2, outcomes=["no", "yes"],
    ...                     cells="exact")
    >>> table = pa.table({"p_no": [0.9, 0.3], "p_yes": [0.1, 0.7], "topic": ["a", "b"]})
    >>> with TemporaryDirectory() as folder:
    ...     pq.write_table(table, Path(folder, "new.parquet"))
    ...     done = apply_parquet(
    ...         fitted, Path(folder, "new.parquet"), Path(folder, "better.parquet"))
    ...     better = pq.read_table(Path(folder, "better.parquet"))
    >>> done.n_items, better.column_names, better["p_yes"].to_numpy().round(6).tolist()
    (2, ['p_no', 'p_yes', 'topic'], [0.2, 0.8])
    """
    import pyarrow as pa

    check_target(target, force=force)
    name = os.fspath(source)
    file = open_parquet(name)
    schema = file.schema_arrow
    columns = detect_columns(
        {field.name: is_numeric(field.type) for field in schema},
        name=name,
        prefix=prefix,
        id=id,
        label=label,
        group=group,
        weight=weight,
    )
    applier = BatchApplier(fitted, columns, name)
    kept = applier.kept(schema.names)
    wanted = [n for n in schema.names if n in {*kept, *columns.predictions}]
    total = file.metadata.num_rows
    with temporary_beside(target) as temporary:
        _write(
            (applier(pa.Table.from_batches([b])) for b in batches(file, name, wanted)),
            temporary,
            lambda: progress(applier.n_rows, total) if progress else None,
        )
    applier.finish()
    return Applied(applier.n_rows, applier.n_changed, fitted.outcomes)


def open_parquet(name: str) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """Open a Parquet file; what is none is an error that names it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(name).exists():
        message = f"{name} does not exist.\nhint: check the path."
        raise FileAccessError(message)
    try:
        return pq.ParquetFile(name, **BY_PAGES)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(name, "", error) from error


def batches(file: Any, name: str, columns: list[str]) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
    """Batches in order; the next one is read while the last one is worked on."""
    import pyarrow as pa

    with ThreadPoolExecutor(1) as reader:
        for group in range(file.num_row_groups):
            source = file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns)
            waiting = reader.submit(next, source, None)
            while True:
                try:
                    batch = waiting.result()
                except (pa.ArrowException, OSError, ValueError) as error:
                    raise damaged(name, f"row group {group} of ", error) from error
                if batch is None:
                    break
                waiting = reader.submit(next, source, None)
                yield batch


def damaged(name: str, part: str, error: Exception) -> PredictionFileError:
    """A file that cannot be read on, named with the place."""
    reason = " ".join(str(error).split())[:200]
    return PredictionFileError.of(
        name,
        f"{part}this Parquet file cannot be read ({reason}).",
        "make or copy the file again",
    )


def _write(
    tables: Iterator[pa.Table], path: Path, after_each: Callable[[], None]
) -> None:
    """Write tables as row groups, each while the next one is being made."""
    import pyarrow.parquet as pq

    writer: Any = None
    try:
        with ThreadPoolExecutor(1) as pool:
            written = None
            for table in tables:
                if writer is None:
                    writer = pq.ParquetWriter(
                        path, table.schema, use_dictionary=_repeating(table)
                    )
                if written is not None:
                    written.result()
                written = pool.submit(writer.write_table, table)
                after_each()
            if written is not None:
                written.result()
    finally:
        if writer is not None:
            writer.close()


def _repeating(table: pa.Table) -> list[str]:
    """Columns worth a dictionary: text, but not numbers, which hardly repeat."""
    import pyarrow as pa

    def repeats(kind: pa.DataType) -> bool:
        types = pa.types
        text = types.is_string(kind) or types.is_large_string(kind)
        return bool(text or types.is_dictionary(kind))

    return [field.name for field in table.schema if repeats(field.type)]
