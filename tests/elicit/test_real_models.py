"""Real log-probabilities: llama.cpp over HTTP and in this process, both styles.

Twenty published questions each; the reasoning is cut at 32 tokens.
"""

from __future__ import annotations

import importlib.util
import math

import numpy as np
import pytest

from trueup.data import read_predictions, write_table
from trueup.elicit import (
    EmbeddedBackend,
    HttpBackend,
    Question,
    TransformersBackend,
    elicit,
)
from trueup.errors import ElicitationError

# What is elicited once serves the whole file: one process should run it.
pytestmark = pytest.mark.xdist_group("language models")

STYLES = ("base", "instruct")
BACKENDS = ("http", "embedded")


@pytest.fixture(scope="module")
def asked(weights, llama_server, real_questions, tmp_path_factory):
    """Everything once: (backend, style) → what was elicited."""
    folder = tmp_path_factory.mktemp("stores")
    made = {
        "http": lambda: HttpBackend(llama_server.listening_address, "smollm2"),
        "embedded": lambda: EmbeddedBackend(str(weights)),
    }
    return {
        (name, style): elicit(
            real_questions,
            made[name](),
            store=folder / f"{name}-{style}.jsonl",
            template=f"paper-{style}",
            max_tokens=32,
            concurrency=1,
            pad_options=True,
        )
        for name in BACKENDS
        for style in STYLES
    }


@pytest.mark.parametrize("style", STYLES)
def test_http_and_in_process_agree(asked, style):
    one, other = (asked[name, style].reports for name in BACKENDS)

    assert len(one) == len(other) == 20
    for left, right in zip(one, other, strict=True):
        assert left.question == right.question
        assert left.reasoning == right.reasoning
        assert left.logprobs == pytest.approx(right.logprobs, abs=1e-3)
        assert left.probabilities == pytest.approx(right.probabilities, abs=1e-3)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", BACKENDS)
def test_what_is_read_is_a_distribution_of_a_real_model(asked, name, style):
    found = asked[name, style]
    mass = [report.option_mass for report in found.reports]

    assert not found.unread
    for report in found.reports:
        assert math.fsum(report.probabilities) == pytest.approx(1)
        assert not any(report.censored)
        assert all(value < 0 for value in report.logprobs)
        assert 0 < report.option_mass < 1
        total = math.fsum(map(math.exp, report.logprobs))
        assert report.option_mass == pytest.approx(total)
    # The model answers: letters are a good part of what it might say, and it says
    # different things about different questions.
    assert np.median(mass) > 0.2
    assert len({report.probabilities for report in found.reports}) == 20


def test_reasoning_is_kept_and_limited(asked):
    reports = asked["http", "instruct"].reports
    base = asked["http", "base"].reports

    assert all(report.reasoning is None for report in base)
    assert all(report.reasoning for report in reports)
    reasons = {report.finish_reason for report in reports}
    assert reasons <= {"stop", "length"}
    cut = [r for r in reports if r.finish_reason == "length"]
    assert all(len(r.reasoning.split()) <= 32 for r in cut)
    assert len({report.reasoning for report in reports}) > 10


def test_predictions_become_a_file_that_is_read_back(asked, real_questions, tmp_path):
    found = asked["embedded", "instruct"]
    write_table(found.table(), tmp_path / "p.parquet")
    read = read_predictions(tmp_path / "p.parquet")

    assert read.outcomes == ("A", "B", "C", "D", "E")
    assert read.columns.predictions == ("p_A", "p_B", "p_C", "p_D", "p_E")
    assert list(read.item_ids) == [q.id for q in real_questions]
    assert list(read.labels) == [q.label for q in real_questions]
    assert list(read.groups) == [q.subject for q in real_questions]
    assert read.columns.used.isdisjoint({"option_mass", "n_orders", "raw_logprob_A"})


def test_a_base_model_answers_after_the_question(
    base_weights, real_questions, tmp_path
):
    """Gemma-3-270M knows a few things: better than chance on average."""
    found = elicit(
        real_questions,
        EmbeddedBackend(str(base_weights)),
        store=tmp_path / "s.jsonl",
        pad_options=True,
    )
    right = [
        report.probabilities[report.question.answer] * len(report.probabilities)
        for report in found.reports
    ]

    assert len(found.reports) == 20
    assert np.mean(right) > 0.8
    assert np.median([report.option_mass for report in found.reports]) > 0.3


def test_orders_of_the_options_are_averaged_back(weights, tmp_path):
    """With two options, the two cyclic orders are the two prompts by hand."""
    question = Question("q", "Which is a fruit?", ("stone", "pear"), "nature", 1)
    turned = Question("q", "Which is a fruit?", ("pear", "stone"), "nature", 0)

    def ask(asked, **how):
        backend = EmbeddedBackend(str(weights))
        store = tmp_path / "s.jsonl"
        return elicit([asked], backend, store=store, **how).reports[0]

    plain, swapped = ask(question), ask(turned)
    both = ask(question, order="cyclic")

    assert plain.probabilities != pytest.approx(swapped.probabilities[::-1], abs=1e-3)
    assert both.n_orders == 2
    assert both.probabilities == pytest.approx(
        (np.array(plain.probabilities) + np.array(swapped.probabilities[::-1])) / 2
    )


def test_what_is_read_does_not_depend_on_what_was_asked_before(
    asked, llama_server, real_questions, tmp_path
):
    """Reusing the start of an earlier prompt changes log-probabilities visibly."""
    backwards = elicit(
        real_questions[:4][::-1],
        HttpBackend(llama_server.listening_address, "smollm2"),
        store=tmp_path / "s.jsonl",
        concurrency=1,
    )

    for left, right in zip(
        backwards.reports[::-1], asked["http", "base"].reports, strict=False
    ):
        assert left.logprobs == pytest.approx(right.logprobs, abs=1e-6)


def test_a_prompt_that_does_not_fit_is_listed(weights, tmp_path):
    long = Question("long", "word " * 600, ("x", "y"))
    short = Question("short", "Which?", ("x", "y"))
    found = elicit(
        [long, short],
        EmbeddedBackend(str(weights), context=256),
        store=tmp_path / "s.jsonl",
    )

    assert [report.question.id for report in found.reports] == ["short"]
    assert found.unread[0].item_id == "long"
    assert "context size" in found.unread[0].reason


def test_weights_that_are_none_are_refused(weights, real_questions, tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF nonsense")
    broken = EmbeddedBackend(str(tmp_path / "broken.gguf"))

    with pytest.raises(ElicitationError, match="complete GGUF"):
        elicit(real_questions[:2], broken, store=tmp_path / "s.jsonl")
    with pytest.raises(ElicitationError, match="no weights at"):
        EmbeddedBackend(str(tmp_path / "absent.gguf"))


@pytest.mark.parametrize("style", STYLES)
def test_transformers_agrees_as_far_as_quantisation_lets_it(
    asked, weights, real_questions, style, tmp_path
):
    """llama.cpp computes with quantised numbers, transformers expands them first."""
    for package in ("torch", "transformers", "gguf", "accelerate"):
        if importlib.util.find_spec(package) is None:
            pytest.skip("transformers is not installed (make setup-transformers)")
    found = elicit(
        real_questions[:4],
        TransformersBackend(str(weights)),
        store=tmp_path / "s.jsonl",
        template=f"paper-{style}",
        max_tokens=32,
    )
    for left, right in zip(
        found.reports, asked["embedded", style].reports, strict=False
    ):
        if left.reasoning == right.reasoning:
            assert left.logprobs == pytest.approx(right.logprobs, abs=0.6)
