"""``trueup evaluate``: how good predictions are, with labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup.cli._inputs import column_options, read_one, source_json
from trueup.cli._maps import applied, load_map, read_for_map
from trueup.cli._output import Console, reporting
from trueup.errors import PredictionFileError

if TYPE_CHECKING:
    from trueup._validate import Ints
    from trueup.core.reports import Reports
    from trueup.data.predictions import Predictions


@click.command("evaluate")
@click.argument("predictions")
@click.option(
    "--labels",
    metavar="FILE_OR_COLUMN",
    help="A column of PREDICTIONS, or a file with item_id and label.  [default: label]",
)
@click.option(
    "--against",
    metavar="MAP_OR_FILE",
    help="A map: what it makes of PREDICTIONS is compared with them as they are. Or "
    "another prediction file on the same items.",
)
@click.option("--prefix", metavar="TEXT", help="Which predictor of a shared file.")
@column_options
@click.option("--blocks", metavar="COLUMN", help="Items that depend on each other.")
@click.option("--bootstrap", default=1000, show_default=True, help="Resamples.")
@reporting
def command(
    console: Console,
    *,
    predictions: str,
    labels: str | None,
    against: str | None,
    prefix: str | None,
    blocks: str | None,
    bootstrap: int,
    **given: Any,  # noqa: ANN401 - the column options
) -> None:
    """Measure with labels how good PREDICTIONS are, with intervals.

    \b
    Example:
      trueup evaluate new.csv --labels truth.csv --against map.json
      trueup evaluate better.parquet --labels label
    """
    from trueup.evaluate.metrics import evaluate

    is_column = labels is None or not Path(labels).exists()
    if is_column:
        given["label"] = labels or given["label"]
    fitted = load_map(against) if against and _is_map(against) else None
    if fitted is None:
        read = read_one(console, predictions, prefix=prefix, **given)
    else:
        read = read_for_map(console, fitted, predictions, prefix=prefix, **given)
    read, happened = _labelled(console, read, None if is_column else labels, given)
    reports, other = read.reports, None
    what = read.name
    if fitted is not None:
        reports, other = applied(fitted, read.reports), read.reports
        what = f"{read.name} after {against}, against {read.name} as it is"
    elif against is not None:
        other = _other(console, read, against, given)
        what = f"{read.name}, against {against}"
    with console.working("evaluating"):
        found = evaluate(
            reports,
            [reports.outcomes[place] for place in happened],
            against=other,
            sample_weight=read.weights,
            blocks=read.column(blocks) if blocks else None,
            n_bootstrap=bootstrap,
        )
    content = {
        "inputs": {
            "predictions": source_json(read),
            "labels": labels or read.columns.label,
            "against": against,
        },
        "what": what,
        "evaluation": found.to_dict(),
    }
    console.result(f"{what}\n{found.table()}", content)


def _is_map(path: str) -> bool:
    """Whether a path names a saved map; a prediction file may also be JSON."""
    import json

    if not path.lower().endswith(".json"):
        return False
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return True  # so that loading it says what is wrong
    return not isinstance(content, list)


def _labelled(
    console: Console, read: Predictions, path: str | None, given: dict[str, Any]
) -> tuple[Predictions, Ints]:
    """Predictions on labelled items, and the position of each label."""
    from trueup.data.labels import label_positions

    if path is None:
        values, name = read.labels, read.name
        if values is None:
            raise PredictionFileError.of(
                read.name,
                "there is no column 'label'.",
                "name the column that holds labels, or a file, with --labels",
            )
    else:
        from trueup.data.label_files import read_labels

        values, name = read_labels(
            path, read, id=given["item_id"], label=given["label"]
        )
    positions, how = label_positions(values, read.outcomes, name)
    console.say(f"  {how}")
    return read, positions


def _other(
    console: Console, read: Predictions, path: str, given: dict[str, Any]
) -> Reports:
    """Another predictor on the same items."""
    from trueup.data.pairing import pair_predictions

    given = {**given, "label": None}
    other = read_one(console, path, **given)
    return pair_predictions(read, other).reference.reports
