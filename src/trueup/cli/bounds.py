"""``trueup bounds``: how good the primary is at least and at most, without labels."""

from __future__ import annotations

from typing import Any

import click

from trueup.cli._inputs import (
    audit_cells,
    belief_options,
    pair_arguments,
    pair_json,
    pair_options,
    read_pair,
)
from trueup.cli._output import Console, aligned, number, reporting


@click.command("bounds")
@pair_arguments
@click.option(
    "--metric",
    default="accuracy",
    show_default=True,
    help="accuracy, or a loss that fits the primary: brier, log, confidence, ...",
)
@belief_options
@pair_options
@click.option(
    "--method",
    type=click.Choice(["exact", "step"]),
    help="How the reference's reports are rounded.  [default: exact where they repeat]",
)
@click.option("--step", type=float, help="Width of the grid.")
@reporting
def command(
    console: Console,
    *,
    primary: str,
    reference: str | None,
    metric: str,
    method: str | None,
    step: float | None,
    trust: str | None,
    caps: bool | None,
    groups: str | None,
    reference_error: float,
    **given: Any,  # noqa: ANN401 - the column options
) -> None:
    """Bound the accuracy or a loss of PRIMARY by what REFERENCE says, without labels.

    \b
    Example:
      trueup bounds strong.csv trusted.csv --metric accuracy
    """
    from trueup.audit.bounds import bounds

    pair = read_pair(console, primary, reference, **given)
    cells = audit_cells(console, pair, method, step)
    with console.working("bounding"):
        found = bounds(
            pair.primary.reports,
            pair.reference.reports,
            metric=metric,
            trust=trust,
            caps=caps,
            groups=pair.column(groups) if groups else None,
            sample_weight=pair.weights,
            cells=cells,
            reference_error=reference_error,
        )
    rows = [
        (f"{metric}, at least", number(found.lower)),
        (f"{metric}, at most", number(found.upper)),
        ("assumption", found.assumption),
    ]
    content = {
        "inputs": pair_json(pair),
        "bounds": {"metric": metric} | found.to_dict(),
    }
    console.result(aligned(rows), content)
