"""Bad input: exit 1, one message with a next step, no traceback, nothing written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

GOOD = "item_id,p_yes,p_no\na,0.2,0.8\nb,0.6,0.4\n"

CONTENTS = {
    "empty file": ("", "the file is empty"),
    "blank lines": ("\n\n", "the file is empty"),
    "header only": ("item_id,p_yes,p_no\n", "3 columns and no rows"),
    "wrong delimiter": ("item_id:p_yes:p_no\na:0.2:0.8\n", "check the delimiter"),
    "ragged rows": ("item_id,p_yes,p_no\na,0.2\n", "do not fit the 3 columns"),
    "mixed types": (
        "item_id,p_yes,p_no\na,0.2,0.8\nb,none,0.4\n",
        "row 1 holds 'none'",
    ),
    "missing value": ("item_id,p_yes,p_no\na,0.2,0.8\nb,,0.4\n", "1 missing values"),
    "percentages": ("item_id,p_yes,p_no\na,20,80\nb,60,40\n", "divide them by 100"),
    "percent signs": (
        "item_id,p_yes,p_no\na,20%,80%\nb,60%,40%\n",
        "remove the sign and divide by 100",
    ),
    "decimal commas": (
        "item_id;p_yes;p_no\na;0,2;0,8\nb;0,6;0,4\n",
        "decimal point",
    ),
    "sums": ("item_id,p_yes,p_no\na,0.2,0.9\nb,0.6,0.4\n", "do not sum to one"),
    "other ids": ("item_id,p_yes,p_no\nx,0.2,0.8\ny,0.6,0.4\n", "same items"),
    "some other ids": ("item_id,p_yes,p_no\na,0.2,0.8\ny,0.6,0.4\n", "missing from"),
    "repeated ids": ("item_id,p_yes,p_no\na,0.2,0.8\na,0.6,0.4\n", "more than once"),
    "no ids": ("item_id,p_yes,p_no\na,0.2,0.8\n,0.6,0.4\n", "rows have no item_id"),
    "repeated column": ("item_id,p_yes,p_yes\na,0.2,0.8\n", "two columns are named"),
    "other outcomes": ("item_id,p_yes,p_maybe\na,0.2,0.8\nb,0.6,0.4\n", "outcomes"),
    "one outcome": ("item_id,p_yes\na,0.2\nb,0.6\n", "only column of probabilities"),
    "not a table": ("<html><body>Not found</body></html>", "no rows"),
}


def refused(result, *messages):
    assert result.code == 1, result.out + result.err
    assert result.err.splitlines()[-1].startswith(("hint: ", "error: "))
    assert "error: " in result.err
    assert "Traceback" not in result.err
    for message in messages:
        assert message in " ".join(result.err.split())


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path.name


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("side", ["primary", "reference"])
def test_bad_prediction_files(run, tmp_path, name, side):
    content, message = CONTENTS[name]
    good, bad = write(tmp_path / "good.csv", GOOD), write(tmp_path / "bad.csv", content)
    pair = (bad, good) if side == "primary" else (good, bad)
    before = sorted(tmp_path.iterdir())

    refused(run("fit", *pair, "-o", "map.json"), message, bad)

    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["audit", "bounds", "fit"])
def test_every_command_refuses_alike(run, tmp_path, command):
    good, bad = write(tmp_path / "good.csv", GOOD), write(tmp_path / "bad.csv", "")

    refused(run(command, good, bad), "bad.csv: the file is empty")


def test_a_byte_order_mark_is_no_problem(run, tmp_path):
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    good = write(tmp_path / "good.csv", GOOD)

    assert run("fit", "bom.csv", good, "--method", "exact").code == 0


def test_an_error_with_json_is_one_object_too(run, tmp_path):
    good, bad = write(tmp_path / "good.csv", GOOD), write(tmp_path / "bad.csv", "")
    result = run("fit", good, bad, "--json")

    refused(result, "the file is empty")
    assert result.json["error"] == {
        "kind": "PredictionFileError",
        "message": "bad.csv: the file is empty.",
        "hint": "write one line with column names, then rows.",
    }


def test_without_ids_candidates_are_named(run, tmp_path):
    text = "question,p_yes,p_no\na,0.2,0.8\nb,0.6,0.4\n"
    first, second = write(tmp_path / "1.csv", text), write(tmp_path / "2.csv", text)

    refused(run("fit", first, second), "question", "--id question")
    assert run("fit", first, second, "--id", "question", "--method", "exact").code == 0


def test_lengths_without_ids(run, tmp_path):
    first = write(tmp_path / "1.csv", "p_yes,p_no\n0.2,0.8\n0.6,0.4\n")
    second = write(tmp_path / "2.csv", "p_yes,p_no\n0.2,0.8\n")

    refused(run("fit", first, second), "2 rows", "has 1", "item_id")


def test_unpaired_items_are_left_out_only_on_request(run, tmp_path):
    first = write(tmp_path / "1.csv", GOOD)
    second = write(tmp_path / "2.csv", GOOD + "c,0.5,0.5\n")
    options = ("--drop-unpaired", "--method", "exact", "--json")

    refused(run("fit", first, second), "1 items are missing from 1.csv: c")
    result = run("fit", first, second, *options)
    assert result.json["inputs"]["n_items"] == 2
    assert "left out" in result.json["inputs"]["pairing"][1]


def test_paths_that_are_no_files(run, tmp_path):
    good = write(tmp_path / "good.csv", GOOD)
    (tmp_path / "folder").mkdir()

    refused(run("fit", "folder", good), "folder is a folder")
    refused(run("fit", "god.csv", good), "does not exist", "good.csv exists")
    refused(run("fit", good, good, "-o", "folder"), "folder is a folder")
    refused(run("fit", good, good, "-o", "absent/map.json"), "does not exist")
    refused(run("apply", "folder", good, "-o", "b.csv"), "folder is a folder")
    refused(run("apply", "absent.json", good, "-o", "b.csv"), "does not exist")
    refused(run("show", "folder"), "folder is a folder")
    refused(run("fit", good, good, "--report", "report.pdf"), ".html, .md or .json")


def test_nothing_is_overwritten_without_force(run, tmp_path):
    good = write(tmp_path / "good.csv", GOOD)
    write(tmp_path / "map.json", "precious")
    options = ("fit", good, good, "--method", "exact", "-o", "map.json")

    refused(run(*options), "map.json exists already", "--force")
    assert (tmp_path / "map.json").read_text(encoding="utf-8") == "precious"
    assert run(*options, "--force").code == 0
    refused(run("apply", "map.json", good, "-o", "good.csv"), "exists already")
    assert (tmp_path / "good.csv").read_text(encoding="utf-8") == GOOD


def test_read_only_targets(run, tmp_path, monkeypatch):
    good = write(tmp_path / "good.csv", GOOD)
    (tmp_path / "locked").mkdir()
    write(tmp_path / "map.json", "precious")
    # The tests may run as a user who may write everywhere.
    locked = {"locked", "map.json"}
    real = os.access

    def access(path, mode, **options):
        return Path(path).name not in locked and real(path, mode, **options)

    monkeypatch.setattr(os, "access", access)

    refused(run("fit", good, good, "-o", "locked/map.json"), "locked is read-only")
    forced = run("fit", good, good, "-o", "map.json", "--force")
    refused(forced, "map.json is read-only")
    assert list((tmp_path / "locked").iterdir()) == []


@pytest.fixture
def saved(run, tmp_path):
    good = write(tmp_path / "good.csv", GOOD)
    assert run("fit", good, good, "--method", "exact", "-o", "map.json").code == 0
    return json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99, "created_by": "trueup 9.0"}, "written by trueup 9.0; upgrade"),
        ({"format": "1"}, "damaged or edited"),
        ({"kind": "something else"}, "not a saved map"),
        ({"rule": {}}, "damaged"),
        ({"outcomes": ["yes"]}, "damaged"),
        ({"certificate": None}, "damaged"),
    ],
)
def test_maps_that_cannot_be_used(run, tmp_path, saved, change, message):
    write(tmp_path / "other.json", json.dumps(saved | change))

    refused(run("show", "other.json"), message)
    refused(run("apply", "other.json", "good.csv", "-o", "better.csv"), message)
    refused(run("evaluate", "good.csv", "--against", "other.json"), message)
    assert not (tmp_path / "better.csv").exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '"map"', "\x00", "{" * 9999]
)
def test_maps_that_are_no_maps(run, tmp_path, content):
    write(tmp_path / "bad.json", content)

    refused(run("show", "bad.json"), "bad.json is not a saved map")


def test_a_map_of_other_outcomes(run, tmp_path, saved):
    other = write(tmp_path / "other.csv", GOOD.replace("p_no", "p_never"))

    refused(run("apply", "map.json", other, "-o", "better.csv"), "never")
    assert not (tmp_path / "better.csv").exists()


def test_labels_that_do_not_fit(run, tmp_path):
    good = write(tmp_path / "good.csv", GOOD)
    few = write(tmp_path / "few.csv", "item_id,label\na,yes\n")
    odd = write(tmp_path / "odd.csv", "item_id,label\na,yes\nb,perhaps\n")
    two = write(tmp_path / "two.csv", "item_id,x,y\na,yes,no\nb,no,no\n")

    refused(run("evaluate", good), "no column 'label'", "--labels")
    refused(run("evaluate", good, "--labels", few), "1 of 2 items have no label: b")
    refused(run("evaluate", good, "--labels", odd), "'perhaps' at row 1")
    refused(run("evaluate", good, "--labels", two), "no column 'label'")
    refused(run("evaluate", good, "--labels", "truth"), "no column 'truth'")


HOSTILE = '<script>alert(1)</script>, "quoted"\n\N{GRINNING FACE}\x1b[31m'


def test_hostile_names_pass_through_unharmed(run, tmp_path):
    """Names of items, outcomes and files are text, whatever they hold."""
    outcome = HOSTILE.replace('"', '""')
    text = (
        f'item_id,"p_{outcome}",p_no\n'
        f'"{outcome}",0.2,0.8\n"b,c",0.6,0.4\n\N{SNOWMAN},0.5,0.5\n'
    )
    name = "p <b>,\N{GRINNING FACE}.csv"
    write(tmp_path / name, text)
    fitted = run("fit", name, name, "--method", "exact", "-o", "map.json", "--json")
    done = run("apply", "map.json", name, "-o", "better.jsonl")
    better = (tmp_path / "better.jsonl").read_text(encoding="utf-8").splitlines()

    assert fitted.code == done.code == 0, fitted.err + done.err
    assert fitted.json["map"]["outcomes"] == [HOSTILE, "no"]
    assert json.loads(better[0])["item_id"] == HOSTILE
    shown = run("show", "map.json")
    assert "\x1b" not in shown.out + fitted.err + done.err


def test_usage_errors_are_two(run, tmp_path):
    good = write(tmp_path / "good.csv", GOOD)

    for args in (
        ("fit",),
        ("fit", good),
        ("fit", "-", "-"),
        ("fit", good, good, "--loss", "hinge"),
        ("fit", good, good, "--step", "0.1"),
        ("fit", good, good, "--outcomes", "a,,b"),
        ("fti", good, good),
        ("apply", "map.json", good),
        ("bounds", good, good, "--reference-error", "-1"),
    ):
        result = run(*args)
        assert result.code == 2, args
        assert "Usage: " in result.err


def test_a_near_miss_of_a_command_is_named(run):
    assert "Did you mean 'audit'?" in run("aduit", "a", "b").err
