"""``trueup fit``: from two prediction files to a map, its certificate and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup.cli._inputs import (
    as_answers,
    belief_options,
    pair_arguments,
    pair_json,
    pair_options,
    read_pair,
)
from trueup.cli._large import fit_counted, fit_large, is_large
from trueup.cli._map_text import certificate_json, map_json, map_text
from trueup.cli._output import Console, reporting
from trueup.cli._report import check_report, write_report

if TYPE_CHECKING:
    from trueup.core.cells import Cells
    from trueup.data.pairing import Pair
    from trueup.maps.report_map import ReportMap

_LOSSES = (
    "brier",
    "log",
    "spherical",
    "confidence",
    "zero-one",
    "squared",
    "pinball",
    "expectile",
)


@click.command("fit")
@pair_arguments
@click.option("-o", "--output", metavar="MAP.JSON", help="Write the map here.")
@click.option(
    "--report",
    metavar="PAGE.HTML",
    help="Write a report: .html, .md or .json.",
)
@click.option(
    "--loss",
    type=click.Choice(_LOSSES),
    help="What should fall.  [default: brier; confidence for answers]",
)
@belief_options
@pair_options
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "step"]),
    default="auto",
    show_default=True,
    help="auto: adaptive cells, the items are a sample. exact: every distinct "
    "report, the items are the population. step: the same on a grid.",
)
@click.option("--step", type=float, help="Width of the grid of --method step.")
@click.option(
    "--assume",
    multiple=True,
    type=click.Choice(["informative", "informative-by-confidence", "stronger"]),
    help="Assert more than calibration; may be repeated.",
)
@click.option(
    "--family",
    type=click.Choice(["temperature"]),
    help="A map with one parameter; needs --assume.",
)
@click.option("--blocks", metavar="COLUMN", help="Items that depend on each other.")
@click.option(
    "--fallback",
    type=click.Choice(["map", "identity"]),
    default="map",
    show_default=True,
    help="Where nothing is guaranteed: still offer the map, or change nothing.",
)
@click.option("--floor", type=float, help="Under log loss, mix this into reports.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option(
    "--counts",
    is_flag=True,
    help="PRIMARY holds pairs of reports and a column 'count' instead of items.",
)
@click.option(
    "--large/--in-memory",
    default=None,
    help="Go through files in passes, or read them at once.  [default: in passes "
    "for folders, patterns and files over 256 MB]",
)
@reporting
def command(
    console: Console,
    *,
    primary: str,
    reference: str | None,
    output: str | None,
    report: str | None,
    force: bool,
    counts: bool,
    large: bool | None,
    **given: Any,  # noqa: ANN401 - options, handed on by name
) -> None:
    """Fit a map that makes PRIMARY agree with REFERENCE.

    Both are files of predictions on the same items (CSV, Parquet, JSON lines, Arrow,
    gzipped, or - for standard input) with columns item_id and p_<outcome>,
    logit_<outcome>, logprob_<outcome>, or answer and confidence, or value. No labels
    are used.

    \b
    Example:
      trueup fit strong.csv trusted.csv -o map.json --report report.html
      trueup fit both.parquet --primary-prefix gpt --reference-prefix base -o map.json
      trueup fit --counts counts.parquet -o map.json
    """
    from trueup.data.files import check_target

    if output is not None:
        check_target(output, force=force)
    if report is not None:
        check_report(report, force=force)
    options = _fit_options(given)
    if counts or is_large([primary, reference], asked=large):
        _without_items(
            console,
            primary=primary,
            reference=reference,
            output=output,
            report=report,
            counts=counts,
            given=given,
            options=options,
        )
        return
    named = (options["groups"], options["blocks"])
    pair = read_pair(console, primary, reference, aside=named, **given)
    if options["loss"] == "confidence" and pair.primary.columns.outcomes:
        console.say("  confidence loss: the primary's distributions become answers")
        pair = _answering(pair)
    options |= _per_item(pair, options)
    with console.working("fitting"):
        fitted = _fit(pair, options)
    if output is not None:
        fitted.save(output)
    if report is not None:
        write_report(console, fitted, pair, options, report)
    content = {
        "inputs": pair_json(pair),
        "map": map_json(fitted) | {"path": output},
        "certificate": certificate_json(fitted.certificate),
        "report": report,
    }
    console.result(_text(fitted, output, report), content)


def _without_items(
    console: Console,
    *,
    primary: str,
    reference: str | None,
    output: str | None,
    report: str | None,
    counts: bool,
    given: dict[str, Any],
    options: dict[str, Any],
) -> None:
    """Fit from passes over files or from counts, which hold no items to show."""
    if report is not None:
        message = "--report shows items, which are not kept here: fit a sample for it"
        raise click.UsageError(message)
    if counts:
        fitted, read = fit_counted(console, primary, given, options)
    else:
        fitted, read = fit_large(console, primary, reference, given, options)
    if output is not None:
        fitted.save(output)
    content = {
        "inputs": read,
        "map": map_json(fitted) | {"path": output},
        "certificate": certificate_json(fitted.certificate),
        "report": None,
    }
    console.result(_text(fitted, output, None), content)


def _fit_options(given: dict[str, Any]) -> dict[str, Any]:
    """Take what is not about reading files out of the options."""
    names = (
        "loss",
        "trust",
        "caps",
        "groups",
        "reference_error",
        "method",
        "step",
        "assume",
        "family",
        "blocks",
        "fallback",
        "floor",
    )
    options = {name: given.pop(name) for name in names}
    method, step = options.pop("method"), options.pop("step")
    options["cells"] = _cells(method, step)
    return options


def _cells(method: str, step: float | None) -> str | Cells:
    from trueup.core.cells import Step

    if step is not None and method != "step":
        message = "--step is the width of the grid of --method step"
        raise click.UsageError(message)
    return Step(0.05 if step is None else step) if method == "step" else method


def _answering(pair: Pair) -> Pair:
    from dataclasses import replace

    return replace(pair, primary=as_answers(pair.primary))


def _per_item(pair: Pair, options: dict[str, Any]) -> dict[str, Any]:
    """Columns that options name, as one value an item."""
    groups, blocks = options["groups"], options["blocks"]
    return {
        "groups": pair.column(groups) if groups else None,
        "blocks": pair.column(blocks) if blocks else None,
        "sample_weight": pair.weights,
    }


def _fit(pair: Pair, options: dict[str, Any]) -> ReportMap:
    from trueup.api import fit

    return fit(pair.primary.reports, pair.reference.reports, **options)


def _text(fitted: ReportMap, output: str | None, report: str | None) -> str:
    lines = [map_text(fitted)]
    if output is None:
        lines.append("\nThe map was not kept: name a file with -o map.json.")
    else:
        lines.append(f"\nmap:    {output}")
    if report is not None:
        lines.append(f"report: {Path(report)}")
    if output is not None:
        lines.append(f"next:   trueup apply {output} PREDICTIONS -o better.csv")
    return "\n".join(lines)
