"""Columns of Arrow as arrays and back, without copies.

Arrow's own ways import pandas where it is installed, a good part of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._validate import Floats

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS = {
    "double": np.float64,
    "float": np.float32,
    "halffloat": np.float16,
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
}


def in_numpy(array: pa.Array) -> Any:  # noqa: ANN401 - an array of any numbers
    """The values of a column without gaps, where they are."""
    kind = np.dtype(_KINDS[str(array.type)])
    if len(array) == 0:
        return np.empty(0, dtype=kind)
    values, first = array.buffers()[1], array.offset
    return np.frombuffer(values, kind, len(array), first * kind.itemsize)


def in_arrow(values: Floats) -> pa.Array:
    """Numbers that follow each other in memory as a column."""
    import pyarrow as pa

    held = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.float64(), len(values), [None, held])
