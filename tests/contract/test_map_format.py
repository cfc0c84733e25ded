"""Saved maps of every format load, apply as they did, and are documented."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import trueup
from contract.project import GOLDEN, ROOT
from golden.write_format_1 import what_it_does

PATHS = sorted(GOLDEN.glob("map_format_*.json"))
EXPECTED = json.loads((GOLDEN / "expected_format_1.json").read_text(encoding="utf-8"))
REFERENCE = ROOT / "docs" / "reference" / "map-format.md"


def test_every_kind_of_report_has_a_golden_map():
    kinds = {_content(path)["property"]["name"] for path in PATHS}

    assert kinds >= {"distribution", "answer-confidence", "quantile", "mode"}
    assert any(_content(path)["randomised"] for path in PATHS)
    assert len(PATHS) == len(EXPECTED)


@pytest.mark.filterwarnings("ignore::trueup.errors.UnseenReportWarning")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_golden_map_applies_bit_for_bit_as_it_did(path):
    fitted = trueup.load(path)
    expected = dict(EXPECTED[path.stem.removeprefix("map_format_1_")])
    primary = _reports(expected.pop("primary"), fitted)

    assert what_it_does(fitted, primary) == expected


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_golden_map_is_saved_again_as_it_was(path, tmp_path):
    trueup.load(path).save(tmp_path / "again.json")

    again, before = _content(tmp_path / "again.json"), _content(path)
    del again["created_by"], before["created_by"]
    assert again == before


def test_every_field_is_documented():
    described = set(re.findall(r"`([\w.]+)`", REFERENCE.read_text(encoding="utf-8")))
    fields = set().union(*(_fields(_content(path)) for path in PATHS))

    assert sorted(fields - described) == []


def _content(path):
    return json.loads(path.read_text(encoding="utf-8"))


def _fields(content):
    """Names of all fields, at any depth."""
    if isinstance(content, list):
        return set().union(*map(_fields, content))
    if isinstance(content, dict):
        return set(content).union(*map(_fields, content.values()))
    return set()


def _reports(saved, fitted):
    """Reports of the kind a map takes, from JSON values."""
    if isinstance(saved, list):
        return np.array(saved)
    if "confidence" in saved:
        return trueup.AnswerConfidence(**saved, outcomes=fitted.outcomes)
    return trueup.PointReport(
        **saved,
        outcomes=fitted.outcomes,
        property=fitted.about.name,
        level=getattr(fitted.about, "level", None),
    )
