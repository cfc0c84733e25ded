"""The command line as a whole: light to start, explained, documented as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest

from contract.project import ROOT
from trueup.cli.main import COMMANDS, group

HEAVY = ("numpy", "scipy", "pyarrow", "duckdb", "narwhals", "numba", "sklearn")
PAGE = ROOT / "docs" / "reference" / "cli.md"
JSON_PAGE = ROOT / "docs" / "reference" / "cli-json.md"


def command(name):
    return group.get_command(click.Context(group), name)


@pytest.mark.parametrize("args", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_heavy(args):
    program = (
        "import json, sys\n"
        "from trueup.cli.main import group\n"
        f"group({args!r}, prog_name='trueup', standalone_mode=False)\n"
        "sys.stderr.write(json.dumps(list(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stderr)

    assert done.stdout.startswith("Usage: trueup")
    assert [name for name in HEAVY if name in loaded] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_json_and_quiet(name):
    text = command(name).get_help(click.Context(command(name), info_name=name))

    assert f"trueup {name}" in text
    assert "Example:" in text
    assert "--json" in text
    assert "--quiet" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_named_as_it_is_listed(name):
    assert command(name).name == name
    assert COMMANDS[name][1].endswith(".")


def test_the_reference_page_is_current():
    """Written by ``python docs/write_cli_reference.py``."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "write_cli_reference.py", "--print"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )

    assert done.stdout == PAGE.read_text(encoding="utf-8")


def test_every_command_is_on_the_page_of_json_objects():
    page = JSON_PAGE.read_text(encoding="utf-8")

    assert [name for name in COMMANDS if f"## `{name}`" not in page] == []
