"""Studies: files found by name, TOML files read, mistakes named."""

from __future__ import annotations

import pytest

from reproduce.worlds import write_pair
from trueup.errors import InvalidInputError, PredictionFileError, UnknownNameError
from trueup.reproduce.sample import Sample
from trueup.reproduce.study import ModelSpec, find_pairs, read_study


def test_pairs_are_found_by_name(tmp_path):
    write_pair(tmp_path, "Qwen3-8B", "CSQA", split=True)
    write_pair(tmp_path, "Qwen3-0.6B", "other set")
    (tmp_path / "CSQA" / "notes.txt").write_text("not a prediction file")
    (tmp_path / "CSQA" / "Half.base.csv").write_text("")
    found = {(one.model, one.set): one for one in find_pairs(tmp_path)}

    assert set(found) == {("Qwen3-8B", "commonsense-qa"), ("Qwen3-0.6B", "other set")}
    first = found["Qwen3-8B", "commonsense-qa"]
    assert first.calibration is not None
    assert first.main
    assert not found["Qwen3-0.6B", "other set"].main


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "holds no pair of prediction files"),
        (["s/m.base.csv"], "Only one half is there of m on s"),
        (["m.base.csv", "m.instruct.csv"], "holds no pair"),
        (["s/m.base.csv", "s/m.base.parquet"], "are both the base predictions of m"),
    ],
)
def test_folders_without_pairs_say_what_is_expected(names, words, tmp_path):
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    with pytest.raises(InvalidInputError, match=words) as caught:
        find_pairs(tmp_path)
    assert "hint:" in str(caught.value)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match="not a folder"):
        find_pairs(tmp_path / "nowhere")


PAIRS = """
title = "Two"
[[pair]]
model = "M"
set = "csqa"
file = "all.parquet"
primary = "strong"
reference = "weak"
main = false
[[pair]]
model = "N"
set = "csqa"
primary_file = "a.csv"
reference_file = "b.csv"
calibration_file = "c.csv"
"""


def test_pairs_are_read_from_a_file(tmp_path):
    (tmp_path / "s.toml").write_text(PAIRS)
    study = read_study(tmp_path / "s.toml", root="data")
    one, two = study.pairs

    assert study.title == "Two"
    assert one.set == "commonsense-qa"
    assert not one.main
    assert (one.primary.path, one.primary.prefix) == ("data/all.parquet", "strong")
    assert one.calibration is None
    assert two.reference.path == "data/b.csv"
    assert two.calibration is not None


def test_models_are_read_from_a_file(tmp_path):
    text = "[[model]]\nname = 'Qwen3-4B'\nbase = 'b'\ninstruct = 'i'\n"
    (tmp_path / "s.toml").write_text(text)
    study = read_study(tmp_path / "s.toml")

    assert study.models[0].asked("base") == ("b", None)
    assert not study.models[0].main
    assert [one.name for one in study.sets] == ["mmlu-redux", "commonsense-qa"]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", InvalidInputError, "lists nothing"),
        ("[[pair", InvalidInputError, "cannot be read"),
        ("pairs = 1", UnknownNameError, "Did you mean 'pair'"),
        ("pair = 1", InvalidInputError, "must be a list of tables"),
        ("[[pair]]\nmodel = 'M'", InvalidInputError, "has no 'set'"),
        (
            "[[pair]]\nmodel = 'M'\nset = 's'\nprimary = 'a'\nreference = 'b'",
            InvalidInputError,
            "names no file",
        ),
        ("[[pair]]\nmodel = 3\nset = 's'", InvalidInputError, "must be a text, got 3"),
        ("[[pair]]\nmodle = 'M'", UnknownNameError, "Did you mean 'model'"),
        ("[[model]]\nname = 'M'", InvalidInputError, "'base' is missing"),
        ("[[set]]\nname = 'M'", InvalidInputError, "'questions' is missing"),
    ],
)
def test_mistakes_in_a_file_are_named(text, error, words, tmp_path):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(error, match=words) as caught:
        read_study(tmp_path / "s.toml")
    assert "hint:" in str(caught.value)


@pytest.mark.parametrize("name", ["", "a/b", "..", "a:b"])
def test_names_that_cannot_name_files_are_refused(name):
    with pytest.raises(InvalidInputError, match="cannot name files"):
        ModelSpec(name, "b", "i")


def test_labels_are_needed_to_score(tmp_path):
    write_pair(tmp_path)
    (spec,) = find_pairs(tmp_path)
    folder = tmp_path / "commonsense-qa"
    lines = "item_id,answer,confidence\nq0,A,0.5\nq1,B,0.5\n"
    for name in ("Qwen3-8B.base.csv", "Qwen3-8B.instruct.csv"):
        (folder / name).write_text(lines)
    (folder / "Qwen3-8B.base.parquet").unlink()
    (spec,) = find_pairs(tmp_path)
    with pytest.raises(PredictionFileError, match="there is no column 'label'"):
        Sample.read(spec)


def test_other_outcomes_are_refused(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    for role, letters in (("base", "XY"), ("instruct", "AB")):
        head = ",".join(f"p_{letter}" for letter in letters)
        text = f"item_id,label,{head}\n1,{letters[0]},0.5,0.5\n2,{letters[1]},0.5,0.5\n"
        (folder / f"m.{role}.csv").write_text(text)
    (spec,) = find_pairs(tmp_path)
    with pytest.raises(PredictionFileError, match="same letters"):
        Sample.read(spec)
