"""Tables as Markdown, CSV and one small page without anything from elsewhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from trueup.reproduce.paper import METRICS, printed
from trueup.reproduce.tables import Result, Table, difference, verdict

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem;
  padding: 0 1rem; color: #1b1b1b; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px;
  font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .55rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid #888; background: #f4f4f4; }
tr.first td { border-top: 1px solid #bbb; }
tr.aside td { color: #666; font-style: italic; }
tr.aside td.word { padding-left: 1.2rem; }
th { vertical-align: bottom; } th.number { white-space: normal; }
td.word, th.word { text-align: left; }
p, ul { max-width: 55rem; }
@media (max-width: 45rem) {
  body { margin-top: 1rem; }
  td.word, th.word { white-space: normal; min-width: 5.5rem; }
  th, td { padding: .2rem .35rem; }
}
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #161616; } th { background: #262626; }
  tr.aside td { color: #a5a5a5; } tr.first td { border-top-color: #444; }
  a { color: #8ab4f8; }
}
"""


def markdown(title: str, tables: Sequence[Table], notes: Sequence[str] = ()) -> str:
    """Everything as one Markdown document."""
    parts = [f"# {_plain(title)}", *map(_plain, notes)]
    for table in tables:
        parts += [f"## {_plain(table.title)}", _markdown_table(table)]
        parts += [_plain(note) for note in table.notes]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    marks = ["---" if k < table.left else "--:" for k in range(len(table.header))]
    lines = [_line(table.header), f"|{'|'.join(marks)}|"]
    lines += [_line(row) for row in _without_repeats(table)]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    indent = "\N{NO-BREAK SPACE}" * (len(text) - len(text.lstrip(" ")))
    shown = " ".join(text.split())
    for mark in "\\`*_[]<>|#":
        shown = shown.replace(mark, f"\\{mark}")
    return indent + shown


def _without_repeats(table: Table) -> list[tuple[str, ...]]:
    """A model's name only where it starts."""
    rows, last = [], None
    for row in table.rows:
        rows.append(("", *row[1:]) if row[0] == last else row)
        last = row[0]
    return rows


def html(title: str, tables: Sequence[Table], notes: Sequence[str] = ()) -> str:
    """Everything as one page; every text is escaped."""
    body = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(n)}</p>" for n in notes)]
    links = (
        f'<li><a href="#table-{k}">{escape(table.title)}</a></li>'
        for k, table in enumerate(tables)
    )
    body.append(f"<nav><ul>{''.join(links)}</ul></nav>")
    for k, table in enumerate(tables):
        name = escape(table.title)
        # A wide table is scrolled by itself, with the keyboard too.
        body.append(
            f'<h2 id="table-{k}">{name}</h2><div role="region" tabindex="0" '
            f'aria-label="{name}">{_html_table(table)}</div>'
        )
        body += [f"<p>{escape(note)}</p>" for note in table.notes]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body>\n{chr(10).join(body)}\n</body></html>\n"
    )


def _html_table(table: Table) -> str:
    def cell(tag: str, place: int, text: str) -> str:
        kind = "word" if place < table.left else "number"
        scope = ' scope="col"' if tag == "th" else ""
        return f'<{tag}{scope} class="{kind}">{escape(text.strip())}</{tag}>'

    head = "".join(cell("th", k, text) for k, text in enumerate(table.header))
    lines = []
    for row in _without_repeats(table):
        kind = "aside" if row[1].startswith(" ") else "first" if row[0] else ""
        cells = "".join(cell("td", k, text) for k, text in enumerate(row))
        lines.append(f'<tr class="{kind}">{cells}</tr>')
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def csv_text(results: Sequence[Result]) -> str:
    """One line a method, pair and set: our numbers, the paper's, the differences."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in results:
        for name, row in one["methods"].items():
            writer.writerow(_csv_row(one, name, row))
    return out.getvalue()


_COLUMNS = (
    "set",
    "model",
    "method",
    "title",
    "kind",
    "n_items",
    "n_scored",
    *METRICS,
    "gain",
    "gain_error",
    "guaranteed",
    "fitted",
    "verdict",
    *(f"printed_{metric}" for metric in METRICS),
    *(f"difference_{metric}" for metric in METRICS),
    "absent",
)


def _csv_row(one: Result, name: str, row: Result) -> list[Any]:
    known = printed(one["model"], one["set"], name)
    proof = row.get("certificate") or {}
    return [
        _cell(one["set"]),
        _cell(one["model"]),
        name,
        row["title"],
        row["kind"],
        one["n_items"],
        one["n_scored"],
        *(_digits(row.get(metric)) for metric in METRICS),
        _digits(row.get("gain")),
        _digits(row.get("gain_error")),
        _digits(proof.get("guaranteed_improvement")),
        _digits(proof.get("fitted")),
        verdict(row) if proof else "",
        *(_digits(getattr(known, metric, None)) for metric in METRICS),
        *(_digits(difference(row, known, metric)) for metric in METRICS),
        row.get("absent", ""),
    ]


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value + 0.0:.6f}"


def _cell(text: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" else text
