"""Arbitrage and MinECE as plain linear programs, written from their definitions.

Row by row, with HiGHS, on the oracle's worlds; nothing is imported from the package.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

import oracle


def sides(world):
    """(cells, V of equalities, V of inequalities) of the reference and the primary.

    V = T - t has shape (N, M, K). Rows without weight are gone.
    """
    kept = world.weights > 0
    equal, upper = oracle.reference_blocks(world)
    reference = (oracle.reference_cells(world), equal, upper)
    equal, upper = oracle.property_moments(
        world.primary_kind,
        world.primary,
        level=world.primary_level,
        values=world.numbers,
    )
    upper = oracle.Block(*(_said_caps(world, part) for part in upper))
    atoms = oracle._labels(world.primary.reshape(world.n_rows, -1))
    return [
        (cells[kept], *(_difference(block)[kept] for block in blocks))
        for cells, *blocks in (reference, (atoms, equal, upper))
    ]


def _said_caps(world, part):
    """With two outcomes a cap follows from a possible confidence: nothing is said."""
    if world.primary_kind != "answer-confidence" or world.n_outcomes > 2:
        return part
    said = world.primary[:, 1] < 0.5 - 1e-12
    return part * said.reshape(-1, *[1] * (part.ndim - 1))


def _difference(block):
    return block.functions - block.targets[:, :, None]


def arbitrage(world):
    """Largest sure profit of zero-trades within [-1, 1]."""
    weights = world.weights[world.weights > 0]
    n, k = len(weights), world.n_outcomes
    payoffs, bounds = [], []
    for cells, equal, upper in sides(world):
        count = int(cells.max()) + 1
        columns = [
            _spread(block[:, m], cells, count)
            for block in (equal, upper)
            for m in range(block.shape[1])
        ]
        payoffs.append(np.concatenate(columns, axis=2))
        bounds += [(None, None)] * (count * equal.shape[1])
        bounds += [(None, 0)] * (count * upper.shape[1])
    first, second = payoffs
    both = np.concatenate([first, second], axis=2).reshape(n * k, -1)
    worst = -np.repeat(np.eye(n), k, axis=0)
    limits = []
    for place, one in enumerate(payoffs):
        other = payoffs[1 - place]
        blank = np.zeros((n * k, other.shape[2]))
        own = one.reshape(n * k, -1)
        parts = [own, blank] if place == 0 else [blank, own]
        row = np.hstack([*parts, np.zeros((n * k, n))])
        limits += [row, -row]
    result = linprog(
        np.append(np.zeros(both.shape[1]), weights),
        A_ub=np.vstack([np.hstack([both, worst]), *limits]),
        b_ub=np.append(np.zeros(n * k), np.ones(4 * n * k)),
        bounds=bounds + [(None, None)] * n,
        method="highs",
        options=oracle.HIGHS,
    )
    assert result.status == oracle.SOLVED, result.message
    return max(-result.fun, 0.0)


def _spread(functions, cells, count):
    """(N, K, cells) the payoff of a unit stake in each cell."""
    return functions[:, :, None] * (cells[:, None, None] == np.arange(count))


def min_ece(world):
    """Least error of both sides; a stated distribution counts its total variation."""
    weights = world.weights[world.weights > 0]
    n, k = len(weights), world.n_outcomes
    equal_rows, upper_rows, equal_price, upper_price = [], [], [], []
    for place, (cells, equal, upper) in enumerate(sides(world)):
        is_vector = (
            world.trust == "distribution"
            if place == 0
            else world.primary_kind == "distribution"
        )
        price = 1 / equal.shape[1] if is_vector and k == 2 else 0.5 if is_vector else 1
        for cell in range(int(cells.max()) + 1):
            share = weights * (cells == cell)
            equal_rows += [share[:, None] * equal[:, m] for m in range(equal.shape[1])]
            equal_price += [price] * equal.shape[1]
            upper_rows += [share[:, None] * upper[:, m] for m in range(upper.shape[1])]
            upper_price += [1.0] * upper.shape[1]
    a = np.array(equal_rows).reshape(-1, n * k)
    b = np.array(upper_rows).reshape(-1, n * k)
    n_equal, n_upper = len(a), len(b)
    slack = np.eye(n_equal)
    result = linprog(
        np.concatenate([np.zeros(n * k), equal_price, equal_price, upper_price]),
        A_eq=np.vstack(
            [
                np.hstack([a, -slack, slack, np.zeros((n_equal, n_upper))]),
                np.hstack(
                    [
                        np.kron(np.eye(n), np.ones(k)),
                        np.zeros((n, 2 * n_equal + n_upper)),
                    ]
                ),
            ]
        ),
        b_eq=np.append(np.zeros(n_equal), np.ones(n)),
        A_ub=np.hstack([b, np.zeros((n_upper, 2 * n_equal)), -np.eye(n_upper)]),
        b_ub=np.zeros(n_upper),
        method="highs",
        options=oracle.HIGHS,
    )
    assert result.status == oracle.SOLVED, result.message
    return max(result.fun, 0.0)
