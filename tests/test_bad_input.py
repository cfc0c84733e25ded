"""Bad input gets an error that names the place, the value and the next step."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import trueup
from trueup import errors

P = np.array([0.1, 0.7])
Q = np.array([0.5, 0.5])
ROWS = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])


def refuses(match, *arguments, error=errors.TrueupError, **options):
    with pytest.raises(error, match=match) as caught:
        trueup.fit(*arguments, **{"cells": "exact", **options})
    assert isinstance(caught.value, errors.TrueupError)
    return str(caught.value)


def test_wrong_lengths():
    message = refuses("primary has 2 rows but reference has 3", P, [0.5] * 3)
    assert "same items in the same order" in message


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(bad):
    refuses(r"primary holds 1 of 2 reports that are not finite.*row 1", [0.1, bad], Q)


def test_missing_values_of_a_nullable_column():
    refuses("not finite", pd.Series([0.1, None], dtype="Float64"), Q)


def test_percentages():
    message = refuses(r"outside \[0, 1\]; the first is 70.0 at row 1", [0.1, 70], Q)
    assert "divide them by 100" in message


def test_percentages_in_rows():
    refuses("look like percentages", ROWS * 100, ROWS)


def test_negative_values():
    message = refuses(r"the first is -0.1 at row 0", [-0.1, 0.7], Q)
    assert "never clips" in message


def test_rows_that_do_not_sum_to_one():
    message = refuses(
        r"reference holds 1 of 2 reports that do not sum to one",
        ROWS,
        ROWS + np.array([[0, 0, 0], [0, 0, 0.1]]),
    )
    assert "off by +0.1) at row 1" in message


def test_float32_rows_are_divided_and_recorded():
    rows = np.array([[1 / 3, 1 / 3, 1 / 3 + 4e-6], [0.1, 0.1, 0.8]])
    m = trueup.fit(rows, ROWS, cells="exact")

    assert m.fitted_on.n_normalised == 1
    assert any("divided by their sum" in note for note in m.certificate.notes)


def test_unknown_answers():
    with pytest.raises(errors.InvalidReportError, match=r"'C' at row 1.*\n.*'A', 'B'"):
        trueup.AnswerConfidence(
            answer=["A", "C"], confidence=[0.5, 0.5], outcomes=["A", "B"]
        )


def test_confidence_outside_the_unit_interval():
    with pytest.raises(errors.InvalidReportError, match="percentages"):
        trueup.AnswerConfidence(answer=["A"], confidence=[55], outcomes=["A", "B"])


def test_answers_and_confidences_of_different_lengths():
    with pytest.raises(
        errors.InvalidInputError, match=r"answer has 2 .* confidence has 1"
    ):
        trueup.AnswerConfidence(answer=[0, 1], confidence=[0.5], outcomes=["A", "B"])


def test_one_item_is_said_to_be_the_population():
    with pytest.warns(errors.DoubtfulInputWarning, match="one item"):
        trueup.fit([0.1], [0.5], cells="exact")


def test_one_outcome():
    refuses("one outcome", np.ones((3, 1)), np.ones((3, 1)))


def test_no_items():
    refuses("primary is empty", [], [])


def test_text_is_not_a_probability():
    refuses("'high' at row 1", [0.1, "high"], Q)


def test_three_dimensions():
    refuses("3 dimensions", np.zeros((2, 2, 2)), Q)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_groups(missing):
    message = refuses("groups holds 1 of 2 missing", P, Q, groups=["a", missing])
    assert "row 1" in message


def test_groups_of_the_wrong_length():
    refuses("groups has 3", P, Q, groups=["a", "b", "c"])


def test_unknown_loss_suggests_the_nearest():
    refuses("unknown loss 'bries'. Did you mean 'brier'", P, Q, loss="bries")


def test_unknown_trust_suggests_the_nearest():
    refuses("Did you mean 'confidence'", P, Q, trust="confidense")


def test_unknown_cells():
    refuses("unknown cells 'exakt'. Did you mean 'exact'", P, Q, cells="exakt")


def test_unknown_property_suggests_the_nearest():
    with pytest.raises(errors.UnknownNameError, match="Did you mean 'median'"):
        trueup.PointReport(value=[1], outcomes=[0, 1], property="medain")


def test_loss_that_does_not_fit_names_those_that_do():
    message = refuses(
        "loss 'confidence' does not fit a primary that reports distributions",
        P,
        Q,
        loss="confidence",
        error=errors.UnsuitableLossError,
    )
    assert "'brier', 'log', 'spherical'" in message


def test_negative_weights():
    refuses("negative or not finite.*-1.0 at row 1", P, Q, sample_weight=[1, -1])


def test_weights_of_zero_everywhere():
    refuses("zero everywhere", P, Q, sample_weight=[0, 0])


def test_weights_of_the_wrong_length():
    refuses("sample_weight has 1", P, Q, sample_weight=[1])


@pytest.mark.parametrize("error", [-0.1, np.nan, np.inf, "much"])
def test_reference_error_must_be_a_number_at_least_zero(error):
    refuses("reference_error must be a finite number >= 0", P, Q, reference_error=error)


def test_log_loss_names_the_rows_with_zeros_and_offers_a_floor():
    message = refuses(
        "with an exact zero.*row 1", [0.5, 1.0], Q, loss="log", error=ValueError
    )
    assert "floor=1e-4" in message


def test_floor_is_printed_on_the_certificate():
    m = trueup.fit([0.5, 1.0], Q, loss="log", floor=1e-4, cells="exact")

    assert any("floor 0.0001" in note for note in m.certificate.notes)
    assert np.isfinite(m.certificate.guaranteed_improvement)
    assert m.apply([0.5, 1.0]).shape == (2, 2)


@pytest.mark.parametrize("floor", [0, -1, 0.5, 2])
def test_a_floor_must_leave_room(floor):
    refuses("floor must", [0.5, 1.0], Q, loss="log", floor=floor)


def test_floor_needs_distributions():
    answers = trueup.AnswerConfidence(answer=[0], confidence=[0.5], outcomes=["A", "B"])
    refuses("floor applies to distributions", answers, answers, floor=0.01)


def test_outcomes_that_differ():
    first = trueup.AnswerConfidence(answer=[0], confidence=[0.5], outcomes=["A", "B"])
    second = trueup.AnswerConfidence(answer=[0], confidence=[0.5], outcomes=["A", "C"])
    refuses("same outcomes on both sides", first, second)


def test_different_numbers_of_outcomes():
    refuses("about 2 outcomes but reference about 3", Q, ROWS)


def test_outcomes_named_twice():
    refuses("'A' is named more than once", P, Q, outcomes=["A", "A"])


def test_more_names_than_columns():
    refuses("2 columns, but 3 outcomes", P, Q, outcomes=["A", "B", "C"])


def test_an_answer_reference_is_not_a_distribution():
    answers = trueup.AnswerConfidence(
        answer=[0, 1], confidence=[0.5, 0.6], outcomes=["A", "B", "C"]
    )
    refuses("states none", ROWS, answers, trust="distribution")


def test_caps_only_follow_from_answers():
    refuses("caps do not follow", ROWS, ROWS, trust="confidence", caps=True)


def test_a_point_reference_has_no_ladder():
    point = trueup.PointReport(value=[0, 1], outcomes=[0, 1], property="mean")
    refuses("it has no ladder", P, point, trust="mean")


def test_low_reference_confidence_is_trusted_without_caps_and_says_so():
    reference = trueup.AnswerConfidence(
        answer=[0, 1], confidence=[0.1, 0.6], outcomes=range(3)
    )
    with pytest.warns(errors.RelaxedAssumptionWarning, match="below 1/3"):
        trueup.fit(ROWS, reference, cells="exact")


def test_a_mean_outside_the_outcomes():
    with pytest.raises(errors.InvalidReportError, match=r"outside the range \[0, 5\]"):
        trueup.PointReport(value=[1, 7], outcomes=[0, 1, 5], property="mean")


def test_a_quantile_between_two_outcomes_is_refused_and_can_be_snapped():
    between = trueup.PointReport(
        value=[1.0, 2.0], outcomes=[0, 1, 5], property="median"
    )
    refuses(r"strictly between two outcomes(.|\n)*snapped", between, ROWS)

    m = trueup.fit(between.snapped(), ROWS, cells="exact")
    assert m.certificate.guaranteed_improvement >= 0


def test_levels():
    options = {"value": [1], "outcomes": [0, 1]}
    with pytest.raises(errors.InvalidInputError, match="needs a level"):
        trueup.PointReport(**options, property="quantile")
    with pytest.raises(errors.InvalidInputError, match="takes no level"):
        trueup.PointReport(**options, property="mean", level=0.5)
    with pytest.raises(errors.InvalidInputError, match="strictly between 0 and 1"):
        trueup.PointReport(**options, property="expectile", level=1)


def test_a_mean_needs_numeric_outcomes():
    with pytest.raises(errors.InvalidInputError, match="'A' is not one"):
        trueup.PointReport(value=[1], outcomes=["A", "B"], property="mean")


@pytest.mark.parametrize("step", [0, -0.1, 0.3, 2])
def test_a_step_divides_one(step):
    with pytest.raises(errors.InvalidInputError, match="equal parts"):
        trueup.Step(step)


def test_applying_to_another_kind_of_report():
    m = trueup.fit(P, Q, cells="exact")
    answers = trueup.AnswerConfidence(answer=[0], confidence=[0.5], outcomes=[0, 1])
    with pytest.raises(errors.InvalidInputError, match="cannot be applied"):
        m.apply(answers)


def test_applying_to_another_number_of_outcomes():
    with pytest.raises(errors.InvalidInputError, match="about 3 outcomes"):
        trueup.fit(P, Q, cells="exact").apply(ROWS)
