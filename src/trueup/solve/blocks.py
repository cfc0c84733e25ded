"""Clarabel on a problem with fewer outcomes, whose columns stand for several.

The generic engine with two differences: the largest probability counts a block by its
outcomes, and columns and caps are taken in as they are needed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.core.losses import HeldAnswerLoss, ProperLoss, Solved
from trueup.core.simplex import normalise_rows
from trueup.solve.conic import Iterate, Kernels, add_kernels
from trueup.solve.fewer_outcomes import FewerOutcomes
from trueup.solve.lazily import all_but_caps, cap_threshold, with_rows
from trueup.solve.model import Block, ConicModel

_ROUNDS = 20
_CHEAPER = 1e-9
"""Difference of slopes that is not Clarabel's rounding."""


def solve(
    fewer: FewerOutcomes, loss: ProperLoss, known: Floats | None = None
) -> Iterate:
    """Find the optimum that may draw answers, or the one with answers held.

    Caps with a multiplier in ``known`` are there from the beginning.
    """
    problem = fewer.problem
    moments, rows = problem.moments, problem.linked
    needed, threshold = all_but_caps(moments), cap_threshold(problem)
    if known is not None:
        needed = needed | (known < -_CHEAPER)
    columns = fewer.columns
    if isinstance(loss, HeldAnswerLoss):
        columns[np.arange(len(columns)), loss.answers[rows.owner]] = True
    for attempt in range(_ROUNDS):
        smaller = replace(problem, moments=with_rows(moments, needed))
        iterate = _solve(replace(fewer, problem=smaller), loss, columns)
        mass = problem.node_mass(rows, normalise_rows(iterate.outcome_rates))
        missing = ~needed & (moments.violations(mass) > threshold)
        cheaper = _cheaper_columns(fewer, iterate.solved.tilt) & ~columns
        if not (missing.any() or cheaper.any()):
            break
        needed = needed | missing | (attempt == _ROUNDS - 2)
        columns = columns | cheaper
    multipliers = np.zeros(moments.n_rows)
    multipliers[needed] = iterate.multipliers
    return replace(iterate, multipliers=multipliers)


def _cheaper_columns(fewer: FewerOutcomes, tilt: Floats) -> Bools:
    """(rows, K') answers met that are cheaper than the block after all.

    They are where the block itself is the likeliest outcome.
    """
    own = fewer.own
    block = np.where(own.is_block, tilt, np.inf).min(axis=1, keepdims=True)
    cheaper = ~own.is_block & (tilt < block - _CHEAPER)
    return np.asarray(cheaper[fewer.problem.linked.owner])


def _solve(fewer: FewerOutcomes, loss: ProperLoss, columns: Bools) -> Iterate:
    problem, members = fewer.problem, fewer.own.members
    rows, model = problem.linked, ConicModel()
    kernels = add_kernels(
        model, problem.moments, rows, problem.reference_error, columns=columns
    )
    exists = np.zeros(members.shape, dtype=bool)
    row, column = np.nonzero(kernels.index >= 0)
    exists[rows.owner[row], column] = True
    h = np.full(exists.shape, -1)
    h[exists] = model.variables(int(exists.sum()))
    link = _add_links(model, fewer, kernels, h)
    _add_generator(model, fewer, loss, h)
    solution = model.solve()
    tilt = np.full(exists.shape, np.nan)
    owner = np.nonzero(exists)[0]
    tilt[exists] = -solution.dual(link) / problem.atom_weight[owner]
    found = np.where(exists, solution.x[h], 0.0)
    return Iterate(
        Solved(_filled(tilt, fewer.own.is_block), problem.possible),
        found,
        kernels.rates(solution),
        kernels.multipliers(solution),
        f"clarabel: {solution.status}, {members.shape[1]} of "
        f"{fewer.own.n_outcomes} outcomes",
        solution.iterations,
    )


def _add_links(
    model: ConicModel, fewer: FewerOutcomes, kernels: Kernels, h: Ints
) -> Block:
    """H of a column is the mean of its rows' rates."""
    rows, weight = kernels.rows, fewer.problem.atom_weight
    place = np.full(h.shape, -1)
    place[h >= 0] = np.arange(int((h >= 0).sum()))
    row, column = np.nonzero(kernels.index >= 0)
    owner = rows.owner[row]
    share = rows.weight[row] / weight[owner]
    own = h[h >= 0]
    return model.constrain(
        "zero",
        [
            (np.arange(len(own)), own, np.ones(len(own))),
            (place[owner, column], kernels.index[row, column], -share),
        ],
        np.zeros(len(own)),
    )


def _add_generator(
    model: ConicModel, fewer: FewerOutcomes, loss: ProperLoss, h: Ints
) -> None:
    """The square of the largest or held probability, less 2 c times the answer's."""
    problem, members = fewer.problem, fewer.own.members
    weight = problem.atom_weight
    stated = problem.atoms.keys()[:, 1]
    has = h[:, 0] >= 0
    model.cost(h[has, 0], -2 * (weight * stated)[has])
    if isinstance(loss, HeldAnswerLoss):
        held = h[np.arange(len(h)), loss.answers]
        model.square(held[held >= 0], weight[held >= 0])
        return
    largest = model.variables(len(h))
    model.square(largest, weight)
    atom, column = np.nonzero(h >= 0)
    order = np.arange(len(atom))
    model.constrain(
        "nonnegative",
        [
            (order, h[atom, column], 1 / members[atom, column]),
            (order, largest[atom], -np.ones(len(atom))),
        ],
        np.zeros(len(atom)),
    )


def _filled(tilt: Floats, is_block: Bools) -> Floats:
    """Slopes of all columns: one for a block; far below the others if impossible."""
    known = np.isfinite(tilt)
    lowest = np.where(known, tilt, np.inf).min(axis=1)
    shared = np.where(known & is_block, tilt, -np.inf).max(axis=1)
    shared = np.where(np.isfinite(shared), shared, lowest - 4.0)
    filled = np.where(is_block, shared[:, None], lowest[:, None] - 4.0)
    return np.where(known, tilt, filled)
