"""Every Python example of the README and the documentation runs and prints as shown.

Blocks of one page share their names and run in an empty folder. A Python block with
prompts is a doctest; one without is run as it stands. Of console blocks the ``trueup``
commands are run, and must print the lines that are shown, where ``...`` stands for
anything. What a test machine cannot run is marked, and listed on a page.
"""

from __future__ import annotations

import doctest
import re
import shlex

import pytest
from click.testing import CliRunner

from contract.project import ROOT, name_of
from trueup.cli.main import group

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
]
FENCE = re.compile(r"^```(\S+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = {"bash", "console", "javascript", "json", "math", "sql", "text", "toml"}
"""Languages of blocks that show something else than Python; other tests run some."""
MARK = re.compile(r"^% not run: (needs .+)\n+```(?:python|console)", re.MULTILINE)
OTHER_COMMANDS = {"make", "pip", "python", "git"}
"""Programs that console blocks may show without the tests running them."""
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_example_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed = {}, []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for line, language, source in _blocks(page):
        if language == "console":
            _run_console(source, f"{page.name}:{line}")
        if language != "python":
            continue
        if ">>>" not in source:
            exec(compile(source, f"{page}:{line}", "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(source, names, page.name, None, line)
        runner.run(test, out=printed.append, clear_globs=False)
        names.update(test.globs)

    assert runner.summarize(verbose=False).failed == 0, "".join(printed)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_example_hides_behind_another_name_for_python(page):
    languages = {language for _, language, _ in _blocks(page)}
    directives = {language for language in languages if language.startswith("{")}

    assert languages - directives - NOT_RUN <= {"python"}
    assert not any("code" in directive for directive in directives)


def test_the_readme_has_examples():
    languages = [language for _, language, _ in _blocks(ROOT / "README.md")]

    assert "python" in languages


def test_what_is_not_run_is_listed():
    marked = {
        f"- {name_of(page)}: {reason}"
        for page in PAGES
        for reason in MARK.findall(page.read_text(encoding="utf-8"))
    }
    page = (ROOT / "docs" / "not-run.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^- .*$", page, re.MULTILINE))

    assert listed == marked


@pytest.mark.parametrize(
    ("want", "got", "fits"),
    [
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a ...\n", "a b\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\n", True),
    ],
)
def test_dots_stand_for_anything(want, got, fits):
    assert _matches(want, got) == fits


def _run_console(source, place):
    """Run the ``trueup`` commands of a console block; compare what they print."""
    for command, shown in re.findall(
        r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", source, re.MULTILINE
    ):
        program, *args = shlex.split(command, comments=True)
        if program != "trueup":
            assert program in OTHER_COMMANDS, f"{place}: {command}"
            continue
        done = CliRunner().invoke(group, args, catch_exceptions=False)
        assert done.exit_code == 0, f"{place}: {command}\n{done.stderr}"
        if shown.strip():
            assert _matches(shown, done.stdout), f"{place}: {command}\n{done.stdout}"


def _matches(want, got):
    """Whether output is as shown, where ... stands for anything."""
    parts = [" ".join(part.split()) for part in want.split("...")]
    pattern = ".*".join(map(re.escape, parts))
    return bool(re.fullmatch(pattern.strip(), " ".join(got.split()), re.DOTALL))


def _blocks(page):
    text = page.read_text(encoding="utf-8")
    skipped = {found.end() for found in MARK.finditer(text)}
    for found in FENCE.finditer(text):
        if any(found.start() < end <= found.end() for end in skipped):
            continue
        yield text.count("\n", 0, found.start()) + 1, found[1], found[2]
