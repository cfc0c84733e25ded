"""Dataframes of any library through narwhals: pandas, polars, pyarrow, DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.errors import PredictionFileError

if TYPE_CHECKING:
    import pyarrow as pa

_LIBRARIES = {
    "cudf",
    "dask",
    "duckdb",
    "_duckdb",
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


def to_table(frame: object, name: str = "the dataframe") -> pa.Table:
    """An Arrow table with the columns of any dataframe; lazy ones are computed.

    Examples
    --------
    >>> import pandas as pd
    >>> to_table(pd.DataFrame({"p_yes": [0.25], "p_no": [0.75]})).to_pylist()
    [{'p_yes': 0.25, 'p_no': 0.75}]
    """
    import narwhals as nw
    import pyarrow as pa

    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    try:
        native: Any = nw.from_native(frame)
        eager = (
            native.collect("pyarrow") if isinstance(native, nw.LazyFrame) else native
        )
        table: pa.Table = eager.to_arrow()
    except (TypeError, ValueError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise PredictionFileError.of(
            name,
            f"this dataframe cannot be read ({reason}).",
            "pass a dataframe of pandas, polars, pyarrow or DuckDB whose columns "
            "each hold one kind of value",
        ) from error
    if table.num_rows == 0:
        raise PredictionFileError.of(name, "it has no rows.", "pass at least one item")
    return table
