"""Small pictures for notebooks: a square of dots, a row of bars, a heat map.

Plain SVG text without scripts or styles of the page; lines and words take the colour of
the text around them, so that light and dark notebooks both work.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

PRIMARY, BETTER = "#c8553d", "#2a7f9e"
_SIDE, _LEFT, _TOP, _BOTTOM = 132.0, 34.0, 8.0, 34.0


def beside(table: str, picture: str) -> str:
    """A table and its picture, next to each other where there is room."""
    if not picture:
        return table
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">'
        f'<div style="max-width:34em">{table}</div><div>{picture}</div></div>'
    )


def dots(
    points: Sequence[tuple[float, float, float]],
    *,
    limits: tuple[float, float],
    labels: tuple[str, str],
    summary: str,
    largest: float | None = None,
) -> str:
    """Old against new: (across, up, share) on a square with its diagonal.

    The dot of the ``largest`` share, by default of those given, is the largest.
    """
    low, high = limits
    scale = _SIDE / (high - low)
    largest = largest or max((share for _, _, share in points), default=1.0) or 1.0
    marks = [
        f'<circle cx="{_LEFT + (x - low) * scale:.1f}" '
        f'cy="{_TOP + _SIDE - (y - low) * scale:.1f}" '
        f'r="{1.2 + 4 * (share / largest) ** 0.5:.1f}" fill="{BETTER}" '
        'fill-opacity=".75"/>'
        for x, y, share in points
    ]
    right, bottom = _LEFT + _SIDE, _TOP + _SIDE
    line = (
        f'<line x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{_TOP}" '
        'stroke="currentColor" stroke-opacity=".5" stroke-dasharray="3 3"/>'
    )
    ends = [
        _text(_LEFT - 4, bottom + 4, f"{low:.3g}", "end"),
        _text(_LEFT - 4, _TOP + 8, f"{high:.3g}", "end"),
        _text(_LEFT, bottom + 13, f"{low:.3g}", "middle"),
        _text(right, bottom + 13, f"{high:.3g}", "middle"),
    ]
    return _frame(summary, [_box(), line, *marks, *ends, *_axes(labels)])


def heat(
    rows: Sequence[Sequence[float]], *, labels: tuple[str, str], summary: str
) -> str:
    """A heat map; the first row is at the bottom."""
    largest = max((max(row) for row in rows), default=0.0) or 1.0
    step, n_rows = _SIDE / len(rows), len(rows)
    cells = [
        f'<rect x="{_LEFT + place * step:.1f}" '
        f'y="{_TOP + (n_rows - 1 - level) * step:.1f}" width="{step:.2f}" '
        f'height="{step:.2f}" fill="{BETTER}" '
        f'fill-opacity="{0.08 + 0.92 * (share / largest) ** 0.5:.2f}"/>'
        for level, row in enumerate(rows)
        for place, share in enumerate(row)
        if share > 0
    ]
    return _frame(summary, [*cells, _box(), *_axes(labels)])


def bars(values: Sequence[tuple[str, float]], *, summary: str) -> str:
    """Numbers as horizontal bars from zero, largest as wide as there is room."""
    largest = max((abs(value) for _, value in values), default=0.0) or 1.0
    most = max(0.0, *(-value for _, value in values)) / largest
    room, left = 150.0, 96.0
    zero = left + room * most / (1 + most)
    unit = room / (1 + most) / largest
    parts = []
    for place, (label, value) in enumerate(values):
        top, width = 6 + 22 * place, abs(value) * unit
        start = zero if value >= 0 else zero - width
        colour = BETTER if place == len(values) - 1 else "currentColor"
        bar = (
            f'<rect x="{start:.1f}" y="{top}" width="{width:.1f}" height="14" '
            f'fill="{colour}" fill-opacity="{0.85 if colour == BETTER else 0.35}"/>'
        )
        parts += [_text(left - 6, top + 11, label, "end"), bar]
    height = 6 + 22 * len(values)
    parts.append(
        f'<line x1="{zero:.1f}" y1="2" x2="{zero:.1f}" y2="{height}" '
        'stroke="currentColor" stroke-opacity=".6"/>'
    )
    return _svg(left + room + 6, height + 4, summary, parts)


def _frame(summary: str, parts: Sequence[str]) -> str:
    return _svg(_LEFT + _SIDE + 12, _TOP + _SIDE + _BOTTOM, summary, parts)


def _svg(width: float, height: float, summary: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(summary)}" font-family="system-ui,sans-serif" '
        f'font-size="10">{"".join(parts)}</svg>'
    )


def _box() -> str:
    return (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" '
        'stroke="currentColor" stroke-opacity=".4"/>'
    )


def _axes(labels: tuple[str, str]) -> list[str]:
    middle, bottom = _LEFT + _SIDE / 2, _TOP + _SIDE
    up = (
        f'<g transform="translate({_LEFT - 12:g} {_TOP + _SIDE / 2:g}) rotate(-90)">'
        f"{_text(0, 0, labels[1], 'middle')}</g>"
    )
    return [_text(middle, bottom + 26, labels[0], "middle"), up]


def _text(left: float, top: float, text: str, anchor: str) -> str:
    shown = text if len(text) <= 26 else f"{text[:25]}…"
    return (
        f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" '
        f'fill="currentColor">{escape(shown)}</text>'
    )
