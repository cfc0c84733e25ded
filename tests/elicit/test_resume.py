"""Killed at any moment, a run goes on where it stopped and repeats nothing finished."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from elicit.servers import Answer, ScriptedServer, like_llama_cpp

PROBE = "Which letter is the first"
N_ITEMS = 40
CONCURRENCY = 3


def _slow(route, body, headers):
    """Long enough for a kill to fall between any two steps."""
    answer = like_llama_cpp(route, body, headers)
    return answer if isinstance(answer, Answer) else Answer(answer, delay=0.03)


def _command(server, folder, style):
    return [
        sys.executable,
        "-m",
        "trueup",
        "elicit",
        str(folder / "q.jsonl"),
        "--model=m",
        f"--endpoint={server.address}",
        f"--style={style}",
        f"--concurrency={CONCURRENCY}",
        "-o",
        str(folder / "p.jsonl"),
    ]


def _stored(folder):
    """Bodies that are in the store as whole lines."""
    path = folder / "p.jsonl.requests.jsonl"
    found = []
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        if line.endswith(b"\n"):
            try:
                found.append(_name(json.loads(line)["body"]))
            except ValueError:
                continue  # cut off, and ended by the next run
    return found


def _name(body):
    return json.dumps(body, sort_keys=True)


def _questions_of(server, start=0):
    return [
        _name(body)
        for route, body, _, _ in server.requests[start:]
        if body and PROBE not in json.dumps(body)
    ]


@pytest.mark.parametrize(("style", "seed"), [("base", 1), ("instruct", 2)])
def test_a_killed_run_goes_on_and_pays_nothing_twice(style, seed, tmp_path):
    rows = [
        {"id": f"q{n}", "question": f"number {n}?", "choices": ["x", "y", "z"]}
        for n in range(N_ITEMS)
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rng = random.Random(seed)
    n_kills = 0
    with ScriptedServer(_slow) as server:
        while True:
            before, start = set(_stored(tmp_path)), len(server.requests)
            run = subprocess.Popen(
                _command(server, tmp_path, style),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            killed = _killed_while_it_asks(run, server, start, rng, n_kills)
            asked = _questions_of(server, start)
            assert before.isdisjoint(asked)  # nothing finished is asked again
            assert len(set(asked)) == len(asked)
            if not killed:
                break
            n_kills += 1
            assert not (tmp_path / "p.jsonl").exists()
        everything = _questions_of(server)
    per_item = {"base": 1, "instruct": 3}[style]  # reason, render, read
    lost = len(everything) - N_ITEMS * per_item

    assert n_kills == 4
    assert 0 <= lost <= n_kills * CONCURRENCY  # only what was in flight
    assert len(_stored(tmp_path)) == len(set(_stored(tmp_path))) == N_ITEMS * per_item
    found = map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())
    assert [row["item_id"] for row in found] == [row["id"] for row in rows]


def _killed_while_it_asks(run, server, start, rng, n_kills):
    """Kill at a random moment after the first question; the fifth run may end."""
    if n_kills == 4:
        _, said = run.communicate(timeout=60)
        assert run.returncode == 0, said.decode()
        return False
    waited = time.monotonic()
    while not _questions_of(server, start):
        assert run.poll() is None, run.stderr.read().decode()
        assert time.monotonic() - waited < 60
        time.sleep(0.005)
    time.sleep(rng.uniform(0.0, 0.12))
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    time.sleep(0.1)  # requests in flight arrive
    return True


def test_a_finished_run_asks_nothing_when_it_is_repeated(tmp_path, few_questions):
    from trueup.elicit import HttpBackend, elicit

    found = []
    with ScriptedServer(like_llama_cpp) as server:
        for _ in range(2):
            start = len(server.requests)
            found.append(
                elicit(
                    few_questions,
                    HttpBackend(server.address, "m"),
                    store=tmp_path / "s.jsonl",
                    template="paper-instruct",
                )
            )

    assert _questions_of(server, start) == []
    assert found[0].reports == found[1].reports
    assert found[1].n_reused == 3 * len(few_questions)
