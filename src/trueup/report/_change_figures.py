"""Figures of what changes, and of what both say together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trueup.report._vega import (
    MAP,
    PRIMARY,
    SMALL,
    Spec,
    diagonal,
    figure,
    filtered,
    layer,
    quantity,
    sized,
    tips,
)
from trueup.report.summary import Changes, JointCell, ReportSummary


def moves(changes: Changes) -> Spec:
    """Old against new, with the amount of data as the size of the point."""
    rows = [
        {
            "answer": one.answer,
            "before": one.before,
            "after": one.after,
            "low": one.after_low,
            "high": one.after_high,
            "items": one.n_items,
        }
        for one in changes.moves
    ]
    limits = [changes.scale.low, changes.scale.high]
    x = quantity("before", f"{changes.scale.title} before", limits)
    y = quantity("after", f"{changes.scale.title} after", limits)
    tooltip = tips(
        ("before", "before, on average", SMALL),
        ("after", "after, on average", SMALL),
        ("low", "a tenth ends below", SMALL),
        ("high", "a tenth ends above", SMALL),
        ("items", "items", ","),
    )
    rule = {"type": "rule", "color": MAP, "opacity": 0.5, "strokeWidth": 2}
    circle = {"type": "circle", "color": MAP, "opacity": 0.85}
    return figure(
        rows,
        layer=[
            diagonal(limits),
            layer(rule, x=x, y={**y, "field": "low"}, y2={"field": "high"}),
            layer(circle, x=x, y=y, size=sized("items"), tooltip=tooltip),
        ],
        params=[{"name": "answer", "value": ""}],
        transform=filtered("datum.answer === answer"),
        height=320,
    )


def bands(changes: Changes) -> Spec:
    """How many items are stated in each band, before and after."""
    rows = [
        {"lower": one.lower, "upper": one.upper, "when": when, "share": share}
        for one in changes.bands
        for when, share in (("before", one.before), ("after", one.after))
    ]
    limits = [changes.scale.low, changes.scale.high]
    x = {**quantity("lower", changes.scale.title, limits), "bin": {"binned": True}}
    y = quantity("share", "share of items") | {
        "stack": None,
        "axis": {"format": ".0%", "tickCount": 5},
    }
    tooltip = tips(
        ("lower", "from", SMALL),
        ("upper", "to", SMALL),
        ("when", "when", None),
        ("share", "share of items", ".1%"),
    )
    layers = [
        layer(
            {"type": "bar", "color": colour, "opacity": 0.6, "binSpacing": 1},
            transform=filtered(f"datum.when === '{when}'"),
            x=x,
            x2={"field": "upper"},
            y=y,
            tooltip=tooltip,
        )
        for when, colour in (("before", PRIMARY), ("after", MAP))
    ]
    return figure(rows, layer=layers, height=320)


def joint(changes: Changes, summary: ReportSummary) -> Spec:
    """The joint table in bands of what both state, small ones at the bottom left."""
    first, second = changes.joint_bands
    titles = (
        f"{summary.reference}: {changes.joint_titles[1]}",
        f"{summary.primary}: {changes.joint_titles[0]}",
    )
    return _heat(changes.joint, (first[::-1], second), titles)


def answer_joint(changes: Changes, summary: ReportSummary) -> Spec:
    """The joint table of answers."""
    labels = (summary.outcomes, summary.outcomes)
    titles = (f"answer of {summary.reference}", f"answer of {summary.primary}")
    return _heat(changes.answer_joint, labels, titles)


def _heat(
    cells: Sequence[JointCell],
    labels: tuple[tuple[str, ...], tuple[str, ...]],
    titles: tuple[str, str],
) -> Spec:
    rows = [
        {
            "primary": one.primary,
            "reference": one.reference,
            "share": one.share,
            "items": one.n_items,
            "agree": None if math.isnan(one.agree) else one.agree,
        }
        for one in cells
    ]
    wanted = [
        ("primary", "primary", None),
        ("reference", "reference", None),
        ("items", "items", ","),
        ("share", "share of items", ".2%"),
    ]
    if any(row["agree"] is not None for row in rows):
        wanted.append(("agree", "same answer", ".0%"))
    mark = {"type": "rect", "color": MAP, "stroke": "var(--card)", "strokeWidth": 1}
    scale = {"type": "sqrt", "range": [0.06, 1], "domainMin": 0}
    opacity = {"field": "share", "type": "quantitative", "legend": None, "scale": scale}
    down = _span(labels[0], {one.primary for one in cells})
    across = _span(labels[1], {one.reference for one in cells})
    return figure(
        rows,
        mark=mark,
        encoding={
            "x": _category("reference", titles[0], across, is_across=True),
            "y": _category("primary", titles[1], down, is_across=False),
            "opacity": opacity,
            "tooltip": tips(*wanted),
        },
        height=320,
    )


def _span(labels: tuple[str, ...], used: set[str]) -> list[str]:
    """The labels from the first that occurs to the last."""
    places = [place for place, label in enumerate(labels) if label in used]
    return list(labels[min(places) : max(places) + 1]) if places else list(labels)


def _category(field: str, title: str, labels: list[str], *, is_across: bool) -> Spec:
    is_slanted = is_across and max(map(len, labels)) > 3
    return {
        "field": field,
        "type": "ordinal",
        "scale": {"domain": labels},
        "title": title,
        "axis": {
            "labelAngle": -40 if is_slanted else 0,
            "domain": False,
            "ticks": False,
            "labelLimit": 90,
        },
    }
