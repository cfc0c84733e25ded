"""Pieces that all figures share: colours, axes, tooltips, the frame."""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
SMALL = ".3~g"
INK, SOFT, LINE = "var(--ink)", "var(--soft)", "var(--line)"
PRIMARY, MAP, REFERENCE = "var(--primary)", "var(--map)", "var(--reference)"
COLOURS = {
    "primary": PRIMARY,
    "map": MAP,
    "reference": REFERENCE,
    "label-free": SOFT,
    "supervised": SOFT,
}
_CONFIG = {
    "aria": False,
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT,
        "titleColor": INK,
        "titleFontWeight": 500,
        "titlePadding": 8,
        "gridColor": "var(--grid)",
        "domainColor": LINE,
        "tickColor": LINE,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 150,
        "titleLimit": 300,
    },
    "text": {"color": INK, "fontSize": 12},
}


def diagonal(limits: list[float]) -> Spec:
    """Where nothing changes, or what is stated comes true."""
    ends = [{"a": limits[0], "b": limits[0]}, {"a": limits[1], "b": limits[1]}]
    return {
        "data": {"values": ends},
        "mark": {"type": "line", "color": SOFT, "strokeDash": [4, 4], "strokeWidth": 1},
        "encoding": {
            "x": {"field": "a", "type": "quantitative"},
            "y": {"field": "b", "type": "quantitative"},
        },
    }


def layer(
    mark: Spec,
    *,
    rows: list[Spec] | None = None,
    transform: list[Spec] | None = None,
    **encoding: Spec | list[Spec],
) -> Spec:
    """A mark and how its rows are encoded; the rows of the figure if none are given."""
    made: Spec = {"mark": mark, "encoding": encoding}
    if rows is not None:
        made["data"] = {"values": rows}
    if transform is not None:
        made["transform"] = transform
    return made


def filtered(expression: str) -> list[Spec]:
    """Only the rows for which an expression over fields and parameters is true."""
    return [{"filter": expression}]


def sized(field: str) -> Spec:
    """The amount of data as an area."""
    return {
        "field": field,
        "type": "quantitative",
        "legend": None,
        "scale": {"range": [14, 420], "domainMin": 0},
    }


def quantity(
    field: str,
    title: str | None,
    limits: list[float] | None = None,
    *,
    zero: bool = True,
) -> Spec:
    """A number along an axis."""
    scale: Spec = {"domain": limits} if limits else {"zero": zero}
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": {"tickCount": 5, "format": SMALL},
    }


def tips(*wanted: tuple[str, str, str | None]) -> list[Spec]:
    """What hovering shows: field, words, format."""
    return [
        {
            "field": field,
            "title": title,
            "type": "nominal" if form is None else "quantitative",
            **({} if form is None else {"format": form}),
        }
        for field, title, form in wanted
    ]


def figure(rows: list[Spec], **more: Any) -> Spec:  # noqa: ANN401 - parts of a spec
    """A whole figure, as wide as its place."""
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": rows},
        "config": _CONFIG,
        **more,
    }
