"""An interior-point method: for smooth losses on tables with few cells.

Newton's method on the conditions of the optimum, with products of rates and reduced
costs held at a level that falls to zero (Mehrotra's predictor and corrector). Ten to
thirty factorisations, whatever the numbers; each is sparse where the table is and ends
in a dense core, so the method is for tables with up to some thousand cells.
"""

from __future__ import annotations

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.core.losses import ProperLoss
from trueup.core.simplex import project_rows
from trueup.solve._dense import TILE
from trueup.solve._elimination import Plan
from trueup.solve._interior_rows import Places, State
from trueup.solve._interior_slack import BARRIER, Slack
from trueup.solve._interior_step import Room, interior_step
from trueup.solve._newton import Conditions
from trueup.solve._prox import BRIER, BRIER_ALONE, LOG, Tilted
from trueup.solve.conic import Iterate
from trueup.solve.elimination import meeting, plan_elimination, stride_of
from trueup.solve.layout import Layout
from trueup.solve.problem import ASSERTED, ProjectionProblem
from trueup.solve.run import Run
from trueup.solve.workspace import make_tilted

_MOST_BLOCKS = 3_000
_MOST_UNKNOWNS = {BRIER: 600, BRIER_ALONE: 600, LOG: 1_600}
"""Unknowns of the dense core beyond which proximal steps are faster, by loss."""
_MOST_OUTCOMES = 32
"""Rows with more outcomes cost the square of them here."""
_STALLED = 1e-6
"""Share of a step at which to end."""
_FIRST_COST, _FIRST_REPORT = 1.0, 0.9
"""Reduced costs at the start, and the share of the primary in the first reports."""
_RESUMED_SIGMA = 100.0
"""Length of proximal steps that go on from here."""
_LEVELLING = 0.3
"""Power of a row's mass in its barrier: between all alike and in proportion."""


class InteriorRun(Run):
    """One projection by interior-point steps."""

    most_steps = 60

    def __init__(
        self,
        problem: ProjectionProblem,
        loss: ProperLoss,
        layout: Layout,
        plan: Plan,
        close: float = 0.0,
    ) -> None:
        super().__init__(problem, loss, layout, close)
        self.plan = plan
        self.places = _places(problem, plan)
        self.at = _first_state(layout)
        self.room = _make_room(plan, _kept(problem, layout), len(self.at.x))
        self.scratch = make_tilted(layout)
        self.n_products = _mass_of_products(layout, self.at)

    def step(self) -> None:
        """One factorisation and two solves with it."""
        layout = self.layout
        self.residual, share = interior_step(
            layout.table,
            layout.conditions,
            layout.atoms,
            self.places,
            self.plan,
            self.at,
            self.room,
            self.n_products,
        )
        self.n_steps += 1
        self.is_stuck = share < _STALLED

    @property
    def x(self) -> Floats:
        return self.at.x

    @property
    def flat_rates(self) -> Floats:
        return self.at.rates

    @property
    def h(self) -> Floats:
        return np.maximum(self.at.h, 0.0)

    @property
    def tilted(self) -> Tilted:
        return self.scratch

    def iterate(self) -> Iterate:
        if self.layout.atoms.loss != LOG:
            self.best = _highest_slopes(self.layout, self.best)
        return super().iterate()

    def describe(self) -> tuple[str, int]:
        return f"native: {self.n_steps} interior-point steps", self.n_steps

    def resumable(self) -> tuple[Floats, Floats, float]:
        missed = self.at.slack.over - self.at.slack.under
        return self.h, missed, _RESUMED_SIGMA


def plan_for(problem: ProjectionProblem, layout: Layout) -> Plan | None:
    """How to eliminate, or None where this method is not the one to use."""
    moments, n_cells = problem.moments, problem.n_cells
    most = _MOST_UNKNOWNS.get(layout.atoms.loss, 0)
    widest = int(np.diff(layout.table.start).max())
    if (
        most == 0
        or moments.form == ASSERTED
        or n_cells + moments.n_cells > _MOST_BLOCKS
        or widest > _MOST_OUTCOMES
    ):
        return None
    size = np.append(_slots_of_cells(layout, n_cells), _unknowns_of_cells(problem))
    rows = problem.linked
    pairs = rows.owner, n_cells + moments.cell_of_node[rows.node]
    return plan_elimination(size.astype(np.int64), pairs, most)


def _slots_of_cells(layout: Layout, n_cells: int) -> Ints:
    cell, outcome = np.nonzero(layout.atoms.slot >= 0)
    _, first = np.unique(layout.atoms.slot[cell, outcome], return_index=True)
    return np.bincount(cell[first], minlength=n_cells)


def _unknowns_of_cells(problem: ProjectionProblem) -> Ints:
    moments = problem.moments
    n = np.bincount(moments.cell_of_row, minlength=moments.n_cells)
    return n - 1 if _is_free(problem) else n


def _is_free(problem: ProjectionProblem) -> bool:
    """Whether a shift of a cell's multipliers changes nothing, not even their size."""
    return problem.moments.shiftable and problem.reference_error == 0


def _highest_slopes(layout: Layout, x: Floats) -> Floats:
    """Raise slopes of outcomes that all reports of a cell rule out, while they do.

    Any slope that is low enough is optimal there, and an interior point stops somewhere
    among them. The highest changes reports that were never seen the least, and does not
    depend on rounding; the bound cannot fall by it, because no row gets cheaper.
    """
    atoms, raised = layout.atoms, x.copy()
    slot = atoms.slot[atoms.cell]
    v = np.where(slot >= 0, atoms.base + x[slot] / 2, -np.inf)
    possible = np.where(slot >= 0, v, v.max(axis=1, keepdims=True) - 2.0)
    threshold = (possible - project_rows(possible)).max(axis=1, keepdims=True)
    room = np.full(layout.n_slots, np.inf)
    inside = slot >= 0
    np.minimum.at(room, slot[inside], 2 * (threshold - v)[inside])
    raised[: layout.n_slots] += np.maximum(room, 0.0)
    return raised


def _make_room(plan: Plan, kept: Ints, n: int) -> Room:
    n_tiles = -(-plan.n_core // TILE)
    return Room(
        matrix=np.zeros(plan.n_entries),
        tiles=np.empty((n_tiles * (n_tiles + 1) // 2, TILE, TILE)),
        kept=kept,
        side=np.zeros(n),
        ahead=np.zeros(n),
        unknown=np.zeros(len(kept)),
        border=np.zeros(len(kept)),
        answer=np.zeros(len(kept)),
    )


def _kept(problem: ProjectionProblem, layout: Layout) -> Ints:
    """Slopes and multipliers that are unknowns: a free shift keeps the last at zero."""
    moments = problem.moments
    is_kept = np.ones(layout.n_slots + moments.n_rows, dtype=bool)
    if _is_free(problem):
        ends = np.flatnonzero(np.diff(np.append(moments.cell_of_row, -1)))
        is_kept[layout.n_slots + ends] = False
    return np.flatnonzero(is_kept)


def _places(problem: ProjectionProblem, plan: Plan) -> Places:
    rows, moments, n_cells = problem.linked, problem.moments, problem.n_cells
    cell, stride = moments.cell_of_node[rows.node], stride_of(plan)
    cross, along_slot, along_moment = meeting(plan, rows.owner, n_cells + cell)
    n_moments = np.bincount(moments.cell_of_row, minlength=moments.n_cells)
    first_moment = np.cumsum(n_moments) - n_moments
    unknowns, first_slot = plan.size[n_cells:], plan.first[:n_cells]
    own = np.arange(moments.n_rows) - first_moment[moments.cell_of_row]
    block = n_cells + moments.cell_of_row
    on_diagonal = plan.pivot[block] + own * (stride[block] + 1)
    return Places(
        slot_pivot=plan.pivot[rows.owner],
        slot_stride=stride[rows.owner],
        moment_pivot=plan.pivot[n_cells + cell],
        moment_stride=stride[n_cells + cell],
        cross=cross,
        cross_slot=along_slot,
        cross_moment=along_moment,
        first_slot=first_slot[rows.owner],
        first_moment=first_moment[cell],
        n_moments=unknowns[cell],
        cell_pivot=plan.pivot[:n_cells],
        cell_stride=stride[:n_cells],
        cell_slot=first_slot,
        row_pivot=np.where(own < unknowns[moments.cell_of_row], on_diagonal, -1),
    )


def _levelled(weight: Floats) -> Floats:
    mean = weight.mean() if weight.size else 1.0
    return np.asarray(mean * (weight / mean) ** _LEVELLING)


def _first_state(layout: Layout) -> State:
    """Rates between uniform and the anchors, with no slopes."""
    table, given, atoms = layout.table, layout.conditions, layout.atoms
    shape = atoms.base.shape
    rates = (layout.anchors + 1 / np.diff(table.start)[layout.row]) / 2
    barrier, h_barrier = _levelled(table.weight), _levelled(atoms.weight)
    is_open = np.where(given.equality, 0.0, 1.0)
    possible = atoms.slot[atoms.cell] >= 0
    h_cost = np.where(possible, _FIRST_COST * h_barrier[:, None], 0.0)
    multipliers = -_FIRST_COST * is_open
    return State(
        x=np.append(np.zeros(layout.n_slots), multipliers),
        rates=rates,
        cost=_FIRST_COST * barrier[layout.row] + _above_least(layout, multipliers),
        crossed=np.zeros_like(rates),
        rate_step=np.zeros_like(rates),
        cost_step=np.zeros_like(rates),
        h=_first_reports(layout, rates),
        h_cost=h_cost if atoms.loss == BRIER else np.zeros(shape),
        h_crossed=np.zeros(shape),
        h_step=np.zeros(shape),
        h_cost_step=np.zeros(shape),
        barrier=barrier,
        h_barrier=h_barrier,
        slack=_first_slack(given),
    )


def _above_least(layout: Layout, multipliers: Floats) -> Floats:
    """(coordinates,) reduced costs that belong to these multipliers without slopes."""
    table = layout.table
    coordinate = np.repeat(np.arange(len(layout.row)), np.diff(table.entry))
    priced = table.coefficient * multipliers[table.moment]
    cost = -group_sums(coordinate, priced, len(layout.row))
    least = np.minimum.reduceat(cost, table.start[:-1])
    return np.asarray(table.weight[layout.row] * (cost - least[layout.row]))


def _first_slack(given: Conditions) -> Slack:
    """Slacks whose products are about those of the rows, whatever budget there is."""
    over, under, a, b, c, d = (np.zeros_like(given.target) for _ in range(6))
    if given.budget > 0:
        over, under = 0.1 * given.scale, 0.1 * given.scale
    under = np.where(given.equality, under, given.scale)
    level = float(given.scale.mean())
    purse = np.array([2 * _FIRST_COST, max(given.budget, 0.1 * level), 0, 0, 0, level])
    return Slack(over, under, a, b, c, d, _levelled(given.scale), purse)


def _first_reports(layout: Layout, rates: Floats) -> Floats:
    """(atoms, K) mostly the primary's reports, with something of their cells' rates."""
    table, atoms = layout.table, layout.atoms
    if atoms.loss == BRIER_ALONE:
        return atoms.base.copy()
    slot = atoms.slot[atoms.cell]
    mass = group_sums(table.slot, table.weight[layout.row] * rates, layout.n_slots)
    n_sharing = np.bincount(atoms.slot[atoms.slot >= 0], minlength=layout.n_slots)
    mean = mass / layout.slot_weight / n_sharing
    own = np.exp(atoms.base) if atoms.loss == LOG else atoms.base
    mixed = np.where(
        slot >= 0, _FIRST_REPORT * own + (1 - _FIRST_REPORT) * mean[slot], 0.0
    )
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def _mass_of_products(layout: Layout, at: State) -> float:
    """Sum of all barriers: what the level of the products is counted in."""
    total = float(np.diff(layout.table.start) @ at.barrier)
    if layout.atoms.loss == BRIER:
        n_possible = (layout.atoms.slot[layout.atoms.cell] >= 0).sum(axis=1)
        total += float(n_possible @ at.h_barrier)
    given, slack = layout.conditions, at.slack
    total += float(slack.barrier[~given.equality].sum())
    if given.budget > 0:
        paid = slack.barrier.sum() + slack.barrier[given.equality].sum()
        total += float(paid + slack.purse[BARRIER])
    return total
