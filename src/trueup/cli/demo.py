"""``trueup demo``: the whole path on real data."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from trueup.cli._output import Console, reporting


@click.command("demo")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    help="Write the report, the map and the predictions here.  [default: trueup-demo]",
)
@click.option("--seed", default=0, show_default=True, help="Which split of the data.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@reporting
def command(console: Console, *, output: str | None, seed: int, force: bool) -> None:
    """Calibrate a real classifier without labels, from data to report.

    Trains two models on data that ships with scikit-learn, fits, applies, audits,
    writes the report, and only then compares with the labels, in less than a minute.

    \b
    Example:
      trueup demo
    """
    folder = None if output is None else Path(output)
    demo = import_module("trueup.demo")
    made = demo.run(folder, seed=seed, force=force, progress=console.progress)
    console.result(made.text, {"demo": made.to_dict()})
