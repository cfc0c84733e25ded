"""Items as fitting sees them, and the cells they are placed in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.moments import Trust, as_trusted
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.core.resolution import (
    PrimaryCells,
    ReferenceCells,
    Resolution,
    micro_cells,
)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Items of both predictors, as fitting sees them."""

    primary: Reports
    reference: Reports
    groups: Ints
    n_groups: int
    weights: Floats

    def take(self, index: Ints) -> Sample:
        """Some of the items."""
        return replace(
            self,
            primary=self.primary.take(index),
            reference=self.reference.take(index),
            groups=self.groups[index],
            weights=self.weights[index],
        )

    @property
    def shares(self) -> Floats:
        """Weights that sum to one."""
        return self.weights / self.weights.sum()

    def __len__(self) -> int:
        return len(self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Items, or weighted stand-ins for many, and the cells they are in."""

    sample: Sample
    cells: PrimaryCells
    primary_cell: Ints
    micro: Ints
    """Finer than the primary cells: reports are averaged in it for solving."""
    fine: tuple[ReferenceCells, Ints]
    """Reference cells of the projection, and the cell of each item."""
    coarse: tuple[ReferenceCells, Ints]
    """Reference cells of the certificate."""
    n_items: Floats
    """How many items each stands for."""

    @classmethod
    def of_items(
        cls,
        sample: Sample,
        trust: Trust,
        assume: tuple[str, ...],
        resolution: Resolution,
    ) -> Self:
        """Build cells from the items themselves."""
        frame = frame_for(sample, trust, assume)
        shares = sample.shares
        cells = PrimaryCells.build(sample.primary, shares, resolution, frame=frame)
        where = cells.assign(sample.primary)
        n_bins, least = resolution.reference_bins, resolution.least_items
        return cls(
            sample,
            cells,
            where,
            micro_cells(sample.primary, where, resolution.micro_cells),
            reference_cells(sample, trust, n_bins=n_bins, least=least),
            coarse_cells(sample, trust, resolution),
            np.ones(len(sample)),
        )


def reference_cells(
    sample: Sample, trust: Trust, *, n_bins: int, least: int
) -> tuple[ReferenceCells, Ints]:
    """Cells of the reference built from items, and the cell of each."""
    stated, _ = as_trusted(sample.reference, trust)
    made = ReferenceCells.build(
        stated,
        trust.rung,
        sample.groups,
        sample.n_groups,
        sample.shares,
        n_bins=n_bins,
        least=least,
    )
    return made, made.assign(stated, sample.groups)


def coarse_cells(
    sample: Sample, trust: Trust, resolution: Resolution
) -> tuple[ReferenceCells, Ints]:
    """Cells of the certificate, and the cell of each item."""
    least = resolution.certify_items
    n_bins = min(resolution.certify_bins, max(1, len(sample) // least))
    return reference_cells(sample, trust, n_bins=n_bins, least=least)


def frame_for(sample: Sample, trust: Trust, assume: tuple[str, ...]) -> str:
    """Outcomes by rank where something is asserted of the reference's answer.

    How the primary ranks that answer is what an assertion turns on, and the moments of
    an answer then need only its rank; those of every outcome (whole distributions,
    caps) would need the whole order of a report. Without assertions the answers
    themselves tell more: real predictors are fond of some of them.
    """
    return frame_of(
        isinstance(sample.primary, Distributions | AnswerConfidence), trust, assume
    )


def frame_of(answers: bool, trust: Trust, assume: tuple[str, ...]) -> str:
    """The same, knowing only whether the primary gives answers."""
    about_answer = trust.rung in ("mean", "confidence", "answer-confidence")
    can = answers and about_answer and not trust.caps
    return "rank" if assume and can else "answer"
