"""The report of a fit, from what its command has read."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import FileAccessError

if TYPE_CHECKING:
    from trueup._validate import Label
    from trueup.cli._output import Console
    from trueup.data.pairing import Pair
    from trueup.data.predictions import Predictions
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
        labels=_labels(pair),
        names=_names(pair.primary, pair.reference),
        ids=pair.item_ids,
        groups=options["groups"],
        sample_weight=options["sample_weight"],
        blocks=options["blocks"],
        family=options["family"],
        progress=console.progress,
    )
    report.write_report(summary, path, force=True)  # checked before fitting


def _labels(pair: Pair) -> list[Label] | None:
    """Labels of the files, which only the report looks at."""
    from trueup.data.labels import label_positions

    values = pair.labels
    if values is None:
        return None
    outcomes = pair.primary.outcomes
    positions, _ = label_positions(values, outcomes, pair.primary.name)
    return [outcomes[place] for place in positions]


def _names(primary: Predictions, reference: Predictions) -> tuple[str, str]:
    """Predictors by their prefix, or else by their file."""
    names = tuple(
        side.columns.prefix.rstrip("_") or Path(side.name).name.partition(".")[0]
        for side in (primary, reference)
    )
    first, second = names
    return (first, second) if first != second else (primary.name, reference.name)
