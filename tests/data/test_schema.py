"""Which column is what: chosen, explained, overridable, refused with a next step."""

from __future__ import annotations

import re

import pytest

from trueup.data import detect_columns
from trueup.data.schema import model_prefixes
from trueup.errors import PredictionFileError


def columns(*names, text=("item_id", "label", "answer", "subject")):
    return {name: name not in text for name in names}


def test_probabilities_by_prefix_p():
    found = detect_columns(columns("item_id", "p_yes", "p_no", "label", "weight"))

    assert found.kind == "probabilities"
    assert dict(found.outcomes) == {"yes": "p_yes", "no": "p_no"}
    assert (found.item_id, found.label, found.weight) == ("item_id", "label", "weight")
    assert found.explanation[0] == "probabilities of 2 outcomes from p_yes, p_no"


@pytest.mark.parametrize(
    ("family", "kind"), [("logit_", "logits"), ("logprob_", "log-probabilities")]
)
def test_logits_and_log_probabilities(family, kind):
    found = detect_columns(columns(f"{family}A", f"{family}B"))

    assert found.kind == kind
    assert list(found.outcomes) == ["A", "B"]


def test_probabilities_win_over_logits_and_it_is_said():
    found = detect_columns(columns("logit_A", "logit_B", "p_A", "p_B"))

    assert found.kind == "probabilities"
    assert "the logits were left aside" in found.explanation


def test_bare_names_are_every_number_that_is_not_something_else():
    found = detect_columns(
        columns("item_id", "yes", "no", "label", "weight", "subject", "question_id")
    )

    assert list(found.outcomes) == ["yes", "no"]


def test_answers_with_confidence_and_without():
    assert detect_columns(columns("answer", "confidence")).kind == "answers"
    assert detect_columns(columns("answer", "item_id")).kind == "modes"
    assert detect_columns(columns("value", "item_id")).kind == "values"


def test_a_prefix_chooses_among_predictors():
    names = columns("item_id", "gpt__p_A", "gpt__p_B", "base__logit_A", "base__logit_B")

    assert model_prefixes(names) == ["gpt__", "base__"]
    for prefix in ("base__", "base"):
        found = detect_columns(names, prefix=prefix)
        assert dict(found.outcomes) == {"A": "base__logit_A", "B": "base__logit_B"}
        assert found.prefix == "base__"


def test_a_prefix_that_begins_another_is_not_mixed_up_with_it():
    names = columns("m__p_A", "m__p_B", "m_chat__p_A", "m_chat__p_B")

    assert list(detect_columns(names, prefix="m").outcomes.values()) == [
        "m__p_A",
        "m__p_B",
    ]


def test_the_only_predictor_needs_no_prefix():
    found = detect_columns(columns("item_id", "gpt__p_A", "gpt__p_B"))

    assert list(found.outcomes.values()) == ["gpt__p_A", "gpt__p_B"]


def test_bare_names_below_an_explicit_prefix():
    found = detect_columns(columns("m__A", "m__B"), prefix="m")

    assert dict(found.outcomes) == {"A": "m__A", "B": "m__B"}


def test_columns_are_overridden_by_name():
    names = columns("question", "target", "p_A", "p_B", text=("question", "target"))
    found = detect_columns(names, id="question", label="target")

    assert (found.item_id, found.label) == ("question", "target")
    assert "items are named by question" in found.explanation


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["a__p_x", "a__p_y", "b__p_x", "b__p_y"], {}, "2 predictors share"),
        (["p_x", "p_y"], {"prefix": "gpt"}, "no prediction columns start with 'gpt'"),
        (["p_x", "p_y"], {"id": "itm"}, "no column 'itm' for the item id"),
        (["p_x"], {}, "'p_x' is the only column of probabilities"),
        (["x"], {}, "check the delimiter"),
        (["subject", "label"], {}, "no predictions among the columns subject, label"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_a_next_step(names, options, message):
    with pytest.raises(PredictionFileError, match=re.escape(message)) as caught:
        detect_columns(columns(*names), name="a.csv", **options)

    assert str(caught.value).startswith("a.csv: ")
    assert "\nhint: " in str(caught.value)
