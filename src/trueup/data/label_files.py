"""Labels from a file of their own, brought into the order of predictions."""

from __future__ import annotations

import numpy as np

from trueup.data.convert import Objects, item_ids, objects
from trueup.data.files import read_table, source_name
from trueup.data.predictions import Predictions
from trueup.data.schema import listed
from trueup.errors import PredictionFileError


def read_labels(
    path: str,
    predictions: Predictions,
    *,
    id: str | None = None,  # noqa: A002 - what users call it
    label: str | None = None,
) -> tuple[Objects, str]:
    """The label of each prediction, by item where both name their items.

    Returns also how messages should call the file.
    """
    key = id or "item_id"
    name = source_name(path)
    table = read_table(path, keep_text=(key,))
    column = _label_column(table.column_names, key, label, name)
    values = objects(table.column(column))
    ids = predictions.item_ids
    if ids is None or key not in table.column_names:
        if len(values) != len(predictions):
            raise PredictionFileError.of(
                name,
                f"it has {len(values):,} labels for {len(predictions):,} predictions, "
                "and no id says which belong together.",
                "add a column item_id to both files, or name one with --id",
            )
        return values, name
    place = {item: row for row, item in enumerate(item_ids(table, key, name))}
    missing = [item for item in ids if item not in place]
    if missing:
        raise PredictionFileError.of(
            name,
            f"{len(missing):,} of {len(ids):,} items have no label: "
            f"{listed(missing, 3)}.",
            "add their labels, or remove these items from the predictions",
        )
    return values[np.array([place[item] for item in ids], dtype=np.int64)], name


def _label_column(names: list[str], key: str, label: str | None, name: str) -> str:
    if label is not None and label in names:
        return label
    rest = [column for column in names if column != key]
    if label is None and "label" in names:
        return "label"
    if label is None and len(rest) == 1:
        return rest[0]
    raise PredictionFileError.of(
        name,
        f"there is no column {label or 'label'!r}.",
        f"name the column that holds labels with --label; there are {listed(names)}",
    )
