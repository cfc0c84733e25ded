"""A map on adaptive cells written out as column expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from trueup._validate import ROW_SUM_TOLERANCE, Floats
from trueup.maps._compiled import CompiledTilts
from trueup.scale import expressions as ex

_OWN, _TOP, _SAID = "__trueup_own_{}", "__trueup_top", "__trueup_said"
CELL = "__trueup_cell"


def checked(functions: Any, columns: Sequence[str]) -> Any:  # noqa: ANN401 - Spark
    """The first column, or Spark's error where a row is no distribution."""
    F = functions  # noqa: N806 - what everybody calls it
    terms = [F.col(column).cast("double") for column in columns]
    total = ex.row_sum(terms)
    bad = (F.abs(total - 1.0) > ROW_SUM_TOLERANCE) | total.isNull()
    for term in terms:
        bad = bad | (term < 0.0) | (term > 1.0)
    text = (
        f"trueup: a row of {', '.join(columns)} is missing a value, holds one outside "
        "[0, 1] or does not sum to one. hint: repair or remove these items."
    )
    return F.when(bad, F.raise_error(F.lit(text)).cast("double")).otherwise(terms[0])


def new_reports(
    frame: Any,  # noqa: ANN401 - narwhals
    columns: Sequence[str],
    compiled: CompiledTilts,
    stage: str,
) -> Any:  # noqa: ANN401 - narwhals
    """Stage ``cell`` adds the number of the cell, stage ``tilt`` the new reports."""
    if stage == "cell":
        return _with_cell(frame, columns, compiled)
    own = [_OWN.format(k) for k in range(len(columns))]
    n_tilts = len(compiled.slopes)
    if compiled.ranked:
        frame = frame.with_columns(
            *(_rank(own, k).alias(f"__trueup_rank_{k}") for k in range(len(own)))
        )
    for t in range(n_tilts):
        frame = _tilted(frame, own, t, compiled)
    means = []
    for k in range(len(own)):
        total = ex.row_sum([nw.col(f"__trueup_h{t}_{k}") for t in range(n_tilts)])
        means.append((total * (1.0 / n_tilts)).alias(f"__trueup_new_{k}"))
    return frame.with_columns(*means)


def _with_cell(frame: Any, columns: Sequence[str], compiled: CompiledTilts) -> Any:  # noqa: ANN401
    terms = [nw.col(column).cast(nw.Float64) for column in columns]
    own = [_OWN.format(k) for k in range(len(columns))]
    frame = frame.with_columns(ex.divisor(ex.row_sum(terms)).alias(_TOP))
    rest, floor = 1 - len(columns) * compiled.floor, compiled.floor
    normal = [term / nw.col(_TOP) for term in terms]
    if floor:
        normal = [rest * one + floor for one in normal]
    frame = frame.with_columns(
        *(one.alias(name) for one, name in zip(normal, own, strict=True))
    )
    frame = frame.with_columns(ex.largest(own).alias(_TOP))
    frame = frame.with_columns(ex.first_equal(own, _TOP).alias(_SAID))
    width = compiled.edges.shape[1]
    cell: Any = _reached(compiled.edges[-1]) + (len(compiled.edges) - 1) * width
    for a in range(len(compiled.edges) - 2, -1, -1):
        here = _reached(compiled.edges[a]) + a * width
        cell = nw.when(nw.col(_SAID) == a).then(here).otherwise(cell)
    return frame.with_columns(cell.cast(nw.Int64).alias(CELL))


def _reached(edges: Floats) -> Any:  # noqa: ANN401 - narwhals
    return ex.edges_reached(nw.col(_TOP), edges[np.isfinite(edges)])


def _rank(own: Sequence[str], k: int) -> Any:  # noqa: ANN401 - narwhals
    """Place of an outcome in its report's order; ties go to the first."""
    place: Any = nw.lit(0)
    for j, column in enumerate(own):
        if j != k:
            value, mine = nw.col(column), nw.col(own[k])
            before = value >= mine if j < k else value > mine
            place = place + nw.when(before).then(nw.lit(1)).otherwise(nw.lit(0))
    return place


def _slope(t: int, k: int, n_outcomes: int, ranked: bool) -> Any:  # noqa: ANN401
    if not ranked:
        return nw.col(f"__trueup_s{t}_{k}")
    chosen: Any = nw.col(f"__trueup_s{t}_{n_outcomes - 1}")
    for place in range(n_outcomes - 2, -1, -1):
        here = nw.col(f"__trueup_s{t}_{place}")
        chosen = (
            nw.when(nw.col(f"__trueup_rank_{k}") == place).then(here).otherwise(chosen)
        )
    return chosen


def _tilted(frame: Any, own: Sequence[str], t: int, compiled: CompiledTilts) -> Any:  # noqa: ANN401
    """One tilt's reports, in columns ``__trueup_h<t>_<k>``."""
    n = len(own)
    names = [f"__trueup_h{t}_{k}" for k in range(n)]
    slopes = [_slope(t, k, n, compiled.ranked) for k in range(n)]
    add = compiled.loss == "brier"
    frame = frame.with_columns(
        *(
            (nw.col(o) + s if add else nw.col(o) * s).alias(name)
            for o, s, name in zip(own, slopes, names, strict=True)
        )
    )
    if add:
        frame = _onto_simplex(frame, names)
    total = ex.row_sum([nw.col(name) for name in names])
    frame = frame.with_columns((1.0 / total).alias("__trueup_scale"))
    return frame.with_columns(
        *((nw.col(name) * nw.col("__trueup_scale")).alias(name) for name in names)
    )


def _onto_simplex(frame: Any, names: Sequence[str]) -> Any:  # noqa: ANN401 - narwhals
    """Euclidean projection, the sort written out as a network of comparisons."""
    n = len(names)
    ordered = [f"__trueup_o_{k}" for k in range(n)]
    frame = frame.with_columns(
        *(nw.col(name).alias(o) for name, o in zip(names, ordered, strict=True))
    )
    for a, b in ex.sorting_network(n):
        first, second = nw.col(ordered[a]), nw.col(ordered[b])
        frame = frame.with_columns(
            nw.max_horizontal(first, second).alias(ordered[a]),
            nw.min_horizontal(first, second).alias(ordered[b]),
        )
    excess: Any = nw.col(ordered[0]) - 1.0
    threshold = excess
    for k in range(1, n):
        excess = ex.row_sum([nw.col(o) for o in ordered[: k + 1]]) - 1.0
        inside = nw.col(ordered[k]) * float(k + 1) > excess
        threshold = nw.when(inside).then(excess / float(k + 1)).otherwise(threshold)
    frame = frame.with_columns(threshold.alias("__trueup_threshold"))
    lowered = [nw.col(name) - nw.col("__trueup_threshold") for name in names]
    return frame.with_columns(
        *(
            nw.when(one > 0.0).then(one).otherwise(nw.lit(0.0)).alias(name)
            for one, name in zip(lowered, names, strict=True)
        )
    )
