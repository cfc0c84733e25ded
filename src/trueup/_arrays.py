"""Small array operations used everywhere: distinct rows and sums by group."""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats, Ints


def distinct_rows(rows: Floats) -> tuple[Ints, Ints]:
    """First occurrence of each distinct row, in lexicographic order, and the inverse.

    Adding zero makes -0.0 and 0.0 the same report.
    """
    keys = np.ascontiguousarray(rows + 0.0)
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    starts = np.ones(len(keys), dtype=bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    inverse = np.empty(len(keys), dtype=np.int64)
    inverse[order] = np.cumsum(starts) - 1
    return order[starts].astype(np.int64), inverse


def group_sums(index: Ints, values: Floats, n_groups: int) -> Floats:
    """(groups,) sums of numbers, or (groups, K) sums of rows, by group."""
    if values.ndim == 1:
        return np.bincount(index, weights=values, minlength=n_groups).astype(np.float64)
    n_columns = values.shape[1]
    place = index[:, None] * n_columns + np.arange(n_columns)
    flat = np.bincount(
        place.ravel(), weights=values.ravel(), minlength=n_groups * n_columns
    )
    return flat.astype(np.float64).reshape(n_groups, n_columns)


def equal_pairs(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """All (i, j) with first[i] == second[j], in the order of j."""
    order = np.argsort(first, kind="stable")
    size = 1 + max(int(first.max(initial=-1)), int(second.max(initial=-1)))
    counts = np.bincount(first, minlength=size)
    start = np.cumsum(counts) - counts
    lengths = counts[second]
    j = np.repeat(np.arange(len(second)), lengths)
    offset = np.arange(len(j)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return order[np.repeat(start[second], lengths) + offset], j
