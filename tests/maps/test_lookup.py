"""Reports never seen in fitting: the nearest with the same answer, and a count."""

from __future__ import annotations

import numpy as np
import pytest

import trueup
from trueup import errors


def answers(answer, confidence):
    return trueup.AnswerConfidence(
        answer=list(answer), confidence=confidence, outcomes=["A", "B", "C"]
    )


def test_the_nearest_report_with_the_same_answer_is_used_and_counted():
    m = trueup.fit(
        answers("AAB", [0.9, 0.5, 0.6]), answers("AAB", [0.4, 0.6, 0.5]), cells="exact"
    )
    with pytest.warns(
        errors.UnseenReportWarning, match=r"2 of 3 reports were not seen"
    ):
        new = m.apply(answers("AAB", [0.88, 0.5, 0.99]))
    seen = m.apply(answers("AAB", [0.9, 0.5, 0.6]))

    # (A, .88) goes where (A, .9) goes; (B, .99) where (B, .6) does, not to (A, .9).
    np.testing.assert_array_equal(new.confidence, seen.confidence)


def test_an_answer_never_fitted_stays_as_it_is():
    m = trueup.fit(answers("AB", [0.9, 0.5]), answers("AB", [0.4, 0.6]), cells="exact")
    with pytest.warns(errors.UnseenReportWarning, match="1 of 1 have an answer never"):
        new = m.apply(answers("C", [0.7]))

    assert new.labels() == ["C"]
    assert new.confidence.tolist() == [0.7]


def test_distributions_look_for_the_same_argmax():
    p = np.array([[0.6, 0.3, 0.1], [0.4, 0.5, 0.1]])
    m = trueup.fit(p, np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]]), cells="exact")
    found = m.match(np.array([[0.46, 0.44, 0.1]]))

    # Nearer to the second row, but the answer is that of the first.
    assert found.index.tolist() == [0 if m.table.fitted.answers()[0] == 0 else 1]
    assert found.n_nearest == 1
    assert found.n_unmatched == 0


def test_negative_zero_is_zero():
    m = trueup.fit(np.array([0.0, 0.7]), np.array([0.4, 0.4]), cells="exact")

    np.testing.assert_array_equal(m.apply([-0.0]), m.apply([0.0]))


def test_a_grid_map_rounds_before_it_looks():
    m = trueup.fit([0.104, 0.7], [0.5, 0.5], cells=trueup.Step(0.01))

    np.testing.assert_array_equal(m.apply([0.1]), m.apply([0.0996]))


@pytest.mark.parametrize("rows", [1, 5])
def test_largest_remainders_keep_rows_summing_to_one(rows):
    rng = np.random.default_rng(rows)
    reports = trueup.core.reports.Distributions(rng.dirichlet(np.ones(7), rows))
    rounded = trueup.Step(0.01).merge(reports).probabilities

    np.testing.assert_allclose(rounded.sum(axis=1), 1, atol=1e-12)
    assert np.abs(rounded - reports.probabilities).max() < 0.01
