"""A map and its certificate, for people and as JSON."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from trueup.cli._output import aligned, number
from trueup.data.schema import listed

if TYPE_CHECKING:
    from trueup.maps.report_map import ReportMap
    from trueup.solve.certificate import Certificate


_UNSUPPORTED = (
    "is offered although nothing is guaranteed of it; fit with --fallback identity to "
    "leave reports as they are instead"
)


def map_json(fitted: ReportMap) -> dict[str, Any]:
    """What a map does, without the map itself."""
    from dataclasses import asdict

    from trueup.maps import _schema

    return {
        "loss": fitted.loss,
        "property": _schema._property(fitted.about),
        "outcomes": list(fitted.outcomes),
        "cells": _schema._cells(fitted.cells),
        "floor": fitted.floor,
        "changes_nothing": _changes_nothing(fitted),
        "randomised": fitted.randomised is not None,
        "fitted_on": asdict(fitted.fitted_on),
    }


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """A certificate with its assumption; infinities become text."""
    from trueup.maps import _schema

    return _schema._certificate(certificate)


def map_text(fitted: ReportMap) -> str:
    """What a map does and what is guaranteed of it."""
    proof, used = fitted.certificate, fitted.fitted_on
    names = listed(map(str, fitted.outcomes))
    rows = [
        ("assumption", proof.assumption),
        ("break-even", _break_even(proof)),
        ("reports", f"{fitted.about.title}, {len(fitted.outcomes)} outcomes: {names}"),
        ("fitted on", f"{used.n_items:,} items, {_cells_text(fitted)}"),
    ]
    if _changes_nothing(fitted):
        rows.append(("the map", "leaves every report as it is"))
    elif not proof.supported:
        rows.append(("the map", _UNSUPPORTED))
    if fitted.cells.name == "auto":
        rows.append(("bound", _sampling(proof)))
    rows.extend(("note", note) for note in proof.notes)
    headline = "\n".join(textwrap.wrap(_headline(proof), 88))
    return f"{headline}\n\n{aligned(rows)}"


def _sampling(proof: Certificate) -> str:
    return (
        f"{number(proof.fitted)} on the items it was fitted on, "
        f"{number(proof.certified)} on others, {number(proof.lower)} or more with 95 % "
        "confidence"
    )


def _headline(proof: Certificate) -> str:
    if proof.supported and proof.guaranteed_improvement > 0:
        return (
            f"Guaranteed: {proof.loss} loss falls by at least "
            f"{number(proof.guaranteed_improvement)} an item, if the assumption holds."
        )
    why = f" {proof.reason[:1].upper()}{proof.reason[1:]}." if proof.reason else ""
    return f"Nothing is guaranteed.{why}"


def _break_even(proof: Certificate) -> str:
    error = proof.break_even_reference_error
    if not (proof.supported and proof.guaranteed_improvement > 0):
        return "none: there is no guarantee that an error could undo"
    if error == 0:
        return "0: any error of the reference could undo the guarantee"
    if error == float("inf"):
        return "none: the guarantee needs no reference"
    return (
        f"{number(error)}: the reference may be this wrong before the guarantee ends "
        f"(assumed: {number(proof.reference_error)})"
    )


def _changes_nothing(fitted: ReportMap) -> bool:
    from trueup.maps.rules import Tilts

    return isinstance(fitted.rule, Tilts) and fitted.rule.halves is None


def _cells_text(fitted: ReportMap) -> str:
    step = getattr(fitted.cells, "step", None)
    return {
        "auto": "adaptive cells (the items are a sample)",
        "exact": "exact cells (the items are the population)",
        "step": f"a grid of {step} (the items are the population)",
    }[fitted.cells.name]
