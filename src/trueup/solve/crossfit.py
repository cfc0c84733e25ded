"""Two halves, each certifying the map fitted on the other (METHOD section 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.core.losses import ProperLoss
from trueup.core.moments import Trust
from trueup.core.reports import Reports
from trueup.core.resolution import ReferenceCells, Resolution
from trueup.solve.adaptive import Temperature, Tilt, nearest_temperature, project_placed
from trueup.solve.sample import Placed, Sample, coarse_cells
from trueup.solve.sampling import Multipliers, best_on_coarse_cells, per_item_bounds

ONE_SIDED_95 = {1: 1.645, 2: 1.96}
"""Normal quantiles for one look at the items and, by Bonferroni, the better of two."""
_STEPS = {"distribution": (1.0, 0.5)}
"""Step lengths tried, where not only the full one.

With a moment for every outcome the noise of a small sample alone moves a calibrated
primary; half the way does a quarter of that harm.
"""
_DOUBTED_STEP, _FEW_ITEMS = 0.5, 500
"""Part of the way that a map goes which rests on few items and is not even certified on
those: noise moves it as much as the reference does."""
_RATIO_STEPS = 6
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

    def shortened(
        self, step: float, fitting: Sample, loss: ProperLoss, trust: Trust
    ) -> Half:
        """A part of the way, certified by the same part of the multipliers."""
        made = replace(
            self,
            tilt=self.tilt.shortened(step),
            multipliers=self.multipliers.scaled(step),
        )
        bound = float(fitting.shares @ made.bounds(fitting, loss, trust))
        price = trust.reference_error * made.multipliers.steepness
        return replace(made, fitted=bound - price)

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
    find_break_even: Callable[[], float] | None = None
    """The error at which this map's bound reaches zero; None for a loaded map."""

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
    fitting = [sample.take(np.flatnonzero(fold != which)) for which in (0, 1)]
    halves = [
        fit_half(
            items, loss, trust, assume=assume, family=family, resolution=resolution
        )
        for items in fitting
    ]
    steps = steps_of(trust, family)
    tried = []
    for step in steps:
        taken = halves
        if step != 1:
            taken = [
                half.shortened(step, items, loss, trust)
                for half, items in zip(halves, fitting, strict=True)
            ]
        z = _held_out_bounds(taken, sample, loss, trust, fold)
        found = estimate(taken, z, sample.weights, blocks, trust, n_looks=len(steps))
        tried.append((found, taken))
    best, chosen = max(tried, key=lambda one: one[0].lower)
    return CrossFit(
        tuple(chosen),
        best,
        partial(
            _break_even,
            sample,
            loss,
            trust,
            chosen,
            fold=fold,
            assume=assume,
            resolution=resolution,
        ),
    )


def steps_of(trust: Trust, family: str | None) -> tuple[float, ...]:
    """Step lengths that are tried; a family with one parameter takes its step whole."""
    return _STEPS.get(trust.rung, (1.0,)) if family is None else (1.0,)


def _held_out_bounds(
    halves: list[Half], sample: Sample, loss: ProperLoss, trust: Trust, fold: Ints
) -> Floats:
    """(n,) z of every item, by the half that was not fitted on it."""
    z = np.zeros(len(sample))
    for which, half in enumerate(halves):
        held_out = np.flatnonzero(fold == which)
        z[held_out] = half.bounds(sample.take(held_out), loss, trust)
    return z


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
    placed = Placed.of_items(sample, trust, assume, resolution)
    return fit_placed(
        placed, loss, trust, assume=assume, family=family, resolution=resolution
    )


def fit_placed(
    placed: Placed,
    loss: ProperLoss,
    trust: Trust,
    *,
    assume: tuple[str, ...],
    family: str | None,
    resolution: Resolution,
) -> Half:
    """Map and multipliers from items that were placed in cells."""
    sample = placed.sample
    tilt: Tilt | Temperature
    if family == "temperature":
        tilt = nearest_temperature(sample, placed.cells, trust, assume, resolution)
        n_cells, smallest = 1, round(float(placed.n_items.sum()))
    else:
        linked = project_placed(placed, loss, trust, assume, resolution)
        tilt, smallest = linked.tilt, linked.n0
        n_cells = linked.reference_cells.n_cells
    multipliers, fitted = _best_multipliers(
        sample,
        tilt,
        loss,
        trust,
        assume=assume,
        coarse=placed.coarse,
        resolution=resolution,
    )
    made = Half(tilt, multipliers, fitted, n_cells, smallest)
    one_step = family is None and not assume and steps_of(trust, family) == (1.0,)
    if one_step and fitted <= 0 and placed.n_items.sum() < _FEW_ITEMS:
        made = made.shortened(_DOUBTED_STEP, sample, loss, trust)
    return made


def _best_multipliers(
    sample: Sample,
    tilt: Tilt | Temperature,
    loss: ProperLoss,
    trust: Trust,
    *,
    assume: tuple[str, ...],
    coarse: tuple[ReferenceCells, Ints],
    resolution: Resolution,
) -> tuple[Multipliers, float]:
    """What certifies a fixed map best on these items, and the bound it gives there."""
    primary = loss.vectors(sample.primary)
    return best_on_coarse_cells(
        sample,
        primary - tilt.deploy(loss, sample.primary).losses,
        trust,
        assume=assume,
        primary_cells=tilt.cells,
        coarse=coarse,
        resolution=resolution,
        size=float(np.abs(primary).max()),
    )


def _break_even(
    sample: Sample,
    loss: ProperLoss,
    trust: Trust,
    halves: list[Half],
    *,
    fold: Ints,
    assume: tuple[str, ...],
    resolution: Resolution,
) -> float:
    """Reference error up to which the held-out bound of this map stays positive.

    On each half the multipliers with the largest ratio of bound to steepness are
    found (Dinkelbach: price their size at the ratio reached so far); the ratio that
    counts is the one they reach on the other half.
    """
    priced_halves = []
    for which, half in enumerate(halves):
        fitting = sample.take(np.flatnonzero(fold != which))
        coarse = coarse_cells(fitting, trust, resolution)
        ratio, best = 0.0, half.multipliers
        for _ in range(_RATIO_STEPS):
            priced = replace(trust, reference_error=ratio)
            found, value = _best_multipliers(
                fitting,
                half.tilt,
                loss,
                priced,
                assume=assume,
                coarse=coarse,
                resolution=resolution,
            )
            if value <= 0 or found.steepness == 0:
                break
            ratio, best = ratio + value / found.steepness, found
        priced_halves.append(replace(half, multipliers=best))
    z = _held_out_bounds(priced_halves, sample, loss, trust, fold)
    mean = float(sample.shares @ z)
    slope = float(np.mean([half.multipliers.steepness for half in priced_halves]))
    if mean <= 0:
        return 0.0
    return mean / slope if slope > 0 else float("inf")


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
    halves: list[Half],
    z: Floats,
    weights: Floats,
    blocks: Ints | None,
    trust: Trust,
    *,
    n_looks: int = 1,
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
        lower=certified - ONE_SIDED_95[n_looks] * error,
        steepness=steepness,
        n_items=len(z),
    )
