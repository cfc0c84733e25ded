"""``trueup reproduce`` from end to end: files, a server, a dry run, bad usage."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from elicit.servers import ScriptedServer, like_llama_cpp
from reproduce.worlds import write_pair
from trueup.cli.main import group


def run(*args):
    done = CliRunner().invoke(group, ["reproduce", *map(str, args)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "q.jsonl"
    rows = [
        {
            "id": f"q{k}",
            "question": f"Which is number {k}?",
            "choices": ["one", "two", "three", "four", "five"],
            "answer": k % 5,
        }
        for k in range(30)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_from_prediction_files(tmp_path):
    write_pair(tmp_path / "in", n_items=200)
    done = run("--predictions", tmp_path / "in", "-o", tmp_path / "out", "--json")
    found = json.loads(done.stdout)

    assert done.exit_code == 0
    assert found["command"] == "reproduce"
    assert found["n_reused"] == 0
    assert len(found["results"]) == 1
    assert "Qwen3-8B, commonsense-qa" in done.stderr
    again = run("--predictions", tmp_path / "in", "-o", tmp_path / "out")
    assert again.exit_code == 0
    assert "1 pairs were finished before" in again.stderr
    assert "Table 1. Main results" in again.stdout
    assert "tables.html" in again.stdout


def test_from_a_server_and_on_from_what_it_said(questions, tmp_path):
    with ScriptedServer(like_llama_cpp) as server:
        args = [
            *("--endpoint", server.address, "--base", "b", "--instruct", "i"),
            *("--name", "made-up", "--questions", f"csqa={questions}"),
            *("--limit", 24, "--max-tokens", 7, "-o", tmp_path / "out"),
        ]
        plan = json.loads(run(*args, "--dry-run", "--json").stdout)
        n_before = len(server.requests)
        done = run(*args)
        n_after = len(server.requests)
        again = run(*args)
        n_again = len(server.requests)

    assert n_before == 0
    assert [one["n_requests"] for one in plan["asked"]] == [24, 48]
    assert plan["asked"][1]["n_reply_tokens"] == 24 * 8
    assert done.exit_code == again.exit_code == 0, done.stderr
    assert n_after > 72
    assert n_again == n_after
    folder = tmp_path / "out" / "predictions" / "commonsense-qa"
    assert (folder / "made-up.base.parquet").exists()
    assert (folder / "made-up.instruct.parquet").exists()
    assert "made-up.base.parquet is there already" in again.stderr


def test_a_dry_run_counts_and_writes_nothing(questions, tmp_path):
    done = run(
        *("--endpoint", "http://127.0.0.1:9", "--questions", f"csqa={questions}"),
        *("--questions", f"mmlu-redux={questions}", "-o", tmp_path / "out"),
        "--dry-run",
    )

    assert done.exit_code == 0
    assert "Qwen/Qwen3-0.6B-Base (base) on commonsense-qa" in done.stdout
    # Twelve models, two sets, thirty questions: one request of base, two of instruct.
    assert "2,160 requests" in done.stdout
    assert "4 characters are counted as a token" in " ".join(done.stdout.split())
    assert not (tmp_path / "out").exists()


def test_a_dry_run_of_files_says_what_is_finished(tmp_path):
    write_pair(tmp_path / "in")
    args = ("--predictions", tmp_path / "in", "-o", tmp_path / "out", "--dry-run")
    done = run(*args, "--json")

    assert json.loads(done.stdout)["pairs"][0]["state"] == "to be run"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ([], 2, "name --predictions DIR"),
        (["--base", "m"], 2, "--base and --instruct go together"),
        (["--predictions", ".", "--endpoint", "http://x"], 2, "choose one"),
        (["--predictions", "nowhere"], 1, "not a folder"),
        (["--config", "nowhere.toml"], 1, "cannot be read"),
        (["--endpoint", "http://x", "--questions", "file.csv"], 2, "SET=SOURCE"),
        (["--endpoint", "http://x", "--questions", "../a=b"], 2, "SET=SOURCE"),
        (["--endpoint", "http://x", "--only", "Qwen3-7B"], 1, "Did you mean 'Qwen3-"),
        (
            ["--endpoint", "http://x", "--calibration", "arc=f.csv"],
            1,
            "unknown set 'arc'",
        ),
    ],
)
def test_bad_usage_is_explained(args, code, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*args)

    assert done.exit_code == code
    assert words in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_unreachable_server_ends_with_a_message(questions, tmp_path):
    done = run(
        *("--endpoint", "http://127.0.0.1:9", "--base", "b", "--instruct", "i"),
        *("--questions", f"csqa={questions}", "-o", tmp_path / "out"),
        *("--timeout", "0.2", "--attempts", "1"),
    )

    assert done.exit_code == 1
    assert "error:" in done.stderr
    assert not (tmp_path / "out" / "tables.md").exists()
