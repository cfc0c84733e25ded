"""Arrays that the compiled loops write to, allocated once a projection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats
from trueup.core.moments import MomentRows
from trueup.core.simplex import normalise_rows
from trueup.solve._curvature import Active
from trueup.solve._descent import Work
from trueup.solve._newton import Point
from trueup.solve._prox import Tilted
from trueup.solve._schur import Blocks
from trueup.solve.layout import Layout
from trueup.solve.problem import ASSERTED


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """Where a solve stands."""

    at: Point
    tilted: Tilted
    active: Active
    blocks: Blocks
    work: Work

    def recentre(self) -> None:
        """Let the next proximal step begin where this one ended."""
        self.at.centre[:] = self.at.rates
        self.at.slack_centre[:] = self.at.slack
        self.tilted.centre[:] = self.tilted.h


def make_workspace(layout: Layout, moments: MomentRows) -> Workspace:
    """Begin at rates that satisfy the moments, with no multipliers."""
    table, conditions = layout.table, layout.conditions
    n_moments = len(conditions.target)
    size = layout.n_slots + n_moments
    at = Point(
        x=np.zeros(size),
        rates=layout.anchors.copy(),
        centre=layout.anchors.copy(),
        slack=np.zeros(n_moments),
        slack_centre=np.zeros(n_moments),
        gradient=np.zeros(size),
        curvature=np.zeros(n_moments),
        charged=np.zeros(n_moments),
    )
    tilted = make_tilted(layout)
    tilted.centre[:] = _centre(layout)
    active = Active(
        start=np.empty(len(table.weight) + 1, dtype=np.int64),
        slot=np.empty_like(table.slot),
        entry=np.empty_like(table.entry),
        moment=np.empty_like(table.moment),
        coefficient=np.empty_like(table.coefficient),
        weight=np.empty_like(table.weight),
    )
    weight = np.append(layout.slot_weight, conditions.scale)
    work = Work(**{name: np.zeros(size) for name in Work._fields[:-1]}, weight=weight)
    return Workspace(at, tilted, active, _make_blocks(layout, moments), work)


def _make_blocks(layout: Layout, moments: MomentRows) -> Blocks:
    """Slopes by primary cell and multipliers by reference cell."""
    slot = layout.atoms.slot
    cell, outcome = np.nonzero(slot >= 0)
    slot_cell = np.zeros(layout.n_slots, dtype=np.int64)
    slot_cell[slot[cell, outcome]] = cell
    slot_size = np.bincount(slot_cell, minlength=len(slot))
    moment_cell = moments.cell_of_row.astype(np.int64)
    moment_size = np.bincount(moment_cell, minlength=moments.n_cells)
    usable = moments.form != ASSERTED
    room = [int((size**2).sum()) if usable else 0 for size in (slot_size, moment_size)]
    longest = max(len(slot_cell), len(moment_cell)) if usable else 0
    return Blocks(
        usable=usable,
        slot_cell=slot_cell,
        moment_cell=moment_cell,
        slot_first=np.cumsum(slot_size) - slot_size,
        slot_size=slot_size,
        slot_at=np.cumsum(slot_size**2) - slot_size**2,
        moment_first=np.cumsum(moment_size) - moment_size,
        moment_size=moment_size,
        moment_at=np.cumsum(moment_size**2) - moment_size**2,
        slot_matrix=np.zeros(room[0]),
        moment_matrix=np.zeros(room[1]),
        moment_factor=np.zeros(room[1]),
        vectors=np.zeros((5, longest)),
    )


def make_tilted(layout: Layout) -> Tilted:
    """Room for the tilts of all atoms."""
    shape = layout.atoms.base.shape
    h, centre, d, a, b = (np.zeros(shape) for _ in range(5))
    return Tilted(h, centre, d, a, b, np.zeros(shape[0]), np.zeros(shape[0]))


def _centre(layout: Layout) -> Floats:
    """(atoms, K) mean rates of each atom's cell."""
    table, atoms = layout.table, layout.atoms
    mass = group_sums(
        table.slot, table.weight[layout.row] * layout.anchors, layout.n_slots
    )
    slot = atoms.slot[atoms.cell]
    return normalise_rows(np.where(slot >= 0, (mass / layout.slot_weight)[slot], 0.0))
