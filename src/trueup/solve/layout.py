"""A projection problem as flat arrays for the compiled loops.

Outcomes that no moment of a primary cell's rows tells apart share one slope and one
coordinate of every row. This changes nothing: lowering their slopes to the smallest
of them leaves every row's cheapest outcome as cheap and can only raise the dual, so
some optimum has equal slopes there. With a hundred outcomes and a trusted answer this
leaves the few answers that the reference gives in the cell, and "any other".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from trueup._arrays import equal_pairs, group_sums
from trueup._validate import Floats, Ints
from trueup.core.losses import (
    BrierLoss,
    ConfidenceLoss,
    HeldAnswerLoss,
    LogLoss,
    OwnAnswerLoss,
    ProperLoss,
    SphericalLoss,
)
from trueup.core.reports import AnswerConfidence, Distributions
from trueup.solve._newton import Conditions, Table
from trueup.solve._prox import (
    BRIER,
    BRIER_ALONE,
    CONFIDENCE,
    HELD,
    LOG,
    SPHERICAL,
    Atoms,
)
from trueup.solve.problem import ProjectionProblem

NATIVE = (
    BrierLoss,
    LogLoss,
    SphericalLoss,
    ConfidenceLoss,
    HeldAnswerLoss,
    OwnAnswerLoss,
)
"""Losses the compiled loops know."""
MERGED = ("single", "capped", "pooled caps")
"""Forms of moments that leave outcomes alone unless they mention them."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Flat arrays, and the way back to outcomes."""

    table: Table
    conditions: Conditions
    atoms: Atoms
    anchors: Floats
    """(coordinates,) rates that satisfy every moment."""
    row: Ints
    """(coordinates,) row of the problem."""
    slot_weight: Floats
    """(slots,) mass of the slot's cell."""

    @property
    def n_slots(self) -> int:
        """Number of slopes."""
        return len(self.slot_weight)

    def slopes(self, x: Floats) -> Floats:
        """(cells, K) slopes; far below the others where an outcome is impossible."""
        slot = self.atoms.slot
        table = np.where(slot >= 0, x[slot], np.inf)
        return np.where(slot >= 0, table, table.min(axis=1, keepdims=True) - 4.0)

    def rates(self, flat: Floats, h: Floats, shape: tuple[int, int]) -> Floats:
        """(rows, K) outcome rates; outcomes that share a coordinate as the h do."""
        table, atoms = self.table, self.atoms
        mass = group_sums(
            atoms.cell, atoms.weight[:, None] * np.maximum(h, 1e-300), len(atoms.slot)
        )
        cell, outcome = np.nonzero(atoms.slot >= 0)
        slot = atoms.slot[cell, outcome]
        total = group_sums(slot, mass[cell, outcome], self.n_slots)
        share = mass[cell, outcome] / total[slot]
        place, coordinate = equal_pairs(slot, table.slot)
        rates = np.zeros(shape)
        rates[self.row[coordinate], outcome[place]] = flat[coordinate] * share[place]
        return rates

    def flat_rates(self, rates: Floats) -> Floats:
        """(coordinates,) outcome rates, added up where outcomes share a coordinate."""
        cell, outcome = np.nonzero(self.atoms.slot >= 0)
        place, coordinate = equal_pairs(self.atoms.slot[cell, outcome], self.table.slot)
        own = rates[self.row[coordinate], outcome[place]]
        flat = group_sums(coordinate, own, len(self.row))
        total = group_sums(self.row, flat, len(rates))
        return np.maximum(flat, 0.0) / np.maximum(total, 1e-300)[self.row]


def lay_out(problem: ProjectionProblem, loss: ProperLoss) -> Layout:
    """Flatten a problem for a loss that the compiled loops know."""
    rows, moments = problem.linked, problem.moments
    slot, outcome_of = _slots(problem)
    cell_of = np.zeros(len(outcome_of), dtype=np.int64)
    place = np.nonzero(slot >= 0)
    cell_of[slot[place]] = place[0]
    slot_of, row = equal_pairs(cell_of, rows.owner)
    kept = problem.allowed[rows.node[row], outcome_of[slot_of]]
    row, slot_of = row[kept], slot_of[kept]
    n_outcomes = problem.n_outcomes
    entry, coordinate = equal_pairs(
        moments.node * n_outcomes + moments.outcome,
        rows.node[row] * n_outcomes + outcome_of[slot_of],
    )
    cell_weight = group_sums(problem.cell_of_atom, problem.atom_weight, problem.n_cells)
    table = Table(
        start=_starts(row, len(rows.weight)),
        slot=_ints(slot_of),
        entry=_starts(coordinate, len(row)),
        moment=_ints(moments.row[entry]),
        coefficient=_floats(moments.coefficient[entry]),
        weight=_floats(rows.weight),
    )
    return Layout(
        table=table,
        conditions=_conditions(problem),
        atoms=_atoms(problem, loss, slot),
        anchors=_anchors(problem, table, row, outcome_of),
        row=row,
        slot_weight=cell_weight[cell_of],
    )


def _slots(problem: ProjectionProblem) -> tuple[Ints, Ints]:
    """(cells, K) slot of each outcome, and (slots,) the first outcome of each.

    A slot stands for one outcome, or for all that no moment of the cell mentions.
    """
    rows, moments = problem.linked, problem.moments
    shape = problem.n_cells, problem.n_outcomes
    possible = np.zeros(shape, dtype=bool)
    allowed = problem.allowed
    if allowed.all():
        possible[:] = True
    else:
        np.logical_or.at(possible, rows.owner, allowed[rows.node])
    mentioned = np.ones(shape, dtype=bool)
    if moments.form in MERGED and problem.n_outcomes > 3:
        mentioned[:] = False
        entry, row = equal_pairs(moments.node, rows.node)
        mentioned[rows.owner[row], moments.outcome[entry]] = True
    rest = possible & ~mentioned
    leader = rest & (np.cumsum(rest, axis=1) == 1)
    begins = (possible & mentioned) | leader
    slot = np.cumsum(begins.ravel()).reshape(shape) - 1
    lead = np.where(leader, slot, 0).max(axis=1, keepdims=True)
    slot = np.where(rest, lead, slot)
    return np.where(possible, slot, -1), np.nonzero(begins)[1]


def _starts(index: Ints, n_groups: int) -> Ints:
    """First place of each group in sorted group numbers, and the end."""
    counts = np.bincount(index, minlength=n_groups)
    return _ints(np.append(0, np.cumsum(counts)))


def _conditions(problem: ProjectionProblem) -> Conditions:
    moments, rows = problem.moments, problem.linked
    cells = moments.cell_of_node[rows.node]
    n_cells = max(moments.n_cells, int(moments.cell_of_row.max(initial=-1)) + 1)
    mass = group_sums(cells, rows.weight, n_cells)
    return Conditions(
        target=_floats(moments.target),
        # An asserted row belongs to no cell of the reference: it is about all items.
        scale=_floats(np.where(mass > 0, mass, 1.0)[moments.cell_of_row]),
        equality=np.array(moments.equality, dtype=np.bool_, order="C"),
        budget=float(problem.reference_error),
    )


def _anchors(
    problem: ProjectionProblem, table: Table, row: Ints, outcome_of: Ints
) -> Floats:
    """Rates that satisfy the moments; what shares a coordinate adds up."""
    node = problem.linked.node[row]
    own = problem.moments.anchors[node, outcome_of[table.slot]]
    n_rows = len(table.weight)
    missing = 1 - group_sums(row, own, n_rows)
    # Only one coordinate of a row can stand for several outcomes.
    share = np.maximum(own, 1e-9)
    n_stands = group_sums(row, share, n_rows)
    return own + missing[row] * share / n_stands[row]


def _atoms(problem: ProjectionProblem, loss: ProperLoss, slot: Ints) -> Atoms:
    reports, n_atoms = problem.atoms, len(problem.atoms)
    held = np.zeros(n_atoms, dtype=np.int64)
    if isinstance(loss, OwnAnswerLoss):
        loss = loss.held_by(reports)
    if isinstance(reports, Distributions):
        base = reports.probabilities
        shared = _is_shared(problem, slot)
        number = BRIER if shared else BRIER_ALONE
        if isinstance(loss, LogLoss):
            number, base = LOG, np.log(base)
        elif isinstance(loss, SphericalLoss):
            number, base = SPHERICAL, -loss.vectors(reports)
    else:
        stated = cast("AnswerConfidence", reports)
        base = np.zeros((n_atoms, problem.n_outcomes))
        base[np.arange(n_atoms), stated.answer] = 2 * stated.confidence
        number = CONFIDENCE
        if isinstance(loss, HeldAnswerLoss):
            number, held = HELD, loss.answers
    return Atoms(
        loss=number,
        base=_floats(base),
        held=_ints(held),
        weight=_floats(problem.atom_weight),
        cell=_ints(problem.cell_of_atom),
        slot=_ints(slot),
    )


def _floats(values: Floats) -> Floats:
    """A copy in the one layout that loops are compiled for."""
    return np.array(values, dtype=np.float64, order="C")


def _ints(values: Ints) -> Ints:
    return np.array(values, dtype=np.int64, order="C")


def _is_shared(problem: ProjectionProblem, slot: Ints) -> bool:
    """Whether a cell has several atoms, or a slot several outcomes."""
    n_used = len(np.unique(slot[slot >= 0]))
    return len(problem.atoms) > problem.n_cells or int((slot >= 0).sum()) > n_used
