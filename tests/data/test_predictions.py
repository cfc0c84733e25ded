"""Predictions from files and dataframes, paired by id, written in the same schema."""

from __future__ import annotations

import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from trueup.core.reports import AnswerConfidence, Distributions, PointReport
from trueup.data import (
    is_frame,
    label_positions,
    pair_predictions,
    predictions_table,
    read_predictions,
)
from trueup.errors import PredictionFileError, TrueupError

SAID = {"item_id": ["a", "b", "c"], "p_yes": [0.1, 0.5, 1.0], "p_no": [0.9, 0.5, 0.0]}


def frames(said):
    table = pa.table(said)
    return {
        "pandas": pd.DataFrame(said),
        "polars": pl.DataFrame(said),
        "polars lazy": pl.LazyFrame(said),
        "pyarrow": table,
        "duckdb": duckdb.from_arrow(table),
    }


@pytest.mark.parametrize("library", frames(SAID))
def test_every_dataframe_reads_the_same(library):
    frame = frames(SAID)[library]
    read = read_predictions(frame)

    assert is_frame(frame)
    assert read.reports.keys().tolist() == [[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]]
    assert read.outcomes == ("yes", "no")
    assert read.item_ids.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("value", [[1, 2], np.eye(2), "a.csv", None, pd.Series([1])])
def test_other_things_are_no_frames(value):
    assert not is_frame(value)


def test_logits_become_probabilities():
    read = read_predictions(
        pa.table({"logit_A": [0.0, 700.0], "logit_B": [np.log(3), 0.0]})
    )

    assert isinstance(read.reports, Distributions)
    assert read.reports.keys()[0] == pytest.approx([0.25, 0.75])
    assert read.reports.keys()[1] == pytest.approx([1.0, 0.0])
    assert "softmax" in read.describe()


def test_log_probabilities_that_sum_to_one_are_taken_as_they_are():
    table = pa.table({"logprob_A": np.log([0.2, 0.5]), "logprob_B": np.log([0.8, 0.5])})
    read = read_predictions(table)

    assert read.reports.keys() == pytest.approx(np.array([[0.2, 0.8], [0.5, 0.5]]))
    assert not any("divided" in line for line in read.explanation)


def test_log_probabilities_of_some_outcomes_are_divided_and_it_is_said():
    table = pa.table({"logprob_A": np.log([0.1]), "logprob_B": np.log([0.3])})
    read = read_predictions(table)

    assert read.reports.keys()[0] == pytest.approx([0.25, 0.75])
    assert "divided by their sum" in read.describe()


def test_answers_and_values():
    answers = read_predictions(
        pa.table({"answer": ["x", "y"], "confidence": [0.9, 0.6]})
    )
    modes = read_predictions(pa.table({"answer": ["x", "y"]}))
    values = read_predictions(
        pa.table({"value": [1.0, 2.5]}),
        outcomes=[0, 1, 5],
        property="quantile",
        level=0.9,
    )

    assert isinstance(answers.reports, AnswerConfidence)
    assert modes.reports.about.name == "mode"
    assert isinstance(values.reports, PointReport)
    assert values.reports.about.name == "quantile"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"p_a": [0.5, 1.2], "p_b": [0.5, -0.2]}, "outside [0, 1]"),
        ({"p_a": [50.0], "p_b": [50.0]}, "look like percentages"),
        ({"p_a": ["50%"], "p_b": ["50%"]}, "percentages: remove the sign"),
        ({"p_a": ["0,5"], "p_b": ["0,5"]}, "decimal point"),
        ({"p_a": [0.5], "p_b": [0.4]}, "do not sum to one"),
        (
            {"p_a": [0.5, None], "p_b": [0.5, 0.5]},
            "missing values; the first is in row 1",
        ),
        ({"p_a": [0.5, float("nan")], "p_b": [0.5, 0.5]}, "not finite"),
        ({"p_a": ["x"], "p_b": [0.5]}, "must hold numbers; row 0 holds 'x'"),
        ({"logit_a": [float("nan")], "logit_b": [0.5]}, "not finite"),
        ({"logprob_a": [0.7], "logprob_b": [0.5]}, "cannot be above zero"),
        ({"answer": ["x", "x"], "confidence": [0.5, 0.5]}, "every answer is 'x'"),
        ({"answer": ["x", None], "confidence": [0.5, 0.5]}, "every answer is 'x'"),
        ({"value": [1.0]}, "list every outcome"),
    ],
)
def test_what_is_no_prediction_is_refused(said, message):
    with pytest.raises(TrueupError, match=re.escape(message)) as caught:
        read_predictions(pa.table(said), name="a.csv")

    assert str(caught.value).startswith("a.csv")


def test_ids_that_are_missing_or_repeated_are_named():
    for ids, message in (
        (["a", None, "c"], "1 of 3 rows have no item_id; the first is row 1"),
        (["a", "b", "a"], "1 values of item_id occur more than once: 'a'"),
    ):
        read = read_predictions(pa.table(SAID | {"item_id": ids}))
        with pytest.raises(PredictionFileError, match=re.escape(message)):
            _ = read.item_ids


def test_pairing_by_id_follows_the_primary():
    first = read_predictions(pa.table(SAID))
    second = read_predictions(pl.DataFrame(SAID).reverse())
    pair = pair_predictions(first, second)

    assert pair.reference.item_ids.tolist() == ["a", "b", "c"]
    assert (pair.reference.reports.keys() == first.reports.keys()).all()


def test_numbers_and_their_text_are_the_same_id():
    first = read_predictions(pa.table(SAID | {"item_id": [1, 2, 3]}))
    second = read_predictions(pa.table(SAID | {"item_id": ["3", "2", "1"]}))
    pair = pair_predictions(first, second)

    assert pair.reference.reports.keys()[0].tolist() == [1.0, 0.0]


def test_items_of_one_side_only_are_named_and_never_dropped_silently():
    first = read_predictions(pa.table(SAID), name="first.csv")
    second = read_predictions(pa.table(SAID).slice(0, 2), name="second.csv")

    with pytest.raises(PredictionFileError, match=r"missing from second\.csv: c"):
        pair_predictions(first, second)
    with pytest.raises(PredictionFileError, match=r"missing from second\.csv: c"):
        pair_predictions(second, first)
    pair = pair_predictions(first, second, drop_unpaired=True)
    assert pair.primary.item_ids.tolist() == ["a", "b"]
    assert "1 items are missing from second.csv: c" in pair.explanation[1]


def test_no_common_id_at_all():
    first = read_predictions(pa.table(SAID))
    second = read_predictions(pa.table(SAID | {"item_id": ["x", "y", "z"]}))

    with pytest.raises(PredictionFileError, match="are these the same items"):
        pair_predictions(first, second, drop_unpaired=True)


def test_rows_are_paired_only_where_nothing_could_be_an_id():
    said = {name: SAID[name] for name in ("p_yes", "p_no")}
    plain = read_predictions(pa.table(said))
    longer = read_predictions(pa.table({k: [*v, v[0]] for k, v in said.items()}))
    keyed = read_predictions(pa.table(said | {"question": ["x", "y", "z"]}))
    named = read_predictions(pa.table(said | {"doc_id": [1, 1, 1]}))
    grouped = read_predictions(pa.table(said | {"subject": ["x", "x", "y"]}))

    assert pair_predictions(plain, plain.take(np.array([0, 1, 2]))).explanation == (
        "paired by row: 3 items",
    )
    assert len(pair_predictions(grouped, grouped.take(np.array([0, 1, 2])))) == 3
    with pytest.raises(PredictionFileError, match="no id says which"):
        pair_predictions(plain, longer)
    for shared, name in ((keyed, "question"), (named, "doc_id")):
        with pytest.raises(PredictionFileError, match=f"choose with --id {name}"):
            pair_predictions(shared, shared.take(np.array([0, 1, 2])))


def test_answers_take_the_outcomes_of_the_other_side():
    answers = read_predictions(
        pa.table({"answer": ["no", "yes"], "confidence": [0.9, 0.6]})
    )
    other = read_predictions(
        pa.table({"p_yes": [0.1, 0.2], "p_no": [0.8, 0.8], "p_maybe": [0.1, 0.0]})
    )
    pair = pair_predictions(answers, other)

    assert pair.primary.outcomes == ("yes", "no", "maybe")
    assert pair.primary.reports.labels() == ["no", "yes"]


def test_answers_of_both_sides_make_the_outcomes():
    first = read_predictions(pa.table({"answer": ["x", "y"], "confidence": [0.9, 0.6]}))
    second = read_predictions(
        pa.table({"answer": ["z", "y"], "confidence": [0.9, 0.6]})
    )

    assert pair_predictions(first, second).primary.outcomes == ("x", "y", "z")


def test_labels_are_names_or_else_positions():
    assert label_positions(["1", "0"], [1, 0])[0].tolist() == [0, 1]
    assert label_positions([1.0, 0.0], ["A", "B"])[0].tolist() == [1, 0]
    with pytest.raises(PredictionFileError, match="the first is 'C' at row 1"):
        label_positions(["A", "C"], ["A", "B"])
    with pytest.raises(PredictionFileError, match="the first is None at row 0"):
        label_positions([None, "B"], ["A", "B"])


@pytest.mark.parametrize(
    "reports",
    [
        Distributions(np.array([[0.25, 0.75]]), ("a", "b")),
        AnswerConfidence(answer=["b"], confidence=[0.5], outcomes=["a", "b"]),
        PointReport(value=["b"], outcomes=["a", "b"], property="mode"),
    ],
)
def test_reports_are_written_as_they_are_read(reports):
    table = predictions_table(
        reports, item_ids=["i"], labels=["b"], groups=["g"], weights=[2.0]
    )
    read = read_predictions(table, outcomes=["a", "b"])

    assert (read.reports.keys() == reports.keys()).all()
    assert read.item_ids.tolist() == ["i"]
    assert read.labels.tolist() == ["b"]
    assert read.groups.tolist() == ["g"]
    assert read.weights.tolist() == [2.0]
