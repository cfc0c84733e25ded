"""Files of predictions: CSV, Parquet, JSON lines, Arrow; gzip; standard input.

The format is recognised by content where that is certain (Parquet, Arrow and gzip name
themselves) and by suffix otherwise. Nothing is guessed about values: a CSV column is
read as numbers only where every one of its values is a number, and as whole numbers
only where writing them again gives the same text, so that ``007`` stays what it is.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.errors import ExistingFileError, FileAccessError, PredictionFileError
from trueup.maps._files import temporary_beside

if TYPE_CHECKING:
    import pyarrow as pa

STANDARD_INPUT = "-"

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_WRITTEN = ".csv, .tsv, .parquet, .jsonl, .arrow or .feather"
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}
_GZIP = b"\x1f\x8b"


def read_table(
    source: str | os.PathLike[str], *, keep_text: tuple[str, ...] = ()
) -> pa.Table:
    r"""Read a file into an Arrow table; ``-`` reads standard input.

    Parameters
    ----------
    source
        A path. Gzipped files are recognised by content.
    keep_text
        Columns of a CSV file that stay text, whatever they hold (identifiers).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "predictions.csv")
    ...     n_written = path.write_text("item_id,p_yes,p_no\n007,0.25,0.75\n")
    ...     table = read_table(path)
    >>> table.to_pylist()
    [{'item_id': '007', 'p_yes': 0.25, 'p_no': 0.75}]
    """
    name = source_name(source)
    content = _content(source, name)
    if not content:
        raise PredictionFileError.of(
            name, "the file is empty.", "write one line with column names, then rows"
        )
    if content.startswith(_GZIP):
        content = _unzipped(content, name)
    kind = _kind(source, content)
    reader = _readers()[kind]
    table = reader(content, name, keep_text)
    _check_columns(table, name)
    if table.num_rows == 0:
        raise PredictionFileError.of(
            name,
            f"the file has {table.num_columns} columns and no rows.",
            "one row an item is expected below the column names",
        )
    return table


def source_name(source: str | os.PathLike[str]) -> str:
    """How messages call a source."""
    text = os.fspath(source)
    return "standard input" if text == STANDARD_INPUT else text


def write_table(
    table: pa.Table, path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write a table by suffix, in one step or not at all; ``.gz`` compresses text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow as pa
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "better.csv")
    ...     write_table(pa.table({"item_id": ["a"], "p_yes": [0.5]}), path)
    ...     print(path.read_text())
    item_id,p_yes
    a,0.5
    """
    target = Path(path)
    suffixes = [suffix.lower() for suffix in target.suffixes]
    zipped = bool(suffixes) and suffixes[-1] == ".gz"
    kind = (
        _SUFFIXES.get(suffixes[-2 if zipped else -1])
        if len(suffixes) > zipped
        else None
    )
    if kind is None or (zipped and kind not in ("csv", "jsonl")):
        message = (
            f"{target}: cannot tell from the name which format to write.\n"
            f"hint: end the name in {_WRITTEN}; text formats also in .gz."
        )
        raise FileAccessError(message)
    check_target(target, force=force)
    separator = "\t" if ".tsv" in suffixes[-2:] else ","
    with temporary_beside(target) as temporary:
        _write(table, temporary, kind, zipped=zipped, separator=separator)


def check_target(path: str | os.PathLike[str], *, force: bool) -> None:
    """Refuse a target that cannot or should not be written, before any work is done."""
    target = Path(path)
    if target.is_dir():
        message = f"{target} is a folder.\nhint: name a file in it."
        raise FileAccessError(message)
    if not target.parent.is_dir():
        message = f"the folder {target.parent} does not exist.\nhint: make it first."
        raise FileAccessError(message)
    if target.exists() and not force:
        raise ExistingFileError.of(target)
    if target.exists() and not os.access(target, os.W_OK):
        message = (
            f"{target} is read-only.\nhint: choose another name, or make it writable."
        )
        raise FileAccessError(message)
    if not os.access(target.parent, os.W_OK):
        message = (
            f"the folder {target.parent} is read-only.\n"
            "hint: choose another folder, or make it writable."
        )
        raise FileAccessError(message)


def _write(
    table: pa.Table, path: Path, kind: str, *, zipped: bool, separator: str
) -> None:
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    elif kind == "arrow":
        from pyarrow import feather

        feather.write_feather(table, path, compression="uncompressed")
    else:
        from trueup.data import text

        written = (
            text.csv_bytes(table, separator)
            if kind == "csv"
            else text.jsonl_bytes(table)
        )
        path.write_bytes(gzip.compress(written, mtime=0) if zipped else written)


def _content(source: str | os.PathLike[str], name: str) -> bytes:
    if os.fspath(source) == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    path = Path(source)
    try:
        if path.is_dir():
            message = f"{name} is a folder.\nhint: name a file in it."
            raise FileAccessError(message)
        return path.read_bytes()
    except FileNotFoundError as error:
        message = f"{name} does not exist.\nhint: check the path{_similar(path)}."
        raise FileAccessError(message) from error
    except (OSError, ValueError) as error:
        if isinstance(error, FileAccessError):
            raise
        reason = getattr(error, "strerror", None) or error
        message = (
            f"{name} cannot be read: {reason}.\n"
            "hint: check the path and its permissions."
        )
        raise FileAccessError(message) from error


def _similar(path: Path) -> str:
    import difflib

    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"; {path.parent / near[0]} exists" if near else ""


def _unzipped(content: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise PredictionFileError.of(
            name, f"the compressed file is damaged ({error}).", "make or copy it again"
        ) from error


def _kind(source: str | os.PathLike[str], content: bytes) -> str:
    for magic, kind in _MAGIC.items():
        if content.startswith(magic):
            return kind
    suffixes = [suffix.lower() for suffix in Path(os.fspath(source)).suffixes[-2:]]
    named = [_SUFFIXES[suffix] for suffix in suffixes if suffix in _SUFFIXES]
    if named:
        return named[-1]
    start = content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return "jsonl" if start in (b"{", b"[") else "csv"


def _readers() -> dict[str, Callable[[bytes, str, tuple[str, ...]], pa.Table]]:
    from trueup.data import text

    return {
        "csv": text.read_csv,
        "jsonl": text.read_jsonl,
        "parquet": _read_parquet,
        "arrow": _read_arrow,
    }


def _read_parquet(content: bytes, name: str, _: tuple[str, ...]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(BytesIO(content))
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise _damaged(name, "Parquet", error) from error
    return table


def _read_arrow(content: bytes, name: str, _: tuple[str, ...]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import feather

    try:
        if content.startswith((b"ARROW1", b"FEA1")):
            table = feather.read_table(BytesIO(content), memory_map=False)
        else:
            with pa.ipc.open_stream(content) as stream:
                table = stream.read_all()
        # A damaged file may point outside itself; nothing is looked at before this.
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise _damaged(name, "Arrow", error) from error
    return table


def _damaged(name: str, kind: str, error: Exception) -> PredictionFileError:
    reason = " ".join(str(error).split())[:200]
    return PredictionFileError.of(
        name, f"this is not a readable {kind} file ({reason}).", "make or copy it again"
    )


def _check_columns(table: pa.Table, name: str) -> None:
    seen: set[str] = set()
    for column in table.column_names:
        if column in seen:
            raise PredictionFileError.of(
                name,
                f"two columns are named {column!r}.",
                "give every column its own name",
            )
        seen.add(column)
