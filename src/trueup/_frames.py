"""Dataframes, recognised without importing any library and read by ``trueup.data``.

The mathematics takes arrays and reports. Where somebody passes a dataframe, the package
that reads tables is looked up by name: it lies above, and neither numpy code nor its
tests should need a dataframe library.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_LIBRARIES = {
    "_duckdb",
    "cudf",
    "dask",
    "duckdb",
    "ibis",
    "modin",
    "narwhals",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "sqlframe",
}
_FRAMES = {"DataFrame", "LazyFrame", "Table", "DuckDBPyRelation", "RecordBatch"}


def is_frame(value: object) -> bool:
    """Whether this is a dataframe; imports nothing to find out.

    Examples
    --------
    >>> import polars as pl
    >>> is_frame(pl.DataFrame({"p_yes": [0.5]})), is_frame([[0.5, 0.5]])
    (True, False)
    """
    kind = type(value)
    home = kind.__module__.partition(".")[0]
    return home in _LIBRARIES and kind.__name__ in _FRAMES


def read_frame(frame: object, name: str, outcomes: tuple[Any, ...] | None) -> Any:  # noqa: ANN401 - reports, which lie above
    """The reports a dataframe holds, by the schema of prediction files."""
    data = import_module("trueup.data.predictions")
    return data.read_predictions(frame, name=name, outcomes=outcomes).reports


def read_two_frames(
    primary: object, reference: object, outcomes: tuple[Any, ...] | None
) -> tuple[Any, Any]:
    """Two dataframes as reports on the same items in the order of the first."""
    data = import_module("trueup.data.predictions")
    pairing = import_module("trueup.data.pairing")
    first = data.read_predictions(primary, name="primary", outcomes=outcomes)
    second = data.read_predictions(reference, name="reference", outcomes=outcomes)
    pair = pairing.pair_predictions(first, second)
    return pair.primary.reports, pair.reference.reports
