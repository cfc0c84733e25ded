"""Figures of what the labels say."""

from __future__ import annotations

import math

from trueup.report import _words
from trueup.report._vega import (
    COLOURS,
    INK,
    MAP,
    SMALL,
    SOFT,
    Spec,
    diagonal,
    figure,
    filtered,
    layer,
    quantity,
    sized,
    tips,
)
from trueup.report.summary import Labelled

FIRST_METRICS = ("ece", "calibration_error")
"""What the figure of metrics shows before another is selected."""


def promise(labelled: Labelled) -> Spec:
    """What was guaranteed beside what the labels say."""
    row = {
        "guaranteed": labelled.guaranteed,
        "fell": labelled.improvement,
        "low": labelled.improvement_lower,
        "high": labelled.improvement_upper,
    }
    title = f"fall of the {_words.loss_title(labelled.loss)}, an item"
    tooltip = tips(
        ("guaranteed", "guaranteed, at least", SMALL),
        ("fell", "by the labels", SMALL),
        ("low", "interval from", SMALL),
        ("high", "to", SMALL),
    )
    bar = {"type": "bar", "color": MAP, "opacity": 0.4, "height": 22}
    rule = {"type": "rule", "color": INK, "strokeWidth": 2}
    point = {"type": "point", "filled": True, "color": INK, "size": 90, "opacity": 1}
    low, high = quantity("low", title), {"field": "high"}
    return figure(
        [row],
        layer=[
            layer(bar, x=quantity("guaranteed", title), tooltip=tooltip),
            layer(rule, x=low, x2=high, tooltip=tooltip),
            layer(point, x=quantity("fell", title), tooltip=tooltip),
        ],
        height=44,
    )


def first_metric(labelled: Labelled) -> str:
    """The metric that is selected before anybody selects one."""
    names = [one.name for one in labelled.scores[0].metrics]
    return next((name for name in FIRST_METRICS if name in names), names[0])


def metrics(labelled: Labelled) -> Spec:
    """One metric of every predictor with its interval; the metric is selected."""
    rows = [
        {
            "metric": one.name,
            "place": place,
            "name": score.name,
            "kind": score.kind,
            "value": one.value,
            "low": one.lower,
            "high": one.upper,
        }
        for place, score in enumerate(labelled.scores)
        for one in score.metrics
        if math.isfinite(one.value + one.lower + one.upper)
    ]
    value = quantity("value", None, zero=False)
    tooltip = tips(
        ("name", "predictor", None),
        ("value", "value", ".4f"),
        ("low", "interval from", ".4f"),
        ("high", "to", ".4f"),
    )
    shared: Spec = {"y": _names(labelled), "color": _coloured(), "tooltip": tooltip}
    rule = {"type": "rule", "strokeWidth": 2}
    point = {"type": "point", "filled": True, "size": 90, "opacity": 1}
    return figure(
        rows,
        layer=[
            layer(rule, **shared, x={**value, "field": "low"}, x2={"field": "high"}),
            layer(point, **shared, x=value),
        ],
        params=[
            {"name": "metric", "value": first_metric(labelled)},
            {"name": "names", "value": [score.name for score in labelled.scores]},
        ],
        transform=filtered("datum.metric === metric"),
        height=30 * len(labelled.scores),
    )


def _names(labelled: Labelled) -> Spec:
    """Predictors by place: two may have the same name."""
    places = list(range(len(labelled.scores)))
    return {
        "field": "place",
        "type": "ordinal",
        "scale": {"domain": places},
        "title": None,
        "axis": {
            "domain": False,
            "ticks": False,
            "grid": True,
            # The names are data: looked up, never part of the expression.
            "labelExpr": "names[datum.value]",
        },
    }


def _coloured() -> Spec:
    scale = {"domain": list(COLOURS), "range": list(COLOURS.values())}
    return {"field": "kind", "type": "nominal", "legend": None, "scale": scale}


def reliability(labelled: Labelled, place: int) -> Spec:
    """Stated against observed, with the band that chance explains."""
    one = labelled.reliability[place]
    rows = [
        {
            "stated": b.stated,
            "observed": b.observed,
            "low": b.band_lower,
            "high": b.band_upper,
            "items": b.n_items,
        }
        for b in one.bins
    ]
    x = quantity("stated", "stated", [0, 1])
    y = quantity("observed", "share that came true", [0, 1])
    tooltip = tips(
        ("stated", "stated", ".3f"),
        ("observed", "came true", ".3f"),
        ("low", "by chance, from", ".3f"),
        ("high", "to", ".3f"),
        ("items", "items", ","),
    )
    colour = COLOURS[one.kind]
    band = {"type": "rule", "color": SOFT, "opacity": 0.35, "strokeWidth": 11}
    line = {"type": "line", "color": colour, "strokeWidth": 2}
    circle = {"type": "circle", "color": colour, "opacity": 1}
    return figure(
        rows,
        layer=[
            diagonal([0.0, 1.0]),
            layer(band, x=x, y={**y, "field": "low"}, y2={"field": "high"}),
            layer(line, x=x, y=y),
            layer(circle, x=x, y=y, size=sized("items"), tooltip=tooltip),
        ],
        height=250,
    )
