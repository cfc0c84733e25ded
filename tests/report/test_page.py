"""The page in a real browser: quiet, offline, readable in every guise."""

from __future__ import annotations

import shutil

import pytest

from report.situations import HOSTILE, SITUATIONS, answers, binary, hostile
from trueup.report import write_report

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, as the system has it."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def look(browser, tmp_path):
    """Open the page of a summary; what it says and asks for is kept on the page."""
    contexts = []

    def opened(summary, *, width=1100, scheme="light"):
        path = tmp_path / "report.html"
        write_report(summary, path, force=True)
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]", timeout=30_000)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_page_is_quiet_offline_and_accessible(look, situation):
    """One load for three questions: a load is most of the time of a test."""
    page = look(SITUATIONS[situation]())

    assert page.said == []
    assert page.asked == [page.url]
    assert page.locator(".chart svg").count() == page.locator(".chart").count()
    assert _obstacles(page) == []
    page.emulate_media(color_scheme="dark")
    assert _obstacles(page) == []


def _obstacles(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    serious = [one for one in found if one["impact"] in {"serious", "critical"}]
    return [(one["id"], one["nodes"][0]["html"]) for one in serious]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_nothing_is_wider_than_a_telephone(look, situation):
    page = look(SITUATIONS[situation](), width=375)

    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    # Nor is anything cut off that looks complete.
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".scroll")]
            .filter((one) => one.scrollWidth > one.clientWidth).length"""
    )
    assert cut == 0


def test_selecting_a_loss_changes_table_and_figures(look):
    page = look(binary())
    before = _figure(page, "rungs"), _figure(page, "curve")

    page.select_option("#select-loss", "log")

    shown = page.locator("#table-rungs tbody tr:visible")
    assert set(shown.evaluate_all("rows => rows.map((row) => row.dataset.loss)")) == {
        "log"
    }
    page.wait_for_function(
        "old => document.querySelector('#fig-rungs svg').outerHTML !== old",
        arg=before[0],
    )
    assert _figure(page, "curve") != before[1]
    assert page.locator(".shown-loss").first.inner_text() == "(log loss)"


def test_selecting_a_rung_draws_its_curve(look):
    page = look(binary())
    before = _figure(page, "curve")

    page.select_option("#select-rung", "mean")

    page.wait_for_function(
        "old => document.querySelector('#fig-curve svg').outerHTML !== old", arg=before
    )
    mean = next(row for row in binary().guarantees if row.title == "mean")
    assert f"{mean.guaranteed_until:.3g}" in _figure(page, "curve")
    assert page.said == []


def test_answers_and_metrics_can_be_selected(look):
    page = look(answers())
    moves, metrics = _figure(page, "moves"), _figure(page, "metrics")

    page.select_option("#select-answer", "3")
    page.select_option("#select-metric", "accuracy")

    for name, old in (("moves", moves), ("metrics", metrics)):
        page.wait_for_function(
            "([id, old]) => document.querySelector(`#fig-${id} svg`).outerHTML !== old",
            arg=[name, old],
        )
    assert "accuracy" in page.locator("#shown-metric").inner_text()


def test_hovering_shows_numbers(look):
    page = look(binary())
    page.locator("#fig-joint path[aria-roledescription], #fig-joint path").nth(
        8
    ).hover()

    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "share of items" in page.locator("#vg-tooltip-element").inner_text()


def test_names_stay_names(look):
    page = look(hostile())
    page.locator("#fig-answers .mark-rect path").first.hover()
    page.wait_for_selector("#vg-tooltip-element.visible")

    assert page.evaluate("window.hacked") is None
    assert page.locator("main b, main i, main img, #vg-tooltip-element b").count() == 0
    assert page.locator("h1").inner_text() == HOSTILE[0]
    assert "{{7*7}}" in page.locator("#assumed").inner_text()
    assert page.said == []


def test_dark_and_light_differ_without_drawing_again(look):
    page = look(binary(), scheme="dark")
    drawn = _figure(page, "curve")
    dark = _colours(page)

    page.emulate_media(color_scheme="light")

    assert _figure(page, "curve") == drawn
    light = _colours(page)
    assert [one for one, other in zip(dark, light, strict=True) if one == other] == []


def test_a_dark_page_prints_light(look):
    page = look(binary(), scheme="dark")

    page.emulate_media(media="print", color_scheme="dark")

    assert _colours(page)[0] == "rgb(255, 255, 255)"
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert 2 <= printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") <= 12


def _figure(page, name):
    return page.locator(f"#fig-{name} svg").evaluate("svg => svg.outerHTML")


def _colours(page):
    """Of the page, of text, and of a line inside a figure."""
    return page.evaluate(
        """() => {
            const line = document.querySelector("#fig-curve .mark-line path");
            return [getComputedStyle(document.body).backgroundColor,
                    getComputedStyle(document.body).color,
                    getComputedStyle(line).stroke];
        }"""
    )
