"""A key reaches the server's header and nothing else, whatever goes wrong."""

from __future__ import annotations

import json
import logging
import traceback

import pytest
from click.testing import CliRunner

from elicit.conftest import QUICK
from elicit.servers import Answer, ScriptedServer, chat_shape, like_llama_cpp
from trueup.cli.main import group
from trueup.elicit import HttpBackend, elicit
from trueup.errors import ElicitationError, TrueupError

CANARY = "sk-canary-7f3a9"
ROW = {"id": "q1", "question": "number 1?", "choices": ["x", "y", "z"]}


def _repeating(status=200, content=None, **how):
    """A server that repeats the caller's header in everything it says."""

    def script(route, body, headers):
        said = headers.get("Authorization", "none")
        if route == "/v1/completions" and "number" in body["prompt"]:
            words = {"error": {"message": f"your header is {said}"}, said: [said]}
            if content is not None:
                words = content | {"you": said}
            more = {"Retry-After": said, "X-You": said}
            return Answer(words, status=status, headers=more, **how)
        answer = like_llama_cpp(route, body, headers)
        return answer | {"you": said} if isinstance(answer, dict) else answer

    return script


FAULTS = {
    "fine": _repeating(content=chat_shape({" A": -1.0, " B": -2.0, " C": -3.0})),
    "400": _repeating(400),
    "401": _repeating(401),
    "404": _repeating(404),
    "429": _repeating(429),
    "500": _repeating(500),
    "no logprobs": _repeating(
        content={"choices": [{"text": CANARY, "logprobs": None}]}
    ),
    "wrong shape": _repeating(content={"choices": CANARY}),
    "no option": _repeating(content=chat_shape({f" {CANARY}": -1.0})),
    "closed": _repeating(500, cut=5),
    "not json": lambda r, b, h: (
        Answer(f"<p>{h.get('Authorization')}</p>".encode())
        if r == "/v1/completions"
        else like_llama_cpp(r, b, h)
    ),
    "slow": _repeating(200, delay=0.6),
    "redirect": _repeating(302),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_failure_shows_the_key(fault, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", CANARY)
    (tmp_path / "q.jsonl").write_text(json.dumps(ROW))
    with ScriptedServer(FAULTS[fault]) as server:
        done = CliRunner().invoke(
            group,
            [
                "elicit",
                str(tmp_path / "q.jsonl"),
                f"--endpoint={server.address}",
                "--model=m",
                "--api-key-env=MY_KEY",
                "--attempts=2",
                "--timeout=0.3",
                "--json",
                "-o",
                str(tmp_path / "p.jsonl"),
            ],
        )
        sent = {headers.get("Authorization") for _, _, headers, _ in server.requests}

    assert sent == {f"Bearer {CANARY}"}  # it was used
    shown = (
        "".join(traceback.format_exception(done.exception)) if done.exception else ""
    )
    assert CANARY not in shown + done.stdout + done.stderr
    assert CANARY not in caplog.text
    assert "Traceback" not in done.stderr
    for path in tmp_path.rglob("*"):
        assert CANARY.encode() not in path.read_bytes(), path.name
    assert (done.exit_code == 0) == (fault == "fine")


def test_no_error_of_the_library_holds_the_key(few_questions, tmp_path):
    for name in ("401", "429", "closed"):
        with ScriptedServer(FAULTS[name]) as server:
            backend = HttpBackend(server.address, "m", api_key=CANARY, timeout=0.5)
            try:
                found = elicit(
                    few_questions[:1],
                    backend,
                    store=tmp_path / f"{name}.jsonl",
                    patience=QUICK,
                )
            except TrueupError as error:
                assert CANARY not in "".join(traceback.format_exception(error))  # noqa: PT017
            else:
                assert CANARY not in repr(found.unread)
        assert CANARY not in repr(backend)


@pytest.mark.parametrize("key", [f"{CANARY}\n", f"a {CANARY}", f"{CANARY}é"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key):
    with pytest.raises(ElicitationError, match="no key has") as caught:
        HttpBackend("http://localhost:1", "m", api_key=key)

    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_variable_that_is_not_set_is_named(tmp_path):
    (tmp_path / "q.jsonl").write_text(json.dumps(ROW))
    done = CliRunner().invoke(
        group,
        [
            *("elicit", str(tmp_path / "q.jsonl"), "--endpoint=http://localhost:1"),
            *("--model=m", "--api-key-env=NOBODY", "-o", str(tmp_path / "p.jsonl")),
        ],
    )

    assert done.exit_code == 1
    assert "environment variable NOBODY is not set" in done.stderr


def test_openais_key_goes_to_openai_only(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    (tmp_path / "q.jsonl").write_text(json.dumps(ROW))
    with ScriptedServer(like_llama_cpp) as server:
        CliRunner().invoke(
            group,
            [
                *("elicit", str(tmp_path / "q.jsonl"), f"--endpoint={server.address}"),
                *("--model=m", "-o", str(tmp_path / "p.jsonl")),
            ],
        )
        headers = [headers for _, _, headers, _ in server.requests]

    assert headers
    assert all("Authorization" not in each for each in headers)
