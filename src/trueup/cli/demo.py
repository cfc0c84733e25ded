"""``trueup demo``: the whole path on real data."""

from __future__ import annotations

import click

from trueup.cli._output import Console, reporting


@click.command("demo")
@reporting
def command(console: Console) -> None:
    """Calibrate a real classifier without labels, from data to report.

    \b
    Example:
      trueup demo
    """
    raise NotImplementedError
