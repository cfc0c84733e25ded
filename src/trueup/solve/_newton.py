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


class Active(NamedTuple):
    """Rows with two or more outcomes in play, copied together."""

    start: Ints
    slot: Ints
    entry: Ints
    moment: Ints
    coefficient: Floats
    weight: Floats


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
        for k in range(n):
            f = first + k
            c = x[slot[f]]
            for e in range(entry[f], entry[f + 1]):
                c -= coefficient[e] * x[n_slots + moment[e]]
            cost[k] = c
            v[k] = centre[f] - sigma * c
        threshold = simplex_threshold(v, n)
        value, mass = 0.0, weight[p]
        for k in range(n):
            f = first + k
            rate = max(v[k] - threshold, 0.0)
            rates[f] = rate
            value += cost[k] * rate + (rate - centre[f]) ** 2 * half
            if rate > 0:
                gradient[slot[f]] += mass * rate
                for e in range(entry[f], entry[f + 1]):
                    gradient[n_slots + moment[e]] -= coefficient[e] * mass * rate
        total += mass * value
    return total


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


@inner
def gather(table: Table, rates: Floats, active: Active) -> int:
    """Copy the rows in which two or more outcomes are in play; returns how many."""
    n_rows, n_coordinates, n_entries = 0, 0, 0
    for p in range(len(table.weight)):
        first, last = table.start[p], table.start[p + 1]
        count = 0
        for f in range(first, last):
            count += rates[f] > 0
        if count < 2:
            continue
        active.start[n_rows] = n_coordinates
        active.weight[n_rows] = table.weight[p]
        for f in range(first, last):
            if rates[f] > 0:
                active.slot[n_coordinates] = table.slot[f]
                active.entry[n_coordinates] = n_entries
                for e in range(table.entry[f], table.entry[f + 1]):
                    active.moment[n_entries] = table.moment[e]
                    active.coefficient[n_entries] = table.coefficient[e]
                    n_entries += 1
                n_coordinates += 1
        n_rows += 1
    active.start[n_rows] = n_coordinates
    active.entry[n_coordinates] = n_entries
    return n_rows


@inner
def product(
    active: Active,
    n_rows: int,
    atoms: Atoms,
    tilted: Tilted,
    at: Point,
    sigma: float,
    damping: Floats,
    x: Floats,
    out: Floats,
) -> None:
    """Curvature times a vector."""
    n_slots = len(x) - len(at.slack)
    for i in range(len(x)):
        out[i] = damping[i] * x[i]
    _rows_product(
        active.start,
        active.slot,
        active.entry,
        active.moment,
        active.coefficient,
        active.weight,
        n_rows,
        n_slots,
        sigma,
        x,
        out,
    )
    _atoms_product(
        atoms.slot,
        atoms.cell,
        atoms.weight,
        tilted.d,
        tilted.a,
        tilted.b,
        tilted.a_weight,
        tilted.b_weight,
        x,
        out,
    )
    _slack_product(at.curvature, at.charged, n_slots, x, out)


@inner
def _rows_product(
    start: Ints,
    slot: Ints,
    entry: Ints,
    moment: Ints,
    coefficient: Floats,
    weight: Floats,
    n_rows: int,
    n_slots: int,
    sigma: float,
    x: Floats,
    out: Floats,
) -> None:
    # Plain arrays: tuples of arrays cost more here than the arithmetic.
    for r in range(n_rows):
        first, last = start[r], start[r + 1]
        mean = 0.0
        for f in range(first, last):
            mean += x[slot[f]]
            for e in range(entry[f], entry[f + 1]):
                mean -= coefficient[e] * x[n_slots + moment[e]]
        mean /= last - first
        pace = sigma * weight[r]
        for f in range(first, last):
            moved = x[slot[f]] - mean
            for e in range(entry[f], entry[f + 1]):
                moved -= coefficient[e] * x[n_slots + moment[e]]
            moved *= pace
            out[slot[f]] += moved
            for e in range(entry[f], entry[f + 1]):
                out[n_slots + moment[e]] -= coefficient[e] * moved


@inner
def _atoms_product(
    slot: Ints,
    cell: Ints,
    weight: Floats,
    d: Floats,
    a: Floats,
    b: Floats,
    a_weight: Floats,
    b_weight: Floats,
    x: Floats,
    out: Floats,
) -> None:
    n_atoms, n = d.shape
    for i in range(n_atoms):
        j = cell[i]
        along_a, along_b = 0.0, 0.0
        for y in range(n):
            s = slot[j, y]
            if s >= 0:
                along_a += a[i, y] * x[s]
                along_b += b[i, y] * x[s]
        along_a *= a_weight[i]
        along_b *= b_weight[i]
        for y in range(n):
            s = slot[j, y]
            if s >= 0:
                out[s] += weight[i] * (
                    d[i, y] * x[s] + a[i, y] * along_a + b[i, y] * along_b
                )


@inner
def _slack_product(
    curvature: Floats, charged: Floats, n_slots: int, x: Floats, out: Floats
) -> None:
    paid, total = 0.0, 0.0
    for m in range(len(curvature)):
        moved = curvature[m] * x[n_slots + m]
        out[n_slots + m] += moved
        if charged[m] != 0:
            paid += charged[m] * moved
            total += curvature[m]
    if total > 0:
        for m in range(len(curvature)):
            out[n_slots + m] -= charged[m] * curvature[m] * paid / total


@inner
def diagonal(
    active: Active,
    n_rows: int,
    atoms: Atoms,
    tilted: Tilted,
    at: Point,
    sigma: float,
    damping: Floats,
    out: Floats,
) -> None:
    """The diagonal of the curvature, to scale conjugate gradients by."""
    n_slots = len(out) - len(at.slack)
    for i in range(len(out)):
        out[i] = damping[i]
    for r in range(n_rows):
        first, last = active.start[r], active.start[r + 1]
        part = sigma * active.weight[r] * (1.0 - 1.0 / (last - first))
        for f in range(first, last):
            out[active.slot[f]] += part
            for e in range(active.entry[f], active.entry[f + 1]):
                out[n_slots + active.moment[e]] += active.coefficient[e] ** 2 * part
    for i in range(len(atoms.weight)):
        slot = atoms.slot[atoms.cell[i]]
        for y in range(len(slot)):
            if slot[y] >= 0:
                out[slot[y]] += atoms.weight[i] * (
                    tilted.d[i, y]
                    + tilted.a_weight[i] * tilted.a[i, y] ** 2
                    + tilted.b_weight[i] * tilted.b[i, y] ** 2
                )
    for m in range(len(at.slack)):
        out[n_slots + m] += at.curvature[m]


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
