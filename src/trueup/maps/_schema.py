"""The saved form of a map: JSON with a format number.

Every format ever written keeps its reader here and a golden file in the tests. The
format is described in ``docs/reference/map-format.md``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from trueup._render import json_number
from trueup._validate import Floats, Label, outcome_labels
from trueup.core.cells import Cells, Step, get_cells
from trueup.core.losses import LOSSES, get_loss
from trueup.core.properties import (
    AnswerConfidenceProperty,
    DistributionProperty,
    Property,
    point_property,
)
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.errors import InvalidInputError
from trueup.maps._documents import rebuilt, this_version, write_json
from trueup.maps._tilt_schema import tilts_from_json, tilts_to_json
from trueup.maps.report_map import Draw, FittedOn, ReportMap
from trueup.maps.rules import Table, Tilts
from trueup.solve.certificate import Certificate

FORMAT = 1
KIND = "trueup.report_map"


def write(fitted: ReportMap, path: str | os.PathLike[str]) -> None:
    """Save a map."""
    write_json(to_json(fitted), path)


def from_json(content: object, name: str = "the map") -> ReportMap:
    """Rebuild a map from its JSON object."""
    return rebuilt(content, name, _READERS, kind=KIND, what="map")


def to_json(fitted: ReportMap) -> dict[str, Any]:
    """A map as plain JSON values."""
    draw = fitted._draw
    if fitted.loss not in LOSSES:
        message = (
            f"a map with a loss of your own ({fitted.loss}) cannot be saved: a file "
            "holds no code.\nhint: keep its new reports, or fit again where needed."
        )
        raise InvalidInputError(message)
    return {
        "format": FORMAT,
        "kind": KIND,
        "created_by": this_version(),
        "property": _property(fitted.about),
        "outcomes": list(fitted.outcomes),
        "loss": fitted.loss,
        "floor": fitted.floor,
        "cells": _cells(fitted.cells),
        "rule": _rule(fitted.rule),
        "certificate": _certificate(fitted.certificate),
        "randomised": None
        if draw is None
        else {
            "weights": draw.weights.tolist(),
            "confidence": None if draw.confidence is None else draw.confidence.tolist(),
            "distributions": draw.distributions.tolist(),
            "certificate": _certificate(cast("Certificate", fitted._draw_certificate)),
        },
        "fitted_on": asdict(fitted.fitted_on),
    }


def _read_format_1(content: dict[str, Any]) -> ReportMap:
    outcomes = outcome_labels(content["outcomes"], "outcomes")
    rule = _parse_rule(content, outcomes)
    get_loss(str(content["loss"]), rule.about)  # refuses one that does not fit
    n_reports = len(rule.fitted) if isinstance(rule, Table) else 0
    shape = (n_reports, len(outcomes))
    draw, drawn = content["randomised"], None
    if draw is not None:
        confidence = draw["confidence"]
        drawn = Draw(
            _array(draw["weights"], shape),
            None if confidence is None else _array(confidence, shape[:1]),
            _array(draw["distributions"], shape),
        )
    return ReportMap(
        rule=rule,
        loss=content["loss"],
        cells=_parse_cells(content["cells"]),
        floor=_parse_floor(content["floor"], len(outcomes)),
        certificate=_parse_certificate(content["certificate"]),
        fitted_on=FittedOn(**{k: int(v) for k, v in content["fitted_on"].items()}),
        _draw=drawn,
        _draw_certificate=None
        if draw is None
        else _parse_certificate(draw["certificate"]),
    )


def _parse_floor(saved: Any, n_outcomes: int) -> float | None:  # noqa: ANN401 - JSON
    if saved is None:
        return None
    floor = float(saved)
    if not 0 < floor < 1 / n_outcomes:
        message = f"a floor of {floor} for {n_outcomes} outcomes"
        raise ValueError(message)
    return floor


def _parse_rule(content: dict[str, Any], outcomes: tuple[Label, ...]) -> Table | Tilts:
    about, saved = content["property"], content["rule"]
    if saved["kind"] == "tilt":
        return tilts_from_json(
            saved, outcomes, _parse_property(about, outcomes), content["loss"]
        )
    if saved["kind"] != "table":
        message = f"unknown rule {saved['kind']!r}"
        raise ValueError(message)
    fitted = _parse_reports(saved["reports"], about, outcomes)
    better = _parse_reports(saved["better"], about, outcomes)
    if len(better) != len(fitted):
        message = f"{len(fitted)} reports but {len(better)} replacements"
        raise ValueError(message)
    shape = (len(fitted), len(outcomes))
    return Table(fitted, better, _array(saved["distributions"], shape))


def _parse_property(about: dict[str, Any], outcomes: tuple[Label, ...]) -> Property:
    if about["name"] == "distribution":
        return DistributionProperty()
    if about["name"] == "answer-confidence":
        return AnswerConfidenceProperty()
    return point_property(about["name"], about["level"], outcomes)


_READERS: dict[int, Callable[[dict[str, Any]], ReportMap]] = {1: _read_format_1}


def _property(about: Property) -> dict[str, Any]:
    return {"name": about.name, "level": getattr(about, "level", None)}


def _rule(rule: Table | Tilts) -> dict[str, Any]:
    if isinstance(rule, Tilts):
        return tilts_to_json(rule)
    return {
        "kind": "table",
        "reports": _reports(rule.fitted),
        "better": _reports(rule.better),
        "distributions": rule.distributions.tolist(),
    }


def _reports(reports: Reports) -> Any:  # noqa: ANN401 - JSON
    if isinstance(reports, Distributions):
        return reports.probabilities.tolist()
    if isinstance(reports, AnswerConfidence):
        return {"answer": reports.labels(), "confidence": reports.confidence.tolist()}
    return {"value": cast("PointReport", reports).labels()}


def _parse_reports(
    saved: Any,  # noqa: ANN401 - JSON
    about: dict[str, Any],
    outcomes: tuple[Label, ...],
) -> Reports:
    name = about["name"]
    if name == "distribution":
        rows = _array(saved, (len(saved), len(outcomes)))
        if (
            not rows.size
            or (rows < 0).any()
            or (abs(rows.sum(axis=1) - 1) > 1e-9).any()
        ):
            message = "a saved report is not a distribution"
            raise ValueError(message)
        return Distributions(rows, outcomes)
    if name == "answer-confidence":
        return AnswerConfidence(
            answer=saved["answer"], confidence=saved["confidence"], outcomes=outcomes
        )
    return PointReport(
        value=saved["value"], outcomes=outcomes, property=name, level=about["level"]
    )


def _array(saved: Any, shape: tuple[int, ...]) -> Floats:  # noqa: ANN401 - JSON
    array = np.asarray(saved, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        message = f"expected finite numbers of shape {shape}, found shape {array.shape}"
        raise ValueError(message)
    return array


def _cells(cells: Cells) -> dict[str, Any]:
    if isinstance(cells, Step):
        return {"kind": "step", "step": cells.step}
    return {"kind": cells.name}


def _parse_cells(saved: dict[str, Any]) -> Cells:
    if saved["kind"] == "step":
        return Step(float(saved["step"]))
    return get_cells(str(saved["kind"]))


_NUMBERS = (
    "guaranteed_improvement",
    "upper_bound",
    "reference_error",
    "reference_free_improvement",
    "steepness",
    "tolerance",
    "fitted",
    "certified",
    "lower",
)


def _certificate(certificate: Certificate) -> dict[str, Any]:
    return {
        **{name: getattr(certificate, name) for name in _NUMBERS},
        "gap": certificate.gap,
        "break_even_reference_error": json_number(
            certificate.break_even_reference_error
        ),
        "loss": certificate.loss,
        "assumption": certificate.assumption,
        "trust": certificate.trust,
        "caps": certificate.caps,
        "n_groups": certificate.n_groups,
        "n_items": certificate.n_items,
        "engine": certificate.engine,
        "supported": certificate.supported,
        "reason": certificate.reason,
        "n0": certificate.n0,
        "n_cells": certificate.n_cells,
        "notes": list(certificate.notes),
    }


def _parse_certificate(saved: dict[str, Any]) -> Certificate:
    known = float(saved["break_even_reference_error"])
    number = {name: float(saved[name]) for name in _NUMBERS}
    if np.isnan(known) or not np.isfinite(list(number.values())).all():
        message = "a number of the certificate is not finite"
        raise ValueError(message)
    return Certificate(
        guaranteed_improvement=number["guaranteed_improvement"],
        upper_bound=number["upper_bound"],
        reference_error=number["reference_error"],
        reference_free_improvement=number["reference_free_improvement"],
        steepness=number["steepness"],
        tolerance=number["tolerance"],
        fitted=number["fitted"],
        certified=number["certified"],
        lower=number["lower"],
        supported=bool(saved["supported"]),
        reason=str(saved["reason"]),
        n0=int(saved["n0"]),
        n_cells=int(saved["n_cells"]),
        loss=str(saved["loss"]),
        assumption=str(saved["assumption"]),
        trust=str(saved["trust"]),
        caps=bool(saved["caps"]),
        n_groups=int(saved["n_groups"]),
        n_items=int(saved["n_items"]),
        engine=str(saved["engine"]),
        notes=tuple(map(str, saved["notes"])),
        _compute_break_even=lambda: known,
    )
