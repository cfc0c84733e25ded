"""The demo runs, its text fits a terminal, and the README shows what it prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import trueup
from contract.project import ROOT
from trueup import demo as demonstration
from trueup.errors import ExistingFileError

NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo prints in its own process, and where it writes."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "trueup.demo", "--output", folder],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout, folder


def test_the_demo_fits_a_terminal_and_says_where_its_report_is(demo):
    text, folder = demo
    lines = [line for line in text.splitlines() if str(folder) not in line]

    assert max(map(len, lines)) < 80
    assert (folder / "report.html").as_uri() in text
    for name in ("map.json", "report.html", "primary.csv", "reference.csv"):
        assert (folder / name).stat().st_size > 0


def test_the_map_of_the_demo_applies(demo):
    _, folder = demo
    fitted = trueup.load(folder / "map.json")
    sure = trueup.AnswerConfidence(
        answer=range(10), confidence=[1.0] * 10, outcomes=range(10)
    )

    assert fitted.certificate.guaranteed_improvement > 0
    assert (fitted.apply(sure).confidence < 1).any()


def test_every_guarantee_of_the_demo_held(demo):
    text, _ = demo

    assert "CONTRADICTED" not in text
    assert text.count("  held") == 4


def test_the_readme_shows_the_numbers_of_the_demo(demo):
    """Another processor may round the last digit otherwise; no more than that."""
    text, _ = demo
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)

    assert len(shown) == 2
    for block in shown:
        first = block.splitlines()[0]
        printed = text[text.index(first) :].split("\n\n", 1)[0]
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", block.rstrip("\n"))
        assert _numbers(printed) == pytest.approx(_numbers(block), abs=2e-4)


def test_a_named_folder_is_written_over_only_when_asked(tmp_path):
    (tmp_path / "map.json").write_text("precious", encoding="utf-8")

    with pytest.raises(ExistingFileError, match="left as it is"):
        demonstration.run(tmp_path)

    assert (tmp_path / "map.json").read_text(encoding="utf-8") == "precious"


def test_the_demo_gives_one_object(tmp_path):
    told = []
    found = demonstration.run(tmp_path, seed=1, progress=lambda _, x: told.append(x))
    content = json.loads(json.dumps(found.to_dict()))

    assert content["report"] == str(tmp_path / "report.html")
    assert len(content["rungs"]) == 4
    assert told == sorted(told)


def _numbers(text):
    return [float(found) for found in NUMBER.findall(text)]
