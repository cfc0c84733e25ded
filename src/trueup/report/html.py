"""The report as one HTML page that needs nothing else, not even a network."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from trueup.errors import MissingExtraError
from trueup.report import _words
from trueup.report._label_figures import first_metric
from trueup.report.figures import figures
from trueup.report.summary import ReportSummary

if TYPE_CHECKING:
    from jinja2 import Environment

EXTRA = "report"


def html_page(summary: ReportSummary) -> str:
    """The whole page; every name and value in it is escaped."""
    page = _environment().get_template("report.html")
    return page.render(
        s=summary,
        specs=script_json(figures(summary)),
        css=_text("report.css"),
        js=_text("report.js"),
        bundle=chart_bundle(),
        metric=None if summary.labelled is None else first_metric(summary.labelled),
        losses=list(dict.fromkeys(row.loss for row in summary.guarantees)),
        rungs=list(dict.fromkeys(row.title for row in summary.guarantees)),
    )


def script_json(content: object) -> str:
    r"""JSON that cannot end the script element it stands in.

    >>> print(script_json({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


@cache
def chart_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from an installed package."""
    try:
        import vl_convert  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError.of("vl-convert-python", EXTRA) from error
    source: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # The parser of HTML looks for these even inside a script's strings.
    safe = source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return f"(function(){{{safe}\n}})();"


@cache
def _environment() -> Environment:
    try:
        import jinja2  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError.of("jinja2", EXTRA) from error
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("trueup.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "number": _words.number,
        "aligned": _words.aligned,
        "percent": _words.percent,
        "count": _words.count,
        "loss_title": _words.loss_title,
        "metric_title": _words.metric_title,
        "capitalised": _words.capitalised,
    }
    made.filters.update(filters)
    return made


def _text(name: str) -> str:
    return (files("trueup.report") / "templates" / name).read_text(encoding="utf-8")
