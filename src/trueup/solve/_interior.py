"""Compiled loops of the interior-point method over everything, and over atoms.

Every row p has rates K_f > 0 and reduced costs s_f > 0 that sum and differ as the
simplex demands; only their products are driven to zero,

    K_f s_f = t * barrier_p,      t -> 0.

Rates keep summing to one and reduced costs keep belonging to the multipliers, because
both are linear and hold at the start. What a step must mend is the links between
rates and reports, the moments, and the slopes of the reports' generator.
"""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats
from trueup.solve._interior_rows import (
    Places,
    State,
    rows_direction,
    rows_matrix,
    rows_side,
)
from trueup.solve._interior_slack import (
    advance_slack,
    shorter,
    slack_direction,
    slack_matrix,
    slack_side,
)
from trueup.solve._jit import inner
from trueup.solve._newton import Conditions, Table
from trueup.solve._prox import BRIER, BRIER_ALONE, LOG, Atoms


@inner
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
    rows_matrix(
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
    slack_matrix(given, at.slack, at.x[n_slots:], places.row_pivot, matrix)


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


@inner
def right_hand_side(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    at: State,
    t: float,
    out: Floats,
) -> float:
    """What a step must mend, for products that go to ``t`` times their barrier.

    Returns the part of it that concerns the budget.
    """
    n_slots = len(at.x) - len(given.target)
    out[:] = 0.0
    side = slack_side(given, at.slack, at.x[n_slots:], t, out[n_slots:])
    rows_side(
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
    return side


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


@inner
def direction(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    at: State,
    step: Floats,
    price_step: float,
    t: float,
    is_first: bool,
) -> tuple[float, float, float, float]:
    """Steps of everything else for a step of the multipliers.

    Returns the longest step that stays positive, and three sums: the products now,
    what they change by in first and in second order. The first try only keeps the
    products of its steps.
    """
    n_slots = len(at.x) - len(given.target)
    longest, linear, square = rows_direction(
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
    longest, own, first, second = _atoms_direction(
        atoms, at, step, t, is_first, longest
    )
    now, linear, square = now + own, linear + first, square + second
    parts = slack_direction(
        given,
        at.slack,
        at.x[n_slots:],
        step[n_slots:],
        price_step,
        t,
        is_first,
        longest,
    )
    return parts[0], now + parts[1], linear + parts[2], square + parts[3]


@inner
def _atoms_direction(
    atoms: Atoms, at: State, step: Floats, t: float, is_first: bool, longest: float
) -> tuple[float, float, float, float]:
    """Steps of the reports; see :func:`direction`."""
    n_atoms, n = atoms.base.shape
    g, width = np.empty(n), np.empty(n)
    now, linear, square = 0.0, 0.0, 0.0
    for i in range(n_atoms):
        mean = _atom_pull(atoms, at, i, t, step, 1.0, g, width)
        for y in range(n):
            if atoms.slot[atoms.cell[i], y] < 0:
                continue
            h, cost = at.h[i, y], at.h_cost[i, y]
            moved = width[y] * (g[y] - mean)
            at.h_step[i, y] = moved
            if atoms.loss == BRIER_ALONE:
                continue
            longest = shorter(longest, h, moved)
            if atoms.loss == BRIER:
                wanted = t * at.h_barrier[i] - at.h_crossed[i, y] - h * cost
                other = (wanted - cost * moved) / h
                longest = shorter(longest, cost, other)
                now += h * cost
                linear += cost * moved + h * other
                square += moved * other
                at.h_cost_step[i, y] = other
                if is_first:
                    at.h_crossed[i, y] = moved * other
    return longest, now, linear, square


@inner
def advance(atoms: Atoms, at: State, step: Floats, a: float) -> None:
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
    advance_slack(at.slack, a)
