"""Trades with both predictors, what limits them, and what they prove.

Nothing in here knows how a trade was found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.audit.pair import Pair, Side
from trueup.solve.certificate import ROUNDING, Bound, certified_minimum


@dataclass(frozen=True, slots=True, eq=False)
class Trade:
    """Multipliers of both sides, and rates from the dual; nothing here is trusted."""

    reference: Floats
    primary: Floats
    rates: Floats
    """(rows, K) estimate of the truth that is hardest to earn from."""
    engine: str
    """Who found it."""


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A trade that earns something, and rates under which little more can be earned."""

    trade: Trade
    lower: float
    """Certified by the trade."""
    upper: float
    """Certified by the rates; infinite where nobody can say."""
    rates: Floats
    """(rows, K) that attain ``upper``."""

    @property
    def gap(self) -> float:
        """How far the two are apart."""
        return self.upper - self.lower


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Which trades count."""

    stakes: tuple[Floats, Floats]
    """Of reference and primary: (moment rows,) the largest multiplier, either way."""
    excluded: Bools | None = None
    """(nodes of the primary, K) outcomes that need not be hedged."""
    payoffs: bool = False
    """Whether no payoff may exceed one."""


def price_entries(side: Side) -> tuple[Ints, Ints, Floats]:
    """What every moment of an offer's cell is stated to be: (offer, row, number)."""
    moments, offers = side.moments, side.offers
    row_of = np.full((moments.n_cells, len(side.reading.equality)), -1)
    row_of[moments.cell_of_row, moments.slot_of_row] = np.arange(moments.n_rows)
    rows = row_of[moments.cell_of_node[offers.node]]
    offer, slot = np.nonzero(rows >= 0)
    stated = side.reading.targets[offers.report[offer], slot]
    return offer, rows[offer, slot], stated


def sure_profit(pair: Pair, trade: Trade, excluded: Bools | None = None) -> Bound:
    """What a trade earns whatever the truth, recomputed from its multipliers.

    ``base`` is the profit when every claim holds; ``steepness`` is what a unit of the
    reference's error can take away from it. ``excluded`` are (nodes of the primary, K)
    outcomes that need not be hedged.
    """
    primary = pair.primary.signed(trade.primary)
    against = -pair.primary.moments.pull(primary)
    size = float(np.abs(against).max(initial=0.0))
    if excluded is not None:
        against = np.where(excluded, np.inf, against)
    bound = certified_minimum(
        pair.reference.moments,
        pair.rows,
        against[pair.primary.node],
        trade.reference,
        reference_error=np.inf,  # every outcome counts, also those ruled out
        size=size,
    )
    return Bound(
        base=bound.base + float(primary @ pair.primary.moments.target),
        steepness=bound.steepness,
        rounding=ROUNDING * (1 + size + bound.steepness),
    )
