"""Linear programmes over trades, and what their multipliers prove.

Three questions about a pair have the same objective, the sure profit of a trade

    profit = sum of both sides' multipliers * targets - sum_n w_n max_y [ pull_n(y) ]

and differ only in which trades count: payoffs within [-1, 1] (arbitrage), a limited
stake on every moment (MinECE), a limited stake against the reference and any against
the primary (break-even). The dual variables of the maximum are outcome rates: the
truth that is hardest to earn from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.audit.pair import Pair, Side
from trueup.core.simplex import normalise_rows
from trueup.solve.certificate import ROUNDING, Bound, certified_minimum
from trueup.solve.model import Block, ConicModel


@dataclass(frozen=True, slots=True, eq=False)
class Trade:
    """Multipliers of both sides, and rates from the dual; nothing here is trusted."""

    reference: Floats
    primary: Floats
    rates: Floats
    """(rows, K) estimate of the truth that is hardest to earn from."""


@dataclass(frozen=True, slots=True, eq=False)
class Book:
    """A model whose objective is minus the sure profit of a trade."""

    pair: Pair
    model: ConicModel
    stakes: tuple[Ints, Ints]
    """Variable numbers of the multipliers, reference first."""
    ceiling: Block
    place: Ints
    """(rows, K) row of the ceiling block; -1 where an outcome is excluded."""

    def solve(self) -> Trade:
        """The best trade."""
        solution = self.model.solve()
        prices = np.where(self.place >= 0, solution.dual(self.ceiling)[self.place], 0.0)
        reference, primary = (
            side.signed(solution.x[stakes])
            for side, stakes in zip(self.pair.sides, self.stakes, strict=True)
        )
        return Trade(reference, primary, normalise_rows(prices + 1e-300))

    def limit(self, side: int, size: float) -> None:
        """At most this stake on every moment of a side."""
        numbers = self.stakes[side]
        order, ones = np.arange(numbers.size), np.ones(numbers.size)
        bound = np.full(numbers.size, size)
        self.model.constrain("nonnegative", [(order, numbers, ones)], bound)
        self.model.constrain("nonnegative", [(order, numbers, -ones)], bound)

    def pin(self, side: int, which: Bools) -> None:
        """No stake on these moments."""
        numbers = self.stakes[side][which]
        if numbers.size:
            order, ones = np.arange(numbers.size), np.ones(numbers.size)
            self.model.constrain(
                "zero", [(order, numbers, ones)], np.zeros(numbers.size)
            )

    def balance(self, side: int) -> None:
        """Where a common shift of a cell's multipliers is free, choose mean zero."""
        moments = self.pair.sides[side].moments
        if moments.shiftable:
            self.model.constrain(
                "zero",
                [(moments.cell_of_row, self.stakes[side], moments.target)],
                np.zeros(moments.n_cells),
            )


def open_book(pair: Pair, excluded: Bools | None = None) -> Book:
    """Start a programme over trades.

    ``excluded`` marks (rows, K) outcomes that need not be hedged.
    """
    model = ConicModel()
    n_rows, n_outcomes = pair.shape
    stakes = (
        model.variables(pair.reference.moments.n_rows),
        model.variables(pair.primary.moments.n_rows),
    )
    worst = model.variables(n_rows)
    weight = pair.rows.weight
    model.cost(worst, weight)
    hedged = np.ones((n_rows, n_outcomes), dtype=bool) if excluded is None else ~excluded
    place = np.full(hedged.shape, -1)
    place[hedged] = np.arange(int(hedged.sum()))
    row, _ = np.nonzero(hedged)
    entries = [(np.arange(len(row)), worst[row], -np.ones(len(row)))]
    for side, numbers in zip(pair.sides, stakes, strict=True):
        model.cost(numbers, -side.moments.target)
        entries.append(_pull_entries(side, numbers, place))
        _respect_signs(model, side, numbers)
    ceiling = model.constrain("nonnegative", entries, np.zeros(len(row)))
    return Book(pair, model, stakes, ceiling, place)


def _pull_entries(
    side: Side, numbers: Ints, place: Ints
) -> tuple[Ints, Ints, Floats]:
    """Payoff before its price, for every hedged outcome of every row."""
    from scipy import sparse  # noqa: PLC0415 - not part of importing us

    moments, n_outcomes = side.moments, place.shape[1]
    n_nodes = len(moments.anchors)
    table = sparse.csr_array(
        (moments.coefficient, (moments.node * n_outcomes + moments.outcome, moments.row)),
        shape=(n_nodes * n_outcomes, moments.n_rows),
    )
    row, outcome = np.nonzero(place >= 0)
    spread = table[side.node[row] * n_outcomes + outcome].tocoo()
    return spread.row.astype(np.int64), numbers[spread.col], spread.data


def _respect_signs(model: ConicModel, side: Side, numbers: Ints) -> None:
    below = numbers[~side.moments.equality]
    if below.size:
        order, ones = np.arange(below.size), np.ones(below.size)
        model.constrain("nonnegative", [(order, below, ones)], np.zeros(below.size))


def sure_profit(pair: Pair, trade: Trade, excluded: Bools | None = None) -> Bound:
    """What a trade earns whatever the truth, recomputed from its multipliers.

    ``base`` is the profit when every claim holds; ``steepness`` is what a unit of the
    reference's error can take away from it.
    """
    primary = pair.primary.signed(trade.primary)
    against = -pair.primary.moments.pull(primary)[pair.primary.node]
    size = float(np.abs(against).max(initial=0.0))
    if excluded is not None:
        against = np.where(excluded, np.inf, against)
    bound = certified_minimum(
        pair.reference.moments,
        pair.rows,
        against,
        trade.reference,
        reference_error=np.inf,  # the trade must hold up against any error
        size=size,
    )
    return Bound(
        base=bound.base + float(primary @ pair.primary.moments.target),
        steepness=bound.steepness,
        rounding=ROUNDING * (1 + size + bound.steepness),
    )
