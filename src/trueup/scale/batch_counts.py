"""Counting batches of arrays: the same statistics as the expressions, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.grid import LEVELS, level
from trueup.core.statistics import (
    CellLayout,
    CellStatistics,
    ScoreCounts,
)
from trueup.maps._compiled import steps_reached

MOST_COMBINATIONS = 20_000_000
"""A table of all combinations larger than this is not kept as one array."""


@dataclass(frozen=True, slots=True, eq=False)
class SideBatch:
    """One predictor's reports on a batch of items, not yet checked."""

    rows: Floats
    """(n, K) probabilities, or (n, 1) confidences."""
    answers: Ints
    """(n,) positions of answers, -1 where unknown; empty for distributions."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Both predictors on a batch of items."""

    primary: SideBatch
    reference: SideBatch
    numbers: Ints
    """(n,) whole numbers that decide the fold."""
    groups: Ints
    """(n,) numbers of groups; empty without groups."""

    def __len__(self) -> int:
        return len(self.numbers)


def add_scores(counts: ScoreCounts, batch: Batch) -> int:
    """Add a batch to a sketch; returns the start of a block with a bad row, or -1."""
    from trueup.scale._count_kernels import count_scores

    levels = [level(index) for index in range(LEVELS)]
    return int(
        count_scores(
            batch.primary.rows,
            batch.primary.answers,
            batch.reference.rows,
            batch.reference.answers,
            batch.numbers,
            np.array([one[0] for one in levels]),
            np.array([one[1] for one in levels]),
            np.array([one[2] for one in levels]),
            counts.primary,
            counts.reference,
        )
    )


@dataclass(frozen=True, slots=True, eq=False)
class DenseCounts:
    """A table of all combinations of cells, filled batch by batch."""

    layout: CellLayout
    bins: tuple[Floats, Ints]
    micro: tuple[Floats, Ints]
    n_items: Ints
    """(folds, groups, bins, answers, places, micro-cells)."""
    reference: Ints
    primary: Ints

    @classmethod
    def empty(cls, layout: CellLayout) -> Self:
        """Nothing counted yet."""
        f, g, b, k, p, m = layout.sizes()
        return cls(
            layout,
            step_table([edges.reference for edges in layout.edges]),
            step_table([edges.micro for edges in layout.edges]),
            np.zeros((f, g, b, k, p, m), dtype=np.int64),
            np.zeros((f, g, b, k, layout.n_reference_sums), dtype=np.int64),
            np.zeros((f, p, m, layout.n_primary_sums), dtype=np.int64),
        )

    def add(self, batch: Batch) -> int:
        """Add a batch; returns the start of a block with a bad row, or -1."""
        from trueup.scale._count_kernels import count_cells

        return int(
            count_cells(
                batch.primary.rows,
                batch.primary.answers,
                batch.reference.rows,
                batch.reference.answers,
                batch.numbers,
                batch.groups,
                self.bins,
                self.micro,
                self.layout.frame == "rank",
                self.n_items,
                self.reference,
                self.primary,
            )
        )

    def statistics(self) -> CellStatistics:
        """The combinations that occur."""
        keys = np.argwhere(self.n_items)
        return CellStatistics(
            self.layout,
            keys.astype(np.int64),
            self.n_items[tuple(keys.T)],
            self.reference,
            self.primary,
        )


def step_table(edges: list[Floats]) -> tuple[Floats, Ints]:
    """Edges filled up with infinity, and how many are reached at equal steps."""
    width = max(len(one) for one in edges) + 1
    padded = np.full((len(edges), width), np.inf)
    for index, one in enumerate(edges):
        padded[index, : len(one)] = one
    return padded, steps_reached(padded)
