"""Compiled loops of the proximal Newton method: rows, moments and Newton systems.

One step of the outer method keeps the outcome rates near a centre,

    min over K, h, z of  sum_a w_a D(h_a, r_a) + sum_p w_p |K_p - centre_p|^2 / 2 sigma
    s.t.  links, moments - targets = z,

whose dual is concave with a Lipschitz gradient in the slopes mu and the multipliers
lambda. Its curvature comes only from rows with two or more outcomes in play, about as
many as there are constraints: Newton systems are sparse however long the table is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.solve._jit import entry, inner
from trueup.solve._prox import (
    Atoms,
    Tilted,
    least_tilted,
    simplex_threshold,
    tilt_atoms,
)


class Table(NamedTuple):
    """Rows of the truth, flat: one coordinate for each outcome a row may have."""

    start: Ints
    """(rows + 1,) first coordinate of each row."""
    slot: Ints
    """(coordinates,) slope of the coordinate's outcome in the row's primary cell."""
    entry: Ints
    """(coordinates + 1,) first moment entry of each coordinate."""
    moment: Ints
    """(entries,) moment row."""
    coefficient: Floats
    weight: Floats
    """(rows,) mass."""


class Conditions(NamedTuple):
    """Moment rows."""

    target: Floats
    scale: Floats
    """(moment rows,) mass of the moment's cell."""
    equality: Bools
    budget: float


class Point(NamedTuple):
    """Current multipliers, the rates they give, and the centre."""

    x: Floats
    """Slopes mu, then multipliers lambda."""
    rates: Floats
    centre: Floats
    slack: Floats
    """(moment rows,) moments minus targets."""
    slack_centre: Floats
    gradient: Floats
    curvature: Floats
    """(moment rows,) of the slack."""
    charged: Floats
    """(moment rows,) sign of slack that is paid from the budget."""


@inner
def move_rows(
    start: Ints,
    slot: Ints,
    entry: Ints,
    moment: Ints,
    coefficient: Floats,
    weight: Floats,
    x: Floats,
    n_slots: int,
    sigma: float,
    centre: Floats,
    rates: Floats,
    gradient: Floats,
) -> float:
    """Rates nearest the centre for given multipliers; adds their mass to gradients."""
    widest = 0
    for p in range(len(weight)):
        widest = max(widest, start[p + 1] - start[p])
    cost, v = np.empty(widest), np.empty(widest)
    total, half = 0.0, 0.5 / sigma
    for p in range(len(weight)):
        first, n = start[p], start[p + 1] - start[p]
        best, second, top, size = -np.inf, -np.inf, 0, 0.0
        for k in range(n):
            f = first + k
            c = x[slot[f]]
            for e in range(entry[f], entry[f + 1]):
                c -= coefficient[e] * x[n_slots + moment[e]]
            cost[k] = c
            v[k] = centre[f] - sigma * c
            size += centre[f] ** 2
            rates[f] = 0.0
            if v[k] > best:
                best, second, top = v[k], best, k
            elif v[k] > second:
                second = v[k]
        mass = weight[p]
        if best - second >= 1.0:  # most rows: one outcome has it all
            f = first + top
            rates[f] = 1.0
            total += mass * (cost[top] + (size + 1.0 - 2.0 * centre[f]) * half)
        else:
            total += mass * _share_out(cost, v, n, half, centre, rates, first)
        for f in range(first, first + n):
            if rates[f] > 0:
                moved = mass * rates[f]
                gradient[slot[f]] += moved
                for e in range(entry[f], entry[f + 1]):
                    gradient[n_slots + moment[e]] -= coefficient[e] * moved
    return total


@inner
def _share_out(
    cost: Floats,
    v: Floats,
    n: int,
    half: float,
    centre: Floats,
    rates: Floats,
    first: int,
) -> float:
    """Rates of a row with several outcomes in play, and what they cost."""
    threshold, value = simplex_threshold(v, n), 0.0
    for k in range(n):
        rate = max(v[k] - threshold, 0.0)
        rates[first + k] = rate
        value += cost[k] * rate + (rate - centre[first + k]) ** 2 * half
    return value


@inner
def move_slack(
    given: Conditions, multipliers: Floats, sigma: float, at: Point
) -> float:
    """Slack of the moments nearest its centre, within the budget."""
    price = _price(given, multipliers, sigma, at) if given.budget > 0 else np.inf
    total = 0.0
    for m in range(len(multipliers)):
        speed = sigma * given.scale[m]
        v = at.slack_centre[m] - speed * multipliers[m]
        z, sign = 0.0, 0.0
        if v > speed * price:
            z, sign = v - speed * price, 1.0
        elif v < 0 and not given.equality[m]:
            z = v
        elif v < -speed * price:
            z, sign = v + speed * price, -1.0
        at.slack[m] = z
        at.charged[m] = sign if price > 0 else 0.0
        at.curvature[m] = speed if z != 0 else 0.0
        total += multipliers[m] * z + (z - at.slack_centre[m]) ** 2 / (2 * speed)
    return total


@inner
def _price(given: Conditions, multipliers: Floats, sigma: float, at: Point) -> float:
    """Price of a unit of budget: Newton from the left of a convex falling function."""
    price = 0.0
    for _ in range(10_000):
        spent, slope = 0.0, 0.0
        for m in range(len(multipliers)):
            speed = sigma * given.scale[m]
            v = at.slack_centre[m] - speed * multipliers[m]
            size = abs(v) if given.equality[m] else v
            if size > speed * price:
                spent += size - speed * price
                slope += speed
        if slope == 0 or spent <= given.budget * (1 + 1e-14):
            return price
        step = (spent - given.budget) / slope
        if price + step == price:
            return price
        price += step
    return price


@inner
def evaluate(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    tilted: Tilted,
    x: Floats,
    sigma: float,
    at: Point,
) -> float:
    """The concave dual of one proximal step, and its gradient."""
    n_slots = len(x) - len(given.target)
    for i in range(len(x)):
        at.gradient[i] = 0.0
    value = move_rows(
        table.start,
        table.slot,
        table.entry,
        table.moment,
        table.coefficient,
        table.weight,
        x,
        n_slots,
        sigma,
        at.centre,
        at.rates,
        at.gradient,
    )
    value += tilt_atoms(atoms, x, sigma, tilted, at.gradient)
    multipliers = x[n_slots:]
    value += move_slack(given, multipliers, sigma, at)
    for m in range(len(multipliers)):
        value += multipliers[m] * given.target[m]
        at.gradient[n_slots + m] += given.target[m] + at.slack[m]
    return value


@entry
def dual_value(
    table: Table, given: Conditions, atoms: Atoms, tilted: Tilted, x: Floats
) -> float:
    """The dual of the projection itself at multipliers of the right sign."""
    n_slots = len(x) - len(given.target)
    total, size = least_tilted(atoms, x, tilted, np.zeros(n_slots)), 0.0
    for m in range(len(given.target)):
        total += x[n_slots + m] * given.target[m]
        size = max(size, abs(x[n_slots + m]))
    for p in range(len(table.weight)):
        least = np.inf
        for f in range(table.start[p], table.start[p + 1]):
            cost = x[table.slot[f]]
            for e in range(table.entry[f], table.entry[f + 1]):
                cost -= table.coefficient[e] * x[n_slots + table.moment[e]]
            least = min(least, cost)
        total += table.weight[p] * least
    return total - given.budget * size
