"""Rows of question files: JSON Lines, JSON, CSV, Parquet, and the datasets package."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from string import ascii_uppercase
from typing import Any, cast

from trueup.elicit import problems
from trueup.errors import MissingExtraError

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
LARGEST_FIELD = 10_000_000
"""Characters of one CSV field; a passage to read may be long."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row, and where it stands."""

    fields: Mapping[str, Any]
    source: str
    number: int
    """Counted from one, in its own file."""

    @property
    def place(self) -> str:
        return f"{self.source}, row {self.number:,}"

    @property
    def stem(self) -> str:
        """The subject that MMLU writes into the names of its files."""
        name = Path(self.source).name.removesuffix(".gz").rsplit(".", 1)[0]
        return re.sub(r"_(test|val|dev|train|auxiliary_train)$", "", name)


def file_rows(path: Path) -> Iterator[Row]:
    """The rows of one file, by its suffix."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in SUFFIXES:
        raise problems.suffix(str(path), SUFFIXES)
    if not path.is_file():
        raise problems.absent(str(path))
    if suffix == ".parquet":
        found: Iterable[Any] = _parquet(path)
    else:
        text = _text(path)
        found = {".jsonl": _json_lines, ".json": _json, ".csv": _csv}[suffix](
            text, str(path)
        )
    for number, fields in enumerate(found, start=1):
        if not isinstance(fields, Mapping):
            place = f"{path}, row {number:,}"
            raise problems.not_an_object(place, fields)
        yield Row(fields, str(path), number)


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if path.name.endswith(".gz"):
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise problems.at(str(path), f"the file cannot be read: {error}") from (error)


def _json_lines(text: str, source: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _parsed(line, f"{source}, line {number:,}")


def _json(text: str, source: str) -> Iterable[Any]:
    content = _parsed(text, source)
    return cast("Iterable[Any]", content if isinstance(content, list) else [content])


def _parsed(text: str, place: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except ValueError as error:
        raise problems.at(place, f"this is not JSON: {error}") from error


def _csv(text: str, source: str) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(LARGEST_FIELD)
    rows = csv.reader(io.StringIO(text, newline=""))
    first = next(rows, None)
    if first is None:
        return
    if _is_headerless(first):
        header = ["question", *ascii_uppercase[: len(first) - 2], "answer"]
        yield dict(zip(header, first, strict=True))
    else:
        header = [name.strip() for name in first]
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(header):
            place = f"{source}, row {number:,}"
            raise problems.field_count(place, len(row), len(header))
        yield dict(zip(header, row, strict=True))


def _is_headerless(first: list[str]) -> bool:
    """MMLU's own files start with a question and end with the answer's letter."""
    names = {name.strip().lower() for name in first}
    return (
        len(first) == 6
        and "question" not in names
        and first[-1].strip() in ascii_uppercase[:4]
        and bool(first[-1].strip())
    )


def _parquet(path: Path) -> Iterable[Mapping[str, Any]]:
    from pyarrow import ArrowException, parquet

    try:
        return cast("list[dict[str, Any]]", parquet.read_table(path).to_pylist())
    except (ArrowException, OSError) as error:
        raise problems.at(str(path), f"this is not Parquet: {error}") from (error)


def dataset_rows(name: str, config: str | None, split: str) -> Iterator[Row]:
    """Rows of a published set; every configuration of it where none is named."""
    try:
        datasets = import_module("datasets")
    except ImportError as error:
        raise MissingExtraError.package("datasets") from error
    configs = [config] if config else datasets.get_dataset_config_names(name)
    for each in configs:
        loaded = datasets.load_dataset(name, each, split=split)
        for number, fields in enumerate(loaded, start=1):
            known = {"subject": each, **fields} if len(configs) > 1 else fields
            yield Row(known, f"{name}/{each}", number)
