"""Figures of what is guaranteed."""

from __future__ import annotations

import math

from trueup.report import _words
from trueup.report._vega import (
    INK,
    MAP,
    PRIMARY,
    SMALL,
    SOFT,
    Spec,
    figure,
    filtered,
    layer,
    quantity,
    tips,
)
from trueup.report.summary import Guarantee, ReportSummary

_SELECTED = "datum.loss === loss && datum.rung === rung"


def rungs(summary: ReportSummary) -> Spec:
    """The guarantee at every rung, under the loss that is selected."""
    rows = [
        {
            "loss": row.loss,
            "rung": row.title,
            "guaranteed": row.guaranteed_improvement,
            "certified": row.certified,
            "fitted": row.fitted,
            "reason": row.reason or "guaranteed",
            "chosen": row.is_chosen,
        }
        for row in summary.guarantees
    ]
    order = list(dict.fromkeys(row.title for row in summary.guarantees))
    axis = {
        "labelPadding": 6,
        "domain": False,
        "ticks": False,
        "labelExpr": "split(replace(datum.label, ' with', '|with'), '|')",
    }
    y = {"field": "rung", "type": "nominal", "sort": order, "title": None, "axis": axis}
    shared: Spec = {
        "y": y,
        "tooltip": tips(
            ("rung", "rung", None),
            ("guaranteed", "guaranteed", SMALL),
            ("certified", "on other items", SMALL),
            ("fitted", "on the items of the fit", SMALL),
            ("reason", "result", None),
        ),
    }
    return figure(
        rows,
        layer=_bars(shared)[: 3 if summary.assumption.is_sampled else 1],
        params=[{"name": "loss", "value": summary.loss}],
        transform=filtered("datum.loss === loss"),
        height=38 * len(order),
    )


def _bars(shared: Spec) -> list[Spec]:
    title = "guaranteed fall, an item"
    faded = {"condition": {"test": "datum.chosen", "value": 1}, "value": 0.55}
    bar = {"type": "bar", "color": MAP, "height": {"band": 0.55}}
    ring = {"type": "point", "color": INK, "size": 60, "strokeWidth": 1.5}
    tick = {"type": "tick", "color": SOFT, "thickness": 2, "bandSize": 16}
    return [
        layer(bar, **shared, x=quantity("guaranteed", title), opacity=faded),
        layer(tick, **shared, x=quantity("fitted", title)),
        layer(ring, **shared, x=quantity("certified", title)),
    ]


def curve(summary: ReportSummary) -> Spec:
    """Guarantee against reference error at the rung and loss that are selected."""
    tops = _tops(summary)
    rows = [
        {
            "loss": one.loss,
            "rung": one.title,
            "kind": one.kind,
            "error": error,
            "value": value,
            "top": tops[one.loss, one.title],
        }
        for one in summary.curves
        for error, value in zip(one.errors, one.guaranteed_improvement, strict=True)
    ]
    x = quantity("error", "calibration error of the reference")
    return figure(
        rows,
        layer=[*_lines(x, quantity("value", "guaranteed fall")), *_marks(summary, x)],
        params=[
            {"name": "loss", "value": summary.loss},
            {"name": "rung", "value": summary.guarantee.title},
        ],
        transform=filtered(_SELECTED),
        height=260,
    )


def _tops(summary: ReportSummary) -> dict[tuple[str, str], float]:
    """How high the axis of each curve reaches; that of zeros as high as the others."""
    own = {
        (one.loss, one.title): max(one.guaranteed_improvement)
        for one in summary.curves
        if one.kind == "this map"
    }
    tallest = {
        loss: max(v for (of, _), v in own.items() if of == loss) for loss, _ in own
    }
    return {key: value or tallest[key[0]] or 0.01 for key, value in own.items()}


def _lines(x: Spec, y: Spec) -> list[Spec]:
    kinds = ["this map", "fitted again"]
    colour = {"domain": kinds, "range": [MAP, INK]}
    dash = {"domain": kinds, "range": [[1, 0], [4, 3]]}
    kind: Spec = {"field": "kind", "type": "nominal", "legend": None}
    once = filtered("datum.kind === 'this map'")
    # Invisible points make the whole line answer to the mouse.
    seen = {
        "condition": {"test": "datum.kind === 'fitted again'", "value": 1},
        "value": 0,
    }
    tooltip = tips(
        ("kind", "the map", None),
        ("error", "reference error", SMALL),
        ("value", "guaranteed", SMALL),
    )
    area = {"type": "area", "color": MAP, "opacity": 0.14}
    line = {"type": "line", "strokeWidth": 2}
    dot = {"type": "circle", "color": INK, "size": 45}
    top = {"type": "point", "opacity": 0, "tooltip": None}
    return [
        layer(area, transform=once, x=x, y=y),
        layer(
            line,
            x=x,
            y=y,
            color={**kind, "scale": colour},
            strokeDash={**kind, "scale": dash},
        ),
        layer(top, x=x, y={**y, "field": "top"}),
        layer(dot, x=x, y=y, opacity=seen, tooltip=tooltip),
    ]


def _marks(summary: ReportSummary, x: Spec) -> list[Spec]:
    """The break-even, and the error that was allowed for."""
    last = {(one.loss, one.title): one.errors[-1] for one in summary.curves[::-1]}
    ends = [_end(row, last[row.loss, row.title]) for row in summary.guarantees]
    selected = filtered(_SELECTED)
    rule = {"type": "rule", "color": PRIMARY, "strokeWidth": 1.5}
    text = {
        "type": "text",
        "align": {"expr": "datum.at_start ? 'left' : 'right'"},
        "dx": {"expr": "datum.at_start ? 6 : -6"},
        "dy": 12,
        "color": INK,
        "fontWeight": 500,
    }
    words = {"field": "label", "type": "nominal"}
    found = [
        layer(rule, rows=ends, transform=selected, x=x),
        layer(text, rows=ends, transform=selected, x=x, y={"value": 0}, text=words),
    ]
    used = summary.assumption.reference_error
    if used > 0:
        dotted = {"type": "rule", "color": SOFT, "strokeDash": [2, 2]}
        tip = tips(("error", "error allowed for", SMALL))
        found.append(layer(dotted, rows=[{"error": used}], x=x, tooltip=tip))
    return found


def _end(row: Guarantee, last: float) -> Spec:
    """Where a guarantee ends, and what is written there."""
    end = row.guaranteed_until
    label = f"break-even {_words.number(end)}"
    if end == 0:
        label = "nothing guaranteed at any error"
    elif math.isinf(end):
        end, label = last, "no break-even"
    return {
        "loss": row.loss,
        "rung": row.title,
        "error": end,
        "label": label,
        "at_start": end < 0.4 * last,
    }
