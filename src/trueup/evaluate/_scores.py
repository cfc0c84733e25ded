"""From reports and labels to the statistics that describe them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self, cast

import numpy as np
from scipy import sparse

from trueup._validate import Bools, Floats, Ints
from trueup.core.losses import get_loss
from trueup.core.properties import ModeProperty
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.evaluate import _binning
from trueup.evaluate._inputs import Labelled
from trueup.evaluate._resampling import (
    CellNorm,
    Mean,
    Ranking,
    Shifted,
    Statistic,
    cell_moments,
    debiased_norm,
)

DISTRIBUTION_METRICS = ("ece_classwise", "brier", "log_loss")
NEEDS_DISTRIBUTION = (
    "it needs a probability for every outcome, and the predictions state only "
    "an answer and its confidence"
)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The statistics of one predictor, and why others are missing."""

    about: str
    """What the predictor reports, in words."""
    statistics: dict[str, Statistic]
    absent: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def noting(self, *notes: str) -> Self:
        """The same with more to say."""
        return replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How scores are to be computed."""

    n_bins: int
    level: float
    units: Ints | None
    """Block of each item, where items are not independent."""

    def norm(
        self,
        moments: sparse.csr_array,
        weights: Floats,
        equality: Bools | None = None,
    ) -> CellNorm:
        """A sum of absolute moments."""
        return CellNorm(
            moments, weights, equality=equality, units=self.units, level=self.level
        )


def score(sample: Labelled, plan: Plan) -> Scores:
    """All metrics that make sense for these reports."""
    reports = sample.reports
    if isinstance(reports, Distributions):
        return _score_distributions(sample, reports, plan)
    if isinstance(reports, AnswerConfidence):
        top = _score_answers(sample, reports.answer, reports.confidence, plan)
        top.absent.update(dict.fromkeys(DISTRIBUTION_METRICS, NEEDS_DISTRIBUTION))
        return top
    return _score_points(sample, cast("PointReport", reports), plan)


def _score_distributions(
    sample: Labelled, reports: Distributions, plan: Plan
) -> Scores:
    stated, weights = reports.probabilities, sample.weights
    top = _score_answers(sample, reports.answers(), stated.max(axis=1), plan)
    happened = stated[np.arange(len(stated)), sample.labels]
    with np.errstate(divide="ignore"):
        log_loss = -np.log(happened)
    brier = (stated**2).sum(axis=1) - 2 * happened + 1
    top.statistics.update(
        ece_classwise=plan.norm(_classwise_moments(sample, stated, plan), weights),
        brier=Mean(brier, weights),
        log_loss=Mean(log_loss, weights),
    )
    n_impossible = int((happened == 0).sum())
    if not n_impossible:
        return top
    note = (
        f"log_loss is infinite: {n_impossible:,} of {len(stated):,} items had an "
        "outcome of stated probability zero, the first at row "
        f"{int(sample.used[np.argmax(happened == 0)]):,}"
    )
    return top.noting(note)


def _classwise_moments(
    sample: Labelled, stated: Floats, plan: Plan
) -> sparse.csr_array:
    """(n, outcomes x bins) residuals of every outcome's probability, divided by K."""
    n_items, n_outcomes = stated.shape
    residual = -stated / n_outcomes
    residual[np.arange(n_items), sample.labels] += 1 / n_outcomes
    column = _binning.equal_width(stated.ravel(), plan.n_bins).reshape(stated.shape)
    column += np.arange(n_outcomes) * plan.n_bins
    shape = (n_items, n_outcomes * plan.n_bins)
    starts = np.arange(n_items + 1) * n_outcomes
    return sparse.csr_array((residual.ravel(), column.ravel(), starts), shape=shape)


def _score_answers(
    sample: Labelled, answer: Ints, confidence: Floats, plan: Plan
) -> Scores:
    """Everything that only needs an answer and its confidence."""
    is_right = answer == sample.labels
    right, weights = is_right.astype(np.float64), sample.weights
    width = _binning.equal_width(confidence, plan.n_bins)
    mass = _binning.equal_mass(confidence, weights, plan.n_bins)
    ece = plan.norm(cell_moments(width, right - confidence), weights)
    noise = label_noise(width, right, weights)
    statistics: dict[str, Statistic] = {
        "accuracy": Mean(right, weights),
        "overconfidence": Mean(confidence - right, weights),
        "ece": ece,
        "ece_equal_mass": plan.norm(cell_moments(mass, right - confidence), weights),
        "ece_debiased": Shifted(debiased_norm(ece.deviation, noise), ece),
        "brier_top": Mean((confidence - right) ** 2, weights),
        "confidence_loss": Mean(confidence**2 - 2 * confidence * right, weights),
    }
    if is_right.any() and not is_right.all():
        statistics["auroc"] = Ranking(confidence, is_right, weights)
        return Scores(sample.reports.about.title, statistics)
    every = "right" if is_right.all() else "wrong"
    note = (
        f"every answer is {every}: resampling cannot show what did not occur, so "
        "the interval of accuracy is too narrow"
    )
    reason = f"every answer is {every}, so there is no pair to rank"
    return Scores(sample.reports.about.title, statistics, {"auroc": reason}, (note,))


def label_noise(cell: Ints, right: Floats, weights: Floats) -> Floats:
    """(cells,) binomial standard error of each cell's share of right answers."""
    _, index = np.unique(cell, return_inverse=True)
    total = np.bincount(index, weights)
    rate = np.bincount(index, weights * right) / total
    spread = rate * (1 - rate) * np.bincount(index, weights**2)
    return np.sqrt(np.maximum(spread, 0)) / weights.sum()


def _score_points(sample: Labelled, reports: PointReport, plan: Plan) -> Scores:
    weights, about = sample.weights, reports.about
    loss = get_loss(None, about)
    rows = np.arange(len(sample))
    items = loss.vectors(reports)[rows, sample.labels]
    if isinstance(about, ModeProperty):
        statistics: dict[str, Statistic] = {
            "accuracy": Mean(-items, weights),
            "zero_one_loss": Mean(1 + items, weights),
        }
    else:
        outcome = about.values[sample.labels]
        statistics = _NUMERIC[about.name](items, outcome, reports, weights)
    statistics["calibration_error"] = _calibration_error(sample, reports, plan)
    return Scores(about.title, statistics)


def _score_mean(
    items: Floats, outcome: Floats, reports: PointReport, weights: Floats
) -> dict[str, Statistic]:
    # The core's squared loss leaves out y^2, which no report changes.
    return {
        "squared_loss": Mean(items + outcome**2, weights),
        "mean_residual": Mean(outcome - reports.value, weights),
    }


def _score_quantile(
    items: Floats, outcome: Floats, reports: PointReport, weights: Floats
) -> dict[str, Statistic]:
    below, up_to = outcome < reports.value, outcome <= reports.value
    return {
        "pinball_loss": Mean(items, weights),
        "coverage_below": Mean(below.astype(np.float64), weights),
        "coverage_at_or_below": Mean(up_to.astype(np.float64), weights),
    }


def _score_expectile(
    items: Floats, outcome: Floats, reports: PointReport, weights: Floats
) -> dict[str, Statistic]:
    residual = outcome - reports.value
    level = cast("float", reports.about.level)
    return {
        "expectile_loss": Mean(items, weights),
        "identification": Mean(np.abs(level - (residual < 0)) * residual, weights),
    }


_NUMERIC: dict[
    str, Callable[[Floats, Floats, PointReport, Floats], dict[str, Statistic]]
] = {
    "mean": _score_mean,
    "quantile": _score_quantile,
    "expectile": _score_expectile,
}


def _calibration_error(sample: Labelled, reports: PointReport, plan: Plan) -> Statistic:
    """Sum over cells and moments of the property's calibration error."""
    if isinstance(reports.about, ModeProperty):
        cell = reports.value.astype(np.int64)
    else:
        cell = _binning.equal_mass(reports.value, sample.weights, plan.n_bins)
    moments, equality = pooled_moments(
        *moment_values(reports, sample.labels), cell=cell
    )
    return plan.norm(moments, sample.weights, equality)


def moment_values(reports: Reports, labels: Ints) -> tuple[Floats, Bools]:
    """(n, S) identification functions V at what happened; (S,) which must vanish."""
    reading = reports.about.identify(reports)
    values = np.where(reading.applies, -reading.targets, 0.0)
    hit = reading.outcome == labels[reading.report]
    np.add.at(
        values, (reading.report[hit], reading.slot[hit]), reading.coefficient[hit]
    )
    return values, reading.equality


def pooled_moments(
    values: Floats, equality: Bools, *, cell: Ints
) -> tuple[sparse.csr_array, Bools]:
    """(n, cells x slots) moments of items pooled into cells, and which must vanish."""
    n_items, n_slots = values.shape
    _, index = np.unique(cell, return_inverse=True)
    n_cells = int(index.max()) + 1
    column = index[:, None] * n_slots + np.arange(n_slots)
    starts = np.arange(n_items + 1) * n_slots
    shape = (n_items, n_cells * n_slots)
    moments = sparse.csr_array((values.ravel(), column.ravel(), starts), shape=shape)
    return moments, np.tile(equality, n_cells)
