"""Arbitrage: bets that both predictors accept and that cannot lose.

A *zero-trade* pays a predictor an amount that depends on its report and on the
outcome, and that it believes to be worth nothing on average. If two predictors
contradict each other, some zero-trades with both of them leave a profit whatever the
outcomes are: sure in the outcome, on average over the pairs of reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup._render import json_number
from trueup._validate import Floats, Ints
from trueup.audit._render import Shown, Table, number
from trueup.audit.contracts import Contracts
from trueup.audit.pair import Pair, Side
from trueup.audit.programme import Programme, Stakes, balance, pull_entries
from trueup.audit.reach import most_earned
from trueup.audit.trade import Limits, Proof, Trade, price_entries
from trueup.solve.model import Block, ConicModel

_DUST = 1e-7
"""Payoffs that stay below this everywhere are no contract."""
_ACCEPTED = (
    "By its own report each predictor believes its contract to be worth nothing or "
    "more to itself."
)
_SURE = "The profit is sure whatever the outcomes, on average over the items."


class _BoundedPayoffs(Programme):
    """Trades that never pay or cost more than one."""

    @property
    def limits(self) -> Limits:
        first, second = (
            np.full(side.moments.n_rows, np.inf) for side in self.pair.sides
        )
        return Limits((first, second), payoffs=True)

    def judge(self, trade: Trade) -> Proof:
        profit = _contracts(self.pair, trade).profit
        upper = max(most_earned(self.pair, trade.rates), profit)
        return Proof(trade, profit, upper, trade.rates)

    def limit(self, model: ConicModel, reference: Stakes, primary: Stakes) -> None:
        for stakes in (reference, primary):
            balance(model, stakes)
            for sign in (1.0, -1.0):
                stakes.pressure.append((_limit_payoffs(model, stakes, sign), sign))


def _limit_payoffs(model: ConicModel, stakes: Stakes, sign: float) -> Block:
    side = stakes.side
    offers, n_outcomes = side.offers, side.moments.anchors.shape[1]
    offer, outcome = np.divmod(np.arange(len(offers.node) * n_outcomes), n_outcomes)
    place, moment, value = stakes.add(pull_entries(side, offers.node[offer], outcome))
    entries = [(place, moment, sign * value)]
    if not side.moments.shiftable:  # there the price of every trade is zero
        place, moment, value = stakes.add(_price_entries(side, n_outcomes))
        entries.append((place, moment, -sign * value))
    return model.constrain("nonnegative", entries, np.ones(len(offer)))


def _price_entries(side: Side, n_outcomes: int) -> tuple[Ints, Ints, Floats]:
    """The price of every offer, for each outcome."""
    offer, row, stated = price_entries(side)
    place = (offer[:, None] * n_outcomes + np.arange(n_outcomes)).ravel()
    return place, np.repeat(row, n_outcomes), np.repeat(stated, n_outcomes)


@dataclass(frozen=True, eq=False)
class Arbitrage(Shown):
    """The most that zero-trades with both predictors are sure to earn.

    Payoffs lie within [-1, 1]. At rung ``distribution`` with a primary that reports
    distributions, MinECE <= value <= 2 MinECE; elsewhere trades are bounded
    combinations of that rung's moments and no such relation is claimed. The error
    budget of the reference plays no part: the trades are with what both predictors
    say.

    Attributes
    ----------
    contracts
        The bets, largest contribution first; ``contracts(margin=...)`` pays each
        predictor to accept.
    upper
        No zero-trades within [-1, 1] earn more; see :attr:`gap`.

    Examples
    --------
    The primary says 0.1 and 0.7 on halves of the items, the reference always 0.5:

    >>> import numpy as np
    >>> import trueup
    >>> a = trueup.audit(np.array([.1, .7]), np.array([.5, .5]))
    >>> a.arbitrage
    Arbitrage(sure profit 0.1111 an item from 3 contracts)
    >>> a.arbitrage.check()
    """

    contracts: Contracts
    upper: float = np.inf
    engine: str = ""
    """Who found the trades; nothing above rests on it."""

    @property
    def gap(self) -> float:
        """How much more other trades could at most earn.

        Infinite where the bound has no closed form: with answers pooled under caps.
        """
        return self.upper - self.value

    @property
    def value(self) -> float:
        """Sure profit per item, recomputed from the payoffs of the contracts."""
        return self.contracts.profit

    def check(self) -> None:
        """Check the contracts; see :meth:`Contracts.check`."""
        self.contracts.check()

    def _table(self) -> Table:
        table = self.contracts._table()
        caption = f"Arbitrage {number(self.value)}: {table.caption}"
        if not len(self.contracts):
            return Table("Arbitrage 0: no contracts found", table.header, ())
        notes = (*table.notes, _ACCEPTED, _SURE)
        return Table(caption, table.header, table.rows, notes)

    def to_dict(self) -> dict[str, Any]:
        """The arbitrage as one JSON object."""
        return {
            "value": self.value,
            "upper": json_number(self.upper),
            "largest_margin": self.contracts.largest_margin,
            "contracts": [one.to_dict() for one in self.contracts],
        }

    def __repr__(self) -> str:
        return (
            f"Arbitrage(sure profit {number(self.value)} an item from "
            f"{len(self.contracts):,} contracts)"
        )


def find_arbitrage(pair: Pair) -> Arbitrage:
    """The best zero-trades within [-1, 1], as contracts that keep what they promise."""
    found = _BoundedPayoffs(pair).solve()
    contracts = _contracts(pair, found.trade)
    if contracts.profit <= _DUST:
        nothing = [
            np.zeros((len(side.offers.node), pair.shape[1])) for side in pair.sides
        ]
        contracts = Contracts(pair, (nothing[0], nothing[1]), found.rates)
    return Arbitrage(contracts, found.upper, found.trade.engine)


def _contracts(pair: Pair, trade: Trade) -> Contracts:
    first, second = (
        _within_one(side, one)
        for side, one in zip(pair.sides, (trade.reference, trade.primary), strict=True)
    )
    return Contracts(pair, (first, second), trade.rates)


def _within_one(side: Side, multipliers: Floats) -> Floats:
    """Payoffs scaled cell by cell until none exceeds one, and dust removed.

    All reports of a cell share its multipliers, so they are scaled alike.
    """
    payoffs = side.payoffs(multipliers)
    cell = side.moments.cell_of_node[side.offers.node]
    size = np.zeros(side.moments.n_cells)
    np.maximum.at(size, cell, np.abs(payoffs).max(axis=1))
    scale = np.where(size < _DUST, 0.0, 1 / np.maximum(size, 1.0))
    return np.clip(payoffs * scale[cell][:, None], -1.0, 1.0)
