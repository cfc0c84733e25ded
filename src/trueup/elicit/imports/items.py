"""What importers have in common: items, notes, and the table they become."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from trueup.elicit import problems
from trueup.elicit.asking import Unread
from trueup.errors import LogFormatError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """One item of a log."""

    item_id: str
    probabilities: tuple[float, ...]
    answer: int | None = None
    group: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further columns."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What was found in logs.

    Examples
    --------
    >>> Imported((ImportedItem("q1", (0.25, 0.75), answer=1),)).table().to_pylist()
    [{'item_id': 'q1', 'p_A': 0.25, 'p_B': 0.75, 'label': 'B'}]
    """

    items: tuple[ImportedItem, ...]
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()

    def table(self, *, pad_options: bool = False) -> pa.Table:
        """The schema of prediction files; options are named by their letters."""
        import pyarrow as pa

        counts = Counter(len(item.probabilities) for item in self.items)
        if len(counts) > 1 and not pad_options:
            raise problems.mixed(dict(sorted(counts.items())))
        check_item_ids([item.item_id for item in self.items])
        letters = ascii_uppercase[: max(counts, default=0)]
        rows = [_row(item, letters) for item in self.items]
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
        known = {
            name: values
            for name, values in columns.items()
            if any(value is not None for value in values)
        }
        return pa.table(known)


def _row(item: ImportedItem, letters: str) -> dict[str, Any]:
    stated = [*item.probabilities, *[0.0] * (len(letters) - len(item.probabilities))]
    return {
        "item_id": item.item_id,
        **{f"p_{x}": p for x, p in zip(letters, stated, strict=True)},
        "label": None if item.answer is None else ascii_uppercase[item.answer],
        "group": item.group,
        **item.details,
    }


def check_item_ids(ids: Sequence[str]) -> None:
    """Refuse logs in which one id names two items."""
    twice = [name for name, n in Counter(ids).items() if n > 1]
    if twice:
        message = (
            f"{len(twice):,} ids name more than one item; the first is {twice[0]!r}.\n"
            "hint: import logs of different runs into different files."
        )
        raise LogFormatError(message)


def shares(weights: Sequence[float]) -> tuple[float, ...] | None:
    """Logarithms of weights as probabilities; None if nothing has any weight."""
    top = max(weights)
    if math.isnan(math.fsum(weights)) or not math.isfinite(top):
        return None
    parts = [math.exp(weight - top) for weight in weights]
    total = math.fsum(parts)
    return tuple(part / total for part in parts)
