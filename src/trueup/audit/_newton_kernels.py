"""Compiled Newton iteration of one proximal step over trades.

The curvature comes from rows with two or more outcomes in play, from errors and from
shifts of mass; Newton systems are solved by conjugate gradients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._validate import Floats, Ints
from trueup.audit._trade_kernels import Bets, Book, Place, collect, evaluate, spread
from trueup.solve._jit import entry, inner

_BACK = 0.3
"""Factor of a step that went too far."""
_LEAST_STEP = 1e-4
_MOST_PRODUCTS = 500
_MOST_DAMPING, _LEAST_DAMPING = 1e3, 1e-6
_EXACT, _NEARLY_EXACT = 1e-11, 1e-8
"""Residuals below which nothing but rounding is left, surely and maybe."""


class Active(NamedTuple):
    """Rows with two or more outcomes in play, copied together."""

    first: Ints
    second: Ints
    weight: Floats
    start: Ints
    outcome: Ints


class Work(NamedTuple):
    """Arrays of the size of the multipliers, allocated once."""

    step: Floats
    trial: Floats
    gradient: Floats
    scale: Floats
    damping: Floats
    residual: Floats
    direction: Floats
    image: Floats


@entry
def settle(
    book: Book,
    bets: Bets,
    at: Place,
    active: Active,
    work: Work,
    sigma: float,
    accuracy: float,
    damping: float,
    most: int,
) -> tuple[float, float, float, int, int]:
    """Solve one proximal step by Newton's method on its dual.

    Ends when the residual is below ``accuracy`` times the move of everything else, and
    below the speed of that move: in long steps it would be all that is wrong.
    Returns both, the damping to go on with, and the numbers of Newton steps and of
    products with the curvature.
    """
    value, moved = evaluate(book, bets, at.x, sigma, at)
    n_products, least = 0, min(accuracy, 1.0 / sigma)
    for n_steps in range(most + 1):
        residual = _norm(at.gradient, book.scale)
        if residual <= _EXACT or n_steps == most:
            break
        if residual <= least * moved and n_steps > 0:
            break
        n_rows = _gather(book, at.rates, active)
        for m in range(len(at.x)):
            work.damping[m] = damping * min(residual, 1.0) * sigma * book.scale[m]
            work.gradient[m] = at.gradient[m]
        _diagonal(book, bets, at, active, n_rows, sigma, work)
        tolerance = min(0.1, np.sqrt(residual))
        n_products += _solve(book, bets, at, active, n_rows, sigma, work, tolerance)
        value, moved, length = _advance(book, bets, at, work, sigma, value)
        if length < _LEAST_STEP and residual < _NEARLY_EXACT:
            break  # rounding: the dual does not rise any more
        if length < 1:
            damping = min(damping * 4, _MOST_DAMPING)
        else:
            damping = max(damping / 3, _LEAST_DAMPING)
    return residual, moved, damping, n_steps, n_products


@inner
def _advance(
    book: Book, bets: Bets, at: Place, work: Work, sigma: float, value: float
) -> tuple[float, float, float]:
    """Go along the step until the dual rises enough; its value, move and length."""
    slope = 0.0
    for m in range(len(at.x)):
        slope += work.step[m] * work.gradient[m]
    length = 1.0
    while True:
        for m in range(len(at.x)):
            work.trial[m] = at.x[m] + length * work.step[m]
        reached, moved = evaluate(book, bets, work.trial, sigma, at)
        rounding = 1e-15 * (1 + abs(value))
        enough = value + 1e-4 * length * slope - rounding
        if reached >= enough or length < _LEAST_STEP:
            for m in range(len(at.x)):
                at.x[m] = work.trial[m]
            return reached, moved, length
        length *= _BACK


@inner
def _solve(
    book: Book,
    bets: Bets,
    at: Place,
    active: Active,
    n_rows: int,
    sigma: float,
    work: Work,
    tolerance: float,
) -> int:
    """Solve the Newton system roughly; returns the number of products."""
    n, size = len(at.x), 0.0
    for m in range(n):
        work.step[m] = 0.0
        work.residual[m] = work.gradient[m]
        work.direction[m] = work.residual[m] / work.scale[m]
        size += work.residual[m] * work.direction[m]
    wanted = tolerance**2 * size
    for n_products in range(_MOST_PRODUCTS):
        if size <= wanted:
            return n_products
        _product(book, bets, at, active, n_rows, sigma, work)
        along = 0.0
        for m in range(n):
            along += work.direction[m] * work.image[m]
        if along <= 0:  # rounding: what is left has no curvature
            return n_products
        length, before = size / along, size
        size = 0.0
        for m in range(n):
            work.step[m] += length * work.direction[m]
            work.residual[m] -= length * work.image[m]
            size += work.residual[m] ** 2 / work.scale[m]
        for m in range(n):
            work.direction[m] *= size / before
            work.direction[m] += work.residual[m] / work.scale[m]
    return _MOST_PRODUCTS


@inner
def _gather(book: Book, rates: Floats, active: Active) -> int:
    """Copy the rows in which two or more outcomes are in play; returns how many."""
    n_rows, n_places = 0, 0
    for p in range(len(book.weight)):
        count = 0
        for y in range(rates.shape[1]):
            count += rates[p, y] > 0
        if count < 2:
            continue
        active.first[n_rows] = book.first[p]
        active.second[n_rows] = book.second[p]
        active.weight[n_rows] = book.weight[p]
        active.start[n_rows] = n_places
        for y in range(rates.shape[1]):
            if rates[p, y] > 0:
                active.outcome[n_places] = y
                n_places += 1
        n_rows += 1
    active.start[n_rows] = n_places
    return n_rows


@inner
def _product(
    book: Book,
    bets: Bets,
    at: Place,
    active: Active,
    n_rows: int,
    sigma: float,
    work: Work,
) -> None:
    """Curvature times the direction; the arrays of the nodes are scratch here."""
    x, out = work.direction, work.image
    for i in range(len(at.pull)):
        for y in range(at.pull.shape[1]):
            at.pull[i, y] = 0.0
            at.mass[i, y] = 0.0
    spread(book.entry, book.moment, book.coefficient, x, at.pull)
    _rows_product(
        active.first,
        active.second,
        active.weight,
        active.start,
        active.outcome,
        n_rows,
        at.pull,
        at.mass,
    )
    for m in range(len(x)):
        out[m] = 0.0
    _bets_product(bets, at, x, out)
    collect(book.entry, book.moment, book.coefficient, at.mass, out)
    for m in range(len(x)):
        moves = book.scale[m] if at.error[m] != 0 else 0.0
        out[m] = sigma * (moves * x[m] - out[m]) + work.damping[m] * x[m]


@inner
def _rows_product(
    first: Ints,
    second: Ints,
    weight: Floats,
    start: Ints,
    outcome: Ints,
    n_rows: int,
    pull: Floats,
    mass: Floats,
) -> None:
    for r in range(n_rows):
        i, j, begin, end = first[r], second[r], start[r], start[r + 1]
        mean = 0.0
        for e in range(begin, end):
            mean += pull[i, outcome[e]] + pull[j, outcome[e]]
        mean /= end - begin
        for e in range(begin, end):
            y = outcome[e]
            moved = weight[r] * (pull[i, y] + pull[j, y] - mean)
            mass[i, y] += moved
            mass[j, y] += moved


@inner
def _bets_product(bets: Bets, at: Place, x: Floats, out: Floats) -> None:
    for o in range(len(bets.mass)):
        i, price, total, is_used = bets.node[o], 0.0, 0.0, False
        for y in range(at.shift.shape[1]):
            is_used |= at.shift[o, y] != 0
        if not is_used:
            continue
        for e in range(bets.start[o], bets.start[o + 1]):
            price += bets.stated[e] * x[bets.moment[e]]
        for y in range(at.shift.shape[1]):
            if at.shift[o, y] != 0:
                moved = bets.mass[o] * (at.pull[i, y] - price)
                at.mass[i, y] += moved
                total += moved
        for e in range(bets.start[o], bets.start[o + 1]):
            out[bets.moment[e]] += bets.stated[e] * total


@inner
def _diagonal(
    book: Book,
    bets: Bets,
    at: Place,
    active: Active,
    n_rows: int,
    sigma: float,
    work: Work,
) -> None:
    """Roughly the diagonal of the curvature, to scale conjugate gradients by."""
    n, out = at.mass.shape[1], work.scale
    for i in range(len(at.mass)):
        for y in range(n):
            at.mass[i, y] = 0.0
    for r in range(n_rows):
        begin, end = active.start[r], active.start[r + 1]
        part = active.weight[r] * (1.0 - 1.0 / (end - begin))
        for e in range(begin, end):
            at.mass[active.first[r], active.outcome[e]] += part
            at.mass[active.second[r], active.outcome[e]] += part
    for m in range(len(out)):
        out[m] = work.damping[m] + (sigma * book.scale[m] if at.error[m] != 0 else 0.0)
    for o in range(len(bets.mass)):
        for y in range(n):
            if at.shift[o, y] != 0:
                at.mass[bets.node[o], y] += bets.mass[o]
                for e in range(bets.start[o], bets.start[o + 1]):
                    part = sigma * bets.mass[o] * bets.stated[e] ** 2
                    out[bets.moment[e]] += part
    for i in range(len(at.mass)):
        for y in range(n):
            for e in range(book.entry[i * n + y], book.entry[i * n + y + 1]):
                part = sigma * book.coefficient[e] ** 2 * at.mass[i, y]
                out[book.moment[e]] += part


@inner
def _norm(gradient: Floats, scale: Floats) -> float:
    total = 0.0
    for m in range(len(gradient)):
        total += gradient[m] ** 2 / scale[m]
    return np.sqrt(total)
