"""What the repository's files must and must not hold."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

from contract.project import PACKAGE, ROOT, SOURCES, name_of

# Written so that this file does not match itself.
FOREIGN = re.compile(
    r"""
      (?<![\w.~:/-])/(?:home|root|work|opt|mnt|srv|Users|workspace)/\w  # a disk
    | [A-Z]:\\\\?Users
    | https?://\S+\.(?:whl|tar\.gz)  # a download address
    | /simple[/]
    | --(?:extra-)?index[-]url | --find[-]links | --hash[=]
    """,
    re.VERBOSE,
)
LABEL_FREE = [p for p in SOURCES if p.parent.name in {"solve", "maps", "audit"}]


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_no_file_names_this_machine_or_a_package_index():
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in _tracked_texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if FOREIGN.search(line) or f"{ROOT}/" in line
    ]

    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "open('/" + "home/me/data.csv')",
        "cd /" + "work/trueup",
        "-i https://mirror.example/" + "simple/",
        "https://mirror.example/packages/a" + ".whl",
    ],
)
def test_the_search_for_foreign_places_finds_them(line):
    assert FOREIGN.search(line)


def test_every_pinned_version_is_a_name_and_a_number():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]

    assert pins
    assert [p for p in pins if not re.fullmatch(r"[\w.-]+==[\w.!+]+", p)] == []


@pytest.mark.parametrize("path", LABEL_FREE, ids=name_of)
def test_no_label_can_reach_the_label_free_path(path):
    """Labels belong to evaluation; what fits or certifies has no place for them."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    parameters = {node.arg for node in ast.walk(module) if isinstance(node, ast.arg)}

    assert parameters & {"labels", "label", "y", "y_true"} == set()


def test_the_version_is_told_the_same_everywhere():
    version = re.search(r'^version = "(.+)"$', _read("pyproject.toml"), re.MULTILINE)

    assert version
    assert f"version: {version[1]}\n" in _read("CITATION.cff")
    assert f"## {version[1]}" in _read("CHANGELOG.md")


def _read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def _tracked_texts():
    """Files under version control or about to be, as far as they are text.

    CI may run as another user than the one the checkout belongs to.
    """
    listed = subprocess.run(
        [
            "git",
            "-c",
            "safe.directory=*",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            yield name, path.read_text(encoding="utf-8", errors="replace")
