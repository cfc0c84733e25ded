"""Tables of predictions in and out: one schema for files and dataframes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup._packages import lazy_names

if TYPE_CHECKING:
    from trueup.data.files import read_table, write_table
    from trueup.data.frames import is_frame, to_table
    from trueup.data.labels import label_positions
    from trueup.data.pairing import Pair, pair_predictions
    from trueup.data.predictions import Predictions, read_predictions
    from trueup.data.schema import Columns, detect_columns
    from trueup.data.tables import predictions_table

__all__ = [
    "Columns",
    "Pair",
    "Predictions",
    "detect_columns",
    "is_frame",
    "label_positions",
    "pair_predictions",
    "predictions_table",
    "read_predictions",
    "read_table",
    "to_table",
    "write_table",
]

_HOMES = {
    "Columns": "trueup.data.schema",
    "Pair": "trueup.data.pairing",
    "Predictions": "trueup.data.predictions",
    "detect_columns": "trueup.data.schema",
    "is_frame": "trueup.data.frames",
    "label_positions": "trueup.data.labels",
    "pair_predictions": "trueup.data.pairing",
    "predictions_table": "trueup.data.tables",
    "read_predictions": "trueup.data.predictions",
    "read_table": "trueup.data.files",
    "to_table": "trueup.data.frames",
    "write_table": "trueup.data.files",
}

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
