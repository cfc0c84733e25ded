"""Every Python example of the README and the documentation runs and prints as shown.

Blocks of one page share their names and run in an empty folder. A block with prompts
is a doctest; one without is run as it stands.
"""

from __future__ import annotations

import doctest
import re

import pytest

from contract.project import ROOT, name_of

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
]
FENCE = re.compile(r"^```(\S+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = {"bash", "console", "json", "math", "text", "toml"}
"""Languages of blocks that show something else than Python."""
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_example_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed = {}, []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for line, language, source in _blocks(page):
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


def _blocks(page):
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[1], found[2]
