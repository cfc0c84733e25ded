"""The demo runs, its text fits a terminal, and the README shows what it prints."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from contract.project import ROOT

NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo prints, and the map it writes."""
    path = tmp_path_factory.mktemp("demo") / "map.json"
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "digits.py", "--output", path],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, path


def test_the_demo_fits_a_terminal_and_writes_its_map(demo):
    text, path = demo
    lines = [line for line in text.splitlines() if str(path) not in line]

    assert max(map(len, lines)) < 80
    assert path.stat().st_size > 0


def test_every_certificate_of_the_demo_held(demo):
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


def _numbers(text):
    return [float(found) for found in NUMBER.findall(text)]
