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

from trueup._validate import Floats, Ints
from trueup.audit._render import Shown, Table, number
from trueup.audit.contracts import Contracts
from trueup.audit.pair import Pair, Side
from trueup.audit.programme import Programme, Stakes, balance, pull_entries
from trueup.solve.model import Block, ConicModel

_DUST = 1e-7
"""Payoffs that stay below this everywhere are no contract."""


class _BoundedPayoffs(Programme):
    """Trades that never pay or cost more than one."""

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
    """t of every moment of an offer's cell, once for each outcome."""
    moments, offers = side.moments, side.offers
    row_of = np.full((moments.n_cells, len(side.reading.equality)), -1)
    row_of[moments.cell_of_row, moments.slot_of_row] = np.arange(moments.n_rows)
    rows = row_of[moments.cell_of_node[offers.node]]
    offer, slot = np.nonzero(rows >= 0)
    stated = side.reading.targets[offers.report[offer], slot]
    place = (offer[:, None] * n_outcomes + np.arange(n_outcomes)).ravel()
    return (
        place,
        np.repeat(rows[offer, slot], n_outcomes),
        np.repeat(stated, n_outcomes),
    )


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
        notes = (
            "What the predictor receives; it believes every contract to be worth "
            "nothing or more.",
            "The profit is sure whatever the outcomes, on average over the items.",
        )
        if not len(self.contracts):
            caption, notes = "Arbitrage 0: no contracts found", ()
        return Table(caption, table.header, table.rows, (*table.notes, *notes))

    def to_dict(self) -> dict[str, Any]:
        """The arbitrage as one JSON object."""
        return {
            "value": self.value,
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
    trade = _BoundedPayoffs(pair).solve()
    multipliers = (trade.reference, trade.primary)
    payoffs = tuple(
        _within_one(side, one)
        for side, one in zip(pair.sides, multipliers, strict=True)
    )
    contracts = Contracts(pair, (payoffs[0], payoffs[1]), trade.rates)
    if contracts.profit > _DUST:
        return Arbitrage(contracts)
    nothing = tuple(np.zeros_like(one) for one in payoffs)
    return Arbitrage(Contracts(pair, (nothing[0], nothing[1]), trade.rates))


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
