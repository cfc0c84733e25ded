"""Results in a notebook: a small table, a small picture, nothing that runs."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest

import trueup
from report.situations import worlds
from trueup.evaluate import reliability_curve

EVIL = ("<b>cat</b>", 'd"og', "o&x")


def _results():
    primary, reference, labels = worlds(300, 3)
    adaptive = trueup.fit(primary, reference, cells="auto", outcomes=EVIL)
    binary = trueup.fit(*worlds(300)[:2], cells="auto")
    exact = trueup.fit([0.1, 0.7], [0.5, 0.5], cells="exact")
    top = [trueup.AnswerConfidence.from_distributions(p) for p in (primary, reference)]
    values = trueup.PointReport(
        value=np.linspace(0, 3, 300), outcomes=[0, 1, 2, 3], property="mean"
    )
    joint = trueup.JointTable.from_counts(primary, reference, outcomes=EVIL)
    small = trueup.JointTable.from_counts([0.1, 0.7], [0.5, 0.5])
    return {
        "adaptive map": adaptive,
        "map of two outcomes": binary,
        "exact map": exact,
        "map of answers": trueup.fit(*top, cells="auto"),
        "map of means": trueup.fit(values, worlds(300, 4)[1], cells="auto"),
        "certificate": adaptive.certificate,
        "certificate of a table": exact.certificate,
        "joint table": joint,
        "projection": trueup.project(small),
        "reliability": reliability_curve(primary, labels),
    }


RESULTS = _results()


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_result_shows_a_table_and_a_picture(result):
    shown = result._repr_html_()

    assert shown.count("<table>") == 1
    assert shown.count("<svg") == 1
    assert len(shown) < 60_000
    picture = ET.fromstring(shown[shown.index("<svg") : shown.index("</svg>") + 6])
    assert float(picture.get("width")) <= 300
    assert picture.get("aria-label")


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_nothing_in_it_runs_or_is_left_unescaped(result):
    shown = result._repr_html_()

    assert "<script" not in shown
    assert "<b>" not in shown
    assert "nan" not in shown


@pytest.mark.parametrize("name", ["adaptive map", "certificate", "exact map"])
def test_the_assumption_is_shown_with_the_guarantee(name):
    shown = RESULTS[name]._repr_html_()

    assert "Holds for every truth under which the reference is" in shown
    assert "guaranteed improvement" in shown


def test_nothing_guaranteed_is_told_with_its_reason():
    fitted = trueup.fit(*worlds(40, 3)[:2], cells="auto", trust="mean")

    assert not fitted.certificate.supported
    for one in (fitted, fitted.certificate):
        assert "Nothing is guaranteed: " in one._repr_html_()
