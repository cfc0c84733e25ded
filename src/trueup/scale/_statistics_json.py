"""Statistics as JSON: whole numbers stay whole, edges keep every bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.core.statistics import CellLayout, CellStatistics, FoldEdges


def layout_to_json(layout: CellLayout) -> dict[str, Any]:
    """Cells as plain JSON values."""
    return {
        "outcomes": list(layout.outcomes),
        "primary": layout.primary_kind,
        "reference": layout.reference_kind,
        "groups": list(layout.groups),
        "frame": layout.frame,
        "edges": [
            {
                "reference": edges.reference.tolist(),
                "primary": [inner.tolist() for inner in edges.primary],
                "micro": edges.micro.tolist(),
            }
            for edges in layout.edges
        ],
    }


def layout_from_json(saved: dict[str, Any]) -> CellLayout:
    """The same cells again."""
    first, second = (
        FoldEdges(
            _numbers(edges["reference"]),
            tuple(_numbers(inner) for inner in edges["primary"]),
            _numbers(edges["micro"]),
        )
        for edges in saved["edges"]
    )
    return CellLayout(
        tuple(saved["outcomes"]),
        str(saved["primary"]),
        str(saved["reference"]),
        tuple(saved["groups"]),
        (first, second),
        str(saved["frame"]),
    )


def statistics_to_json(statistics: CellStatistics) -> dict[str, Any]:
    """Counts and sums as plain JSON values."""
    return {
        "layout": layout_to_json(statistics.layout),
        "keys": statistics.keys.tolist(),
        "n_items": statistics.n_items.tolist(),
        "reference": statistics.reference.tolist(),
        "primary": statistics.primary.tolist(),
    }


def statistics_from_json(saved: dict[str, Any]) -> CellStatistics:
    """The same statistics again; shapes are checked."""
    layout = layout_from_json(saved["layout"])
    keys = np.array(saved["keys"], dtype=np.int64).reshape(-1, 6)
    if (keys < 0).any() or (keys >= np.array(layout.sizes())).any():
        message = "a key lies outside the cells"
        raise ValueError(message)
    n_items = _as_saved(saved["n_items"])
    f, g, b, k, p, m = layout.sizes()
    shapes = (f, g, b, k, layout.n_reference_sums), (f, p, m, layout.n_primary_sums)
    reference = _as_saved(saved["reference"]).reshape(shapes[0])
    primary = _as_saved(saved["primary"]).reshape(shapes[1])
    if len(keys) != len(n_items):
        message = "rows of statistics do not match"
        raise ValueError(message)
    return CellStatistics(layout, keys, n_items, reference, primary)


def _as_saved(values: list[Any]) -> Any:  # noqa: ANN401 - whole numbers, or faded ones
    array = np.array(values)
    wanted = np.int64 if array.dtype.kind in "iu" else np.float64
    return array.astype(wanted)


def _numbers(values: list[float]) -> Any:  # noqa: ANN401 - an array
    return np.array(values, dtype=np.float64)
