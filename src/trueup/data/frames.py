"""Dataframes of any library through narwhals: pandas, polars, pyarrow, DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup._frames import is_frame
from trueup.errors import PredictionFileError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["is_frame", "to_table"]


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
