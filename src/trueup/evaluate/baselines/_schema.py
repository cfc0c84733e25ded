"""The saved form of a baseline: JSON with a format number, like our own maps."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from trueup._validate import outcome_labels
from trueup.evaluate.baselines.base import (
    ANSWERS,
    DISTRIBUTIONS,
    BaselineFit,
    BaselineMap,
)
from trueup.evaluate.baselines.registry import BASELINES
from trueup.maps._documents import (
    read_json,
    rebuilt,
    this_version,
    write_json,
)

FORMAT = 1
KIND = "trueup.baseline_map"
WHAT = "baseline"


def write(fitted: BaselineMap, path: str | os.PathLike[str]) -> None:
    """Save a baseline."""
    write_json(to_json(fitted), path)


def read(path: str | os.PathLike[str]) -> BaselineMap:
    """Load a baseline, with an error that says what is wrong with the file."""
    return from_json(read_json(path, WHAT), os.fspath(path))


def to_json(fitted: BaselineMap) -> dict[str, Any]:
    """A baseline as plain JSON values."""
    return {
        "format": FORMAT,
        "kind": KIND,
        "created_by": this_version(),
        "method": fitted.name,
        "outcomes": list(fitted.outcomes),
        "reads": fitted.reads,
        "parameters": fitted.parameters(),
        "fitted_on": asdict(fitted.fitted_on),
    }


def from_json(content: object, name: str = "the baseline") -> BaselineMap:
    """Rebuild a baseline from its JSON object."""
    return rebuilt(content, name, _READERS, kind=KIND, what=WHAT)


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
