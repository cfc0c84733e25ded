"""Figures of what is guaranteed."""

from __future__ import annotations

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
from trueup.report.summary import ReportSummary

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
        layer=_bars(shared),
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
    rows = [
        {"loss": one.loss, "rung": one.title, "kind": one.kind, "error": e, "value": v}
        for one in summary.curves
        for e, v in zip(one.errors, one.guaranteed_improvement, strict=True)
    ]
    x = quantity("error", "calibration error of the reference")
    y = quantity("value", "guaranteed fall")
    y["scale"] = {"domainMin": 0}
    both: Spec = {
        "x": x,
        "y": y,
        "tooltip": tips(
            ("error", "reference error", SMALL), ("value", "guaranteed", SMALL)
        ),
    }
    return figure(
        rows,
        layer=[*_lines(both), *_marks(summary, x)],
        params=[
            {"name": "loss", "value": summary.loss},
            {"name": "rung", "value": summary.guarantee.title},
        ],
        transform=filtered(_SELECTED),
        height=260,
    )


def _lines(both: Spec) -> list[Spec]:
    once = filtered("datum.kind === 'this map'")
    again = filtered("datum.kind === 'fitted again'")
    line = {"color": MAP, "strokeWidth": 2.5}
    area = {"type": "area", "color": MAP, "opacity": 0.14, "line": line}
    # Invisible points make the whole line answer to the mouse.
    handles = {"type": "point", "opacity": 0, "size": 160}
    dashed = {"type": "line", "color": INK, "strokeDash": [4, 3], "strokeWidth": 1.5}
    dots = {"type": "circle", "color": INK, "size": 40, "opacity": 1}
    return [
        layer(area, transform=once, **both),
        layer(handles, transform=once, **both),
        layer(dashed, transform=again, **both),
        layer(dots, transform=again, **both),
    ]


def _marks(summary: ReportSummary, x: Spec) -> list[Spec]:
    """The break-even, and the error that was allowed for."""
    ends = [
        {
            "loss": row.loss,
            "rung": row.title,
            "error": row.break_even_reference_error,
            "label": f"break-even {_words.number(row.break_even_reference_error)}",
        }
        for row in summary.guarantees
        if 0 < row.break_even_reference_error < float("inf")
    ]
    selected = filtered(_SELECTED)
    rule = {"type": "rule", "color": PRIMARY, "strokeWidth": 1.5}
    text = {
        "type": "text",
        "align": "right",
        "dx": -6,
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
