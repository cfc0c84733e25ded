"""How a map shows itself in a notebook: facts, and what it does to reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup import _sketch
from trueup._render import html_table
from trueup._validate import Floats
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.core.stated import stated
from trueup.maps.rules import Table

if TYPE_CHECKING:
    from trueup.maps.report_map import ReportMap

_STEPS = 33
_MOST_ANSWERS = 12
_MOST_DOTS = 400


def map_html(fitted: ReportMap) -> str:
    """A table of facts beside a picture."""
    proof, on = fitted.certificate, fitted.fitted_on
    rows = [
        ("loss", fitted.loss),
        ("guaranteed improvement", f"{proof.guaranteed_improvement:.4g}"),
        ("reference trusted for", proof.trust + (" with caps" if proof.caps else "")),
        ("reference error allowed", f"{proof.reference_error:g}"),
        ("reports", fitted.about.title),
        ("outcomes", f"{len(fitted.outcomes):,}"),
        ("fitted on", f"{on.n_items:,} items"),
    ]
    notes = [proof.assumption]
    if not proof.supported and proof.reason:
        notes.insert(0, f"Nothing is guaranteed: {proof.reason}.")
    table = html_table("Map from reports to better ones", ("", ""), rows, notes)
    return _sketch.beside(table, _picture(fitted))


def _picture(fitted: ReportMap) -> str:
    if isinstance(fitted.rule, Table):
        before, after = fitted.rule.fitted, fitted.rule.better
    else:
        before = _examples(fitted)
        after = fitted.rule.apply(before)
    old, new = stated(before), stated(after)
    chosen = np.unique(np.linspace(0, len(before) - 1, _MOST_DOTS).astype(np.int64))
    points = [(float(old.values[n]), float(new.values[n]), 0.05) for n in chosen]
    return _sketch.dots(
        points,
        largest=1.0,
        limits=(old.low, old.high),
        labels=(f"{old.title} before", f"{old.title} after"),
        summary=f"What the map makes of {old.title}: old against new.",
    )


def _examples(fitted: ReportMap) -> Reports:
    """Reports of the map's kind all along its range, for every answer."""
    names = fitted.outcomes
    n_outcomes = len(names)
    if fitted.about.name == "distribution" and n_outcomes == 2:
        chance = np.linspace(0, 1, _STEPS)
        return Distributions(np.column_stack([1 - chance, chance]), names)
    if fitted.about.name in {"distribution", "answer-confidence"}:
        answers = np.arange(min(n_outcomes, _MOST_ANSWERS)).repeat(_STEPS)
        range_ = np.linspace(1 / n_outcomes + 1e-6, 1, _STEPS)
        confidence = np.tile(range_, len(answers) // _STEPS)
        if fitted.about.name == "answer-confidence":
            return AnswerConfidence._of(answers, confidence, names)
        rest = ((1 - confidence) / (n_outcomes - 1))[:, None]
        rows: Floats = np.repeat(rest, n_outcomes, axis=1)
        rows[np.arange(len(answers)), answers] = confidence
        return Distributions(rows, names)
    values = np.arange(n_outcomes, dtype=np.float64)
    if fitted.about.name in {"mean", "expectile"}:
        support = fitted.about.values
        values = np.linspace(support.min(), support.max(), _STEPS)
    elif fitted.about.name == "quantile":
        values = np.sort(fitted.about.values)
    return PointReport._of(values, names, fitted.about)
