"""Outcomes as one primary report tells them apart: a few of its own, and a block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.core.answer_losses import drawn_answers
from trueup.core.losses import ConfidenceLoss, Deployment


@dataclass(frozen=True, slots=True, eq=False)
class OwnOutcomes:
    """Which outcome a column of each primary report stands for."""

    outcome: Ints
    """(atoms, K') outcome of a column; -1 where the block shares it."""
    n_outcomes: int
    """K."""

    @property
    def is_block(self) -> Bools:
        """(atoms, K') columns that stand for the block."""
        return self.outcome < 0

    @property
    def block_size(self) -> Ints:
        """(atoms,) outcomes in the block."""
        return self.n_outcomes - (~self.is_block).sum(axis=1)

    @property
    def members(self) -> Floats:
        """(atoms, K') outcomes of a column; a block is all in its first one."""
        first = self.is_block & (np.cumsum(self.is_block, axis=1) == 1)
        members = (~self.is_block).astype(np.float64)
        return np.where(first, self.block_size[:, None], members)

    def each(self, atom: Ints, rows: Floats) -> Floats:
        """(n,) what each outcome of the block has, if the block's sum is shared."""
        total = np.where(self.is_block[atom], rows, 0.0).sum(axis=1)
        return np.asarray(total / self.block_size[atom])

    def answerable(self, weights: Floats) -> Floats:
        """(atoms, K') weights of answers that have a column of their own.

        Outcomes of a block are alike, so none of them is a better answer than another.
        """
        return np.where(self.is_block, 0.0, weights)

    def widened(self, atom: Ints, rows: Floats) -> Floats:
        """(n, K) rows over the real outcomes, the block's sum spread evenly."""
        return self.placed(atom, rows, self.each(atom, rows))

    def placed(self, atom: Ints, rows: Floats, each: Floats) -> Floats:
        """(n, K) rows over the real outcomes, with given numbers on the block's."""
        wide = np.repeat(each[:, None], self.n_outcomes, axis=1)
        row, column = np.nonzero(~self.is_block[atom])
        wide[row, self.outcome[atom[row], column]] = rows[row, column]
        return wide

    def repeated(self, rows: Floats) -> Floats:
        """(atoms, K) rows in which the columns of a block are alike."""
        wide = np.repeat(rows[:, -1:], self.n_outcomes, axis=1)
        row, column = np.nonzero(~self.is_block)
        wide[row, self.outcome[row, column]] = rows[row, column]
        return wide

    def spread(self, deployed: Deployment) -> Deployment:
        """The losses of real outcomes: a draw from the block is one from all of it."""
        drawn, confidence = deployed.weights, deployed.confidence
        if drawn is None or confidence is None:
            return deployed
        share = self.each(np.arange(len(drawn)), drawn)[:, None]
        real = np.where(self.is_block, share, drawn)
        sure = confidence[:, None]
        return replace(deployed, losses=sure**2 - 2 * sure * real)


class BlockConfidenceLoss(ConfidenceLoss):
    """Confidence loss over columns that stand for several outcomes."""

    def __init__(self, members: Floats) -> None:
        self.members = members

    def generator(self, p: Floats) -> Floats:
        each = np.divide(p, self.members, out=np.zeros_like(p), where=self.members > 0)
        return cast("Floats", each.max(axis=1) ** 2)

    def draws_of(self, slopes: Floats) -> tuple[Floats, Floats]:
        confidence, doubled = drawn_answers(slopes, self.members)
        return confidence, doubled * self.members
