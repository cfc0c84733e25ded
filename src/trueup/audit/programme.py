"""Linear programmes over trades, and what their multipliers prove.

Three questions about a pair have the same objective, the sure profit of a trade

    profit = sum of both sides' multipliers * targets - sum_n w_n max_y [ pull_n(y) ]

and differ only in which trades count: payoffs within [-1, 1] (arbitrage), a limited
stake on every moment (MinECE), a limited stake against the reference and any against
the primary (break-even). The dual variables of the maximum are outcome rates: the
truth that is hardest to earn from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.audit.pair import Pair, Side
from trueup.audit.search import trades
from trueup.audit.trade import Limits, Proof, Trade
from trueup.core.simplex import normalise_rows
from trueup.errors import SolverError
from trueup.solve.lazily import all_but_caps
from trueup.solve.model import Block, ConicModel, Solution

SMALL = 4_000
"""Outcome rates up to which a table is left to Clarabel."""
GAP = 1e-9
"""Between what a trade is certified to earn and what any trade can."""
_ROUNDS = 20
"""Of adding caps; each adds at least one, in practice four rounds add all."""


@dataclass(slots=True, eq=False)
class Stakes:
    """The multipliers of one side as variables of a model."""

    side: Side
    number: Ints
    """(moment rows,) variable of each multiplier, -1 where there is no stake."""
    pressure: list[tuple[Block, float]] = field(default_factory=list)
    """Blocks of (offers, K) limits on payoffs, with the sign of their entries."""

    def add(self, entries: tuple[Ints, Ints, Floats]) -> tuple[Ints, Ints, Floats]:
        """Entries (row, moment row, value) with variables, stakes left out dropped."""
        row, moment, value = entries
        kept = self.number[moment] >= 0
        return row[kept], self.number[moment[kept]], value[kept]

    def gradient(self, solution: Solution, mass: Floats) -> Floats:
        """(moment rows,) slope of the objective in each multiplier, staked or not."""
        moments, offers = self.side.moments, self.side.offers
        total, price = mass.copy(), np.zeros(moments.n_rows)
        for block, sign in self.pressure:
            pressed = sign * solution.dual(block).reshape(len(offers.node), -1)
            total += group_sums(offers.node, pressed, len(total))
            price += self._prices(pressed.sum(axis=1))
        moment = group_sums(
            moments.row,
            moments.coefficient * total[moments.node, moments.outcome],
            moments.n_rows,
        )
        return moment - moments.target - price

    def _prices(self, pressed: Floats) -> Floats:
        moments, offers = self.side.moments, self.side.offers
        stated = pressed[:, None] * self.side.reading.targets[offers.report]
        cells = moments.cell_of_node[offers.node]
        table = group_sums(cells, stated, moments.n_cells)
        return table[moments.cell_of_row, moments.slot_of_row]


class Programme(ABC):
    """The most profitable trade among those that count."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """Which trades count."""

    @abstractmethod
    def limit(self, model: ConicModel, reference: Stakes, primary: Stakes) -> None:
        """Say the same to a model."""

    @abstractmethod
    def judge(self, trade: Trade) -> Proof:
        """What a trade proves, recomputed from its multipliers and its rates."""

    def solve(self) -> Proof:
        """Find the best trade, by our own search or with Clarabel.

        Small tables are left to Clarabel, which needs no compiled loops to be loaded,
        and so is whatever the search does not bring within the gap asked for.
        """
        own = self._search() if self._is_large else None
        if own is not None and own.gap <= self._gap_wanted:
            return own
        try:
            other = self.judge(self._by_clarabel())
        except SolverError:
            if own is None:
                raise
            return own
        if own is None:
            return other
        if own.gap < other.gap:
            return own
        told = f"{other.trade.engine} (after {own.trade.engine})"
        return replace(other, trade=replace(other.trade, engine=told))

    @property
    def _is_large(self) -> bool:
        n_rows, n_outcomes = self.pair.shape
        return n_rows * n_outcomes > SMALL

    @property
    def _gap_wanted(self) -> float:
        """In units of the outcome, where errors are measured in those."""
        largest = [
            float(np.abs(side.moments.coefficient).max(initial=0.0))
            for side in self.pair.sides
        ]
        return GAP * max(1.0, *largest)

    def _search(self) -> Proof | None:
        best = None
        for trade in trades(self.pair, self.limits):
            proof = self.judge(trade)
            if not np.isfinite(proof.upper):
                return None
            if best is None or proof.gap < best.gap:
                best = proof
            if best.gap <= self._gap_wanted:
                break
        return best

    def _by_clarabel(self) -> Trade:
        """Find the best trade as a conic programme.

        Caps come in as they are needed: of thousands a few dozen matter, and the
        factorisation is several times faster without the others. A cap is needed
        where the objective still falls in its multiplier.
        """
        staked = [all_but_caps(side.moments) for side in self.pair.sides]
        for attempt in range(_ROUNDS):
            trade, slopes = self._attempt(staked)
            missing = [
                ~chosen & (slope > _threshold(side))
                for side, chosen, slope in zip(
                    self.pair.sides, staked, slopes, strict=True
                )
            ]
            if not any(one.any() for one in missing):
                break
            everything = attempt == _ROUNDS - 2
            staked = [
                chosen | one | everything
                for chosen, one in zip(staked, missing, strict=True)
            ]
        return trade

    def _attempt(self, staked: list[Bools]) -> tuple[Trade, list[Floats]]:
        pair, model = self.pair, ConicModel()
        stakes = [
            _stakes(model, side, chosen)
            for side, chosen in zip(pair.sides, staked, strict=True)
        ]
        excluded = self.limits.excluded
        place, ceiling = _add_profit(model, pair, stakes, excluded)
        self.limit(model, *stakes)
        solution = model.solve()
        mass = np.where(place >= 0, solution.dual(ceiling)[place], 0.0)
        multipliers = [
            one.side.signed(np.where(one.number >= 0, solution.x[one.number], 0.0))
            for one in stakes
        ]
        slopes = [
            one.gradient(
                solution,
                group_sums(one.side.node, mass, len(one.side.moments.anchors)),
            )
            for one in stakes
        ]
        rates = normalise_rows(np.maximum(mass, 1e-300))
        told = f"clarabel: {solution.status}"
        return Trade(multipliers[0], multipliers[1], rates, told), slopes


def _threshold(side: Side) -> Floats:
    return 1e-10 + 1e-8 * side.cell_share[side.moments.cell_of_row]


def _stakes(model: ConicModel, side: Side, chosen: Bools) -> Stakes:
    number = np.full(side.moments.n_rows, -1)
    number[chosen] = model.variables(int(chosen.sum()))
    model.cost(number[chosen], -side.moments.target[chosen])
    below = number[chosen & ~side.moments.equality]
    if below.size:
        order, ones = np.arange(below.size), np.ones(below.size)
        model.constrain("nonnegative", [(order, below, ones)], np.zeros(below.size))
    return Stakes(side, number)


def _add_profit(
    model: ConicModel, pair: Pair, stakes: list[Stakes], excluded: Bools | None
) -> tuple[Ints, Block]:
    """Add the largest payout of every row to the objective."""
    n_rows, n_outcomes = pair.shape
    hedged = np.ones((n_rows, n_outcomes), dtype=bool)
    if excluded is not None:
        hedged &= ~excluded[pair.primary.node]
    place = np.full(hedged.shape, -1)
    place[hedged] = np.arange(int(hedged.sum()))
    row, outcome = np.nonzero(hedged)
    worst = model.variables(n_rows)
    model.cost(worst, pair.rows.weight)
    entries = [(np.arange(len(row)), worst[row], -np.ones(len(row)))]
    entries += [
        one.add(pull_entries(one.side, one.side.node[row], outcome)) for one in stakes
    ]
    ceiling = model.constrain("nonnegative", entries, np.zeros(len(row)))
    return place, ceiling


def pull_entries(side: Side, node: Ints, outcome: Ints) -> tuple[Ints, Ints, Floats]:
    """T of the moments at (node, outcome), as (place, moment row, coefficient)."""
    from scipy import sparse  # noqa: PLC0415 - not part of importing us

    moments = side.moments
    n_nodes, n_outcomes = moments.anchors.shape
    key = moments.node * n_outcomes + moments.outcome
    table = sparse.csr_array(
        (moments.coefficient, (key, moments.row)),
        shape=(n_nodes * n_outcomes, moments.n_rows),
    )
    spread = table[node * n_outcomes + outcome].tocoo()
    return spread.row.astype(np.int64), spread.col.astype(np.int64), spread.data


def limit_stakes(model: ConicModel, stakes: Stakes, size: float) -> None:
    """At most this stake on every moment."""
    numbers = stakes.number[stakes.number >= 0]
    order, ones = np.arange(numbers.size), np.ones(numbers.size)
    bound = np.full(numbers.size, size)
    model.constrain("nonnegative", [(order, numbers, ones)], bound)
    model.constrain("nonnegative", [(order, numbers, -ones)], bound)


def balance(model: ConicModel, stakes: Stakes) -> None:
    """Where a common shift of a cell's multipliers is free, choose price zero."""
    moments = stakes.side.moments
    if moments.shiftable:
        entries = [(moments.cell_of_row, stakes.number, moments.target)]
        model.constrain("zero", entries, np.zeros(moments.n_cells))
