"""The report and the demo from the command line."""

from __future__ import annotations

import importlib.util
import json

import pytest

from trueup.data import read_table, write_table

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("trueup.report") is None,
    reason="there are no reports here",
)


@pytest.mark.parametrize("suffix", ["html", "md", "json"])
def test_fit_writes_a_report_named_after_the_predictors(run, files, suffix):
    prefixes = ("--primary-prefix", "strong", "--reference-prefix", "weak")
    name = f"report.{suffix}"
    result = run("fit", "both.jsonl", *prefixes, "--report", name, "--json")
    text = (files / name).read_text(encoding="utf-8")

    assert result.code == 0, result.err
    assert result.json["report"] == name
    assert "strong" in text
    assert "weak" in text
    if suffix == "json":
        assert json.loads(text)["labelled"] is not None


def test_labels_that_make_no_sense_are_left_out_and_it_is_said(run, files):
    table = read_table("primary.csv")
    labelled = table.append_column("label", table.column("topic"))
    write_table(labelled, files / "odd.csv")
    result = run("fit", "odd.csv", "reference.parquet", "--report", "r.json", "--json")

    assert result.code == 0, result.err
    assert any("leaves labels out" in text for text in result.json["warnings"])
    content = json.loads((files / "r.json").read_text(encoding="utf-8"))
    assert content["labelled"] is None


def test_a_report_that_exists_is_refused_before_fitting(run, files):
    (files / "report.html").write_text("precious", encoding="utf-8")
    pair = ("primary.csv", "reference.parquet")
    result = run("fit", *pair, "-o", "map.json", "--report", "report.html")

    assert result.code == 1
    assert "exists already" in result.err
    assert not (files / "map.json").exists()


def test_the_demo_goes_to_a_folder(run, tmp_path):
    result = run("demo", "-o", "here", "--json")

    assert result.code == 0, result.err
    assert (tmp_path / result.json["demo"]["report"]).is_file()
    assert {one["verdict"] for one in result.json["demo"]["rungs"]} == {"held"}
    assert run("demo", "-o", "here").code == 1
