"""The saved form of a baseline: JSON with a format number, like our own maps."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trueup._validate import outcome_labels
from trueup.errors import MapFormatError, TrueupError
from trueup.evaluate.baselines.base import (
    ANSWERS,
    DISTRIBUTIONS,
    BaselineFit,
    BaselineMap,
)
from trueup.evaluate.baselines.registry import BASELINES
from trueup.maps import _schema as maps_schema
from trueup.maps._files import write_atomically

FORMAT = 1
KIND = "trueup.baseline_map"


def write(fitted: BaselineMap, path: str | os.PathLike[str]) -> None:
    """Save a baseline."""
    text = json.dumps(to_json(fitted), indent=1, allow_nan=False, ensure_ascii=False)
    write_atomically(path, text + "\n")


def read(path: str | os.PathLike[str]) -> BaselineMap:
    """Load a baseline, with an error that says what is wrong with the file."""
    name = os.fspath(path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        message = f"{name} is not a saved baseline: it is not JSON ({error})."
        raise MapFormatError(message) from error
    return from_json(content, name)


def to_json(fitted: BaselineMap) -> dict[str, Any]:
    """A baseline as plain JSON values."""
    return {
        "format": FORMAT,
        "kind": KIND,
        "created_by": maps_schema._me(),
        "method": fitted.name,
        "outcomes": list(fitted.outcomes),
        "reads": fitted.reads,
        "parameters": fitted.parameters(),
        "fitted_on": asdict(fitted.fitted_on),
    }


def from_json(content: object, name: str = "the baseline") -> BaselineMap:
    """Rebuild a baseline from its JSON object."""
    if not isinstance(content, dict) or content.get("kind") != KIND:
        message = f'{name} is not a saved baseline: it lacks "kind": "{KIND}".'
        raise MapFormatError(message)
    number = content.get("format")
    reader = _READERS.get(number) if type(number) is int else None
    if reader is None:
        hint = (
            f"it was written by {content.get('created_by', 'an unknown version')}; "
            "upgrade with `pip install -U trueup`"
            if isinstance(number, int) and number > FORMAT
            else "the file was damaged or edited; fit the baseline again"
        )
        message = (
            f"{name} has format {number!r}, but {maps_schema._me()} reads formats 1 to "
            f"{FORMAT} of baselines.\nhint: {hint}."
        )
        raise MapFormatError(message)
    try:
        return reader(content)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        told = isinstance(error, TrueupError)
        what = f"{error}" if told else f"{type(error).__name__}: {error}"
        message = (
            f"{name} is damaged and cannot be used ({what}).\n"
            "hint: fit the baseline again."
        )
        raise MapFormatError(message) from error


def _read_format_1(content: dict[str, Any]) -> BaselineMap:
    method, reads = content["method"], content["reads"]
    if method not in BASELINES:
        message = f"unknown method {method!r}"
        raise ValueError(message)
    if reads not in (ANSWERS, DISTRIBUTIONS):
        message = f"unknown kind of reports {reads!r}"
        raise ValueError(message)
    made = BASELINES[method]
    saved = content["fitted_on"]
    fold = saved["fold"]
    return made(
        outcomes=outcome_labels(content["outcomes"], "outcomes"),
        reads=reads,
        fitted_on=BaselineFit(
            int(saved["n_items"]),
            int(saved["n_used"]),
            None if fold is None else str(fold),
        ),
        **made.read_parameters(content["parameters"]),
    )


_READERS: dict[int, Callable[[dict[str, Any]], BaselineMap]] = {1: _read_format_1}
