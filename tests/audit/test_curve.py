"""Long guarantee curves: few projections, every value certified."""

from __future__ import annotations

import numpy as np
import pytest

import trueup
from trueup.audit import _curve
from trueup.audit.optimum import certified_optimum
from trueup.testing import shared_error_predictors


@pytest.mark.parametrize(
    ("loss", "trust"),
    [
        ("brier", "distribution"),
        ("brier", "answer-confidence"),
        ("spherical", "confidence"),
        ("confidence", "answer-confidence"),
    ],
)
def test_a_long_curve_is_near_the_one_solved_point_by_point(loss, trust, monkeypatch):
    pair = shared_error_predictors(400, 3, rng=5)
    sides = pair.primary, pair.reference
    if loss == "confidence":
        sides = [trueup.AnswerConfidence.from_distributions(one) for one in sides]
    found = trueup.audit(
        *sides, loss=loss, trust=trust, caps=False, cells=trueup.Step(0.1)
    )
    errors = np.linspace(0, 0.9 * found.break_even_reference_error, 20)
    solved = []

    def counted(problem, *others):
        solved.append(problem)
        return certified_optimum(problem, *others)

    monkeypatch.setattr(_curve, "certified_optimum", counted)
    values = found.guarantee_curve(errors).guaranteed_improvement
    n_solved = len(solved)
    monkeypatch.setattr(_curve, "FEW", len(errors))
    exact = found.guarantee_curve(errors).guaranteed_improvement

    assert n_solved < 15
    assert len(solved) == n_solved + len(errors)
    tolerance = 1e-6 * exact[0] + 1e-8
    assert (values <= exact + tolerance).all()
    assert (values >= exact - _curve._CLOSE * exact[0] - tolerance).all()
    assert (np.diff(values) <= 1e-12).all()
