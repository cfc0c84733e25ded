"""What an online calibrator is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueup._validate import Ints
from trueup.core.pairing import concatenated
from trueup.core.reports import Reports
from trueup.core.resolution import Resolution
from trueup.core.statistics import CellLayout, CellStatistics, FoldEdges, ScoreCounts
from trueup.maps.report_map import ReportMap
from trueup.scale._seen import SeenItems
from trueup.scale.drift import DriftWatch
from trueup.scale.evidence import Evidence
from trueup.solve.certificate import Certificate
from trueup.solve.crossfit import Half


@dataclass(frozen=True, slots=True)
class Items:
    """Some items in memory: the latest ones, which certify new maps."""

    primary: Reports
    reference: Reports
    fold: Ints
    arrived: Ints
    """Number of the update that brought each item."""

    def __len__(self) -> int:
        return len(self.fold)

    def then(self, other: Items, most: int) -> Items:
        """These items and later ones, the oldest beyond ``most`` dropped."""
        kept = np.arange(max(0, len(self) + len(other) - most), len(self) + len(other))
        return Items(
            concatenated(self.primary, other.primary).take(kept),
            concatenated(self.reference, other.reference).take(kept),
            np.append(self.fold, other.fold)[kept],
            np.append(self.arrived, other.arrived)[kept],
        )


@dataclass(frozen=True, slots=True)
class OnlineUpdate:
    """What one batch did."""

    n_added: int
    n_items: int
    """Items so far, forgetting aside."""
    refitted: bool
    """Whether a new map was deployed."""
    certificate: Certificate | None
    """Of the deployed map; None before the first."""
    drift_evidence: float
    """What betting against "nothing changed" has made of one unit of money."""
    drift_alarm: bool
    """Whether the counts contradict the cells the deployed map was fitted on."""


@dataclass(slots=True, eq=False)
class OnlineState:
    """Everything that saving keeps."""

    options: dict[str, Any]
    seen: SeenItems
    n_updates: int = 0
    n_items: int = 0
    n_tried: int = 0
    """Items when a new map was last tried."""
    window: Items | None = None
    statistics: CellStatistics | None = None
    map: ReportMap | None = None
    deployed_at: int = 0
    """Number of the update after which the map was deployed."""
    evidence: Evidence = field(default_factory=Evidence)
    alarm: DriftWatch | None = None


def halves_of(fitted: ReportMap) -> tuple[Half, ...]:
    inner = getattr(fitted.rule, "halves", None)
    return () if inner is None else inner.halves


def layout_from(items: Items, frame: str) -> CellLayout:
    scores = ScoreCounts.count(items.primary, items.reference, items.fold)
    first, second = (
        FoldEdges.choose(scores, fold, Resolution(), frame) for fold in (0, 1)
    )
    kinds = items.primary.about.name, items.reference.about.name
    return CellLayout(items.primary.outcomes, *kinds, (), (first, second), frame)


def counted(layout: CellLayout, items: Items) -> CellStatistics:
    return CellStatistics.count(layout, items.primary, items.reference, items.fold)
