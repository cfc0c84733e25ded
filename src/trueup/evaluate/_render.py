"""Small tables: the same rows as terminal text and as escaped HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence

Row = Sequence[str]


def number(value: float) -> str:
    """A number as tables show it: four decimals, or five digits when large."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.5g}"


def interval(lower: float, upper: float) -> str:
    """An interval as tables show it."""
    return f"[{number(lower)}, {number(upper)}]"


def p_value(value: float) -> str:
    """A p-value without false precision."""
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def text_table(header: Row, rows: Sequence[Row], *, left: int = 1) -> str:
    """Columns under a header; the first ``left`` ones and the last are left-aligned."""
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    last = len(header) - 1
    lines = []
    for row in cells:
        padded = [
            text.ljust(width) if column < left or column == last else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths).rstrip())
    return "\n".join(lines)
