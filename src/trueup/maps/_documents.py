"""JSON documents with a kind and a format number: written, read and refused alike."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from trueup.errors import MapFormatError, TrueupError
from trueup.maps._files import write_atomically

Document = TypeVar("Document")


def write_json(content: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Save a document in one step or not at all."""
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
    write_atomically(path, text + "\n")


def read_json(path: str | os.PathLike[str], what: str = "map") -> object:
    """The content of a file that should hold a document."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        message = f"{os.fspath(path)} is not a saved {what}: it is not JSON ({error})."
        raise MapFormatError(message) from error


def _refuse(constant: str) -> None:
    """JSON has no NaN and no infinity, and nothing saved holds one."""
    message = f"{constant} is not JSON"
    raise ValueError(message)


def rebuilt(
    content: object,
    name: str,
    readers: Mapping[int, Callable[[dict[str, Any]], Document]],
    *,
    kind: str,
    what: str,
) -> Document:
    """Read a document by the reader of its format, or say what is wrong with it."""
    if not isinstance(content, dict) or content.get("kind") != kind:
        message = f'{name} is not a saved {what}: it lacks "kind": "{kind}".'
        raise MapFormatError(message)
    number = content.get("format")
    reader = readers.get(number) if type(number) is int else None
    if reader is None:
        raise MapFormatError(_unknown_format(content, name, max(readers), what))
    try:
        return reader(content)
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        OverflowError,
    ) as error:
        told = isinstance(error, TrueupError)
        reason = f"{error}" if told else f"{type(error).__name__}: {error}"
        message = (
            f"{name} is damaged and cannot be used ({reason}).\n"
            f"hint: fit the {what} again."
        )
        raise MapFormatError(message) from error


def _unknown_format(content: dict[str, Any], name: str, newest: int, what: str) -> str:
    number = content.get("format")
    is_newer = isinstance(number, int) and number > newest
    hint = (
        f"it was written by {content.get('created_by', 'an unknown version')}; "
        "upgrade with `pip install -U trueup`"
        if is_newer
        else f"the file was damaged or edited; fit the {what} again"
    )
    known = f"formats 1 to {newest}" + ("" if what == "map" else f" of {what}s")
    found = f"{name} has format {number!r}, but {this_version()} reads {known}."
    return f"{found}\nhint: {hint}."


def this_version() -> str:
    """Name and version of the package, as documents record it."""
    # Reading package metadata is slow, and only saving and failing need it.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return f"trueup {version('trueup')}"
    except PackageNotFoundError:  # running from a source tree that is not installed
        return "trueup (not installed)"
