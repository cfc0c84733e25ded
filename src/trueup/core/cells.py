"""Cells: which reports count as the same report when the table is built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from trueup._validate import Floats
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.errors import InvalidInputError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Exact:
    """Every distinct report is its own cell; the table is taken as the population."""

    name = "exact"

    def merge(self, reports: Reports) -> Reports:
        """Leave the reports alone."""
        return reports


@dataclass(frozen=True, slots=True)
class Step:
    """Round reports to a grid, as the paper does with step 0.01.

    Confidences and probabilities move to the nearest multiple of ``step`` (rows of
    more than two outcomes by largest remainders, so that they still sum to one);
    means and expectiles to the nearest multiple inside the range of the outcomes.
    Quantiles and modes are outcomes already and stay.

    Rounding adds up to half a step of miscalibration that is not there, to both
    predictors; the certificate is about the rounded reference and primary.

    Parameters
    ----------
    step
        Width of the grid. One divided by it must be a whole number.

    Examples
    --------
    >>> Step(0.01)
    Step(step=0.01)
    """

    step: float

    name = "step"

    def __post_init__(self) -> None:
        units = 1 / self.step if 0 < self.step <= 0.5 else 0.0
        if abs(units - round(units)) > 1e-9 * max(units, 1) or units == 0:
            message = (
                f"step must divide one into equal parts, got {self.step!r}.\n"
                "hint: for instance Step(0.01) or Step(0.05)."
            )
            raise InvalidInputError(message)

    @property
    def units(self) -> int:
        """How many steps make one."""
        return round(1 / self.step)

    def merge(self, reports: Reports) -> Reports:
        """The reports rounded to the grid."""
        if isinstance(reports, AnswerConfidence):
            rounded = np.rint(reports.confidence * self.units) / self.units
            return AnswerConfidence._of(reports.answer, rounded, reports.outcomes)
        if isinstance(reports, Distributions):
            return replace(reports, probabilities=self._round(reports.probabilities))
        if isinstance(reports, PointReport) and reports.about.name in _ROUNDED:
            value = self._round_inside(reports.value, reports.about.values)
            return PointReport._of(value, reports.outcomes, reports.about)
        return reports

    def _round(self, rows: Floats) -> Floats:
        """Largest remainders: whole units that sum to one row by row."""
        scaled = rows * self.units
        whole = np.floor(scaled + 1e-9)
        missing = np.rint(self.units - whole.sum(axis=1)).astype(np.int64)
        order = np.argsort(-(scaled - whole), axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(rows.shape[1])[None, :], axis=1)
        return (whole + (ranks < missing[:, None])) / self.units

    def _round_inside(self, value: Floats, support: Floats) -> Floats:
        low = np.ceil(support.min() * self.units) / self.units
        high = np.floor(support.max() * self.units) / self.units
        if low > high:  # a range narrower than a step has no grid point
            return value
        return np.clip(np.rint(value * self.units) / self.units, low, high)


@dataclass(frozen=True, slots=True)
class Auto:
    """Adaptive cells, chosen from the data; reports themselves are never rounded."""

    name = "auto"

    def merge(self, reports: Reports) -> Reports:
        """Leave the reports alone."""
        return reports


_ROUNDED = ("mean", "expectile")

Cells: TypeAlias = Auto | Exact | Step


def get_cells(cells: str | Cells) -> Cells:
    """Look up cells by name; objects pass through."""
    if isinstance(cells, Auto | Exact | Step):
        return cells
    if cells == "exact":
        return Exact()
    if cells == "auto":
        return Auto()
    raise UnknownNameError.of("cells", cells, ("auto", "exact", "Step(...)"))
