"""Labels as positions among the outcomes, whatever a column calls them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from trueup._validate import Ints, Label, is_missing
from trueup.errors import PredictionFileError


def plain(value: object) -> Any:  # noqa: ANN401 - whatever the column held
    """A value without its array type; 1.0 of a column with gaps is 1."""
    item = value.item() if isinstance(value, np.generic) else value
    is_whole = isinstance(item, float) and item.is_integer()
    return int(item) if is_whole else item  # type: ignore[arg-type]


def outcome_names(names: Iterable[str]) -> tuple[Label, ...]:
    """Names of outcomes from names of columns: whole numbers where all are.

    Examples
    --------
    >>> outcome_names(["0", "1"]), outcome_names(["0", "1+"])
    ((0, 1), ('0', '1+'))
    """
    texts = tuple(names)
    if texts and all(_is_whole(text) for text in texts):
        return tuple(int(text) for text in texts)
    return texts


def matched(values: Iterable[Any], outcomes: Sequence[Label]) -> list[Any]:
    """Values as outcomes where their text is an outcome's; others as they are."""
    by_text: dict[str, Label] = {str(outcome): outcome for outcome in outcomes}
    return [by_text.get(str(item), item) for item in map(plain, values)]


def label_positions(
    values: Iterable[Any], outcomes: Sequence[Label], name: str = "labels"
) -> tuple[Ints, str]:
    """Position of each label among the outcomes, and how labels were read.

    A label is an outcome's name. Where not all of them are, but all are whole numbers
    from 0 to K - 1, they are positions.

    Examples
    --------
    >>> positions, how = label_positions(["no", "yes"], ["yes", "no"])
    >>> positions.tolist(), how
    ([1, 0], 'labels are names of outcomes')
    >>> label_positions([1, 0], ["yes", "no"])[1]
    'labels are positions: 0 is yes, 1 is no'
    """
    items = [plain(value) for value in values]
    position = {str(outcome): index for index, outcome in enumerate(outcomes)}
    found = [None if is_missing(item) else position.get(str(item)) for item in items]
    if None not in found:
        return np.array(found, dtype=np.int64), "labels are names of outcomes"
    whole = [_position(item, len(outcomes)) for item in items]
    if None not in whole:
        how = f"labels are positions: 0 is {outcomes[0]}, 1 is {outcomes[1]}"
        how += ", ..." if len(outcomes) > 2 else ""
        return np.array(whole, dtype=np.int64), how
    bad = [row for row, index in enumerate(found) if index is None]
    shown = ", ".join(map(repr, outcomes[:6])) + (", ..." * (len(outcomes) > 6))
    raise PredictionFileError.of(
        name,
        f"{len(bad):,} of {len(items):,} labels are not among the outcomes; the first "
        f"is {items[bad[0]]!r} at row {bad[0]:,}.",
        f"the outcomes are {shown}",
    )


def _position(item: object, n_outcomes: int) -> int | None:
    if isinstance(item, str) and _is_whole(item):
        item = int(item)
    is_position = type(item) is int and 0 <= item < n_outcomes
    return item if is_position else None  # type: ignore[return-value]


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and str(int(text)) == text
