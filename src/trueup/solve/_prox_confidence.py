"""Compiled minimisers of confidence losses, whose generators are flat somewhere.

h minimises ``G(h) - <u, h> + |h - centre|^2 / (2 sigma)`` over the simplex, with
``v = centre + sigma u``. See :mod:`trueup.solve._prox`.
"""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats, Ints
from trueup.solve._jit import inner


@inner
def confidence(
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
def held_answer(
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
    k = largest_of(v) - 1.0
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
def least_confidence(u: Floats, order: Ints) -> float:
    """Least max(h)^2 - <u, h>: fill outcomes up to m, best slope first."""
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
def least_held(u: Floats, held: int) -> float:
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


@inner
def largest_of(v: Floats) -> float:
    largest = v[0]
    for y in range(len(v)):
        largest = max(largest, v[y])
    return largest
