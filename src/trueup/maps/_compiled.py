"""Maps on adaptive cells as flat arrays, applied to millions of rows a second."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.resolution import PrimaryCells
from trueup.solve.adaptive import Tilt

if TYPE_CHECKING:
    from trueup.maps.rules import Tilts

_CHUNK = 1 << 16
"""Rows a thread takes at a time."""
FEW_ROWS = 4096
"""Below this many rows loading compiled code costs more than it saves."""
_STEEP = 300.0
"""Slopes further apart than this might underflow as factors."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledTilts:
    """All tilts of a map on one set of edges, in the form that the loops read."""

    loss: str
    floor: float
    ranked: bool
    """Whether answers share cells and slopes go by a report's own ranking."""
    edges: Floats
    """(answers, width) edges of all tilts together, filled up with infinity."""
    slopes: Floats
    """(tilts, K, answers * width) half slopes to add (Brier), or factors to multiply by
    (log)."""

    @classmethod
    def of(cls, rule: Tilts, floor: float | None) -> Self | None:
        """Flatten a rule; None for maps that need another formula."""
        halves = () if rule.halves is None else rule.halves.halves
        tilts = [half.tilt for half in halves if isinstance(half.tilt, Tilt)]
        plain = rule.about.name == "distribution" and rule.loss in ("brier", "log")
        if not (plain and tilts and len(tilts) == len(halves)):
            return None
        edges, cells = joined_edges([t.cells for t in tilts])
        ranked = tilts[0].cells.frame == "rank"
        flat = np.stack([t.slopes[c].T for t, c in zip(tilts, cells, strict=True)])
        if rule.loss == "brier":
            return cls(rule.loss, floor or 0.0, ranked, edges, flat / 2)
        if np.ptp(flat, axis=1).max() > _STEEP:
            return None
        factors = np.exp(flat - flat.max(axis=1, keepdims=True))
        return cls(rule.loss, floor or 0.0, ranked, edges, factors)

    def apply(self, rows: Floats, out: Floats | None = None) -> Floats | None:
        """New reports for rows of probabilities; None if some row is not one.

        ``rows`` may have any strides and be float32; ``out`` is filled where given.
        """
        out = np.empty(rows.shape) if out is None else out
        starts = range(0, len(rows), _CHUNK)
        workers = min(os.cpu_count() or 1, len(starts))

        def run(first: int) -> int:
            return self._run(rows[first : first + _CHUNK], out[first : first + _CHUNK])

        if workers <= 1:
            return out if all(run(first) < 0 for first in starts) else None
        with ThreadPoolExecutor(workers) as pool:
            return out if all(bad < 0 for bad in pool.map(run, starts)) else None

    def _run(self, rows: Floats, out: Floats) -> int:
        from trueup.maps._row_kernels import BRIER, LOG, tilt_rows  # noqa: PLC0415

        loss = BRIER if self.loss == "brier" else LOG
        given = (self.floor, loss, self.ranked, self.edges, self.slopes)
        return int(tilt_rows(rows, *given, out))


def joined_edges(several: list[PrimaryCells]) -> tuple[Floats, list[Ints]]:
    """Edges of several sets of cells together, and each set's cell in every part.

    Edges are a table as of :func:`edge_table`; parts are numbered answer by answer,
    equally many for each. In the frame of ranks there is one answer.
    """
    joined = [
        np.unique(np.concatenate([cells.edges[a] for cells in several]))
        for a in range(len(several[0].edges))
    ]
    edges = edge_table(joined)
    found = [np.zeros(edges.shape, dtype=np.int64) for _ in several]
    for a, own in enumerate(joined):
        lowest = np.append(-np.inf, own)
        for part, cells in zip(found, several, strict=True):
            inside = np.searchsorted(cells.edges[a], lowest, side="right")
            part[a, : len(lowest)] = cells.offsets[a] + inside
    return edges, [part.ravel() for part in found]


def edge_table(several: list[Floats]) -> Floats:
    """Edges row by row, each filled up with infinity to the same power of two."""
    most = max(len(one) for one in several)
    table = np.full((len(several), 1 << most.bit_length()), np.inf)
    for row, one in zip(table, several, strict=True):
        row[: len(one)] = one
    return table


def is_rows(values: object, n_outcomes: int) -> bool:
    """Whether these are rows of numbers as the loops take them."""
    return (
        isinstance(values, np.ndarray)
        and values.dtype in (np.float64, np.float32)
        and values.ndim == 2
        and values.shape[1] == n_outcomes
    )
