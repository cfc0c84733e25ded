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
        if kept == count or kept == 0:
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
    _subtract_mass(atoms.weight, atoms.cell, atoms.slot, out.h, gradient)
    return total


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
                value, a_weight[i], b_weight[i] = _confidence(
                    u, v, order, sigma, centre[i], *at
                )
            else:
                value, a_weight[i] = _held(
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
def _largest(v: Floats) -> float:
    largest = v[0]
    for y in range(len(v)):
        largest = max(largest, v[y])
    return largest


@inner
def norm_shift(v: Floats) -> float:
    """The k with |(v + k)_+| = 1; Newton from the right of a convex function."""
    k = 1.0 - _largest(v)
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
def _confidence(
    u: Floats,
    v: Floats,
    order: Ints,
    sigma: float,
    centre: Floats,
    h: Floats,
    d: Floats,
    a: Floats,
    b: Floats,
) -> tuple[float, float, float]:
    """Minimise max(h)^2 - <u, h> + |h - centre|^2 / 2 sigma: h = min((v - k)_+, m)."""
    k, m = _cap_and_threshold(v, order, sigma)
    at_cap, between = 0, 0
    for y in range(len(v)):
        if v[y] - k >= m:
            at_cap += 1
        elif v[y] > k:
            between += 1
    share = at_cap / (2 * sigma + at_cap)
    value = m * m
    for y in range(len(v)):
        h[y] = d[y] = a[y] = b[y] = 0.0
        if v[y] - k >= m:
            h[y], a[y], b[y] = m, 1.0, share
        elif v[y] > k:
            h[y], d[y], b[y] = v[y] - k, sigma, 1.0
        value += (h[y] - centre[y]) ** 2 / (2 * sigma)
        if h[y] > 0:
            value -= u[y] * h[y]
    return (
        value,
        sigma / (2 * sigma + at_cap),
        -sigma / (share * at_cap + between),
    )


@inner
def _cap_and_threshold(v: Floats, order: Ints, sigma: float) -> tuple[float, float]:
    """The k and m of a capped simplex whose cap costs sigma m^2.

    With the c largest at the cap, m (2 sigma + c) = sum of them - c k. For each k the
    cap follows; the mass falls in k, so k is found between two sorted values.
    """
    descending(v, order)
    n = len(v)
    for last in range(1, n + 1):  # how many are above k
        low = v[order[last]] if last < n else -np.inf
        if low > -np.inf and _mass_at(v, order, sigma, low) < 1.0:
            continue
        top, capped = 0.0, 0
        rest = 0.0
        for y in range(last):
            rest += v[order[y]]
        for count in range(1, last + 1):
            top += v[order[count - 1]]
            rest -= v[order[count - 1]]
            share = count / (2 * sigma + count)
            k = (share * top + rest - 1.0) / (share * count + last - count)
            m = (top - count * k) / (2 * sigma + count)
            if count == last or v[order[count]] - k <= m:
                capped = count
                break
        if capped > 0:
            return k, m
    return k, m


@inner
def _mass_at(v: Floats, order: Ints, sigma: float, k: float) -> float:
    """Mass of min((v - k)_+, m) with the cap m that belongs to k."""
    top, m = 0.0, 0.0
    n = len(v)
    for count in range(1, n + 1):
        top += max(v[order[count - 1]] - k, 0.0)
        m = top / (2 * sigma + count)
        if count == n or v[order[count]] - k <= m:
            break
    mass = 0.0
    for y in range(n):
        mass += min(max(v[y] - k, 0.0), m)
    return mass


@inner
def descending(v: Floats, order: Ints) -> None:
    """Indices that sort v, largest first: Shell's sort, which compiles quickly."""
    n = len(v)
    for i in range(n):
        order[i] = i
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            chosen, j = order[i], i
            while j >= gap and v[order[j - gap]] < v[chosen]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = chosen
        gap //= 3


@inner
def _held(
    u: Floats,
    v: Floats,
    held: int,
    sigma: float,
    centre: Floats,
    h: Floats,
    d: Floats,
    a: Floats,
) -> tuple[float, float]:
    """Minimise h_held^2 - <u, h> + |h - centre|^2 / 2 sigma over the simplex."""
    slow = 1.0 / (1.0 + 2.0 * sigma)  # the held outcome moves this much per unit
    k = _weighted_threshold(v, held, slow)
    value, total = 0.0, 0.0
    for y in range(len(v)):
        speed = slow if y == held else 1.0
        h[y] = max(v[y] - k, 0.0) * speed
        d[y] = a[y] = sigma * speed if v[y] > k else 0.0
        total += d[y]
        value += (h[y] - centre[y]) ** 2 / (2 * sigma)
        if h[y] > 0:
            value -= u[y] * h[y]
    return value + h[held] ** 2, -1.0 / total


@inner
def _weighted_threshold(v: Floats, held: int, slow: float) -> float:
    """The k with sum of (v - k)_+ equal to one, one of them counting less.

    The mass is convex and falls in k: Newton from the left ends in few steps.
    """
    n = len(v)
    k = _largest(v) - 1.0
    if v[held] > k:
        k = v[held] - 1.0 / slow
    for _ in range(4 * n + 100):
        mass, slope = 0.0, 0.0
        for y in range(n):
            if v[y] > k:
                speed = slow if y == held else 1.0
                mass += (v[y] - k) * speed
                slope += speed
        step = (mass - 1.0) / slope
        k += step
        if step <= 1e-16 * (1.0 + abs(k)):
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
            total += atoms.weight[i] * _least_confidence(u, order)
        else:
            total += atoms.weight[i] * _least_held(u, atoms.held[i])
    return total


@inner
def _least_confidence(u: Floats, order: Ints) -> float:
    """min over h of max(h)^2 - <u, h>: fill outcomes up to m, best slope first."""
    descending(u, order)
    best, top = np.inf, 0.0
    for count in range(1, len(u) + 1):
        last = u[order[count - 1]]
        if last == -np.inf:
            break
        slope = top - (count - 1) * last
        highest = 1.0 / (count - 1) if count > 1 else 1.0
        m = min(max(slope / 2, 1.0 / count), highest)
        best = min(best, m * m - m * slope - last)
        top += last
    return best


@inner
def _least_held(u: Floats, held: int) -> float:
    other = -np.inf
    for y in range(len(u)):
        if y != held:
            other = max(other, u[y])
    if u[held] == -np.inf:
        return -other
    if other == -np.inf:
        return 1.0 - u[held]
    m = min(max((u[held] - other) / 2, 0.0), 1.0)
    return m * m - m * u[held] - (1 - m) * other
