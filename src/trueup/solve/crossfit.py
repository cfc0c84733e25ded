"""Two halves, each certifying the map fitted on the other (METHOD section 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.core.losses import ProperLoss
from trueup.core.moments import Trust
from trueup.core.reports import Reports
from trueup.core.resolution import Resolution
from trueup.solve.adaptive import (
    Placed,
    Sample,
    Temperature,
    Tilt,
    nearest_temperature,
    project_placed,
)
from trueup.solve.sampling import Multipliers, best_on_coarse_cells, per_item_bounds

ONE_SIDED_95 = 1.645
FEWEST_ITEMS = 20
"""Below this many items no half has two cells worth the name."""


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """A map fitted on one half, with what certifies it on any other items."""

    tilt: Tilt | Temperature
    multipliers: Multipliers
    fitted: float
    """The bound on the half it was fitted on: optimistic."""
    n_cells: int
    n0: int
    """Items in the smallest reference cell of the projection."""

    def bounds(self, sample: Sample, loss: ProperLoss, trust: Trust) -> Floats:
        """(n,) certified contribution of each item, everything fixed beforehand."""
        deployed = self.tilt.deploy(loss, sample.primary)
        gain = loss.vectors(sample.primary) - deployed.losses
        return per_item_bounds(self.multipliers, sample, gain, trust)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A certified improvement with its sampling error."""

    fitted: float
    certified: float
    lower: float
    steepness: float
    n_items: int

    @property
    def optimism(self) -> float:
        """How much better the map looks on the items it was fitted on."""
        return self.fitted - self.certified


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """Two halves and what they prove together."""

    halves: tuple[Half, ...]
    estimate: Estimate

    def deploy(self, loss: ProperLoss, reports: Reports) -> Reports:
        """The average of the halves' maps: never worse than they are on average."""
        return loss.average([half.tilt.deploy(loss, reports) for half in self.halves])


def cross_fit(
    sample: Sample,
    loss: ProperLoss,
    trust: Trust,
    *,
    assume: tuple[str, ...],
    family: str | None,
    fold: Ints,
    blocks: Ints | None,
    resolution: Resolution,
) -> CrossFit:
    """Fit on each half, certify on the other."""
    halves = []
    z = np.zeros(len(sample))
    for which in (0, 1):
        fitting = sample.take(np.flatnonzero(fold != which))
        held_out = np.flatnonzero(fold == which)
        half = fit_half(
            fitting, loss, trust, assume=assume, family=family, resolution=resolution
        )
        z[held_out] = half.bounds(sample.take(held_out), loss, trust)
        halves.append(half)
    return CrossFit(tuple(halves), estimate(halves, z, sample.weights, blocks, trust))


def fit_half(
    sample: Sample,
    loss: ProperLoss,
    trust: Trust,
    *,
    assume: tuple[str, ...],
    family: str | None,
    resolution: Resolution,
) -> Half:
    """Cells, map and multipliers from some items."""
    placed = Placed.of_items(sample, trust, resolution)
    return fit_placed(placed, loss, trust, assume=assume, family=family)


def fit_placed(
    placed: Placed,
    loss: ProperLoss,
    trust: Trust,
    *,
    assume: tuple[str, ...],
    family: str | None,
) -> Half:
    """Map and multipliers from items that were placed in cells."""
    sample = placed.sample
    tilt: Tilt | Temperature
    if family == "temperature":
        tilt = nearest_temperature(sample, placed.cells, trust, assume)
        n_cells, smallest = 1, round(float(sample.weights.sum()))
    else:
        linked = project_placed(placed, loss, trust, assume)
        tilt, smallest = linked.tilt, linked.n0
        n_cells = linked.reference_cells.n_cells
    primary = loss.vectors(sample.primary)
    gain = primary - tilt.deploy(loss, sample.primary).losses
    multipliers, fitted = best_on_coarse_cells(
        placed, gain, trust, assume=assume, size=float(np.abs(primary).max())
    )
    return Half(tilt, multipliers, fitted, n_cells, smallest)


def recertified(
    fitted: CrossFit,
    sample: Sample,
    loss: ProperLoss,
    trust: Trust,
    blocks: Ints | None,
) -> Estimate:
    """The same map on new items: both halves are out of sample there."""
    z = np.mean([half.bounds(sample, loss, trust) for half in fitted.halves], axis=0)
    return estimate(list(fitted.halves), z, sample.weights, blocks, trust)


def estimate(
    halves: list[Half], z: Floats, weights: Floats, blocks: Ints | None, trust: Trust
) -> Estimate:
    """Mean of z less the price of the reference's error, and its lower limit."""
    share = weights / weights.sum()
    mean = float(share @ z)
    deviations = share * (z - mean)
    if blocks is not None:  # dependent items vary together
        deviations = group_sums(blocks, deviations, int(blocks.max()) + 1)
    error = float(np.sqrt((deviations**2).sum()))
    steepness = float(np.mean([half.multipliers.steepness for half in halves]))
    certified = mean - trust.reference_error * steepness
    return Estimate(
        fitted=float(np.mean([half.fitted for half in halves])),
        certified=certified,
        lower=certified - ONE_SIDED_95 * error,
        steepness=steepness,
        n_items=len(z),
    )
