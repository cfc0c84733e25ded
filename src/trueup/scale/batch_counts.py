"""Counting batches of arrays: the same statistics as the expressions, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.grid import LEVELS, level
from trueup.core.statistics import (
    CellLayout,
    CellStatistics,
    ScoreCounts,
)
from trueup.maps._compiled import edge_table

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


def add_scores(counts: ScoreCounts, batch: Batch, share: int = 1) -> int:
    """Add one item in ``share`` to a sketch, chosen by their numbers.

    Returns the start of a block with a bad row, or -1.
    """
    from trueup.scale._count_kernels import count_scores

    return int(
        count_scores(
            batch.primary.rows,
            batch.primary.answers,
            batch.reference.rows,
            batch.reference.answers,
            batch.numbers,
            share,
            _levels(),
            counts.primary,
            counts.reference,
        )
    )


@cache
def _levels() -> tuple[Floats, Floats, Ints]:
    """Starts, steps and first places of the grid's levels."""
    levels = [level(index) for index in range(LEVELS)]
    starts, steps, firsts = (np.array(column) for column in zip(*levels, strict=True))
    return starts, steps, firsts


@dataclass(frozen=True, slots=True, eq=False)
class DenseCounts:
    """A table of all combinations of cells, filled batch by batch."""

    layout: CellLayout
    bins: Floats
    micro: Floats
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
            edge_table([edges.reference for edges in layout.edges]),
            edge_table([edges.micro for edges in layout.edges]),
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
                self.n_items.shape,
                self.n_items.reshape(-1),
                self.reference.reshape(-1, self.reference.shape[-1]),
                self.primary.reshape(-1, self.primary.shape[-1]),
            )
        )

    def take(self, other: Self) -> None:
        """Add what another table of the same layout holds."""
        for mine, theirs in (
            (self.n_items, other.n_items),
            (self.reference, other.reference),
            (self.primary, other.primary),
        ):
            np.add(mine, theirs, out=mine)

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
