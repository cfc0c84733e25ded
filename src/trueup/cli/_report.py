"""The report of a fit, from what its command has read."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.cli._inputs import predictor_names
from trueup.errors import FileAccessError, MissingExtraError, PredictionFileError

if TYPE_CHECKING:
    from trueup._validate import Label
    from trueup.cli._output import Console
    from trueup.data.pairing import Pair
    from trueup.maps.report_map import ReportMap

_SUFFIXES = (".html", ".htm", ".md", ".markdown", ".json")


def check_report(path: str, *, force: bool) -> None:
    """Refuse a report that could not be written, before anything is fitted."""
    from trueup.data.files import check_target

    if Path(path).suffix.lower() not in _SUFFIXES:
        message = (
            f"{path}: cannot tell from the name which kind of report to write.\n"
            "hint: end the name in .html, .md or .json."
        )
        raise FileAccessError(message)
    check_target(path, force=force)
    is_page = Path(path).suffix.lower() in {".html", ".htm"}
    for package in ("jinja2", "vl_convert") if is_page else ():
        if find_spec(package) is None:
            raise MissingExtraError.of(package, "report")


def write_report(
    console: Console,
    fitted: ReportMap,
    pair: Pair,
    options: dict[str, Any],
    path: str,
) -> None:
    """Summarise a fit and write the page."""
    report = import_module("trueup.report")
    summary = report.summarise(
        fitted,
        pair.primary.reports,
        pair.reference.reports,
        labels=_labels(console, pair),
        names=predictor_names(pair.primary, pair.reference),
        ids=pair.item_ids,
        groups=options["groups"],
        sample_weight=options["sample_weight"],
        blocks=options["blocks"],
        family=options["family"],
        progress=console.progress,
    )
    report.write_report(summary, path, force=True)  # checked before fitting


def _labels(console: Console, pair: Pair) -> list[Label | None] | None:
    """Labels of the files, which only the report looks at; None where one is missing.

    The map is fitted by now: labels that make no sense are left out, and it is said.
    """
    from trueup._validate import is_missing
    from trueup.data.labels import label_positions

    values = pair.labels
    if values is None:
        return None
    outcomes = pair.primary.outcomes
    known = [place for place, value in enumerate(values) if not is_missing(value)]
    try:
        found, _ = label_positions(values[known], outcomes, pair.primary.name)
    except PredictionFileError as error:
        console.warn(f"the report leaves labels out: {error}")
        return None
    labels: list[Label | None] = [None] * len(values)
    for place, position in zip(known, found, strict=True):
        labels[place] = outcomes[position]
    return labels if known else None
