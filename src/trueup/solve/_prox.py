"""Compiled loops over atoms: the tilt of one report by a slope, for every loss.

For a slope mu each loss has the minimiser h over the simplex of ``D(h, r) - <mu, h>``
(METHOD section 5). Where the generator is flat in some direction (confidence loss) the
minimiser is kept near a centre by ``|h - centre|^2 / (2 sigma)``, which vanishes at
the solution. Every minimiser has a derivative of the form
``diag(d) + a_weight a a' + b_weight b b'``, which is all Newton's method needs.

Module-level functions with arrays, tuples of arrays and numbers only: numba finds
nothing else in its cache again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._validate import Floats, Ints
from trueup.solve._jit import inner
from trueup.solve._prox_confidence import (
    confidence,
    held_answer,
    largest_of,
    least_confidence,
    least_held,
)

BRIER, BRIER_ALONE, LOG, SPHERICAL, CONFIDENCE, HELD = range(6)
"""Losses by number: compiled code takes no functions. In cells of one atom Brier
loss needs no simplex: the outcome rates it is the mean of bring their own."""


class Atoms(NamedTuple):
    """Primary reports as the loss reads them, and where their slopes are."""

    loss: int
    base: Floats
    """(atoms, K) gradient of the generator at the report, up to a constant."""
    held: Ints
    """(atoms,) the answer that is held, for held answers."""
    weight: Floats
    cell: Ints
    slot: Ints
    """(cells, K) which slope an outcome of a cell has; -1 where it is impossible."""


class Tilted(NamedTuple):
    """Minimisers of all atoms and their derivatives."""

    h: Floats
    centre: Floats
    d: Floats
    a: Floats
    b: Floats
    a_weight: Floats
    b_weight: Floats


@inner
def simplex_threshold(v: Floats, n: int) -> float:
    """The k with sum of (v - k)_+ equal to one, by dropping what falls below."""
    total = 0.0
    for y in range(n):
        total += v[y]
    count = n
    threshold = (total - 1.0) / n
    for _ in range(n):  # at least one falls in every pass but the last
        total, kept = 0.0, 0
        for y in range(n):
            if v[y] > threshold:
                total += v[y]
                kept += 1
        if kept in (count, 0):
            break
        count = kept
        threshold = (total - 1.0) / kept
    return threshold


@inner
def tilt_atoms(
    atoms: Atoms, slopes: Floats, sigma: float, out: Tilted, gradient: Floats
) -> float:
    """Minimise every atom; subtracts their mass from ``gradient``, returns the sum."""
    if atoms.loss == BRIER_ALONE:
        total = _all_brier_alone(
            atoms.base, atoms.weight, atoms.cell, atoms.slot, slopes, out.h, out.d
        )
    else:
        total = _tilt_each(
            atoms.loss,
            atoms.base,
            atoms.held,
            atoms.weight,
            atoms.cell,
            atoms.slot,
            slopes,
            sigma,
            out.h,
            out.centre,
            out.d,
            out.a,
            out.b,
            out.a_weight,
            out.b_weight,
        )
    if atoms.loss == LOG:
        _steepen(atoms.weight, atoms.cell, atoms.slot, out.h, out.d, gradient)
    _subtract_mass(atoms.weight, atoms.cell, atoms.slot, out.h, gradient)
    return total


@inner
def _steepen(
    weight: Floats, cell: Ints, slot: Ints, h: Floats, d: Floats, mass: Floats
) -> None:
    """Take the curvature of log loss where the mass is going, not where it is.

    Where an outcome has far less mass than its rows send, the curvature at h is far
    too small and Newton's step far too long. At the solution both masses agree.
    """
    n_atoms, n = h.shape
    now = np.zeros(len(mass))
    for i in range(n_atoms):
        for y in range(n):
            if slot[cell[i], y] >= 0:
                now[slot[cell[i], y]] += weight[i] * h[i, y]
    for i in range(n_atoms):
        for y in range(n):
            s = slot[cell[i], y]
            if s >= 0 and mass[s] > now[s]:
                d[i, y] *= min(mass[s] / max(now[s], 1e-300), 1e9)


@inner
def _subtract_mass(
    weight: Floats, cell: Ints, slot: Ints, h: Floats, gradient: Floats
) -> None:
    n_atoms, n = h.shape
    for i in range(n_atoms):
        j = cell[i]
        for y in range(n):
            if slot[j, y] >= 0:
                gradient[slot[j, y]] -= weight[i] * h[i, y]


@inner
def _all_brier_alone(
    base: Floats,
    weight: Floats,
    cell: Ints,
    slot: Ints,
    slopes: Floats,
    h: Floats,
    d: Floats,
) -> float:
    n_atoms, n = base.shape
    total = 0.0
    for i in range(n_atoms):
        value = 0.0
        for y in range(n):
            s = slot[cell[i], y]
            if s < 0:
                h[i, y] = d[i, y] = 0.0
                value += base[i, y] ** 2
            else:
                h[i, y] = base[i, y] + slopes[s] / 2
                d[i, y] = 0.5
                value -= slopes[s] * (slopes[s] / 4 + base[i, y])
        total += weight[i] * value
    return total


@inner
def _tilt_each(
    loss: int,
    base: Floats,
    held: Ints,
    weight: Floats,
    cell: Ints,
    slot: Ints,
    slopes: Floats,
    sigma: float,
    h: Floats,
    centre: Floats,
    d: Floats,
    a: Floats,
    b: Floats,
    a_weight: Floats,
    b_weight: Floats,
) -> float:
    n_atoms, n = base.shape
    u, v, order = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    total, value = 0.0, 0.0
    for i in range(n_atoms):
        for y in range(n):
            s = slot[cell[i], y]
            u[y] = slopes[s] if s >= 0 else -np.inf
        at = h[i], d[i], a[i], b[i]
        if loss == BRIER:
            value, a_weight[i] = _brier(base[i], u, v, h[i], d[i], a[i])
        elif loss == LOG:
            value, a_weight[i] = _log(base[i], u, v, h[i], d[i], a[i])
        elif loss == SPHERICAL:
            value, a_weight[i], b_weight[i] = _spherical(base[i], u, v, *at)
        else:
            for y in range(n):
                u[y] += base[i, y]
                v[y] = centre[i, y] + sigma * u[y]
            if loss == CONFIDENCE:
                value, a_weight[i], b_weight[i] = confidence(
                    u, v, order, sigma, centre[i], *at
                )
            else:
                value, a_weight[i] = held_answer(
                    u, v, held[i], sigma, centre[i], h[i], d[i], a[i]
                )
        total += weight[i] * value
    return total


@inner
def _brier(
    base: Floats, u: Floats, v: Floats, h: Floats, d: Floats, a: Floats
) -> tuple[float, float]:
    n = len(u)
    for y in range(n):
        v[y] = base[y] + u[y] / 2
    threshold = simplex_threshold(v, n)
    value, active = 0.0, 0
    for y in range(n):
        h[y] = max(v[y] - threshold, 0.0)
        d[y] = a[y] = 0.0
        value += (h[y] - base[y]) ** 2
        if h[y] > 0:
            value -= u[y] * h[y]
            active += 1
            d[y], a[y] = 0.5, 1.0
    return value, -0.5 / active


@inner
def _log(
    base: Floats, u: Floats, v: Floats, h: Floats, d: Floats, a: Floats
) -> tuple[float, float]:
    largest, total = -np.inf, 0.0
    for y in range(len(u)):
        v[y] = base[y] + u[y]
        largest = max(largest, v[y])
    for y in range(len(u)):
        h[y] = np.exp(v[y] - largest)
        total += h[y]
    for y in range(len(u)):
        h[y] /= total
        d[y] = a[y] = h[y]
    return -(largest + np.log(total)), -1.0


@inner
def _spherical(
    base: Floats, u: Floats, v: Floats, h: Floats, d: Floats, a: Floats, b: Floats
) -> tuple[float, float, float]:
    """Unit vector g = (base + u + k)_+; h = g / sum g, and the value is k."""
    for y in range(len(u)):
        v[y] = base[y] + u[y]
    k = norm_shift(v)
    total, active = 0.0, 0
    for y in range(len(u)):
        h[y] = max(v[y] + k, 0.0)
        total += h[y]
        active += h[y] > 0
    for y in range(len(u)):
        on = h[y] > 0
        d[y] = on / total
        a[y] = (h[y] - total / active) if on else 0.0
        b[y] = 1.0 if on else 0.0
        h[y] /= total
    return k, active / total**3, -1.0 / (total * active)


@inner
def norm_shift(v: Floats) -> float:
    """The k with |(v + k)_+| = 1; Newton from the right of a convex function."""
    k = 1.0 - largest_of(v)
    for _ in range(100):
        square, slope = 0.0, 0.0
        for y in range(len(v)):
            g = v[y] + k
            if g > 0:
                square += g * g
                slope += g
        step = (1.0 - square) / (2.0 * slope)
        k += step
        if abs(step) <= 1e-15 * (1.0 + abs(k)):
            break
    return k


@inner
def least_tilted(atoms: Atoms, slopes: Floats, out: Tilted, gradient: Floats) -> float:
    """Sum of weight * min over the simplex of D - <mu, h>: no centre, no sigma."""
    if atoms.loss < CONFIDENCE:
        return tilt_atoms(atoms, slopes, 1.0, out, gradient)
    n_atoms, n = atoms.base.shape
    u, order = np.empty(n), np.empty(n, dtype=np.int64)
    total = 0.0
    for i in range(n_atoms):
        for y in range(n):
            s = atoms.slot[atoms.cell[i], y]
            u[y] = atoms.base[i, y] + (slopes[s] if s >= 0 else -np.inf)
        if atoms.loss == CONFIDENCE:
            total += atoms.weight[i] * least_confidence(u, order)
        else:
            total += atoms.weight[i] * least_held(u, atoms.held[i])
    return total
