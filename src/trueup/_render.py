"""Pieces of tables that every result shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape


def json_number(value: float) -> float | str:
    """JSON has no infinity; ``float("inf")`` reads this text back."""
    return float(value) if math.isfinite(value) else str(value)


def html_table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
) -> str:
    """A table for a notebook with remarks below; every text is escaped."""
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    head = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
        for row in rows
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"{head}<tbody>{body}</tbody></table>{below}"
    )
