"""HTML, Markdown and JSON: the same summary, escaped, written in one step."""

from __future__ import annotations

import builtins
import json
import re
from html.parser import HTMLParser

import pytest

from contract.project import ROOT
from report.situations import HOSTILE, SITUATIONS, binary, hostile, table
from trueup.errors import (
    ExistingFileError,
    InvalidInputError,
    MissingExtraError,
    UnknownNameError,
)
from trueup.report import html, render, summary, write_report

ORDER = (
    "What was assumed",
    "What is guaranteed",
    "What changes",
    "Where the two contradict each other",
    "What the labels say",
    "What cannot be concluded",
)


class _Elements(HTMLParser):
    """The elements of a page, and the text of its headings."""

    def __init__(self, text):
        super().__init__()
        self.names, self.headings, self.open = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.open = tag == "h2"

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.headings.append(data)


def test_the_questions_are_answered_in_order():
    assert tuple(_Elements(render(binary(), "html")).headings) == ORDER
    told = re.findall(r"^## (.+)$", render(binary(), "markdown"), re.MULTILINE)
    assert tuple(told) == ORDER


def test_without_labels_nothing_is_said_about_labels():
    assert "What the labels say" not in _Elements(render(table(), "html")).headings
    assert "there were no labels" in render(table(), "html")


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_assumption_is_printed(situation):
    made = SITUATIONS[situation]()
    start = made.assumption.sentence.split("(", maxsplit=1)[0][:60]

    for form in ("html", "json", "markdown"):
        assert start in render(made, form)


def test_hostile_names_add_no_element():
    """The page of hostile names has the elements of the page of harmless ones."""
    names = set(_Elements(render(hostile(), "html")).names)

    assert names <= set(_Elements(render(binary(), "html")).names)
    assert render(hostile(), "html").count("<script") == 3


def test_hostile_names_cannot_leave_embedded_json():
    text = html.script_json({"a": HOSTILE})

    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"a": list(HOSTILE)}


def test_hostile_names_are_only_text_in_markdown():
    text = render(hostile(), "markdown")

    assert not re.search(r"(?<!\\)<(?!!)", text)
    assert "](javascript" not in text
    for line in text.splitlines():
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line)
            assert len(cells) in {4, 5, 7, 8, 9}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_json_is_plain_and_holds_everything(situation):
    made = SITUATIONS[situation]()
    content = json.loads(render(made, "json"))

    assert content == json.loads(json.dumps(made.to_dict()))
    assert (content["kind"], content["format"]) == ("trueup.report", summary.FORMAT)
    assert content["guarantee"]["guaranteed_improvement"] == (
        made.guarantee.guaranteed_improvement
    )


def test_every_field_of_the_json_is_documented():
    page = (ROOT / "docs" / "reference" / "report-json.md").read_text(encoding="utf-8")
    described = set(re.findall(r"`(\w+)`", page))
    found = set()

    def collect(value):
        if isinstance(value, dict):
            found.update(value)
            for one in value.values():
                collect(one)
        elif isinstance(value, list):
            for one in value:
                collect(one)

    for made in SITUATIONS.values():
        collect(made().to_dict())
    assert found - described == set()


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_page_is_small_and_carries_its_charts_once(situation):
    page = render(SITUATIONS[situation](), "html")

    assert len(page.encode()) < 1_500_000
    assert page.count(html.chart_bundle()) == 1
    assert "http-equiv" in page
    assert not re.findall(r"(?:src|href)=[\"']?https?:", page)


def test_the_suffix_says_the_form(tmp_path):
    for name in ("r.html", "r.HTM", "r.md", "r.json"):
        write_report(table(), tmp_path / name)

    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype")
    assert (tmp_path / "r.md").read_text(encoding="utf-8").startswith("# primary")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["format"] == 1
    with pytest.raises(InvalidInputError, match=r"must end in \.html"):
        write_report(table(), tmp_path / "r.pdf")
    with pytest.raises(UnknownNameError, match="form 'pdf'"):
        render(table(), "pdf")


def test_a_file_is_replaced_only_when_asked(tmp_path):
    path = tmp_path / "r.json"
    path.write_text("precious", encoding="utf-8")

    with pytest.raises(ExistingFileError, match="force=True"):
        write_report(table(), path)

    assert path.read_text(encoding="utf-8") == "precious"
    write_report(table(), path, force=True)
    assert path.read_text(encoding="utf-8") != "precious"
    assert [one.name for one in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    ("package", "needed"), [("vl_convert", "vl-convert"), ("jinja2", "jinja2")]
)
def test_a_missing_extra_is_named_with_its_command(package, needed, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    html.chart_bundle.cache_clear()
    html._environment.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(MissingExtraError, match=rf"{needed}.*\n.*trueup\[report\]"):
        render(table(), "html")
    assert render(table(), "markdown")
