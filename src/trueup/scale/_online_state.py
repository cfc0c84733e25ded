"""The saved form of an online calibrator: plain JSON that resumes to the last bit."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

import numpy as np

from trueup._validate import Label
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.maps import _schema
from trueup.maps._documents import read_json, rebuilt, this_version
from trueup.maps._files import write_atomically
from trueup.scale._online_parts import Items, OnlineState
from trueup.scale._seen import SeenItems
from trueup.scale._statistics_json import (
    statistics_from_json,
    statistics_to_json,
)
from trueup.scale.drift import DriftWatch
from trueup.scale.evidence import Evidence

KIND, FORMAT = "trueup.online_calibrator", 1


def write(state: OnlineState, path: str | os.PathLike[str]) -> None:
    """Write everything in one step or not at all."""
    content = {
        "format": FORMAT,
        "kind": KIND,
        "created_by": this_version(),
        "options": state.options,
        "n_updates": state.n_updates,
        "n_items": state.n_items,
        "n_tried": state.n_tried,
        "deployed_at": state.deployed_at,
        "seen": state.seen.to_json(),
        "window": None if state.window is None else _items(state.window),
        "statistics": (
            None if state.statistics is None else statistics_to_json(state.statistics)
        ),
        "map": None if state.map is None else _schema.to_json(state.map),
        "evidence": asdict(state.evidence),
        "alarm": None if state.alarm is None else state.alarm.to_json(),
    }
    write_atomically(path, json.dumps(content, allow_nan=False) + "\n")


def read(path: str | os.PathLike[str]) -> OnlineState:
    """The state that was written; anything else is an error that names the file."""
    name = os.fspath(path)
    what = "online calibrator"
    return rebuilt(
        read_json(path, what),
        name,
        {FORMAT: lambda saved: _state(saved, name)},
        kind=KIND,
        what=what,
    )


def _state(saved: dict[str, Any], name: str) -> OnlineState:
    options = dict(saved["options"])
    options["assume"] = tuple(options["assume"])
    if options["outcomes"] is not None:
        options["outcomes"] = tuple(options["outcomes"])
    statistics, fitted, alarm = saved["statistics"], saved["map"], saved["alarm"]
    return OnlineState(
        options=options,
        seen=SeenItems.from_json(saved["seen"]),
        n_updates=int(saved["n_updates"]),
        n_items=int(saved["n_items"]),
        n_tried=int(saved["n_tried"]),
        window=None if saved["window"] is None else _parse_items(saved["window"]),
        statistics=None if statistics is None else statistics_from_json(statistics),
        map=None if fitted is None else _schema.from_json(fitted, name),
        deployed_at=int(saved["deployed_at"]),
        evidence=Evidence(**{k: float(v) for k, v in saved["evidence"].items()}),
        alarm=None if alarm is None else DriftWatch.from_json(alarm),
    )


def _items(items: Items) -> dict[str, Any]:
    return {
        "outcomes": list(items.primary.outcomes),
        "primary": _reports(items.primary),
        "reference": _reports(items.reference),
        "fold": items.fold.tolist(),
        "arrived": items.arrived.tolist(),
    }


def _parse_items(saved: dict[str, Any]) -> Items:
    outcomes = tuple(saved["outcomes"])
    return Items(
        _parse_reports(saved["primary"], outcomes),
        _parse_reports(saved["reference"], outcomes),
        np.array(saved["fold"], dtype=np.int64),
        np.array(saved["arrived"], dtype=np.int64),
    )


def _reports(reports: Reports) -> dict[str, Any]:
    if isinstance(reports, AnswerConfidence):
        return {
            "answer": reports.answer.tolist(),
            "confidence": reports.confidence.tolist(),
        }
    return {"probabilities": reports.keys().tolist()}


def _parse_reports(saved: dict[str, Any], outcomes: tuple[Label, ...]) -> Reports:
    if "answer" in saved:
        return AnswerConfidence._of(
            np.array(saved["answer"], dtype=np.int64),
            np.array(saved["confidence"], dtype=np.float64),
            outcomes,
        )
    rows = np.array(saved["probabilities"], dtype=np.float64)
    return Distributions(rows.reshape(-1, len(outcomes)), outcomes)
