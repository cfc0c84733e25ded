"""Text formats: CSV and JSON lines, with errors that name the line."""

from __future__ import annotations

import codecs
import csv
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from trueup.data.values import python_values
from trueup.errors import PredictionFileError

_DELIMITERS = (",", ";", "\t", "|")
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def read_csv(content: bytes, name: str, keep_text: tuple[str, ...] = ()) -> pa.Table:
    """A CSV file; the delimiter is the one its first line holds most often."""
    text = _decoded(content, name)
    header, delimiter = _header(text, name)
    try:
        table = pv.read_csv(
            io.BytesIO(text.encode()),
            read_options=pv.ReadOptions(column_names=header, skip_rows=0),
            parse_options=pv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pv.ConvertOptions(
                column_types={column: pa.string() for column in header},
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200]
        raise PredictionFileError.of(
            name,
            f"the rows do not fit the {len(header)} columns of the first line "
            f"({reason}).",
            "quote values that hold delimiters or line breaks, and give every row "
            "the same number of values",
        ) from error
    table = table.slice(1)  # the header, which a quoted line break may spread
    columns = [
        table.column(place) if column in keep_text else _typed(table.column(place))
        for place, column in enumerate(header)
    ]
    return pa.Table.from_arrays(columns, names=header)


def read_jsonl(content: bytes, name: str, _: tuple[str, ...] = ()) -> pa.Table:
    """One JSON object a line, or one array of objects."""
    text = _decoded(content, name)
    rows = _json_rows(text, name)
    names = list(dict.fromkeys(key for _, row in rows for key in row))
    columns = [
        _json_column([row.get(key) for _, row in rows], key, rows, name)
        for key in names
    ]
    return pa.Table.from_arrays(columns, names=names)


def csv_bytes(table: pa.Table, separator: str) -> bytes:
    """A table as CSV, quoted where needed."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=separator, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=65_536):
        columns = [python_values(column) for column in batch.columns]
        writer.writerows(zip(*columns, strict=True))
    return buffer.getvalue().encode()


def jsonl_bytes(table: pa.Table) -> bytes:
    """A table as JSON lines."""
    lines = [
        json.dumps(row, ensure_ascii=False, default=str)
        for batch in table.to_batches(max_chunksize=65_536)
        for row in _rows(batch)
    ]
    return ("\n".join(lines) + "\n").encode() if lines else b""


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = [python_values(column) for column in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _decoded(content: bytes, name: str) -> str:
    encoding = next(
        (named for bom, named in _BOMS.items() if content.startswith(bom)), "utf-8"
    )
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise PredictionFileError.of(
            name,
            f"the file is not UTF-8 text (byte {error.start:,}).",
            "save it as UTF-8; if it is another format, give it the right suffix",
        ) from error
    if "\0" in text:
        raise PredictionFileError.of(
            name,
            "the file holds zero bytes, so it is not text.",
            "save it as UTF-8; if it is another format, give it the right suffix",
        )
    return text


def _header(text: str, name: str) -> tuple[list[str], str]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    if not first:
        raise PredictionFileError.of(
            name, "the file is empty.", "write one line with column names, then rows"
        )
    delimiter = max(_DELIMITERS, key=lambda mark: _n_outside_quotes(first, mark))
    try:
        header = next(
            row
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            if row
        )
    except (csv.Error, StopIteration) as error:
        raise PredictionFileError.of(
            name,
            f"the first line is not a list of column names ({error}).",
            "write one line with column names, then rows",
        ) from error
    names = [column.strip() for column in header]
    if "" in names:
        raise PredictionFileError.of(
            name,
            f"column {names.index('') + 1} of {len(names)} has no name.",
            "name every column in the first line",
        )
    twice = next((column for column in names if names.count(column) > 1), None)
    if twice is not None:
        raise PredictionFileError.of(
            name, f"two columns are named {twice!r}.", "give every column its own name"
        )
    return names, delimiter


def _n_outside_quotes(line: str, mark: str) -> int:
    return sum(part.count(mark) for part in line.split('"')[::2])


def _typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers where every value is one; whole ones only where the text is kept."""
    trimmed = pc.utf8_trim_whitespace(column)
    try:
        whole = pc.cast(trimmed, pa.int64())
    except pa.ArrowInvalid:
        try:
            return pc.cast(trimmed, pa.float64())
        except pa.ArrowInvalid:
            return column
    same = pc.equal(pc.cast(whole, pa.string()), trimmed)
    return whole if pc.all(same).as_py() in (True, None) else column


def _json_rows(text: str, name: str) -> list[tuple[int, dict[str, Any]]]:
    start = text.lstrip()[:1]
    if start == "[":
        values = list(enumerate(_parsed(text, name, 1), start=1))
    else:
        lines = enumerate(text.split("\n"), start=1)
        values = [(n, _parsed(line, name, n)) for n, line in lines if line.strip()]
    for number, value in values:
        if not isinstance(value, dict):
            raise PredictionFileError.of(
                name,
                f"line {number:,} is not an object but {_shown(value)}.",
                'write one object a line, e.g. {"item_id": "a", "p_yes": 0.7, '
                '"p_no": 0.3}',
            )
    return values


def _parsed(text: str, name: str, line: int) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", None) or str(error)
        raise PredictionFileError.of(
            name,
            f"line {line:,} is not JSON ({reason}).",
            "write one JSON object a line",
        ) from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        message = f"the name {twice!r} occurs twice"
        raise ValueError(message)
    return made


def _json_column(
    values: list[Any], key: str, rows: list[tuple[int, dict[str, Any]]], name: str
) -> pa.Array:
    """A column of one type: numbers, text, or whatever else Arrow makes of it."""
    kinds = {_kind_of(value) for value in values if value is not None}
    if kinds == {"a number"} and any(isinstance(value, float) for value in values):
        values = [None if value is None else float(value) for value in values]
    if len(kinds) > 1:
        first = _kind_of(next(value for value in values if value is not None))
        other = next(
            place
            for place, value in enumerate(values)
            if value is not None and _kind_of(value) != first
        )
        raise PredictionFileError.of(
            name,
            f"{key!r} holds {first} at first but {_shown(values[other])} in line "
            f"{rows[other][0]:,}.",
            "let every line hold the same kind of value",
        )
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise PredictionFileError.of(
            name,
            f"the values of {key!r} cannot be read as one column ({error}).",
            "let every line hold the same kind of value",
        ) from error


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
