"""What was elicited, as a table of predictions."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from trueup.elicit.asking import ItemReport, Unread

if TYPE_CHECKING:
    import pyarrow as pa

LITTLE_MASS = 0.1
"""Where the options together have less probability, the model did not answer."""


@dataclass(frozen=True, slots=True)
class Elicited:
    """What a model said about a list of questions.

    Examples
    --------
    >>> Elicited((), (), "some-model", "paper-base")
    Elicited(some-model, paper-base, 0 of 0 items read)
    """

    reports: tuple[ItemReport, ...]
    unread: tuple[Unread, ...]
    model: str
    template: str
    n_sent: int = 0
    n_reused: int = 0

    def __repr__(self) -> str:
        n_items = len(self.reports) + len(self.unread)
        read = f"{len(self.reports):,} of {n_items:,} items read"
        return f"Elicited({self.model}, {self.template}, {read})"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What somebody who uses these predictions should know."""
        reports = self.reports
        cut = sum("length" in r.finish_reason.split(",") for r in reports)
        reasoned = any(r.reasoning is not None for r in reports)
        counted = {
            "items have censored options: {n:,} of {total:,}": sum(
                any(r.censored) for r in reports
            ),
            "items give all options together less than "
            f"{LITTLE_MASS:g}: {{n:,}} of {{total:,}}": sum(
                r.option_mass < LITTLE_MASS for r in reports
            ),
            "reasonings cut off at the limit of tokens: {n:,} of {total:,}": (
                cut if reasoned else 0
            ),
            "items could not be read: {n:,}": len(self.unread),
        }
        total = len(reports)
        return tuple(
            text.format(n=number, total=total)
            for text, number in counted.items()
            if number
        )

    def table(self) -> pa.Table:
        """One row an item that was read: the schema of prediction files.

        ``item_id``, ``p_A``, ``p_B``, … (zero for letters that a question does not
        have), ``label`` and ``group`` where known, and columns that tell how the
        probabilities came about.
        """
        import pyarrow as pa

        most = max((len(r.question.choices) for r in self.reports), default=0)
        letters = ascii_uppercase[:most]
        rows = [self._row(report, letters) for report in self.reports]
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
        always = {"item_id", "option_mass"}
        # A column that is empty everywhere says nothing and has no type.
        known = {
            name: values
            for name, values in columns.items()
            if name in always or any(value is not None for value in values)
        }
        return pa.table(known)

    def _row(self, report: ItemReport, letters: str) -> dict[str, Any]:
        question = report.question
        padding = len(letters) - len(question.choices)
        stated = [*report.probabilities, *[0.0] * padding]
        logprobs = [*report.logprobs, *[None] * padding]
        cut = zip(question.letters, report.censored, strict=True)
        return {
            "item_id": question.id,
            **{f"p_{x}": p for x, p in zip(letters, stated, strict=True)},
            "label": question.label,
            "group": question.subject,
            "option_mass": report.option_mass,
            "censored": ",".join(letter for letter, is_cut in cut if is_cut),
            "finish_reason": report.finish_reason,
            "raw_text": report.raw_text,
            "reasoning": report.reasoning,
            "model": self.model,
            "template": self.template,
            "prompt_hash": report.prompt_hash,
            "n_orders": report.n_orders,
            "n_options": len(question.choices),
            "error_type": question.error_type,
            **{f"raw_logprob_{x}": v for x, v in zip(letters, logprobs, strict=True)},
        }


def unread_lines(unread: Sequence[Unread]) -> str:
    """Items that could not be read, as JSON lines."""
    return "".join(
        json.dumps(
            {"item_id": one.item_id, "reason": one.reason, "is_final": one.is_final},
            ensure_ascii=False,
        )
        + "\n"
        for one in unread
    )


def store_path(output: str | os.PathLike[str]) -> str:
    """Where requests and replies are kept: beside the predictions."""
    return f"{os.fspath(output)}.requests.jsonl"


def unread_path(output: str | os.PathLike[str]) -> str:
    """Where items without probabilities are listed."""
    return f"{os.fspath(output)}.unread.jsonl"
