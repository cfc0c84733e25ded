"""Items without probabilities: told, and listed beside the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.cli._output import Console

if TYPE_CHECKING:
    from trueup.elicit.asking import Unread

MOST_TOLD = 5


def list_unread(console: Console, unread: Sequence[Unread], path: str) -> None:
    """Write the whole list, tell the first of it; a list of an earlier run goes."""
    from trueup.elicit.output import unread_lines
    from trueup.maps._files import write_atomically

    if not unread:
        Path(path).unlink(missing_ok=True)
        return
    write_atomically(path, unread_lines(unread))
    for one in unread[:MOST_TOLD]:
        console.say(f"  not read: {one.item_id}: {one.reason}")
    if len(unread) > MOST_TOLD:
        console.say(f"  and {len(unread) - MOST_TOLD:,} more in {path}")
