"""Compiled loops of the interior-point method over the rows of the truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._validate import Floats, Ints
from trueup.solve._interior_slack import Slack
from trueup.solve._jit import inner


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
    barrier: Floats
    """(rows,)."""
    h_barrier: Floats
    slack: Slack


@inner
def rows_matrix(
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
def rows_side(
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
def rows_direction(
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
