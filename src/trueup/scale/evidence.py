"""Evidence for a deployed map, item by item as they arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trueup._validate import Floats
from trueup.core.moments import Trust
from trueup.core.reports import Reports
from trueup.scale.fitting import Wanted
from trueup.solve.crossfit import ONE_SIDED_95, Estimate, Half
from trueup.solve.sample import Sample
from trueup.solve.statistics import floored_reports

_LOOKS = 2
"""A new map was compared with the old one on the items that certify it."""


class _Pair(Protocol):
    @property
    def primary(self) -> Reports: ...
    @property
    def reference(self) -> Reports: ...
    def __len__(self) -> int: ...


@dataclass(slots=True)
class Evidence:
    """Sums of z over items that may fade: weights w and their squares v."""

    w: float = 0.0
    wz: float = 0.0
    v: float = 0.0
    vz: float = 0.0
    vzz: float = 0.0

    def fade(self, share: float) -> None:
        """Let everything so far count for less."""
        self.w, self.wz = self.w * share, self.wz * share
        square = share * share
        self.v, self.vz, self.vzz = self.v * square, self.vz * square, self.vzz * square

    def add(self, z: Floats, weights: Floats | None = None) -> None:
        """Add items that count in full, or as much as ``weights`` says."""
        w = np.ones(len(z)) if weights is None else weights
        v = w * w
        self.w += float(w.sum())
        self.v += float(v.sum())
        self.wz += float(w @ z)
        self.vz += float(v @ z)
        self.vzz += float(v @ (z * z))

    @property
    def n_items(self) -> int:
        """Items that would say as much if none had faded."""
        return round(self.w**2 / self.v) if self.v > 0 else 0

    def estimate(self, halves: tuple[Half, ...], trust: Trust) -> Estimate:
        """Mean of z less the price of the reference's error, and its lower limit."""
        mean = self.wz / self.w
        spread = self.vzz - 2 * mean * self.vz + mean * mean * self.v
        error = float(np.sqrt(max(spread, 0.0))) / self.w
        steepness = float(np.mean([half.multipliers.steepness for half in halves]))
        certified = mean - trust.reference_error * steepness
        return Estimate(
            fitted=float(np.mean([half.fitted for half in halves])),
            certified=certified,
            lower=certified - ONE_SIDED_95[_LOOKS] * error,
            steepness=steepness,
            n_items=self.n_items,
        )


def bounds_of(half: Half, items: _Pair, wanted: Wanted) -> Floats:
    """(n,) certified contribution of each item, everything fixed beforehand."""
    sample = Sample(
        floored_reports(items.primary, wanted.floor),
        items.reference,
        np.zeros(len(items), dtype=np.int64),
        0,
        np.ones(len(items)),
    )
    return half.bounds(sample, wanted.loss, wanted.trust)
