"""Every command from files to a result, for people and as one JSON object."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import trueup
from trueup.data import pair_predictions, read_predictions, read_table


@pytest.fixture
def fitted(run, files):
    result = run("fit", "primary.csv", "reference.parquet", "-o", "map.json")
    assert result.code == 0, result.err
    return result


def test_fit_writes_the_map_that_python_fits(fitted, files):
    pair = pair_predictions(
        read_predictions(files / "primary.csv"),
        read_predictions(files / "reference.parquet"),
    )
    expected = trueup.fit(pair.primary.reports, pair.reference.reports, cells="auto")
    loaded = trueup.load(files / "map.json")

    assert np.array_equal(
        loaded.apply(pair.primary.reports), expected.apply(pair.primary.reports)
    )
    assert loaded.certificate.guaranteed_improvement > 0


def test_fit_says_what_is_guaranteed_and_on_which_assumption(fitted):
    out = " ".join(fitted.out.split())

    assert "Guaranteed: brier loss falls by at least" in out
    assert "Holds for every truth under which the reference is calibrated" in out
    assert "trueup apply map.json" in out


def test_fit_explains_what_it_read_on_standard_error(fitted):
    assert "probabilities of 2 outcomes from p_yes, p_no" in fitted.err
    assert "paired by item_id: 600 items" in fitted.err
    assert "--id" in fitted.err


def test_quiet_says_nothing_but_the_result(run, files):
    result = run("fit", "primary.csv", "reference.parquet", "-q")

    assert result.err == ""
    assert "The map was not kept" in result.out


def test_fit_takes_two_predictors_of_one_file(run, files):
    prefixes = ("--primary-prefix", "strong__", "--reference-prefix", "weak")
    one = run("fit", "both.jsonl", *prefixes, "--json").json
    two = run("fit", "primary.csv", "reference.parquet", "--json").json

    assert one["certificate"] == two["certificate"]
    assert one["inputs"]["pairing"] == ["both predictors are in the same rows"]


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "log"),
        ("--loss", "confidence"),
        ("--trust", "mean", "--reference-error", "0.01"),
        ("--groups", "topic"),
        ("--blocks", "topic"),
        ("--assume", "informative", "--family", "temperature"),
        ("--method", "exact"),
        ("--method", "step", "--step", "0.1"),
        ("--fallback", "identity"),
        ("--answers",),
    ],
    ids=" ".join,
)
def test_options_of_fit(run, files, options):
    result = run("fit", "primary.csv", "reference.parquet", "--json", *options)

    assert result.code == 0, result.err
    assert result.json["certificate"]["assumption"]


def test_options_reach_the_fit(run, files):
    def certificate(*options):
        done = run("fit", "primary.csv", "reference.parquet", "--json", *options)
        return done.json["certificate"]

    assert certificate("--loss", "log")["loss"] == "log"
    assert certificate("--trust", "mean")["trust"] == "mean"
    assert certificate("--groups", "topic")["n_groups"] == 2
    assert certificate("--reference-error", "0.01")["reference_error"] == 0.01
    asserted = certificate("--assume", "informative")["assumption"]
    assert "'informative'" in asserted


def test_apply_writes_better_predictions_with_everything_carried_over(
    run, files, fitted
):
    result = run("apply", "map.json", "primary.csv", "-o", "better.parquet", "--json")
    better, before = read_table("better.parquet"), read_table("primary.csv")

    assert result.code == 0
    assert result.json["n_items"] == 600
    assert better.column_names == ["item_id", "p_yes", "p_no", "topic"]
    assert better.column("item_id").equals(before.column("item_id"))
    expected = trueup.load("map.json").apply(read_predictions("primary.csv").reports)
    assert np.array_equal(better.column("p_yes").to_numpy(), expected[:, 0])


def test_apply_reads_standard_input(run, files, fitted):
    text = (files / "primary.csv").read_bytes()
    result = run("apply", "map.json", "-", "-o", "better.csv", given=text)

    assert result.code == 0, result.err
    assert "standard input: 600 items" in result.err


def test_a_map_of_answers_takes_distributions(run, files):
    run("fit", "primary.csv", "reference.parquet", "--answers", "-o", "map.json")
    result = run("apply", "map.json", "primary.csv", "-o", "better.csv")

    assert result.code == 0, result.err
    assert read_table("better.csv").column_names[:3] == [
        "item_id",
        "answer",
        "confidence",
    ]


def test_audit_finds_the_contradiction_and_never_calls_anything_calibrated(run, files):
    result = run("audit", "primary.csv", "reference.parquet")
    content = run("audit", "primary.csv", "reference.parquet", "--json").json

    assert result.code == 0, result.err
    assert content["audit"]["verdict"] in ("contradiction", "none-found")
    assert content["audit"]["assumption"] in " ".join(result.out.split())


def test_bounds_hold_for_what_happened(run, files):
    result = run("bounds", "primary.csv", "reference.parquet", "--json")
    accuracy = run("evaluate", "primary.csv", "--labels", "labels.csv", "--json").json
    found = result.json["bounds"]
    value = accuracy["evaluation"]["metrics"]["accuracy"]["value"]

    assert found["lower"] - 0.05 <= value <= found["upper"] + 0.05
    assert found["assumption"]


def test_evaluate_with_labels_of_a_file_or_a_column(run, files):
    file = run("evaluate", "primary.csv", "--labels", "labels.csv", "--json")
    options = ("--prefix", "strong", "--labels", "label", "--json")
    column = run("evaluate", "both.jsonl", *options)

    assert file.code == column.code == 0, file.err + column.err
    assert file.json["evaluation"] == column.json["evaluation"]


def test_evaluate_against_a_map_or_a_file(run, files, fitted):
    labels = ("--labels", "labels.csv", "--json")
    by_map = run("evaluate", "primary.csv", *labels, "--against", "map.json").json
    run("apply", "map.json", "primary.csv", "-o", "better.csv")
    options = (*labels, "--against", "primary.csv")
    by_file = run("evaluate", "better.csv", *options).json

    assert by_map["evaluation"]["differences"]["brier"]["value"] < 0
    assert by_map["evaluation"] == by_file["evaluation"]


def test_show_says_what_fit_said(run, fitted, files):
    content = run("show", "map.json", "--json").json

    assert "brier loss falls by at least" in run("show", "map.json").out
    saved = json.loads((files / "map.json").read_text(encoding="utf-8"))
    assert content["certificate"] == saved["certificate"]


@pytest.mark.parametrize(
    ("args", "keys"),
    [
        ("fit primary.csv reference.parquet", "certificate inputs map report"),
        ("audit primary.csv reference.parquet", "audit inputs"),
        ("bounds primary.csv reference.parquet", "bounds inputs"),
        ("evaluate primary.csv --labels labels.csv", "evaluation inputs what"),
        (
            "apply map.json primary.csv -o b.csv",
            "certificate inputs map n_changed n_items output",
        ),
        ("show map.json", "certificate map"),
    ],
)
def test_json_is_one_object_with_the_documented_fields(run, fitted, args, keys):
    """Documented in docs/reference/cli-json.md; fields may be added, never taken."""
    result = run(*args.split(), "--json")
    always = {"command", "created_by", "format", "warnings"}

    assert result.code == 0, result.err
    assert set(result.json) == always | set(keys.split())
    assert result.json["command"] == args.split()[0]
    assert result.json["format"] == 1


def test_warnings_are_shown_and_kept(run, files):
    result = run("fit", "primary.csv", "primary.csv", "--json")

    assert "warning: primary and reference make the same report" in result.err
    assert "same report on every item" in result.json["warnings"][0]


def test_the_module_runs_as_a_program(files):
    done = subprocess.run(
        [sys.executable, "-m", "trueup", "fit", "primary.csv", "absent.csv", "--json"],
        cwd=files,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] == "FileAccessError"
    assert "Traceback" not in done.stderr
