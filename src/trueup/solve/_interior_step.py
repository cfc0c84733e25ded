"""Compiled: one step of the interior-point method, from matrix to new point."""

from __future__ import annotations

from typing import NamedTuple

from trueup._validate import Floats, Ints
from trueup.solve._dense import factorise_core
from trueup.solve._elimination import Plan, factorise, solve_factorised
from trueup.solve._interior import advance, assemble, direction, right_hand_side
from trueup.solve._interior_rows import Places, State
from trueup.solve._interior_slack import budget_border
from trueup.solve._jit import entry, inner
from trueup.solve._newton import Conditions, Table
from trueup.solve._prox import Atoms

_NEAR_EDGE = 0.99
"""Share of the way to where something would become negative."""
_NOTHING = 1e-30
"""Sum of products that counts as zero."""


class Room(NamedTuple):
    """Arrays that a step writes to."""

    matrix: Floats
    tiles: Floats
    """Factor of the dense core."""
    kept: Ints
    """Slopes and multipliers that are unknowns."""
    side: Floats
    ahead: Floats
    """Step of slopes and multipliers."""
    unknown: Floats
    border: Floats
    """How the moments answer to the price of the budget."""
    answer: Floats


@entry
def interior_step(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    places: Places,
    plan: Plan,
    at: State,
    room: Room,
    n_products: float,
) -> tuple[float, float]:
    """Mehrotra's predictor and corrector with one factorisation.

    Returns the sum of the products before, and the share of the step that was taken.
    """
    assemble(table, given, atoms, places, at, room.matrix)
    factorise(plan, room.matrix)
    factorise_core(room.matrix[plan.core :], plan.n_core, room.tiles)
    corner = _find_border(given, plan, at, room)
    price = _solve(table, given, atoms, plan, at, room, corner, 0.0)
    longest, now, linear, square = direction(
        table, given, atoms, at, room.ahead, price, 0.0, True
    )
    if not now > _NOTHING:
        return now, 0.0
    left = (now + longest * linear + longest**2 * square) / now
    level = now / n_products * min(max(left, 0.0), 1.0) ** 3
    price = _solve(table, given, atoms, plan, at, room, corner, level)
    longest, _, _, _ = direction(
        table, given, atoms, at, room.ahead, price, level, False
    )
    share = _NEAR_EDGE * longest if longest < 1 else 1.0
    size = 0.0
    for i in range(len(room.ahead)):
        size += abs(room.ahead[i])
    if not size < 1e300:  # rounding got the better of the factorisation
        return now, 0.0
    advance(atoms, at, room.ahead, share)
    return now, share


@inner
def _find_border(given: Conditions, plan: Plan, at: State, room: Room) -> float:
    """What a change of the budget's price does to everything else."""
    if given.budget == 0:
        return 0.0
    n_slots = len(at.x) - len(given.target)
    room.side[:] = 0.0
    corner = budget_border(given, at.slack, at.x[n_slots:], room.side[n_slots:])
    for i in range(len(room.kept)):
        room.border[i] = room.answer[i] = room.side[room.kept[i]]
    solve_factorised(plan, room.matrix, room.tiles, room.answer)
    for i in range(len(room.kept)):
        corner -= room.border[i] * room.answer[i]
    return corner


@inner
def _solve(
    table: Table,
    given: Conditions,
    atoms: Atoms,
    plan: Plan,
    at: State,
    room: Room,
    corner: float,
    level: float,
) -> float:
    """Step of slopes and multipliers; returns that of the budget's price."""
    side = right_hand_side(table, given, atoms, at, level, room.side)
    for i in range(len(room.kept)):
        room.unknown[i] = room.side[room.kept[i]]
    solve_factorised(plan, room.matrix, room.tiles, room.unknown)
    price = 0.0
    if given.budget > 0:
        for i in range(len(room.kept)):
            side -= room.border[i] * room.unknown[i]
        price = side / max(corner, _NOTHING)
    for i in range(len(room.kept)):
        room.ahead[room.kept[i]] = room.unknown[i] - price * room.answer[i]
    return price
