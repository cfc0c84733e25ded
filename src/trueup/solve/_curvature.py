"""Compiled curvature of one proximal step: rows in play, and products with a vector."""

from __future__ import annotations

from typing import NamedTuple

from trueup._validate import Floats, Ints
from trueup.solve._jit import inner
from trueup.solve._newton import Point, Table
from trueup.solve._prox import Atoms, Tilted


class Active(NamedTuple):
    """Rows with two or more outcomes in play, copied together."""

    start: Ints
    slot: Ints
    entry: Ints
    moment: Ints
    coefficient: Floats
    weight: Floats


@inner
def gather(table: Table, rates: Floats, active: Active) -> int:
    """Copy the rows in which two or more outcomes are in play; returns how many."""
    n_rows, n_coordinates, n_entries = 0, 0, 0
    for p in range(len(table.weight)):
        first, last = table.start[p], table.start[p + 1]
        count = 0
        for f in range(first, last):
            count += rates[f] > 0
        if count < 2:
            continue
        active.start[n_rows] = n_coordinates
        active.weight[n_rows] = table.weight[p]
        for f in range(first, last):
            if rates[f] > 0:
                active.slot[n_coordinates] = table.slot[f]
                active.entry[n_coordinates] = n_entries
                for e in range(table.entry[f], table.entry[f + 1]):
                    active.moment[n_entries] = table.moment[e]
                    active.coefficient[n_entries] = table.coefficient[e]
                    n_entries += 1
                n_coordinates += 1
        n_rows += 1
    active.start[n_rows] = n_coordinates
    active.entry[n_coordinates] = n_entries
    return n_rows


@inner
def product(
    active: Active,
    n_rows: int,
    atoms: Atoms,
    tilted: Tilted,
    at: Point,
    sigma: float,
    damping: Floats,
    x: Floats,
    out: Floats,
) -> None:
    """Curvature times a vector."""
    n_slots = len(x) - len(at.slack)
    for i in range(len(x)):
        out[i] = damping[i] * x[i]
    _rows_product(
        active.start,
        active.slot,
        active.entry,
        active.moment,
        active.coefficient,
        active.weight,
        n_rows,
        n_slots,
        sigma,
        x,
        out,
    )
    _atoms_product(
        atoms.slot,
        atoms.cell,
        atoms.weight,
        tilted.d,
        tilted.a,
        tilted.b,
        tilted.a_weight,
        tilted.b_weight,
        x,
        out,
    )
    _slack_product(at.curvature, at.charged, n_slots, x, out)


@inner
def _rows_product(
    start: Ints,
    slot: Ints,
    entry: Ints,
    moment: Ints,
    coefficient: Floats,
    weight: Floats,
    n_rows: int,
    n_slots: int,
    sigma: float,
    x: Floats,
    out: Floats,
) -> None:
    # Plain arrays: tuples of arrays cost more here than the arithmetic.
    for r in range(n_rows):
        first, last = start[r], start[r + 1]
        mean = 0.0
        for f in range(first, last):
            mean += x[slot[f]]
            for e in range(entry[f], entry[f + 1]):
                mean -= coefficient[e] * x[n_slots + moment[e]]
        mean /= last - first
        pace = sigma * weight[r]
        for f in range(first, last):
            moved = x[slot[f]] - mean
            for e in range(entry[f], entry[f + 1]):
                moved -= coefficient[e] * x[n_slots + moment[e]]
            moved *= pace
            out[slot[f]] += moved
            for e in range(entry[f], entry[f + 1]):
                out[n_slots + moment[e]] -= coefficient[e] * moved


@inner
def _atoms_product(
    slot: Ints,
    cell: Ints,
    weight: Floats,
    d: Floats,
    a: Floats,
    b: Floats,
    a_weight: Floats,
    b_weight: Floats,
    x: Floats,
    out: Floats,
) -> None:
    n_atoms, n = d.shape
    for i in range(n_atoms):
        j = cell[i]
        along_a, along_b = 0.0, 0.0
        for y in range(n):
            s = slot[j, y]
            if s >= 0:
                along_a += a[i, y] * x[s]
                along_b += b[i, y] * x[s]
        along_a *= a_weight[i]
        along_b *= b_weight[i]
        for y in range(n):
            s = slot[j, y]
            if s >= 0:
                out[s] += weight[i] * (
                    d[i, y] * x[s] + a[i, y] * along_a + b[i, y] * along_b
                )


@inner
def _slack_product(
    curvature: Floats, charged: Floats, n_slots: int, x: Floats, out: Floats
) -> None:
    paid, total = 0.0, 0.0
    for m in range(len(curvature)):
        moved = curvature[m] * x[n_slots + m]
        out[n_slots + m] += moved
        if charged[m] != 0:
            paid += charged[m] * moved
            total += curvature[m]
    if total > 0:
        for m in range(len(curvature)):
            out[n_slots + m] -= charged[m] * curvature[m] * paid / total


@inner
def diagonal(
    active: Active,
    n_rows: int,
    atoms: Atoms,
    tilted: Tilted,
    at: Point,
    sigma: float,
    damping: Floats,
    out: Floats,
) -> None:
    """The diagonal of the curvature, to scale conjugate gradients by."""
    n_slots = len(out) - len(at.slack)
    for i in range(len(out)):
        out[i] = damping[i]
    for r in range(n_rows):
        first, last = active.start[r], active.start[r + 1]
        part = sigma * active.weight[r] * (1.0 - 1.0 / (last - first))
        for f in range(first, last):
            out[active.slot[f]] += part
            for e in range(active.entry[f], active.entry[f + 1]):
                out[n_slots + active.moment[e]] += active.coefficient[e] ** 2 * part
    for i in range(len(atoms.weight)):
        slot = atoms.slot[atoms.cell[i]]
        for y in range(len(slot)):
            if slot[y] >= 0:
                out[slot[y]] += atoms.weight[i] * (
                    tilted.d[i, y]
                    + tilted.a_weight[i] * tilted.a[i, y] ** 2
                    + tilted.b_weight[i] * tilted.b[i, y] ** 2
                )
    for m in range(len(at.slack)):
        out[n_slots + m] += at.curvature[m]
