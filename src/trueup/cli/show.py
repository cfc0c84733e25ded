"""``trueup show``: what a saved map does and guarantees."""

from __future__ import annotations

import click

from trueup.cli._map_text import certificate_json, map_json, map_text
from trueup.cli._maps import load_map
from trueup.cli._output import Console, reporting


@click.command("show")
@click.argument("map_path", metavar="MAP")
@reporting
def command(console: Console, map_path: str) -> None:
    """Say what MAP does and what is guaranteed of it, on which assumption.

    \b
    Example:
      trueup show map.json
    """
    fitted = load_map(map_path)
    content = {
        "map": map_json(fitted) | {"path": map_path},
        "certificate": certificate_json(fitted.certificate),
    }
    console.result(f"{map_path}\n{map_text(fitted)}", content)
