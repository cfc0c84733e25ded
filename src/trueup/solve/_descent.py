"""Compiled Newton iteration of one proximal step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._validate import Floats
from trueup.solve._curvature import Active, diagonal, gather, product
from trueup.solve._jit import entry, inner
from trueup.solve._newton import Conditions, Point, Table, evaluate
from trueup.solve._prox import CONFIDENCE, Atoms, Tilted
from trueup.solve._schur import Blocks, solve_reduced

_SHORTEST, _LONGEST = 0.1, 0.5
"""Of a step that went too far, what is tried next lies between these shares of it."""
_LEAST_STEP = 1e-4
_ROUGHLY = 0.1
"""Share of the residual that a Newton system may be left with."""
_MOST_PRODUCTS = 500
_MOST_DAMPING = 1e3
_LEAST_DAMPING = 1e-3
_DAMPED, _STRONGLY_DAMPED, _RELEASED = 10.0, 300.0, 1.0 / 3.0
"""Factors of the damping after a step that had to be shortened, shortened a lot, or
was taken whole."""


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
    weight: Floats
    """Mass behind each multiplier: the unit in which residuals are measured."""


@entry
def maximise(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    tilted: Tilted,
    at: Point,
    active: Active,
    blocks: Blocks,
    work: Work,
    sigma: float,
    accuracy: float,
    damping: float,
    most: int,
) -> tuple[float, float, int]:
    """Solve one proximal step by Newton's method on its dual.

    Ends when the residual is below ``accuracy`` times the move of the rates. Returns
    the residual, the damping to go on with, and the number of Newton steps.
    """
    value = evaluate(table, given, atoms, tilted, at.x, sigma, at)
    for n_steps in range(most + 1):
        residual = _norm(at.gradient, work.weight)
        moved = _moved(table, at)
        if residual <= accuracy * moved or residual < 1e-10 or n_steps == most:
            break
        n_rows = gather(table, at.rates, active)
        for i in range(len(at.x)):
            work.damping[i] = damping * residual * work.weight[i]
            work.gradient[i] = at.gradient[i]
        # Confidence losses are flat somewhere: rough steps lead astray there.
        tolerance = _ROUGHLY
        if atoms.loss >= CONFIDENCE:
            tolerance = min(_ROUGHLY, residual**0.5)
        if blocks.usable:
            solve_reduced(
                active,
                n_rows,
                atoms,
                tilted,
                at,
                sigma,
                blocks,
                work.damping,
                work.gradient,
                work.step,
                tolerance,
            )
        else:
            diagonal(active, n_rows, atoms, tilted, at, sigma, work.damping, work.scale)
            _conjugate_gradients(
                active, n_rows, atoms, tilted, at, sigma, work, tolerance
            )
        value, length = _advance(table, given, atoms, tilted, at, work, sigma, value)
        factor = _RELEASED
        if length < 1:
            factor = _DAMPED if length > 0.3 else _STRONGLY_DAMPED
        damping = min(max(damping * factor, _LEAST_DAMPING), _MOST_DAMPING)
    return residual, damping, n_steps


@inner
def _advance(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    tilted: Tilted,
    at: Point,
    work: Work,
    sigma: float,
    value: float,
) -> tuple[float, float]:
    """Go along the step until the dual rises enough; its value and the length."""
    slope = 0.0
    for i in range(len(at.x)):
        slope += work.step[i] * work.gradient[i]
    length = 1.0
    while True:
        for i in range(len(at.x)):
            work.trial[i] = at.x[i] + length * work.step[i]
        reached = evaluate(table, given, atoms, tilted, work.trial, sigma, at)
        if reached >= value + 1e-4 * length * slope or length < _LEAST_STEP:
            break
        here = 0.0
        for i in range(len(at.x)):
            here += work.step[i] * at.gradient[i]
        if here >= 0:  # rounding: a concave function has not fallen here
            break
        # Where a straight line between the two slopes vanishes.
        share = slope / (slope - here)
        length *= min(max(share, _SHORTEST), _LONGEST)
    for i in range(len(at.x)):
        at.x[i] = work.trial[i]
    return reached, length


@inner
def _conjugate_gradients(
    active: Active,
    n_rows: int,
    atoms: Atoms,
    tilted: Tilted,
    at: Point,
    sigma: float,
    work: Work,
    tolerance: float,
) -> None:
    """Solve the Newton system roughly."""
    n = len(at.x)
    size = 0.0
    for i in range(n):
        work.step[i] = 0.0
        work.residual[i] = work.gradient[i]
        work.direction[i] = work.residual[i] / work.scale[i]
        size += work.residual[i] * work.direction[i]
    wanted = tolerance**2 * size
    for _ in range(_MOST_PRODUCTS):
        if size <= wanted:
            return
        product(
            active,
            n_rows,
            atoms,
            tilted,
            at,
            sigma,
            work.damping,
            work.direction,
            work.image,
        )
        along = 0.0
        for i in range(n):
            along += work.direction[i] * work.image[i]
        if along <= 0:  # rounding: what is left has no curvature
            return
        length, before = size / along, size
        size = 0.0
        for i in range(n):
            work.step[i] += length * work.direction[i]
            work.residual[i] -= length * work.image[i]
            size += work.residual[i] ** 2 / work.scale[i]
        for i in range(n):
            work.direction[i] *= size / before
            work.direction[i] += work.residual[i] / work.scale[i]


@inner
def _norm(gradient: Floats, weight: Floats) -> float:
    total = 0.0
    for i in range(len(gradient)):
        total += gradient[i] ** 2 / weight[i]
    return np.sqrt(total)


@inner
def _moved(table: Table, at: Point) -> float:
    """How far the rates are from their centre, in the mean."""
    total = 0.0
    for p in range(len(table.weight)):
        for f in range(table.start[p], table.start[p + 1]):
            total += table.weight[p] * (at.rates[f] - at.centre[f]) ** 2
    return np.sqrt(total)
