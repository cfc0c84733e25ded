"""Compiled loops of the interior-point method: rows, atoms and slacks.

Every row p has rates K_f > 0 and reduced costs s_f > 0 that sum and differ as the
simplex demands; only their products are driven to zero,

    K_f s_f = t * barrier_p,      t -> 0.

Rates keep summing to one and reduced costs keep belonging to the multipliers, because
both are linear and hold at the start. What a step must mend is the links between
rates and reports, the moments, and the slopes of the reports' generator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._validate import Floats, Ints
from trueup.solve._jit import entry, inner
from trueup.solve._newton import Conditions, Table
from trueup.solve._prox import BRIER, BRIER_ALONE, LOG, Atoms


class Places(NamedTuple):
    """Where a row's numbers go in the flat matrix."""

    slot_pivot: Ints
    """(rows,) address of the diagonal block of the row's slopes, and its stride."""
    slot_stride: Ints
    moment_pivot: Ints
    moment_stride: Ints
    cross: Ints
    """(rows,) address of the block where the two meet, with the strides of a step to
    the next slope and to the next moment."""
    cross_slot: Ints
    cross_moment: Ints
    first_slot: Ints
    """(rows,)."""
    first_moment: Ints
    n_moments: Ints
    """(rows,) moments of the row's cell that are unknowns."""
    cell_pivot: Ints
    """(primary cells,) address of the diagonal block."""
    cell_stride: Ints
    cell_slot: Ints
    row_pivot: Ints
    """(moment rows,) address of the moment on the diagonal; -1 where it is none."""


class State(NamedTuple):
    """Where the method stands."""

    x: Floats
    rates: Floats
    cost: Floats
    """(coordinates,) reduced costs."""
    crossed: Floats
    """(coordinates,) product of the first try's steps."""
    rate_step: Floats
    cost_step: Floats
    h: Floats
    h_cost: Floats
    h_crossed: Floats
    h_step: Floats
    h_cost_step: Floats
    slack: Floats
    slack_crossed: Floats
    slack_step: Floats
    barrier: Floats
    """(rows,)."""
    h_barrier: Floats
    slack_barrier: Floats


@entry
def assemble(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    places: Places,
    at: State,
    matrix: Floats,
) -> None:
    """The matrix of the Newton system."""
    matrix[:] = 0.0
    _rows_matrix(
        table.start,
        table.slot,
        table.entry,
        table.moment,
        table.coefficient,
        table.weight,
        places,
        at.rates,
        at.cost,
        matrix,
    )
    _atoms_matrix(atoms, places, at, matrix)
    n_slots = len(at.x) - len(given.target)
    for m in range(len(given.target)):
        if not given.equality[m] and places.row_pivot[m] >= 0:
            matrix[places.row_pivot[m]] += at.slack[m] / -at.x[n_slots + m]


@inner
def _rows_matrix(
    start: Ints,
    slot: Ints,
    entry: Ints,
    moment: Ints,
    coefficient: Floats,
    weight: Floats,
    places: Places,
    rates: Floats,
    cost: Floats,
    matrix: Floats,
) -> None:
    widest = 0
    for p in range(len(weight)):
        widest = max(widest, start[p + 1] - start[p])
    theta = np.empty(widest)
    for p in range(len(weight)):
        first, n = start[p], start[p + 1] - start[p]
        total, mass = 0.0, weight[p]
        for k in range(n):
            theta[k] = rates[first + k] / cost[first + k]
            total += theta[k]
        scale, first_moment = mass * mass, places.first_moment[p]
        n_moments = places.n_moments[p]
        for k in range(n):
            f = first + k
            s = slot[f] - places.first_slot[p]
            to_slot = places.slot_pivot[p] + s * places.slot_stride[p]
            to_cross = places.cross[p] + s * places.cross_slot[p]
            factor = scale * theta[k] / total
            for j in range(n):
                g = first + j
                # The diagonal as a sum of the others: no cancellation.
                value = -factor * theta[j]
                if j == k:
                    value = factor * (total - theta[k])
                matrix[to_slot + slot[g] - places.first_slot[p]] += value
                for e in range(entry[g], entry[g + 1]):
                    m = moment[e] - first_moment
                    if m >= n_moments:
                        continue
                    part = coefficient[e] * value
                    matrix[to_cross + m * places.cross_moment[p]] -= part
                    for d in range(entry[f], entry[f + 1]):
                        o = moment[d] - first_moment
                        if o < n_moments:
                            to = places.moment_pivot[p] + o * places.moment_stride[p]
                            matrix[to + m] += coefficient[d] * part


@inner
def _atoms_matrix(atoms: Atoms, places: Places, at: State, matrix: Floats) -> None:
    n_atoms, n = atoms.base.shape
    width = np.empty(n)
    for i in range(n_atoms):
        j, mass = atoms.cell[i], atoms.weight[i]
        pivot, stride = places.cell_pivot[j], places.cell_stride[j]
        total = 0.0
        for y in range(n):
            width[y] = 0.0
            if atoms.slot[j, y] >= 0:
                width[y] = _looseness(atoms.loss, mass, at.h[i, y], at.h_cost[i, y])
                total += width[y]
        for y in range(n):
            if atoms.slot[j, y] < 0:
                continue
            s = atoms.slot[j, y] - places.cell_slot[j]
            matrix[pivot + s * (stride + 1)] += mass * mass * width[y]
            if atoms.loss == BRIER_ALONE:
                continue
            for k in range(n):
                if atoms.slot[j, k] >= 0:
                    o = atoms.slot[j, k] - places.cell_slot[j]
                    matrix[pivot + s * stride + o] -= (
                        mass * mass * width[y] * width[k] / total
                    )


@inner
def _looseness(loss: int, mass: float, h: float, cost: float) -> float:
    """How far an outcome of a report moves with its slope: inverse curvature."""
    if loss == LOG:
        return h / mass
    if loss == BRIER:
        return 1.0 / (2.0 * mass + cost / h)
    return 0.5 / mass


@entry
def right_hand_side(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    at: State,
    t: float,
    out: Floats,
) -> None:
    """What a step must mend, for products that go to ``t`` times their barrier."""
    n_slots = len(at.x) - len(given.target)
    out[:] = 0.0
    for m in range(len(given.target)):
        out[n_slots + m] = given.target[m]
        if not given.equality[m]:
            wanted = t * at.slack_barrier[m] - at.slack_crossed[m]
            out[n_slots + m] -= wanted / -at.x[n_slots + m]
    _rows_side(
        table.start,
        table.slot,
        table.entry,
        table.moment,
        table.coefficient,
        table.weight,
        n_slots,
        at.rates,
        at.cost,
        at.crossed,
        at.barrier,
        t,
        out,
    )
    n_atoms, n = atoms.base.shape
    g, width = np.empty(n), np.empty(n)
    for i in range(n_atoms):
        mean = _atom_pull(atoms, at, i, t, at.x, 0.0, g, width)
        for y in range(n):
            s = atoms.slot[atoms.cell[i], y]
            if s >= 0:
                moved = at.h[i, y] + width[y] * (g[y] - mean)
                out[s] -= atoms.weight[i] * moved


@inner
def _rows_side(
    start: Ints,
    slot: Ints,
    entry: Ints,
    moment: Ints,
    coefficient: Floats,
    weight: Floats,
    n_slots: int,
    rates: Floats,
    cost: Floats,
    crossed: Floats,
    barrier: Floats,
    t: float,
    out: Floats,
) -> None:
    for p in range(len(weight)):
        first, last = start[p], start[p + 1]
        total, mean, wanted = 0.0, 0.0, t * barrier[p]
        for f in range(first, last):
            theta = rates[f] / cost[f]
            total += theta
            mean += theta * ((wanted - crossed[f]) / rates[f] - cost[f])
        mean /= total
        for f in range(first, last):
            g = (wanted - crossed[f]) / rates[f] - cost[f]
            moved = weight[p] * (rates[f] + rates[f] / cost[f] * (g - mean))
            out[slot[f]] += moved
            for e in range(entry[f], entry[f + 1]):
                out[n_slots + moment[e]] -= coefficient[e] * moved


@inner
def _atom_pull(
    atoms: Atoms,
    at: State,
    i: int,
    t: float,
    x: Floats,
    ahead: float,
    g: Floats,
    width: Floats,
) -> float:
    """Force on each outcome of an atom, its looseness, and the mean force.

    ``ahead`` is one where ``x`` holds a step of the slopes and not the slopes.
    """
    j, mass, loss = atoms.cell[i], atoms.weight[i], atoms.loss
    total, mean = 0.0, 0.0
    for y in range(len(g)):
        s = atoms.slot[j, y]
        g[y] = width[y] = 0.0
        if s < 0:
            continue
        h = at.h[i, y]
        slope = at.x[s] + (x[s] if ahead > 0 else 0.0)
        width[y] = _looseness(loss, mass, h, at.h_cost[i, y])
        if loss == LOG:
            g[y] = mass * (slope - np.log(h) + atoms.base[i, y])
        else:
            g[y] = mass * (slope - 2.0 * (h - atoms.base[i, y]))
            if loss == BRIER:
                g[y] += (t * at.h_barrier[i] - at.h_crossed[i, y]) / h
        total += width[y]
        mean += width[y] * g[y]
    return 0.0 if loss == BRIER_ALONE else mean / total


@entry
def direction(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    at: State,
    step: Floats,
    t: float,
    is_first: bool,
) -> tuple[float, float, float, float]:
    """Steps of everything else for a step of the multipliers.

    Returns the longest step that stays positive, and three sums: the products now,
    what they change by in first and in second order. The first try only keeps the
    products of its steps.
    """
    n_slots = len(at.x) - len(given.target)
    longest, linear, square = _rows_direction(
        table.start,
        table.slot,
        table.entry,
        table.moment,
        table.coefficient,
        table.weight,
        n_slots,
        at,
        step,
        t,
        is_first,
    )
    now = 0.0
    for f in range(len(at.rates)):
        now += at.rates[f] * at.cost[f]
    n_atoms, n = atoms.base.shape
    g, width = np.empty(n), np.empty(n)
    for i in range(n_atoms):
        mean = _atom_pull(atoms, at, i, t, step, 1.0, g, width)
        for y in range(n):
            if atoms.slot[atoms.cell[i], y] < 0:
                continue
            h, cost = at.h[i, y], at.h_cost[i, y]
            moved = width[y] * (g[y] - mean)
            if atoms.loss == BRIER_ALONE:
                at.h_step[i, y] = moved
                continue
            longest = _shorter(longest, h, moved)
            if atoms.loss == BRIER:
                wanted = t * at.h_barrier[i] - at.h_crossed[i, y] - h * cost
                other = (wanted - cost * moved) / h
                longest = _shorter(longest, cost, other)
                now += h * cost
                linear += cost * moved + h * other
                square += moved * other
                at.h_cost_step[i, y] = other
                if is_first:
                    at.h_crossed[i, y] = moved * other
            at.h_step[i, y] = moved
    for m in range(len(given.target)):
        if given.equality[m]:
            continue
        force, moved = -at.x[n_slots + m], -step[n_slots + m]
        wanted = t * at.slack_barrier[m] - at.slack_crossed[m] - at.slack[m] * force
        other = (wanted - at.slack[m] * moved) / force
        longest = _shorter(_shorter(longest, force, moved), at.slack[m], other)
        now += at.slack[m] * force
        linear += force * other + at.slack[m] * moved
        square += other * moved
        at.slack_step[m] = other
        if is_first:
            at.slack_crossed[m] = other * moved
    return longest, now, linear, square


@inner
def _shorter(longest: float, value: float, step: float) -> float:
    """The longest step that keeps a value positive."""
    if value + longest * step < 0:
        return -value / step
    return longest


@inner
def _rows_direction(
    start: Ints,
    slot: Ints,
    entry: Ints,
    moment: Ints,
    coefficient: Floats,
    weight: Floats,
    n_slots: int,
    at: State,
    step: Floats,
    t: float,
    is_first: bool,
) -> tuple[float, float, float]:
    rates, cost, crossed = at.rates, at.cost, at.crossed
    longest, linear, square = 1.0, 0.0, 0.0
    for p in range(len(weight)):
        first, last = start[p], start[p + 1]
        total, mean, wanted = 0.0, 0.0, t * at.barrier[p]
        for f in range(first, last):
            moved = step[slot[f]]
            for e in range(entry[f], entry[f + 1]):
                moved -= coefficient[e] * step[n_slots + moment[e]]
            g = (wanted - crossed[f]) / rates[f] - cost[f] - weight[p] * moved
            theta = rates[f] / cost[f]
            total += theta
            mean += theta * g
            at.rate_step[f] = g
        mean /= total
        for f in range(first, last):
            moved = rates[f] / cost[f] * (at.rate_step[f] - mean)
            other = (wanted - crossed[f] - cost[f] * moved) / rates[f] - cost[f]
            if rates[f] + longest * moved < 0:
                longest = -rates[f] / moved
            if cost[f] + longest * other < 0:
                longest = -cost[f] / other
            linear += cost[f] * moved + rates[f] * other
            square += moved * other
            if is_first:
                crossed[f] = moved * other
            at.rate_step[f] = moved
            at.cost_step[f] = other
    return longest, linear, square


@entry
def advance(given: Conditions, atoms: Atoms, at: State, step: Floats, a: float) -> None:
    """Go a share of the step, and forget the first try."""
    for i in range(len(at.x)):
        at.x[i] += a * step[i]
    for f in range(len(at.rates)):
        at.rates[f] += a * at.rate_step[f]
        at.cost[f] += a * at.cost_step[f]
        at.crossed[f] = 0.0
    n_atoms, n = atoms.base.shape
    for i in range(n_atoms):
        for y in range(n):
            at.h[i, y] += a * at.h_step[i, y]
            at.h_cost[i, y] += a * at.h_cost_step[i, y]
            at.h_crossed[i, y] = 0.0
    for m in range(len(given.target)):
        at.slack[m] += a * at.slack_step[m]
        at.slack_crossed[m] = 0.0
