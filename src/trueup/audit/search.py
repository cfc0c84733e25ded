"""Our own search for the best trade: a proximal Newton method for linear programmes.

The outer method moves outcome rates, and with them the errors and shifts that pay for
what is wrong with them, towards the optimum in steps that each solve a strictly concave
problem in the multipliers. For a linear programme a finite number of such steps is
enough, and the last ones give all digits. Whoever asks for trades judges them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from trueup._validate import Floats, Ints
from trueup.audit.pair import Pair, Side
from trueup.audit.trade import Limits, Trade, price_entries
from trueup.core.simplex import normalise_rows

if TYPE_CHECKING:
    from trueup.audit._trade_kernels import Bets, Book, Place

_MOST_STEPS = 150
_MOST_NEWTON = 40
_MOST_PRODUCTS = 100_000
"""With the curvature, over all steps: a search that needs more is given up."""
_ACCURACY = 0.1
"""Residual at which a proximal step ends, relative to how far it moved."""
_NEAR = 1e-7
"""Residual and speed below which trades are worth judging."""
_FIRST_SIGMA, _LEAST_SIGMA, _LARGEST_SIGMA = 1.5, 0.1, 1e3
_FIRST_DAMPING = 0.1
_BARRED = -1e9


def trades(pair: Pair, limits: Limits) -> Iterator[Trade]:
    """Ever better trades within the limits; the last one where it gives up."""
    run = _Search(pair, limits)
    is_last = False
    while not is_last:
        run.step()
        is_last = run.n_steps == _MOST_STEPS or run.n_products > _MOST_PRODUCTS
        if run.is_near or is_last:
            yield run.trade()


class _Search:
    """One search in progress.

    Moments are divided by their largest coefficient and the objective by the largest
    stake, so that multipliers are of the order of one whatever outcomes are worth.
    """

    def __init__(self, pair: Pair, limits: Limits) -> None:
        from trueup.audit._newton_kernels import Active, Work  # noqa: PLC0415 - numba

        self.pair = pair
        self.unit = np.concatenate([_units(side) for side in pair.sides])
        largest = np.concatenate(limits.stakes) * self.unit
        finite = largest[np.isfinite(largest)]
        self.worth = float(finite.max(initial=0.0)) or 1.0
        self.book = _book(pair, limits, self.unit, self.worth)
        self.bets = _bets(pair, self.unit, are_limited=limits.payoffs)
        self.at = _begin(pair, self.book, self.bets)
        n_rows, n_outcomes = pair.shape
        self.active = Active(
            first=np.empty(n_rows, dtype=np.int64),
            second=np.empty(n_rows, dtype=np.int64),
            weight=np.empty(n_rows),
            start=np.empty(n_rows + 1, dtype=np.int64),
            outcome=np.empty(n_rows * n_outcomes, dtype=np.int64),
        )
        n_moments = len(self.unit)
        self.work = Work(**{name: np.zeros(n_moments) for name in Work._fields})
        self.sigma, self.damping = _FIRST_SIGMA, _FIRST_DAMPING
        self.n_steps = self.n_newton = self.n_products = 0
        self.is_near = False

    def step(self) -> None:
        """One proximal step."""
        from trueup.audit._newton_kernels import settle  # noqa: PLC0415 - numba is heavy

        at = self.at
        residual, moved, self.damping, n_newton, n_products = settle(
            self.book,
            self.bets,
            at,
            self.active,
            self.work,
            self.sigma,
            _ACCURACY,
            self.damping,
            _MOST_NEWTON,
        )
        at.centre[:] = at.rates
        at.error_centre[:] = at.error
        at.shift_centre[:] = at.shift
        self.n_steps += 1
        self.n_newton += n_newton
        self.n_products += n_products
        self.is_near = residual + moved / self.sigma <= _NEAR
        self.sigma = _next_sigma(self.sigma, n_newton)

    def trade(self) -> Trade:
        """Where the search stands."""
        limited = np.clip(self.at.x, self.book.low, self.book.high)
        multipliers = limited * self.worth / self.unit
        n_reference = self.pair.reference.moments.n_rows
        return Trade(
            multipliers[:n_reference],
            multipliers[n_reference:],
            normalise_rows(self.at.rates),
            f"native: {self.n_steps} proximal and {self.n_newton} Newton steps",
        )


def _next_sigma(sigma: float, n_newton: int) -> float:
    """Longer proximal steps while they are easy, shorter ones when they are not."""
    if n_newton <= 2:
        return min(sigma * 2, _LARGEST_SIGMA)
    if n_newton <= 4:
        return min(sigma * 1.3, _LARGEST_SIGMA)
    return max(sigma * 0.6, _LEAST_SIGMA) if n_newton > 10 else sigma


def _units(side: Side) -> Floats:
    """(moment rows,) the largest coefficient of each."""
    moments = side.moments
    unit = np.zeros(moments.n_rows)
    np.maximum.at(unit, moments.row, np.abs(moments.coefficient))
    return np.where(unit > 0, unit, 1.0)


def _book(pair: Pair, limits: Limits, unit: Floats, worth: float) -> Book:
    from trueup.audit._trade_kernels import Book as Made  # noqa: PLC0415 - numba

    n_outcomes = pair.shape[1]
    first, second = (side.moments for side in pair.sides)
    n_first, n_nodes = len(first.anchors), len(first.anchors) + len(second.anchors)
    barred = np.zeros((n_nodes, n_outcomes))
    if limits.excluded is not None:
        barred[n_first:][limits.excluded] = _BARRED
    place = np.append(first.node, second.node + n_first) * n_outcomes
    place += np.append(first.outcome, second.outcome)
    moment = np.append(first.row, second.row + first.n_rows)
    coefficient = np.append(first.coefficient, second.coefficient) / unit[moment]
    order = np.argsort(place, kind="stable")
    stakes = np.concatenate(limits.stakes) * unit / worth
    equality = np.append(first.equality, second.equality)
    share = [side.cell_share[side.moments.cell_of_row] for side in pair.sides]
    return Made(
        first=_ints(pair.reference.node),
        second=_ints(pair.primary.node + n_first),
        weight=_floats(pair.rows.weight),
        barred=barred,
        entry=_starts(place, n_nodes * n_outcomes),
        moment=_ints(moment[order]),
        coefficient=_floats(coefficient[order]),
        target=np.append(first.target, second.target) / unit,
        low=-stakes,
        high=np.where(equality, stakes, 0.0),
        scale=np.concatenate(share),
    )


def _bets(pair: Pair, unit: Floats, *, are_limited: bool) -> Bets:
    from trueup.audit._trade_kernels import Bets as Made  # noqa: PLC0415 - numba

    node, mass, offer, moment, stated = [], [], [], [], []
    n_nodes = n_moments = n_offers = 0
    for side in pair.sides if are_limited else ():
        entries = price_entries(side)
        node.append(side.offers.node + n_nodes)
        mass.append(side.offers.share)
        offer.append(entries[0] + n_offers)
        moment.append(entries[1] + n_moments)
        stated.append(entries[2])
        n_nodes += len(side.moments.anchors)
        n_moments += side.moments.n_rows
        n_offers += len(side.offers.node)
    none = np.zeros(0, dtype=np.int64)
    moments = _ints(np.concatenate([none, *moment]))
    return Made(
        node=_ints(np.concatenate([none, *node])),
        mass=_floats(np.concatenate([none, *mass])),
        start=_starts(np.concatenate([none, *offer]), n_offers),
        moment=moments,
        stated=_floats(np.concatenate([none, *stated]) / unit[moments]),
    )


def _begin(pair: Pair, book: Book, bets: Bets) -> Place:
    """Begin where the primary is right, with no multipliers."""
    from trueup.audit._trade_kernels import Place as Made  # noqa: PLC0415 - numba

    rates = normalise_rows(pair.primary.moments.anchors)[pair.primary.node]
    n_moments, shifts = len(book.target), (len(bets.mass), pair.shape[1])
    return Made(
        x=np.zeros(n_moments),
        rates=_floats(rates),
        centre=_floats(rates),
        error=np.zeros(n_moments),
        error_centre=np.zeros(n_moments),
        shift=np.zeros(shifts),
        shift_centre=np.zeros(shifts),
        pull=np.zeros(book.barred.shape),
        mass=np.zeros(book.barred.shape),
        gradient=np.zeros(n_moments),
    )


def _starts(index: Ints, n_groups: int) -> Ints:
    """First place of each group in sorted group numbers, and the end."""
    counts = np.bincount(index, minlength=n_groups)
    return _ints(np.append(0, np.cumsum(counts)))


def _floats(values: Floats) -> Floats:
    """A copy in the one layout that loops are compiled for."""
    return np.array(values, dtype=np.float64, order="C")


def _ints(values: Ints) -> Ints:
    return np.array(values, dtype=np.int64, order="C")
