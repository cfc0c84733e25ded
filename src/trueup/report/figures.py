"""Vega-Lite figures of a summary.

Colours are CSS variables, so that the page decides about light, dark and print, and a
figure never has to be drawn again. Names of people's models and outcomes occur only as
data, never inside an expression.
"""

from __future__ import annotations

from trueup.report._change_figures import answer_joint, bands, joint, moves
from trueup.report._guarantee_figures import curve, rungs
from trueup.report._label_figures import metrics, promise, reliability
from trueup.report._vega import Spec
from trueup.report.summary import Labelled, ReportSummary


def figures(summary: ReportSummary) -> dict[str, Spec]:
    """Every figure of the page by the id of its place."""
    found = {
        "rungs": rungs(summary),
        "curve": curve(summary),
        "joint": joint(summary.changes, summary),
    }
    if summary.changes.moves:
        found["moves"] = moves(summary.changes)
        found["bands"] = bands(summary.changes)
    if summary.changes.answer_joint:
        found["answers"] = answer_joint(summary.changes, summary)
    if summary.labelled is not None:
        found |= _labelled_figures(summary.labelled)
    return found


def _labelled_figures(labelled: Labelled) -> dict[str, Spec]:
    found = {"promise": promise(labelled), "metrics": metrics(labelled)}
    for place in range(len(labelled.reliability)):
        found[f"reliability-{place}"] = reliability(labelled, place)
    return found
