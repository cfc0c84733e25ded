"""Take the screenshot of the report that the README shows.

Run ``make demo`` first, then ``.venv/bin/python docs/images/take_report.py``; it needs
Chromium. Parts of one page are put beside each other; nothing is drawn by hand.
"""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "build" / "demo" / "report.html"
LEFT = ("header > .eyebrow", "header > h1", "header > .verdict", "header > .tiles")
RIGHT = ("#guaranteed figure:nth-of-type(1)", "#labels .triple")
PAGE = """<body style="margin:0;background:#f4f6f8;width:1560px">
<div style="display:grid;grid-template-columns:1fr 1fr;gap:24px;padding:24px;
align-items:center"><div>{left}</div><div style="background:#fff;padding:20px;
border:1px solid #cfd6de;border-radius:10px">{right}</div></div>"""


def main() -> None:
    """Open the demo's report and keep its most telling parts."""
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 860, "height": 1200})
        page.goto(REPORT.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        left, right = (
            "".join(_taken(page, one) for one in side) for side in (LEFT, RIGHT)
        )
        whole = browser.new_page(
            viewport={"width": 1560, "height": 100}, device_scale_factor=0.8
        )
        whole.set_content(PAGE.format(left=left, right=right))
        whole.screenshot(path=Path(__file__).with_name("report.png"), full_page=True)
        browser.close()


def _taken(page: Page, selector: str) -> str:
    taken = page.locator(selector).first.screenshot(scale="css")
    data = base64.b64encode(taken).decode()
    style = "width:100%;margin-bottom:12px"
    return f'<img src="data:image/png;base64,{data}" style="{style}">'


if __name__ == "__main__":
    main()
