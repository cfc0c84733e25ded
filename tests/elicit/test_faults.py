"""A server that misbehaves in every way: what is retried, listed, or ends the run."""

from __future__ import annotations

import email.utils
import math
import time

import pytest

from elicit.conftest import QUICK
from elicit.servers import (
    Answer,
    ScriptedServer,
    chat_shape,
    drawn_logprobs,
    like_llama_cpp,
    models,
)
from trueup.elicit import HttpBackend, Patience, elicit
from trueup.errors import ElicitationError, InvalidInputError, QuestionFileError

COMPLETIONS = "/v1/completions"


class Faulty:
    """Well-behaved, except for what is put in the way of the questions."""

    def __init__(self, *faults, on=1, forever=False):
        self.faults = list(faults)
        self.on = on
        self.forever = forever
        self.n_questions = 0

    def __call__(self, route, body, headers):
        if route != COMPLETIONS or "number" not in body["prompt"]:
            return like_llama_cpp(route, body, headers)
        self.n_questions += 1
        if self.n_questions >= self.on and self.faults:
            return self.faults[0] if self.forever else self.faults.pop(0)
        return like_llama_cpp(route, body, headers)


def _asked(script, questions, tmp_path, **how):
    how = {"patience": QUICK, "concurrency": 1, "template": "paper-base"} | how
    backend = {"timeout": how.pop("timeout", 5.0)}
    with ScriptedServer(script) as server:
        client = HttpBackend(server.address, "m", **backend)
        found = elicit(questions, client, store=tmp_path / "s.jsonl", **how)
    return found, server


def _questions_asked(server):
    return [body for body in server.asked(COMPLETIONS) if "number" in body["prompt"]]


@pytest.mark.parametrize(
    "fault",
    [
        Answer({"error": {"message": "busy"}}, status=500),
        Answer({"error": "busy"}, status=503),
        Answer(b"<html>bad gateway</html>", status=502),
        Answer({"error": {"message": "slow down"}}, status=429),
        Answer(chat_shape(drawn_logprobs("x")), cut=40),
        Answer(b'{"choices": [{"te'),
        Answer(b""),
        Answer({}, delay=1.5),
    ],
    ids=["500", "503", "502", "429", "closed", "truncated", "empty", "time-out"],
)
def test_what_may_pass_is_tried_again(fault, few_questions, tmp_path):
    found, server = _asked(
        Faulty(fault, fault), few_questions[:2], tmp_path, timeout=0.4
    )

    assert len(found.reports) == 2
    assert not found.unread
    assert len(_questions_asked(server)) == 4  # two faults before two replies


def test_the_same_numbers_come_out_with_faults_and_without(few_questions, tmp_path):
    plain, _ = _asked(like_llama_cpp, few_questions, tmp_path)
    busy = Answer({}, status=500)
    shaken, _ = _asked(
        Faulty(busy, busy, busy, on=2), few_questions, tmp_path / "..", concurrency=3
    )

    assert shaken.reports == plain.reports


def test_retry_after_in_seconds_is_waited_by_everybody(few_questions, tmp_path):
    faulty = Faulty(Answer({}, status=429, headers={"Retry-After": "0.6"}))

    def script(route, body, headers):
        answer = faulty(route, body, headers)
        # Slower than the refusal, so that it is known before anything else is sent.
        return answer if isinstance(answer, Answer) else Answer(answer, delay=0.15)

    found, server = _asked(script, few_questions, tmp_path, concurrency=3)
    moments = [
        moment
        for route, body, _, moment in server.requests
        if route == COMPLETIONS and "number" in body["prompt"]
    ]
    after = [moment - moments[0] for moment in moments[1:]]

    assert len(found.reports) == 6
    assert sum(wait < 0.1 for wait in after) == 2  # were under way already
    assert sum(wait >= 0.6 for wait in after) == 4


def test_retry_after_as_a_date_is_waited(few_questions, tmp_path):
    date = email.utils.formatdate(time.time() + 2, usegmt=True)
    fault = Answer({}, status=503, headers={"Retry-After": date})
    start = time.monotonic()
    _asked(Faulty(fault), few_questions[:1], tmp_path)

    assert time.monotonic() - start > 0.9  # a date has no fractions of a second


def test_a_server_that_asks_for_too_long_a_wait_ends_the_run(few_questions, tmp_path):
    fault = Answer({}, status=429, headers={"Retry-After": "86400"})

    with pytest.raises(ElicitationError, match="wait 86,400 seconds"):
        _asked(Faulty(fault), few_questions, tmp_path)


def test_an_item_that_never_gets_a_reply_is_listed_and_asked_again_later(
    few_questions, tmp_path
):
    broken = Answer({"error": {"message": "it broke"}}, status=500)
    found, _ = _asked(Faulty(*[broken] * 4), few_questions[:2], tmp_path)

    assert [one.item_id for one in found.unread] == ["q0"]
    assert "500" in found.unread[0].reason
    assert "it broke (tried 4 times)" in found.unread[0].reason
    assert not found.unread[0].is_final
    again, _ = _asked(like_llama_cpp, few_questions[:2], tmp_path)
    assert len(again.reports) == 2


def test_a_server_that_is_gone_ends_the_run(few_questions, tmp_path):
    from trueup.elicit import Question

    many = [Question(f"q{n}", f"number {n}", ("x", "y")) for n in range(40)]
    broken = Answer({}, status=500)
    with pytest.raises(ElicitationError, match="10 items in a row failed"):
        _asked(
            Faulty(broken, forever=True),
            many,
            tmp_path,
            patience=Patience(n_attempts=1),
        )


def test_a_server_that_is_not_there_is_told(few_questions, tmp_path):
    with ScriptedServer(like_llama_cpp) as server:
        address = server.address
    backend = HttpBackend(address, "m")

    with pytest.raises(ElicitationError, match="cannot be reached"):
        elicit(few_questions, backend, store=tmp_path / "s.jsonl", patience=QUICK)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_every_request_would_get_ends_the_run_at_once(
    status, few_questions, tmp_path
):
    fault = Answer({"error": {"message": "not for you"}}, status=status)
    script = Faulty(fault, forever=True)

    with pytest.raises(ElicitationError, match="not for you"):
        _asked(script, few_questions, tmp_path)
    assert script.n_questions == 1


def test_a_request_that_is_refused_for_itself_is_listed(few_questions, tmp_path):
    fault = Answer({"error": {"message": "exceeds the context"}}, status=400)
    found, server = _asked(Faulty(fault, on=2), few_questions[:3], tmp_path)

    assert [one.item_id for one in found.unread] == ["q1"]
    assert "exceeds the context" in found.unread[0].reason
    assert len(_questions_asked(server)) == 3


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"choices": [{"text": "A", "logprobs": None}]}, "no log-probabilities"),
        (chat_shape({}), "lists no log-probabilities"),
        (chat_shape({" the": -0.5, " of": -1.0}), "none of the options A, B, C"),
        (chat_shape({"<think>": -0.01, " of": -5.0}), "most probable is '<think>'"),
        ({"choices": []}, "unknown shape"),
        ({"choices": [{"logprobs": {"content": [{"top": 1}]}}]}, "unknown shape"),
        ({"something": "else"}, "no log-probabilities"),
        ({}, "no log-probabilities"),
    ],
)
def test_what_cannot_be_read_is_listed_and_never_uniform(
    reply, reason, few_questions, tmp_path
):
    def script(route, body, headers):
        if route == COMPLETIONS and "number 1?" in body["prompt"]:
            return reply
        return like_llama_cpp(route, body, headers)

    found, _ = _asked(script, few_questions[:3], tmp_path)

    assert [one.item_id for one in found.unread] == ["q1"]
    assert reason in found.unread[0].reason
    assert [row["item_id"] for row in found.table().to_pylist()] == ["q0", "q2"]
    assert "items could not be read: 1" in found.remarks


def test_a_reply_that_is_no_object_is_listed(few_questions, tmp_path):
    found, _ = _asked(Faulty(Answer([1, 2])), few_questions[:2], tmp_path)

    assert "sent list, not an object" in found.unread[0].reason


def test_an_option_outside_the_list_is_censored_at_the_least_of_it(
    few_questions, tmp_path
):
    short = chat_shape({" A": math.log(0.6), " B": math.log(0.2), " x": math.log(0.01)})

    def script(route, body, headers):
        if route == COMPLETIONS and "number" in body["prompt"]:
            return short
        return like_llama_cpp(route, body, headers)

    found, server = _asked(script, few_questions[:1], tmp_path)
    report = found.reports[0]
    row = found.table().to_pylist()[0]

    assert report.censored == (False, False, True)
    assert report.logprobs[2] == pytest.approx(math.log(0.01))
    assert report.option_mass == pytest.approx(0.8)
    assert row["censored"] == "C"
    assert row["p_C"] == pytest.approx(0.01 / 0.81)
    # llama.cpp lists as much as one wants: it was asked for more before giving up.
    asked = [body["logprobs"] for body in _questions_asked(server)]
    assert asked == [50, 1_000_000]
    assert "items have censored options: 1 of 1" in found.remarks


def test_a_deeper_list_replaces_a_censored_one(few_questions, tmp_path):
    def script(route, body, headers):
        if route == COMPLETIONS and "number" in body["prompt"]:
            listed = {" A": -0.5, " B": -2.0, " x": -3.0}
            deep = {" C": -9.0} if body["logprobs"] > 50 else {}
            return chat_shape(listed | deep)
        return like_llama_cpp(route, body, headers)

    found, _ = _asked(script, few_questions[:1], tmp_path)

    assert found.reports[0].censored == (False, False, False)
    assert found.reports[0].logprobs == (-0.5, -2.0, -9.0)


def test_the_budget_counts_everything_that_is_sent(few_questions, tmp_path):
    busy = Answer({}, status=500)
    with ScriptedServer(Faulty(busy, on=3)) as server:

        def ask(max_requests):
            return elicit(
                few_questions,
                HttpBackend(server.address, "m"),
                store=tmp_path / "s.jsonl",
                max_requests=max_requests,
                patience=QUICK,
                concurrency=2,
            )

        for n_rounds in (1, 2):
            with pytest.raises(ElicitationError, match="the budget of 4 requests"):
                ask(4)
            assert len(server.requests) == 4 * n_rounds
        found = ask(None)

    assert len(found.reports) == 6
    assert found.n_reused == 3  # of eight requests: two probes a round, and a refusal
    assert len(_questions_asked(server)) == 7  # six items and one retry


def test_a_budget_of_nothing_sends_nothing(few_questions, tmp_path):
    with ScriptedServer(like_llama_cpp) as server:
        with pytest.raises(ElicitationError, match="budget of 0"):
            elicit(
                few_questions,
                HttpBackend(server.address, "m"),
                store=tmp_path / "s.jsonl",
                max_requests=0,
            )
        assert server.requests == []


def test_no_more_items_than_allowed_are_asked_about_at_once(few_questions, tmp_path):
    import threading

    under_way, most = 0, 0
    lock = threading.Lock()

    def script(route, body, headers):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.05)
        with lock:
            under_way -= 1
        return like_llama_cpp(route, body, headers)

    _asked(script, few_questions, tmp_path, concurrency=3)

    assert most == 3


def test_two_items_that_ask_the_same_pay_once(tmp_path):
    from trueup.elicit import Question

    twins = [Question(f"q{n}", "the same number?", ("x", "y")) for n in range(4)]
    found, server = _asked(like_llama_cpp, twins, tmp_path, concurrency=4)

    assert len(found.reports) == 4
    assert len(_questions_asked(server)) == 1


def test_different_numbers_of_options_are_refused_or_padded(few_questions, tmp_path):
    from trueup.elicit import Question

    mixed = [*few_questions[:2], Question("two", "number?", ("x", "y"))]
    with pytest.raises(QuestionFileError, match="1 with 2, 2 with 3"):
        _asked(like_llama_cpp, mixed, tmp_path)
    found, _ = _asked(like_llama_cpp, mixed, tmp_path, pad_options=True)
    last = found.table().to_pylist()[-1]

    assert last["p_C"] == 0
    assert last["p_A"] + last["p_B"] == pytest.approx(1)
    assert last["n_options"] == 2
    assert last["raw_logprob_C"] is None


def test_wrong_limits_are_refused_before_anything_is_sent(few_questions, tmp_path):
    for how in ({"concurrency": 0}, {"max_tokens": 0}, {"order": "wild"}):
        with (
            ScriptedServer(like_llama_cpp) as server,
            pytest.raises((InvalidInputError, ValueError)),
        ):
            elicit(
                few_questions,
                HttpBackend(server.address, "m"),
                store=tmp_path / "s.jsonl",
                **how,
            )
        assert server.requests == []
    with pytest.raises(QuestionFileError, match="no questions"):
        elicit([], HttpBackend("http://localhost:1", "m"), store=tmp_path / "s.jsonl")


def test_a_running_event_loop_is_no_hindrance(few_questions, tmp_path):
    """As in a notebook."""
    import asyncio

    async def cell():
        return _asked(like_llama_cpp, few_questions[:1], tmp_path)[0]

    assert len(asyncio.run(cell()).reports) == 1


def test_the_probe_of_a_server_without_log_probabilities_says_so(
    few_questions, tmp_path
):
    def script(route, body, headers):
        if route == "/v1/models":
            return models("somebody")
        if route == COMPLETIONS:
            return {"choices": [{"text": " A", "logprobs": None}]}
        return Answer({}, status=404)

    with pytest.raises(ElicitationError, match="gives no log-probabilities"):
        _asked(script, few_questions, tmp_path)
