"""Results as people read them: one line, a text table, an HTML table, JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trueup._render import html_table
from trueup._validate import Floats, Label
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports

MOST_ROWS = 20
"""Rows a table shows before it says how many more there are."""
_MOST_OUTCOMES = 6


@dataclass(frozen=True, slots=True)
class Table:
    """A small table of text, with remarks below it."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Aligned columns for a terminal."""
        cells = [list(self.header), *map(list, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rules = [["-" * width for width in widths]]
        above = [cells[0], *rules] if any(self.header) else []
        lines = [
            "  ".join(map(str.ljust, row, widths)).rstrip()
            for row in (*above, *cells[1:])
        ]
        return "\n".join([self.caption, "", *lines, *_spaced(self.notes)])

    def html(self) -> str:
        """The same for a notebook; every text is escaped."""
        return html_table(self.caption, self.header, self.rows, self.notes)


class Shown(ABC):
    """A result that shows itself as a table wherever it is looked at."""

    @abstractmethod
    def _table(self) -> Table:
        """Everything the tables show."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as one JSON object; infinity is the text ``"inf"``."""

    def table(self) -> str:
        """The result as a table for a terminal; ``print`` shows the same."""
        return self._table().text()

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return self._table().html()


def _spaced(notes: Sequence[str]) -> list[str]:
    return ["", *notes] if notes else []


def shortened(
    rows: Sequence[Sequence[str]],
) -> tuple[Sequence[Sequence[str]], list[str]]:
    """The first rows, and a remark on how many were left out."""
    left = len(rows) - MOST_ROWS
    return rows[:MOST_ROWS], [f"... and {left:,} more"] if left > 0 else []


def number(value: float) -> str:
    """Four digits; what is only rounding is zero."""
    return f"{0.0 if abs(value) < 1e-10 else value:.4g}"


def percent(share: float) -> str:
    """A share of items."""
    return f"{share:.1%}"


def report_value(reports: Reports, index: int) -> Any:  # noqa: ANN401 - its own kind
    """One report as plain Python values: a tuple, or a value."""
    if isinstance(reports, AnswerConfidence):
        answer = reports.outcomes[int(reports.answer[index])]
        return answer, float(reports.confidence[index])
    if isinstance(reports, Distributions):
        return tuple(map(float, reports.probabilities[index]))
    stated = reports.keys()[index, 0]
    if reports.answers() is not None:
        return reports.outcomes[int(stated)]
    return float(stated)


def report_text(reports: Reports, index: int) -> str:
    """One report as a reader would write it."""
    value = report_value(reports, index)
    if isinstance(reports, AnswerConfidence):
        return f"({value[0]}, {number(value[1])})"
    if isinstance(reports, PointReport):
        shown = value if isinstance(value, str) else number(float(value))
        return f"{reports.about.title} {shown}"
    return distribution_text(reports.outcomes, value)


def distribution_text(
    outcomes: Sequence[Label], rates: Sequence[float] | Floats
) -> str:
    """A distribution, in full where it is short enough to be read."""
    if len(outcomes) == 2:
        return f"P({outcomes[1]}) = {number(float(rates[1]))}"
    largest = sorted(range(len(outcomes)), key=lambda k: -float(rates[k]))
    chosen = sorted(largest[:_MOST_OUTCOMES])
    parts = [f"{outcomes[k]} {number(float(rates[k]))}" for k in chosen]
    more = ", ..." if len(outcomes) > _MOST_OUTCOMES else ""
    return f"({', '.join(parts)}{more})"
