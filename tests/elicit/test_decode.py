"""Replies of every shape into option probabilities, and what is not one."""

from __future__ import annotations

import contextlib
from math import exp, inf, log, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elicit.servers import chat_reply, chat_shape, legacy_shape
from trueup.elicit.decode import (
    Generated,
    TokenLogprob,
    UnreadableReplyError,
    first_token,
    generated,
    read_options,
    visible_reasoning,
)

LISTED = {" A": log(0.4), "A": log(0.2), " B": log(0.3), " the": log(0.05)}
SHAPES = {
    "chat": chat_shape(LISTED),
    "chat message": chat_reply("A", LISTED),
    "legacy": legacy_shape(LISTED),
    "ollama": {
        "response": " A",
        "done_reason": "length",
        "logprobs": [
            {
                "token": " A",
                "top_logprobs": [
                    {"token": token, "logprob": value, "bytes": list(token.encode())}
                    for token, value in LISTED.items()
                ],
            }
        ],
    },
    "sglang": {
        "text": " A",
        "meta_info": {
            "finish_reason": {"type": "length", "length": 1},
            "output_top_logprobs": [
                [[value, n, token] for n, (token, value) in enumerate(LISTED.items())]
            ],
        },
    },
    "llama.cpp's own": {
        "content": " A",
        "completion_probabilities": [
            {
                "token": " A",
                "top_logprobs": [
                    {"id": n, "token": token, "logprob": value, "bytes": []}
                    for n, (token, value) in enumerate(LISTED.items())
                ],
            }
        ],
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_reading(shape):
    reading = read_options(first_token(SHAPES[shape]), "ABC")

    assert [exp(v) for v in reading.logprobs] == pytest.approx([0.6, 0.3, 0.05])
    assert reading.censored == (False, False, True)
    assert reading.option_mass == pytest.approx(0.9)
    # By hand: .6, .3 and the bound .05 make .95.
    assert reading.probabilities == pytest.approx([0.6 / 0.95, 0.3 / 0.95, 0.05 / 0.95])


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_text(shape):
    said = generated(SHAPES[shape])

    assert said.text.strip() == "A"


def test_tokens_asked_for_by_id_are_matched_by_id():
    vllm = legacy_shape({"token_id:330": log(0.5), "token_id:33": log(0.1)})
    sglang = {
        "text": "x",
        "meta_info": {
            "output_token_ids_logprobs": [[[log(0.5), 330, None], [log(0.1), 33, None]]]
        },
    }
    for reply in (vllm, sglang):
        reading = read_options(first_token(reply), "A", {330: "A", 33: "A"})

        assert exp(reading.logprobs[0]) == pytest.approx(0.6)


def test_bytes_count_more_than_the_text_of_a_token():
    """A token that is half a character has a text that is not what it is."""
    tokens = [
        TokenLogprob("A", -1.0, raw=b"\xc3A"),
        TokenLogprob("�", -2.0, raw=b" A"),
        TokenLogprob("▁B", -1.5),
        TokenLogprob("ĠC", -2.5),
    ]
    reading = read_options(tokens, "ABC")

    assert reading.logprobs == (-2.0, -1.5, -2.5)
    assert not any(reading.censored)


def test_other_spellings_are_not_options():
    tokens = [
        TokenLogprob(t, -1.0) for t in ("a", " AA", "\nA", "(A", " Answer", "  A")
    ]

    with pytest.raises(UnreadableReplyError, match="none of the options A, B"):
        read_options(tokens, "AB")


def test_a_token_listed_twice_counts_once():
    tokens = [TokenLogprob(" A", log(0.5), id=7)] * 2 + [TokenLogprob(" B", log(0.25))]

    assert exp(read_options(tokens, "AB").logprobs[0]) == pytest.approx(0.5)


def test_a_token_that_cannot_come_has_probability_zero_and_no_bound_is_infinite():
    tokens = [
        TokenLogprob(" A", -0.5),
        TokenLogprob(" B", -inf),
        TokenLogprob(" the", -3.0),
    ]
    reading = read_options(tokens, "ABC")

    assert reading.logprobs == (-0.5, -inf, -3.0)
    assert reading.censored == (False, False, True)
    assert reading.probabilities[1] == 0


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"choices": [{"text": "A", "logprobs": None}]}, "no log-probabilities"),
        ({"choices": [{"text": "A"}]}, "no log-probabilities"),
        ({"response": "A"}, "no log-probabilities"),
        (chat_shape({}), "ends the text"),
        (legacy_shape({}), "ends the text"),
        ({"choices": []}, "unknown shape"),
        ({"choices": "A"}, "unknown shape"),
        ({"choices": [{"logprobs": {"content": [{}]}}]}, "unknown shape"),
        ({"choices": [{"logprobs": {"content": "none"}}]}, "unknown shape"),
        (legacy_shape({"A": "much"}), "unknown shape"),
        (legacy_shape({"A": 0.7}), "not a log-probability"),
        (legacy_shape({"A": nan}), "not a log-probability"),
        ({}, "no log-probabilities"),
    ],
)
def test_a_reply_without_probabilities_says_why(reply, said):
    with pytest.raises(UnreadableReplyError, match=said):
        first_token(reply)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "logprobs",
                    "content",
                    "top_logprobs",
                    "token",
                    "bytes",
                    "logprob",
                    "text",
                    "message",
                    "meta_info",
                    "output_top_logprobs",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["choices", "meta_info", "logprobs"]), JSON))
def test_any_json_is_read_or_refused(reply):
    """Nothing that a server can send ends in another error."""
    for read in (first_token, generated):
        with contextlib.suppress(UnreadableReplyError):
            read(reply)


def test_reasoning_that_a_parser_took_out_is_found():
    said = generated(chat_reply("", reasoning_content="It is B"))

    assert said.thinking == "It is B"
    assert visible_reasoning(said) == "It is B"
    assert visible_reasoning(Generated("B", "It is B")) == "B"
    assert visible_reasoning(Generated("<think>a</think>b")) == "<think>a</think>b"
