"""Compiled loops over trades: what a proximal step makes of given multipliers.

The questions of an audit are linear programmes over outcome rates K: find the rates
that leave both sides together the least to pay for,

    min over K, z, s of  sum_m limits_m(z_m) + sum_o |s_o|
    s.t.  targets - moments of K - moments of s = z,

z being what is wrong with a moment, s a shift of mass that a limit on payoffs allows.
One step of the outer method keeps all of them near a centre; its dual is concave with a
Lipschitz gradient in the multipliers of the moments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._validate import Floats, Ints
from trueup.solve._jit import inner
from trueup.solve._prox import simplex_threshold


class Book(NamedTuple):
    """Rows on which the truth is free, and the moments of both sides."""

    first: Ints
    """(rows,) node of the reference; nodes of both sides share one numbering."""
    second: Ints
    """(rows,) node of the primary."""
    weight: Floats
    """(rows,) mass."""
    barred: Floats
    """(nodes, K) zero, or far below zero where an outcome is ruled out."""
    entry: Ints
    """(nodes * K + 1,) first moment entry of each node and outcome."""
    moment: Ints
    coefficient: Floats
    target: Floats
    low: Floats
    """(moments,) least multiplier."""
    high: Floats
    scale: Floats
    """(moments,) mass of the moment's cell: the unit its errors are measured in."""


class Bets(NamedTuple):
    """Offers whose payoffs are limited to [-1, 1]; none where payoffs are free."""

    node: Ints
    mass: Floats
    start: Ints
    """(offers + 1,) first entry of each offer's price."""
    moment: Ints
    stated: Floats
    """(entries,) what the report says the moment is."""


class Place(NamedTuple):
    """Current multipliers, what they make of everything else, and the centres."""

    x: Floats
    rates: Floats
    """(rows, K)."""
    centre: Floats
    error: Floats
    """(moments,) z."""
    error_centre: Floats
    shift: Floats
    """(offers, K) s."""
    shift_centre: Floats
    pull: Floats
    """(nodes, K) sum of multipliers times moments."""
    mass: Floats
    """(nodes, K)."""
    gradient: Floats


@inner
def spread(
    entry: Ints, moment: Ints, coefficient: Floats, x: Floats, pull: Floats
) -> None:
    """Add multipliers times moments to every node and outcome."""
    n_nodes, n = pull.shape
    for i in range(n_nodes):
        for y in range(n):
            f = i * n + y
            for e in range(entry[f], entry[f + 1]):
                pull[i, y] += coefficient[e] * x[moment[e]]


@inner
def collect(
    entry: Ints, moment: Ints, coefficient: Floats, mass: Floats, out: Floats
) -> None:
    """Subtract the moments of masses."""
    n_nodes, n = mass.shape
    for i in range(n_nodes):
        for y in range(n):
            f = i * n + y
            for e in range(entry[f], entry[f + 1]):
                out[moment[e]] -= coefficient[e] * mass[i, y]


@inner
def _threshold_of_four(v: Floats) -> float:
    """The same as ``simplex_threshold``, twice as fast: sorted without a branch.

    Of the thresholds that one, two, three or four outcomes would have alone the
    largest is right.
    """
    a, b = (v[0], v[1]) if v[0] > v[1] else (v[1], v[0])
    c, d = (v[2], v[3]) if v[2] > v[3] else (v[3], v[2])
    a, c = (a, c) if a > c else (c, a)
    b, d = (b, d) if b > d else (d, b)
    b, c = (b, c) if b > c else (c, b)
    threshold, total = a - 1.0, a + b - 1.0
    threshold = 0.5 * total if 0.5 * total > threshold else threshold
    total += c
    threshold = total / 3.0 if total / 3.0 > threshold else threshold
    total += d
    return 0.25 * total if 0.25 * total > threshold else threshold


@inner
def _move_rows(
    first: Ints,
    second: Ints,
    weight: Floats,
    pull: Floats,
    sigma: float,
    centre: Floats,
    rates: Floats,
    mass: Floats,
) -> tuple[float, float]:
    """Rates that receive most, near the centre; their mass on nodes is added.

    Returns what they receive and how far they are from the centre, squared.
    """
    n = pull.shape[1]
    v = np.empty(n)
    received, travelled = 0.0, 0.0
    for p in range(len(weight)):
        i, j, w = first[p], second[p], weight[p]
        for y in range(n):
            v[y] = centre[p, y] + sigma * (pull[i, y] + pull[j, y])
        threshold = _threshold_of_four(v) if n == 4 else simplex_threshold(v, n)
        value, squares = 0.0, 0.0
        for y in range(n):
            rate = v[y] - threshold
            rate = rate if rate > 0 else 0.0
            value += rate * (pull[i, y] + pull[j, y])
            squares += (rate - centre[p, y]) ** 2
            rates[p, y] = rate
            mass[i, y] += w * rate
            mass[j, y] += w * rate
        received += w * value
        travelled += w * squares
    return received, travelled


@inner
def _move_errors(book: Book, x: Floats, sigma: float, at: Place) -> tuple[float, float]:
    """What stays wrong with every moment, at the price of its limits."""
    total, travelled = 0.0, 0.0
    for m in range(len(x)):
        pace = sigma * book.scale[m]
        v = x[m] + at.error_centre[m] / pace
        limited = min(max(v, book.low[m]), book.high[m])
        z = 0.0
        if limited != v:
            z = pace * (v - limited)
            total += (limited - x[m]) * z
        travelled += (z - at.error_centre[m]) ** 2 / book.scale[m]
        at.error[m] = z
        at.gradient[m] -= z
    return total, travelled


@inner
def _move_shifts(bets: Bets, x: Floats, sigma: float, at: Place) -> tuple[float, float]:
    """Shifts of mass where a payoff is at its limit, added to the nodes."""
    total, travelled, n = 0.0, 0.0, at.pull.shape[1]
    for o in range(len(bets.mass)):
        i, pace = bets.node[o], sigma * bets.mass[o]
        price, shifted = 0.0, 0.0
        for e in range(bets.start[o], bets.start[o + 1]):
            price += bets.stated[e] * x[bets.moment[e]]
        for y in range(n):
            payoff, centre = at.pull[i, y] - price, at.shift_centre[o, y]
            v = centre + pace * payoff
            s = max(v - pace, 0.0) + min(v + pace, 0.0)
            at.shift[o, y] = s
            at.mass[i, y] += s
            shifted += s
            total += abs(s) - payoff * s
            travelled += (s - centre) ** 2 / bets.mass[o]
        for e in range(bets.start[o], bets.start[o + 1]):
            at.gradient[bets.moment[e]] += bets.stated[e] * shifted
    return total, travelled


@inner
def evaluate(
    book: Book, bets: Bets, x: Floats, sigma: float, at: Place
) -> tuple[float, float]:
    """The concave dual of one proximal step, and its gradient.

    Also how far rates, errors and shifts are from their centres, in the mean.
    """
    for i in range(len(at.pull)):
        for y in range(at.pull.shape[1]):
            at.pull[i, y] = book.barred[i, y]
            at.mass[i, y] = 0.0
    spread(book.entry, book.moment, book.coefficient, x, at.pull)
    received, travelled = _move_rows(
        book.first,
        book.second,
        book.weight,
        at.pull,
        sigma,
        at.centre,
        at.rates,
        at.mass,
    )
    value = -received
    for m in range(len(x)):
        at.gradient[m] = book.target[m]
        value += x[m] * book.target[m]
    for_shifts, shifted = _move_shifts(bets, x, sigma, at)
    collect(book.entry, book.moment, book.coefficient, at.mass, at.gradient)
    for_errors, changed = _move_errors(book, x, sigma, at)
    travelled += shifted + changed
    value += for_shifts + for_errors + travelled / (2 * sigma)
    return value, np.sqrt(travelled)
