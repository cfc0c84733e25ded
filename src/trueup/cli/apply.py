"""``trueup apply``: better predictions from a map, without the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trueup.cli._inputs import column_options, source_json
from trueup.cli._large import apply_large, streams
from trueup.cli._map_text import certificate_json, map_json
from trueup.cli._maps import applied, load_map, read_for_map
from trueup.cli._output import Console, reporting

if TYPE_CHECKING:
    import pyarrow as pa

    from trueup.core.reports import Reports
    from trueup.data.predictions import Predictions
    from trueup.maps.report_map import ReportMap


@click.command("apply")
@click.argument("map_path", metavar="MAP")
@click.argument("predictions")
@click.option("-o", "--output", required=True, metavar="FILE", help="Write them here.")
@click.option("--prefix", metavar="TEXT", help="Which predictor of a shared file.")
@column_options
@click.option("--group", metavar="COLUMN", help="Column to carry over as 'group'.")
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
@reporting
def command(
    console: Console,
    *,
    map_path: str,
    predictions: str,
    output: str,
    prefix: str | None,
    group: str | None,
    force: bool,
    **given: Any,  # noqa: ANN401 - the column options
) -> None:
    """Replace PREDICTIONS of the primary by what MAP makes of them.

    Needs neither the reference nor labels. Ids, labels, groups, weights and other
    columns are carried over.

    \b
    Example:
      trueup apply map.json new.csv -o better.parquet
    """
    from trueup.data.files import check_target, write_table

    check_target(output, force=force)
    fitted = load_map(map_path)
    if streams(predictions, output, given):
        n_items, moved = apply_large(
            console, fitted, predictions, output,
            prefix=prefix, group=group, force=force, **given,
        )  # fmt: skip
        source = {"source": predictions}
        _tell(
            console, fitted, map_path, output, n_items=n_items, moved=moved, read=source
        )
        return
    read = read_for_map(
        console, fitted, predictions, prefix=prefix, group=group, **given
    )
    with console.working("applying"):
        better = applied(fitted, read.reports)
    write_table(_table(read, better), output, force=force)
    moved = _n_changed(read.reports, better)
    _tell(
        console,
        fitted,
        map_path,
        output,
        n_items=len(read),
        moved=moved,
        read=source_json(read),
    )


def _tell(
    console: Console,
    fitted: ReportMap,
    map_path: str,
    output: str,
    *,
    n_items: int,
    moved: int,
    read: dict[str, Any],
) -> None:
    text = (
        f"{output}: {n_items:,} items, {moved:,} reports changed, "
        f"{len(fitted.outcomes)} outcomes"
    )
    content = {
        "inputs": {"map": map_path, "predictions": read},
        "map": map_json(fitted) | {"path": map_path},
        "certificate": certificate_json(fitted.certificate),
        "output": output,
        "n_items": n_items,
        "n_changed": moved,
    }
    console.result(text, content)


def _table(read: Predictions, better: Reports) -> pa.Table:
    """New reports beside what the file said about its items.

    Predictions of other predictors in the file are theirs and stay behind.
    """
    from trueup.data.schema import model_prefixes
    from trueup.data.tables import predictions_table

    extra, others = read.extra, model_prefixes(read.table.column_names)
    kept = [name for name in extra.column_names if not name.startswith(tuple(others))]
    return predictions_table(
        better,
        item_ids=read.item_ids,
        labels=read.labels,
        groups=read.groups,
        weights=read.weights,
        extra=extra.select(kept),
    )


def _n_changed(old: Reports, new: Reports) -> int:
    import numpy as np

    return int((np.abs(old.keys() - new.keys()) > 1e-12).any(axis=1).sum())
