"""The saved form of a map on adaptive cells: edges, slopes and multipliers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from trueup._validate import Label
from trueup.core.assertions import Assertion, check_names
from trueup.core.moments import Trust
from trueup.core.properties import Property
from trueup.core.resolution import PrimaryCells, ReferenceCells, SplitBins
from trueup.maps.rules import Tilts
from trueup.solve.adaptive import Temperature, Tilt
from trueup.solve.crossfit import CrossFit, Estimate, Half
from trueup.solve.sampling import Multipliers


def tilts_to_json(rule: Tilts) -> dict[str, Any]:
    """A rule as plain JSON values."""
    halves = rule.halves
    return {
        "kind": "tilt",
        "trust": asdict(rule.trust),
        "assume": list(rule.assume),
        "groups": [_plain(name) for name in rule.groups],
        "halves": None if halves is None else [_half(half) for half in halves.halves],
        "estimate": None if halves is None else asdict(halves.estimate),
    }


def tilts_from_json(
    saved: dict[str, Any], outcomes: tuple[Label, ...], about: Property, loss: str
) -> Tilts:
    """Rebuild a rule; shapes are checked, so that a damaged file fails here."""
    halves = saved["halves"]
    fitted = None
    if halves is not None:
        if len(halves) != 2:
            message = f"expected two halves, found {len(halves)}"
            raise ValueError(message)
        read = tuple(_parse_half(half, len(outcomes)) for half in halves)
        estimate = {name: float(value) for name, value in saved["estimate"].items()}
        n_items = int(estimate.pop("n_items"))
        fitted = CrossFit(read, Estimate(**estimate, n_items=n_items))
    return Tilts(
        outcomes=outcomes,
        about=about,
        loss=loss,
        trust=_parse_trust(saved["trust"]),
        assume=check_names(saved["assume"]),
        groups=tuple(saved["groups"]),
        halves=fitted,
    )


def _half(half: Half) -> dict[str, Any]:
    tilt, multipliers = half.tilt, half.multipliers
    rule = (
        {"kind": "slopes", "slopes": tilt.slopes.tolist()}
        if isinstance(tilt, Tilt)
        else {"kind": "temperature", "exponent": tilt.exponent}
    )
    bins = multipliers.cells.bins
    return {
        "primary_frame": tilt.cells.frame,
        "primary_edges": [edges.tolist() for edges in tilt.cells.edges],
        "map": rule,
        "reference_cells": {
            "rung": multipliers.cells.rung,
            "n_groups": multipliers.cells.n_groups,
            "edges": bins.edges.tolist(),
            "table": bins.table.tolist(),
            "rest": bins.rest.tolist(),
        },
        "multipliers": multipliers.table.tolist(),
        "assertions": [
            {
                "name": one.name,
                "sign": one.sign,
                "confidence": list(one.confidence),
                "coefficients": one.coefficients.tolist(),
                "multiplier": float(weight),
            }
            for one, weight in zip(
                multipliers.asserted, multipliers.weights, strict=True
            )
        ],
        "fitted": half.fitted,
        "n_cells": half.n_cells,
        "n0": half.n0,
        # Maps of before have none.
        **({"engine": half.engine} if half.engine else {}),
    }


def _parse_half(saved: dict[str, Any], n_outcomes: int) -> Half:
    edges = tuple(_numbers(row, 1) for row in saved["primary_edges"])
    cells = PrimaryCells(edges, _parse_frame(saved["primary_frame"], edges))
    rule = saved["map"]
    tilt: Tilt | Temperature
    if rule["kind"] == "slopes":
        tilt = Tilt(cells, _shaped(rule["slopes"], (cells.n_cells, n_outcomes)))
    elif rule["kind"] == "temperature":
        tilt = Temperature(cells, float(rule["exponent"]))
    else:
        message = f"unknown map {rule['kind']!r}"
        raise ValueError(message)
    multipliers = _parse_multipliers(saved, cells, n_outcomes)
    return Half(
        tilt,
        multipliers,
        float(saved["fitted"]),
        int(saved["n_cells"]),
        int(saved["n0"]),
        str(saved.get("engine", "")),
    )


def _parse_multipliers(
    saved: dict[str, Any], cells: PrimaryCells, n_outcomes: int
) -> Multipliers:
    where = saved["reference_cells"]
    edges = _numbers(where["edges"], 1)
    table = np.asarray(where["table"], dtype=np.int64)
    rest = np.asarray(where["rest"], dtype=np.int64)
    if table.ndim != 2 or len(table) != len(edges) + 1 or rest.shape != (len(table),):
        message = "reference cells do not match their edges"
        raise ValueError(message)
    bins = SplitBins(edges, table, rest)
    values = _numbers(saved["multipliers"], 2)
    if len(values) != bins.n_cells:
        message = (
            f"{bins.n_cells} reference cells but {len(values)} rows of multipliers"
        )
        raise ValueError(message)
    asserted = saved["assertions"]
    shape = (cells.n_cells, n_outcomes)
    return Multipliers(
        cells=ReferenceCells(str(where["rung"]), int(where["n_groups"]), bins),
        table=values,
        primary_cells=cells,
        asserted=tuple(
            Assertion(
                str(one["name"]),
                _shaped(one["coefficients"], shape),
                float(one["sign"]),
                (float(one["confidence"][0]), float(one["confidence"][1])),
            )
            for one in asserted
        ),
        weights=np.array([float(one["multiplier"]) for one in asserted]),
    )


def _parse_frame(saved: object, edges: tuple[Any, ...]) -> str:
    if saved not in ("answer", "rank") or (saved == "rank" and len(edges) != 1):
        message = f"unknown frame {saved!r} of {len(edges)} rows of edges"
        raise ValueError(message)
    return str(saved)


def _parse_trust(saved: dict[str, Any]) -> Trust:
    return Trust(
        rung=str(saved["rung"]),
        caps=bool(saved["caps"]),
        n_groups=int(saved["n_groups"]),
        reference_error=float(saved["reference_error"]),
        title=str(saved["title"]),
    )


def _numbers(saved: Any, n_dimensions: int) -> np.ndarray[Any, np.dtype[np.float64]]:  # noqa: ANN401 - JSON
    array = np.asarray(saved, dtype=np.float64)
    if array.ndim != n_dimensions or not np.isfinite(array).all():
        message = f"expected finite numbers in {n_dimensions} dimensions"
        raise ValueError(message)
    return array


def _shaped(
    saved: Any,  # noqa: ANN401 - JSON
    shape: tuple[int, ...],
) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = _numbers(saved, len(shape))
    if array.shape != shape:
        message = f"expected shape {shape}, found {array.shape}"
        raise ValueError(message)
    return array


def _plain(name: object) -> object:
    """Group names as JSON keeps them."""
    value = name.item() if isinstance(name, np.generic) else name
    return value if isinstance(value, str | int | float | bool) else str(value)
