"""Loading maps and bringing predictions into the form they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.cli._inputs import answers_of, read_one
from trueup.errors import FileAccessError

if TYPE_CHECKING:
    from trueup.cli._output import Console
    from trueup.core.reports import Reports
    from trueup.data.predictions import Predictions
    from trueup.maps.report_map import ReportMap


def load_map(path: str) -> ReportMap:
    """Load a map fitted by us; errors name the file."""
    from pathlib import Path

    from trueup.api import load
    from trueup.errors import MapFormatError
    from trueup.maps.report_map import ReportMap

    if not Path(path).exists():
        message = f"{path} does not exist.\nhint: check the path."
        raise FileAccessError(message)
    if Path(path).is_dir():
        message = f"{path} is a folder.\nhint: name a file in it."
        raise FileAccessError(message)
    loaded = load(path)
    if not isinstance(loaded, ReportMap):
        message = (
            f"{path} holds a baseline ({type(loaded).__name__}), not a fitted map.\n"
            "hint: apply it in Python with trueup.load(path).apply(reports)."
        )
        raise MapFormatError(message)
    return loaded


def read_for_map(
    console: Console,
    fitted: ReportMap,
    source: str,
    **given: Any,  # noqa: ANN401 - the column options
) -> Predictions:
    """Read predictions as the kind of report a map takes."""
    from dataclasses import replace

    about = fitted.about
    if given["stated"] is None and about.name in {"mean", "quantile", "expectile"}:
        given["stated"], given["level"] = about.name, getattr(about, "level", None)
    known = None if about.name == "distribution" else tuple(fitted.outcomes)
    read = read_one(console, source, fallback_outcomes=known, **given)
    if about.name == "answer-confidence" and read.columns.outcomes:
        console.say("  the map takes answers: distributions become answers")
        read = replace(read, reports=answers_of(read.reports))
    return read


def applied(fitted: ReportMap, reports: Reports) -> Reports:
    """What a map makes of reports, as reports."""
    from trueup.core.pairing import parse_reports

    return parse_reports(fitted.apply(reports), "the map", fitted.outcomes)
