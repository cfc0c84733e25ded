"""Results for people: one page that can be shown to somebody who decides.

:func:`summarise` gathers everything the page shows as plain values;
:func:`write_report` turns that into HTML, Markdown or JSON. The HTML needs the extra
``report``; the page itself then needs nothing, not even a network.

Examples
--------
>>> import numpy as np
>>> import trueup
>>> from trueup.report import summarise
>>> primary, reference = np.array([.1, .7]), np.array([.5, .5])
>>> fitted = trueup.fit(primary, reference, cells="exact")
>>> summary = summarise(fitted, primary, reference, names=("tree", "logistic"))
>>> summary.headline
'Brier loss falls by at least 0.02'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup._packages import lazy_names

if TYPE_CHECKING:
    from trueup.report.gather import summarise
    from trueup.report.summary import ReportSummary
    from trueup.report.write import render, write_report

__all__ = ["ReportSummary", "render", "summarise", "write_report"]

_HOMES = {
    "ReportSummary": "trueup.report.summary",
    "render": "trueup.report.write",
    "summarise": "trueup.report.gather",
    "write_report": "trueup.report.write",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
