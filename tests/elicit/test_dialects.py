"""Servers of other kinds, as documented: found out, and asked as they want it."""

from __future__ import annotations

import math

import pytest

from elicit.conftest import QUICK
from elicit.servers import (
    NOT_FOUND,
    Answer,
    ScriptedServer,
    chat_reply,
    drawn_logprobs,
    legacy_shape,
    models,
)
from trueup.elicit import HttpBackend, elicit
from trueup.elicit.backends.http import root_of
from trueup.errors import ElicitationError, InvalidInputError

IDS = {
    f"{space}{letter}": ord(letter) + 100 * bool(space)
    for letter in "ABC"
    for space in ("", " ")
}
FLAGS = {"add_generation_prompt", "continue_final_message"}


def _refused(words):
    return Answer({"error": {"message": words}}, status=400)


def _top(prompt, k):
    """The k most probable of made-up tokens; options are among the last."""
    listed = drawn_logprobs(prompt, "ABC")
    fillers = {f" w{n}": -0.01 * n - 1 for n in range(k)}
    ordered = sorted((listed | fillers).items(), key=lambda item: -item[1])
    return dict(ordered[:k])


def _conversation(body):
    return "|".join(f"{m['role']}:{m['content']}" for m in body["messages"])


def _chat(body, k=20):
    said = _conversation(body)
    closed = body["messages"][-1]["role"] == "assistant" and not FLAGS.issubset(body)
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    logprobs = drawn_logprobs(said, "ABC") if body.get("logprobs") else None
    reply = chat_reply("because of this" if limit > 1 else " A", logprobs)
    return reply | {"usage": {"prompt_tokens": len(said.split()) + 3 * closed}}


def _by_id(prompt, numbers):
    """What a server says about the tokens that were named."""
    listed = drawn_logprobs(prompt, "ABC")
    said = {IDS[token]: value for token, value in listed.items() if token in IDS}
    return {f"token_id:{number}": said.get(number, -20.0) for number in numbers}


def vllm(route, body, headers, *, by_id=True, cap=20):
    if route == "/v1/models":
        return models("vllm")
    if route == "/tokenize":
        return {"tokens": [IDS[body["prompt"]]], "count": 1}
    named = body.get("logprob_token_ids") if by_id else None
    if named and not body.get("logprobs"):
        return _refused("when using logprob_token_ids, logprobs must be set")
    if route == "/v1/chat/completions":
        if named:
            return chat_reply(" A", _by_id(_conversation(body), named))
        return _refused("cap") if body.get("top_logprobs", 0) > cap else _chat(body)
    if route != "/v1/completions":
        return NOT_FOUND
    if named:
        return legacy_shape(_by_id(body["prompt"], named))
    if body.get("logprobs", 0) > cap:
        return _refused(f"max_logprobs is {cap}")
    return legacy_shape(_top(body["prompt"], body.get("logprobs", 1)))


def older_vllm(route, body, headers):
    return vllm(route, body, headers, by_id=False)


def sglang(route, body, headers):
    if route == "/v1/models":
        return models("sglang")
    if route == "/tokenize":
        return {"tokens": [IDS[body["prompt"]]]}
    if route == "/generate":
        listed = drawn_logprobs(body["text"], "ABC")
        named = [
            [listed.get(token, -20.0), number, None]
            for token, number in IDS.items()
            if number in body.get("token_ids_logprob", [])
        ]
        top = [[-1.0, 5, " the"]]
        meta = {"output_token_ids_logprobs": [named], "output_top_logprobs": [top]}
        return {"text": " A", "meta_info": meta | {"finish_reason": {"type": "length"}}}
    return _chat(body) if route == "/v1/chat/completions" else NOT_FOUND


def ollama(route, body, headers):
    if route == "/v1/models":
        return models("library")
    if body.get("top_logprobs", 0) > 20:
        return _refused("top_logprobs must be at most 20")
    if route == "/api/generate":
        assert body["raw"] is True
        listed = _entries(drawn_logprobs(body["prompt"], "ABC"))
        entry = [{"token": " A", "logprob": -1.0, "top_logprobs": listed}]
        return {"response": " A", "done_reason": "length", "logprobs": entry}
    if route == "/api/chat":
        said = _conversation(body)
        message = {"role": "assistant", "content": "because of this"}
        reply = {"message": message, "done_reason": "stop"}
        if body.get("logprobs"):
            listed = _entries(drawn_logprobs(said, "ABC"))
            reply["logprobs"] = [{"token": " A", "top_logprobs": listed}]
        return reply
    return NOT_FOUND


def _entries(listed):
    return [{"token": token, "logprob": value} for token, value in listed.items()]


def openai(route, body, headers):
    if route == "/v1/models":
        return models("system")
    if route != "/v1/chat/completions":
        return NOT_FOUND
    if "max_tokens" in body:
        return _refused("use max_completion_tokens")
    if FLAGS & set(body) or "chat_template_kwargs" in body:
        return _refused("unknown field")
    if body.get("top_logprobs", 0) > 20:
        return _refused("at most 20")
    return _chat(body)


def unknown(route, body, headers):
    """Ignores what it does not know, as many do; never continues a message."""
    if route == "/v1/models":
        return models("me")
    if route == "/v1/chat/completions":
        without = {k: v for k, v in body.items() if k not in FLAGS}
        return _chat(without)
    if route == "/v1/completions":
        text = body["prompt"] + " A" if body.get("echo") else " A"
        listed = drawn_logprobs(body["prompt"], "ABC")
        return legacy_shape(listed, text)
    return NOT_FOUND


def _asked(script, style, questions, tmp_path):
    said = []
    with ScriptedServer(script) as server:
        found = elicit(
            questions[:2],
            HttpBackend(f"{server.address}/v1", "m"),
            store=tmp_path / "s.jsonl",
            template=f"paper-{style}",
            max_tokens=32,
            patience=QUICK,
            tell=said.append,
        )
    return found, server, "\n".join(said)


@pytest.mark.parametrize("script", [vllm, sglang, ollama, unknown])
def test_base_prompts_are_read_on_every_kind(script, few_questions, tmp_path):
    found, _, said = _asked(script, "base", few_questions, tmp_path)
    prompt = (
        "The following is a multiple-choice question about sums.\n\n"
        "Question: Which is number 0?\nA. x\nB. y\nC. z\n\nAnswer:"
    )
    expected = drawn_logprobs(prompt, "ABC")

    assert len(found.reports) == 2
    assert found.reports[0].logprobs == pytest.approx(
        [expected[f" {x}"] for x in "ABC"], abs=1e-4
    )
    assert not any(found.reports[0].censored)
    assert "server" in said


@pytest.mark.parametrize("script", [vllm, sglang])
def test_options_are_asked_for_by_id_where_that_works(script, few_questions, tmp_path):
    _, server, said = _asked(script, "base", few_questions, tmp_path)
    route = "/generate" if script is sglang else "/v1/completions"
    field = "token_ids_logprob" if script is sglang else "logprob_token_ids"

    assert "options are read by their ids" in said
    assert set(server.asked(route)[-1][field]) == set(IDS.values())


def test_answers_after_reasoning_are_asked_for_by_id_too(few_questions, tmp_path):
    found, server, said = _asked(vllm, "instruct", few_questions, tmp_path)
    last = server.asked("/v1/chat/completions")[-1]
    expected = drawn_logprobs(_conversation(last), "ABC")

    assert "options are read by their ids" in said
    assert set(last["logprob_token_ids"]) == set(IDS.values())
    assert any(
        report.logprobs == pytest.approx([expected[f" {x}"] for x in "ABC"], abs=1e-4)
        for report in found.reports
    )


def test_an_older_vllm_is_asked_for_as_many_tokens_as_it_lists(few_questions, tmp_path):
    found, server, said = _asked(older_vllm, "base", few_questions, tmp_path)

    assert "among the 20 most probable tokens" in said
    assert server.asked("/v1/completions")[-1]["logprobs"] == 20
    # The made-up options are rare: most are outside of the list, and say so.
    for report in found.reports:
        for value, cut in zip(report.logprobs, report.censored, strict=True):
            assert math.isfinite(value)
            assert value >= -1.2 or not cut
    assert len(found.reports) + len(found.unread) == 2


@pytest.mark.parametrize("script", [vllm, sglang, ollama])
def test_the_answer_continues_the_assistants_message(script, few_questions, tmp_path):
    found, server, said = _asked(script, "instruct", few_questions, tmp_path)
    route = "/api/chat" if script is ollama else "/v1/chat/completions"
    last = server.asked(route)[-1]

    assert "answers continue the assistant's message" in said
    assert last["messages"][-1] == {
        "role": "assistant",
        "content": "because of this. So the final answer is "
        "(answer with an option letter):",
    }
    assert script is ollama or FLAGS.issubset(last)
    assert [r.reasoning for r in found.reports] == ["because of this"] * 2


@pytest.mark.parametrize("script", [openai, unknown])
def test_a_server_that_cannot_continue_is_asked_in_a_further_turn(
    script, few_questions, tmp_path
):
    found, server, said = _asked(script, "instruct", few_questions, tmp_path)
    last = server.asked("/v1/chat/completions")[-1]["messages"]

    assert "further turn, which is not the prompt of the paper" in said
    assert [m["role"] for m in last] == ["system", "user", "assistant", "user"]
    assert last[-2]["content"] == "because of this"
    assert last[-1]["content"].startswith("So the final answer is")
    assert len(found.reports) == 2


def test_a_server_without_raw_completions_takes_no_base_prompts(
    few_questions, tmp_path
):
    with pytest.raises(ElicitationError, match="--style instruct"):
        _asked(openai, "base", few_questions, tmp_path)


def test_echo_is_probed_and_told(few_questions, tmp_path):
    _, _, said = _asked(unknown, "base", few_questions, tmp_path)

    assert "echo is honoured" in said


def test_thinking_is_switched_off_where_servers_know_how(few_questions, tmp_path):
    _, server, _ = _asked(vllm, "instruct", few_questions, tmp_path)
    _, other, _ = _asked(ollama, "instruct", few_questions, tmp_path / "..")

    for body in server.asked("/v1/chat/completions"):
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert all(body["think"] is False for body in other.asked("/api/chat"))


def test_a_server_of_unknown_owner_is_recognised_by_its_routes(few_questions, tmp_path):
    def script(route, body, headers):
        if route == "/v1/models":
            return models("me")
        if route == "/api/version":
            return {"version": "0.12"}
        return ollama(route, body, headers)

    _, _, said = _asked(script, "base", few_questions, tmp_path)

    assert "is a ollama server" in said


def test_a_model_that_is_not_listed_is_told(few_questions, tmp_path):
    def script(route, body, headers):
        if route == "/v1/models":
            return models("vllm", "another")
        return vllm(route, body, headers)

    _, _, said = _asked(script, "base", few_questions, tmp_path)

    assert "it does not list 'm', but another" in said


@pytest.mark.parametrize(
    ("endpoint", "root"),
    [
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://localhost:8000/v1/", "http://localhost:8000"),
        ("https://host/prefix/v1", "https://host/prefix"),
    ],
)
def test_addresses_may_end_in_v1(endpoint, root):
    assert root_of(endpoint) == root


@pytest.mark.parametrize(
    "endpoint",
    [
        "localhost:8000",
        "ftp://host",
        "http://",
        "http://[::1",
        "http://u:pw@host/v1",
        "https://host/v1?api-key=pw",
        "https://host/#pw",
    ],
)
def test_other_addresses_are_refused_without_repeating_them(endpoint):
    with pytest.raises(InvalidInputError) as caught:
        HttpBackend(endpoint, "m")

    assert "pw" not in str(caught.value)
