"""The generic engine: any loss, any moment rows, as one conic programme."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueup._arrays import equal_pairs, group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.core.losses import ProperLoss, Solved
from trueup.core.moments import MomentRows
from trueup.solve.generators import AtomVariables, add_generator
from trueup.solve.model import Block, ConicModel, Solution
from trueup.solve.problem import ProjectionProblem, Rows
from trueup.solve.rounding import Witness


@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """What an engine hands over; nothing in it is trusted."""

    solved: Solved
    distributions: Floats
    """(atoms, K) estimate of the compatible distributions h."""
    outcome_rates: Floats
    """(linked rows, K) estimate of the outcome rates."""
    multipliers: Floats
    """(moment rows,) estimate of lambda."""
    status: str
    """Engine and how it ended."""
    iterations: int
    witness: Witness | None = None
    """Admissible rates, where the engine has rounded its own."""
    lower: float = float("-inf")
    """The engine's own dual value; certificates recompute theirs."""
    reached: bool = True
    """Whether the engine believes that it is done."""
    is_interrupted: bool = False
    start: Start | None = None
    """Where a similar problem may begin."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where an engine may begin: the end of a similar problem."""

    slopes: Floats
    """(primary cells, K)."""
    multipliers: Floats
    """(moment rows,)."""
    rates: Floats
    """(linked rows, K)."""
    distributions: Floats
    """(atoms, K)."""
    slack: Floats
    """(moment rows,) how far each moment is from its target."""
    sigma: float
    is_near: bool = False
    """Whether it comes from the same assumption on nearly the same table."""

    def for_another(self) -> Start:
        """The same for a problem that differs: begin with small steps again."""
        return replace(self, sigma=min(self.sigma, 8.0))


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """Admissible outcome rates as variables of a model."""

    rows: Rows
    index: Ints
    """(rows, K) variable numbers, -1 where the outcome is ruled out."""
    moment_blocks: tuple[tuple[Ints, Block], ...]
    """Which moment rows each constraint block holds."""
    scale: Floats
    """(moment rows,) what each moment row was divided by."""

    def rates(self, solution: Solution) -> Floats:
        """(rows, K) the outcome rates of a solution."""
        rates: Floats = np.where(self.index >= 0, solution.x[self.index], 0.0)
        return rates

    def multipliers(self, solution: Solution) -> Floats:
        """(moment rows,) lambda in the sign and scale of the certificate."""
        values = np.zeros(len(self.scale))
        for rows, block in self.moment_blocks:
            values[rows] = -solution.dual(block) / self.scale[rows]
        return values


def solve(problem: ProjectionProblem, loss: ProperLoss) -> Iterate:
    """Project with Clarabel."""
    model = ConicModel()
    kernels = add_kernels(
        model, problem.moments, problem.linked, problem.reference_error
    )
    h = model.variables(len(problem.atoms), problem.n_outcomes)
    link = add_links(model, problem, kernels, h)
    atoms = AtomVariables(problem.atoms, problem.atom_weight, h, problem.possible)
    add_generator(model, loss, atoms)
    solution = model.solve()
    cell_weight = group_sums(problem.cell_of_atom, problem.atom_weight, problem.n_cells)
    # The link rows are conditional means, so their duals carry the cell's weight.
    tilt = -solution.dual(link).reshape(-1, problem.n_outcomes) / cell_weight[:, None]
    solved = Solved(
        tilt=tilt[problem.cell_of_atom],
        possible=atoms.possible,
    )
    return Iterate(
        solved,
        solution.x[h],
        kernels.rates(solution),
        kernels.multipliers(solution),
        f"clarabel: {solution.status}",
        solution.iterations,
    )


def add_kernels(
    model: ConicModel,
    moments: MomentRows,
    rows: Rows,
    budget: float | None,
    columns: Bools | None = None,
) -> Kernels:
    """Add outcome rates of rows that satisfy the moment rows within a budget.

    A budget of None is unlimited and becomes the objective: the least total error.
    ``columns`` (rows, K) are the outcomes that rows have at all, if not every one.
    """
    exact = budget == 0
    allowed = moments.allowed[rows.node] if exact else columns
    if exact and columns is not None:
        allowed = moments.allowed[rows.node] & columns
    n_outcomes = moments.anchors.shape[1]
    index = _kernel_variables(model, len(rows.weight), n_outcomes, allowed)
    row, column = np.nonzero(index >= 0)
    numbers = index[row, column]
    ones = np.ones(len(numbers))
    model.constrain("zero", [(row, numbers, ones)], np.ones(len(rows.weight)))
    order = np.arange(len(numbers))
    model.constrain("nonnegative", [(order, numbers, -ones)], np.zeros(len(numbers)))
    slack = None if exact else _add_budget(model, moments, budget)
    return _add_moments(model, moments, rows, index, slack)


def _kernel_variables(
    model: ConicModel, n_rows: int, n_outcomes: int, allowed: Bools | None
) -> Ints:
    if allowed is None:
        return model.variables(n_rows, n_outcomes)
    index = np.full((n_rows, n_outcomes), -1)
    index[allowed] = model.variables(int(allowed.sum()))
    return index


def _add_budget(model: ConicModel, moments: MomentRows, budget: float | None) -> Ints:
    """(2, rows) slack above and below each moment, whose sum is within the budget."""
    slack = model.variables(2, moments.n_rows)
    numbers = slack.ravel()
    order, ones = np.arange(len(numbers)), np.ones(len(numbers))
    model.constrain("nonnegative", [(order, numbers, -ones)], np.zeros(len(numbers)))
    if budget is None:
        model.cost(numbers, ones)
    else:
        zeros = np.zeros_like(order)
        model.constrain("nonnegative", [(zeros, numbers, ones)], np.array([budget]))
    return slack


def _add_moments(
    model: ConicModel,
    moments: MomentRows,
    rows: Rows,
    index: Ints,
    slack: Ints | None,
) -> Kernels:
    mass = group_sums(
        moments.cell_of_node[rows.node],
        rows.weight,
        _n_cells(moments),
    )
    # An asserted row belongs to no cell of the reference: it is about all items.
    scale = np.where(mass > 0, mass, 1.0)[moments.cell_of_row]
    entry, row_of_entry = equal_pairs(moments.node, rows.node)
    moment, outcome = moments.row[entry], moments.outcome[entry]
    variable = index[row_of_entry, outcome]
    value = rows.weight[row_of_entry] * moments.coefficient[entry] / scale[moment]
    present = variable >= 0
    needed = np.ones(moments.n_rows, dtype=bool)
    if slack is None:
        needed = _independent_rows(moments, moment[present])
    blocks = []
    for equality, cone in ((True, "zero"), (False, "nonnegative")):
        chosen = np.flatnonzero(needed & (moments.equality == equality))
        if not chosen.size:
            continue
        place = np.full(moments.n_rows, -1)
        place[chosen] = np.arange(len(chosen))
        keep = present & (place[moment] >= 0)
        entries = [(place[moment[keep]], variable[keep], value[keep])]
        if slack is not None:
            rank = np.arange(len(chosen))
            entries.append((rank, slack[0, chosen], -1 / scale[chosen]))
            if equality:
                entries.append((rank, slack[1, chosen], 1 / scale[chosen]))
        block = model.constrain(cone, entries, moments.target[chosen] / scale[chosen])
        blocks.append((chosen, block))
    return Kernels(rows, index, tuple(blocks), scale)


def _independent_rows(moments: MomentRows, occurring: Ints) -> Bools:
    """Drop rows that follow from the others: an interior point needs full rank.

    Rows whose outcomes are all ruled out say 0 = 0. Where the rows of a cell sum to
    zero one of them follows from the simplex. A single equality at the end of its
    range has already ruled the other outcomes out.
    """
    needed = np.zeros(moments.n_rows, dtype=bool)
    needed[occurring] = True
    needed |= ~moments.equality
    if moments.shiftable:
        last = np.full(moments.n_cells, -1)
        present = np.flatnonzero(needed)
        last[moments.cell_of_row[present]] = present
        needed[last[last >= 0]] = False
        return needed
    at_end = np.zeros(_n_cells(moments), dtype=bool)
    at_end[moments.cell_of_node[~moments.allowed.all(axis=1)]] = True
    return needed & ~(at_end[moments.cell_of_row] & moments.equality)


def _n_cells(moments: MomentRows) -> int:
    """Cells of the reference, and one for each asserted row."""
    return max(moments.n_cells, int(moments.cell_of_row.max()) + 1)


def add_links(
    model: ConicModel, problem: ProjectionProblem, kernels: Kernels, h: Ints
) -> Block:
    """Mean of h over a primary cell equals the mean outcome rate there."""
    n_outcomes = problem.n_outcomes
    outcome = np.arange(n_outcomes)
    cell = problem.cell_of_atom
    cell_weight = group_sums(cell, problem.atom_weight, problem.n_cells)
    share = (problem.atom_weight / cell_weight[cell])[:, None]
    row, column = np.nonzero(kernels.index >= 0)
    owner = kernels.rows.owner[row]
    rate = kernels.rows.weight[row] / cell_weight[owner]
    link = model.constrain(
        "zero",
        [
            (cell[:, None] * n_outcomes + outcome, h, np.broadcast_to(share, h.shape)),
            (owner * n_outcomes + column, kernels.index[row, column], -rate),
        ],
        np.zeros(problem.n_cells * n_outcomes),
    )
    # An atom alone in its cell inherits the simplex from the rates it is the mean of.
    tied = np.flatnonzero(np.bincount(cell)[cell] > 1)
    if tied.size:
        numbers = h[tied]
        rank = np.repeat(np.arange(len(tied)), n_outcomes)
        ones = np.ones(numbers.size)
        model.constrain("zero", [(rank, numbers.ravel(), ones)], np.ones(len(tied)))
        order = np.arange(numbers.size)
        model.constrain(
            "nonnegative", [(order, numbers.ravel(), -ones)], np.zeros(numbers.size)
        )
    return link
