"""Two predictors on the same items: paired by id, or by row where that is safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup._validate import Floats, Ints
from trueup.data.convert import Objects
from trueup.data.predictions import Predictions
from trueup.data.schema import is_key_like, listed
from trueup.errors import PredictionFileError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Pair:
    """A primary and a reference on the same items in the same order."""

    primary: Predictions
    reference: Predictions
    explanation: tuple[str, ...]
    """How rows were paired, and which were left out on request."""

    @property
    def item_ids(self) -> Objects | None:
        """Names of the items, where either side names them."""
        ids = self.primary.item_ids
        return self.reference.item_ids if ids is None else ids

    @property
    def labels(self) -> Objects | None:
        """What happened, where either side says so."""
        labels = self.primary.labels
        return self.reference.labels if labels is None else labels

    @property
    def groups(self) -> Objects | None:
        """The context of each item, where either side says so."""
        groups = self.primary.groups
        return self.reference.groups if groups is None else groups

    @property
    def weights(self) -> Floats | None:
        """How many items a row stands for, where either side says so."""
        weights = self.primary.weights
        return self.reference.weights if weights is None else weights

    def column(self, name: str) -> Objects:
        """A column of the primary's table, or else of the reference's."""
        if name in self.primary.table.column_names:
            return self.primary.column(name)
        return self.reference.column(name)

    def __len__(self) -> int:
        return len(self.primary)


def pair_predictions(
    primary: Predictions, reference: Predictions, *, drop_unpaired: bool = False
) -> Pair:
    """Bring two predictors to the same items in the order of the primary.

    Rows are paired by id where both name their items. Otherwise they are paired by
    row, but only if there are equally many and no column that both share could be an
    id: a wrong pairing would give numbers that look right.

    Parameters
    ----------
    drop_unpaired
        Leave out items that only one side holds, and say so, instead of refusing.

    Examples
    --------
    >>> import polars as pl
    >>> from trueup.data import read_predictions
    >>> said = {"item_id": ["a", "b"], "p_yes": [0.5, 0.9], "p_no": [0.5, 0.1]}
    >>> primary = read_predictions(pl.DataFrame(said))
    >>> reference = read_predictions(pl.DataFrame(said).reverse())
    >>> pair = pair_predictions(primary, reference)
    >>> pair.reference.item_ids.tolist(), pair.explanation
    (['a', 'b'], ('paired by item_id: 2 items',))
    """
    first, second = _same_answers(primary, reference)
    if first.table is second.table:
        return Pair(first, second, ("both predictors are in the same rows",))
    ids = first.item_ids, second.item_ids
    if ids[0] is not None and ids[1] is not None:
        return _by_id(first, second, ids[0], ids[1], drop_unpaired)
    return _by_row(first, second)


def _by_id(
    first: Predictions,
    second: Predictions,
    ids: Objects,
    other_ids: Objects,
    drop_unpaired: bool,
) -> Pair:
    place = {item: row for row, item in enumerate(other_ids)}
    kept = [row for row, item in enumerate(ids) if item in place]
    lost = [item for item in ids if item not in place]
    known = set(ids)
    other_lost = [item for item in other_ids if item not in known]
    column = first.columns.item_id or "item_id"
    if not kept:
        raise PredictionFileError.of(
            first.name,
            f"no {column} of its {len(ids):,} occurs in {second.name} (here: "
            f"{listed(ids, 2)}; there: {listed(other_ids, 2)}).",
            "are these the same items? name the column that identifies them with --id "
            "(in Python id=)",
        )
    told = [f"paired by {column}: {len(kept):,} items"]
    for name, missing, where in (
        (first.name, lost, second.name),
        (second.name, other_lost, first.name),
    ):
        if missing:
            some = listed(missing, 3)
            problem = f"{len(missing):,} items are missing from {where}: {some}."
            if not drop_unpaired:
                hint = (
                    "add them, or leave them out with --drop-unpaired (in Python "
                    "drop_unpaired=True)"
                )
                raise PredictionFileError.of(name, problem, hint)
            told.append(f"left out: {name}: {problem}")
    rows = np.array(kept, dtype=np.int64)
    others = np.array([place[ids[row]] for row in kept], dtype=np.int64)
    return Pair(_taken(first, rows), _taken(second, others), tuple(told))


def _taken(predictions: Predictions, rows: Ints) -> Predictions:
    in_order = len(rows) == len(predictions) and (np.diff(rows) == 1).all()
    return predictions if in_order else predictions.take(rows)


def _by_row(first: Predictions, second: Predictions) -> Pair:
    candidates = _shared_keys(first, second)
    if candidates:
        raise PredictionFileError.of(
            first.name,
            f"this and {second.name} share what may identify items: "
            f"{listed(candidates)}.",
            f"choose with --id {candidates[0]} (in Python id={candidates[0]!r}), or "
            "remove the column to pair by row",
        )
    if len(first) != len(second):
        names = [c for c in first.table.column_names if c in second.table.column_names]
        rest = [c for c in names if c not in first.columns.used]
        shared = f"; both hold {listed(rest)}" if rest else ""
        raise PredictionFileError.of(
            first.name,
            f"it has {len(first):,} rows but {second.name} has {len(second):,}, and "
            "no id says which belong together.",
            f"add a column item_id to both, or name one with --id{shared}",
        )
    return Pair(first, second, (f"paired by row: {len(first):,} items",))


def _shared_keys(first: Predictions, second: Predictions) -> list[str]:
    """Columns of both that could identify items: by name, or because all differ."""
    used = first.columns.used | second.columns.used
    both = [
        name
        for name in first.table.column_names
        if name in second.table.column_names and (name not in used or name == "item_id")
    ]
    return [
        name
        for name in both
        if is_key_like(name)
        or (_is_key(first.table, name) and _is_key(second.table, name))
    ]


def _is_key(table: pa.Table, name: str) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    kind = column.type
    types = pa.types
    is_text = types.is_string(kind) or types.is_large_string(kind)
    if not (is_text or types.is_integer(kind)) or column.null_count:
        return False
    return int(pc.count_distinct(column).as_py()) == len(column) > 1


def _same_answers(
    first: Predictions, second: Predictions
) -> tuple[Predictions, Predictions]:
    """Outcomes that are only known from the answers that occur are made the same."""
    if first.outcomes_given and second.outcomes_given:
        return first, second
    if first.outcomes_given:
        return first, second.with_outcomes(first.outcomes)
    if second.outcomes_given:
        return first.with_outcomes(second.outcomes), second
    every = {str(name): name for name in (*second.outcomes, *first.outcomes)}
    names = tuple(sorted(every.values(), key=lambda name: (str(type(name)), name)))
    return first.with_outcomes(names), second.with_outcomes(names)
