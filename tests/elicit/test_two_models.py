"""End to end: two language models, two files, a map, and the report of it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from trueup.cli.main import group

pytestmark = pytest.mark.xdist_group("language models")


def test_two_models_become_a_map_and_a_report(
    weights, base_weights, real_questions, tmp_path, monkeypatch
):
    pytest.importorskip("trueup.report")
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "id": question.id,
            "question": question.text,
            "choices": question.choices,
            "subject": question.subject,
            "answer": question.answer,
        }
        for question in real_questions[:6]
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def run(*args):
        done = CliRunner().invoke(group, [*map(str, args), "--json"])
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    base = run("elicit", "q.jsonl", f"--model={base_weights}", "-o", "base.parquet")
    instruct = run(
        *("elicit", "q.jsonl", "--model=embedded", "--style=instruct"),
        *("--max-tokens=32", "-o", "instruct.parquet"),
    )
    fitted = run(
        *("fit", "instruct.parquet", "base.parquet", "--method=exact"),
        *("-o", "map.json", "--report", "report.html"),
    )
    applied = run("apply", "map.json", "instruct.parquet", "-o", "better.parquet")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")

    assert base["n_read"] == instruct["n_read"] == applied["n_items"] == 6
    assert fitted["inputs"]["primary"]["outcomes"] == ["A", "B", "C", "D", "E"]
    assert fitted["certificate"]["guaranteed_improvement"] >= 0
    assert fitted["certificate"]["assumption"] in page
