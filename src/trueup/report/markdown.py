"""The report as Markdown: the same summary, for terminals, chats and repositories."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from trueup.report._words import (
    capitalised,
    count,
    loss_title,
    metric_title,
    number,
    percent,
)
from trueup.report.summary import (
    Changes,
    Contradictions,
    Labelled,
    Metric,
    ReportSummary,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$])")


def markdown_page(summary: ReportSummary) -> str:
    """The whole page; every name and value in it is escaped."""
    return "\n\n".join(_blocks(summary)) + "\n"


def escaped(text: object) -> str:
    r"""Text that Markdown shows as it is.

    >>> print(escaped("<b>*a* | b</b>"))
    \<b\>\*a\* \| b\</b\>
    """
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def _blocks(s: ReportSummary) -> Iterator[str]:
    yield f"# {escaped(s.title)}"
    yield (
        f"{count(s.n_items)} items, {len(s.outcomes)} outcomes. Primary, the predictor "
        f"to improve: **{escaped(s.primary)}**. Reference, the one to trust: "
        f"**{escaped(s.reference)}**."
    )
    yield f"**{escaped(s.headline)}.**"
    yield from map(escaped, s.plain)
    yield "## What was assumed"
    yield from _assumed(s)
    yield "## What is guaranteed"
    yield from _guaranteed(s)
    yield "## What changes"
    yield from _changes(s, s.changes)
    yield "## Where the two contradict each other"
    yield from _contradictions(s.contradictions)
    if s.labelled is not None:
        yield "## What the labels say"
        yield from _labelled(s, s.labelled)
    yield "## What cannot be concluded"
    yield "\n".join(f"- {escaped(one)}" for one in s.not_concluded)
    yield f"Made by {escaped(s.created_by)}."


def _assumed(s: ReportSummary) -> Iterator[str]:
    about = s.assumption
    allowed = (
        f"{number(about.reference_error)} ({about.unit})"
        if about.reference_error
        else "none"
    )
    facts = [
        f"{capitalised(about.belief)} (rung {s.guarantee.title}).",
        f"Error it is allowed: {allowed}.",
        *(f"Also asserted: {one}." for one in about.asserted),
        about.population,
        f"{capitalised(s.loss_title)}. Lower is better.",
        *(f"Note: {note}" for note in about.notes),
        f"In the certificate's own words: {about.sentence}",
    ]
    yield "\n".join(f"- {escaped(fact)}" for fact in facts)


def _guaranteed(s: ReportSummary) -> Iterator[str]:
    header = (
        "loss",
        "trusted for",
        "guaranteed",
        "on other items",
        "on its own items",
        "break-even error",
        "",
    )
    rows = [
        (
            loss_title(row.loss),
            row.title,
            number(row.guaranteed_improvement),
            number(row.certified),
            number(row.fitted),
            number(row.guaranteed_until),
            "this map" if row.is_chosen else row.reason,
        )
        for row in s.guarantees
    ]
    yield _table(header, rows)
    yield from (f"Left out: {escaped(one)}." for one in s.left_out)
    again = [one for one in s.curves if one.kind == "fitted again"]
    for one in again:
        yield f"Fitted again for each reference error ({escaped(s.assumption.unit)}):"
        points = zip(one.errors, one.guaranteed_improvement, strict=True)
        yield _table(
            ("reference error", "guaranteed"),
            [(number(e), number(v)) for e, v in points],
        )


def _changes(s: ReportSummary, changes: Changes) -> Iterator[str]:
    agree = changes.agreement
    same = (
        ""
        if math.isnan(agree)
        else f" Both give the same answer on {percent(agree, 1)}."
    )
    yield escaped(
        f"{s.plain[1]} {percent(changes.share_moved, 1)} of the items move; on average "
        f"by {number(changes.mean_distance)} ({changes.distance}).{same}"
    )
    moves = [one for one in changes.moves if not one.answer]
    if moves:
        title = changes.scale.title
        yield _table(
            (f"{title} before", "after", "items"),
            [(number(m.before), number(m.after), count(m.n_items)) for m in moves],
        )
    if changes.most_moved:
        yield "The reports that move most:"
        yield _table(
            ("item", s.primary, "the map", s.reference, "moved by"),
            [
                (
                    one.item or f"{count(one.n_items)} items",
                    one.before,
                    one.after,
                    one.reference or "various",
                    number(one.distance),
                )
                for one in changes.most_moved
            ],
        )


def _contradictions(found: Contradictions | None) -> Iterator[str]:
    if found is None:
        yield "This could not be computed; the reason stands above."
        return
    yield escaped(found.explanation)
    if found.contracts:
        yield (
            f"Bets that earn {number(found.profit)} an item on average, whatever the "
            "truth is; each predictor would accept its own:"
        )
        yield "\n".join(
            f"{place}. {escaped(one.sentence)}"
            for place, one in enumerate(found.contracts, start=1)
        )
    yield escaped(" ".join([*found.notes, found.read_as]))


def _labelled(s: ReportSummary, found: Labelled) -> Iterator[str]:
    yield escaped(f"{count(found.n_items)} items have labels. {found.explanation}")
    shown = found.scores[0].metrics[:5]
    rows = []
    for score in found.scores:
        by_name = {one.name: one for one in score.metrics}
        cells = [_interval(by_name.get(one.name)) for one in shown]
        rows.append((f"{score.name} ({score.note})", *cells))
    yield _table(("predictor", *(metric_title(one.name) for one in shown)), rows)
    if found.reference:
        yield escaped(f"Did {s.reference} deserve the trust? {found.recommendation}")
    yield from map(escaped, found.notes)


def _interval(metric: Metric | None) -> str:
    if metric is None:
        return "–"
    return f"{number(metric.value)} [{number(metric.lower)}, {number(metric.upper)}]"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| "
        + " | ".join(cell if cell == "---" else escaped(cell) for cell in line)
        + " |"
        for line in lines
    )
