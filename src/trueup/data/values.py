"""Columns as Python values, also those that Python has no value for."""

from __future__ import annotations

from typing import Any


def python_values(column: Any) -> list[Any]:  # noqa: ANN401 - an Arrow array of any kind
    """The values of an Arrow column.

    A date beyond Python's calendar is given as text, and text that is not UTF-8 with
    its bytes written out: neither can be used as a number, but both can be named.

    Examples
    --------
    >>> import pyarrow as pa
    >>> python_values(pa.array([1.5, None]))
    [1.5, None]
    >>> python_values(pa.array([2**62], pa.timestamp("s")))
    ['4611686018427387904']
    """
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return [_one(value) for value in column]


def _one(value: Any) -> Any:  # noqa: ANN401 - an Arrow scalar
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        inner = getattr(value, "value", None)
        return str(inner if inner is not None else type(value).__name__)
