"""evaluate(): how good a predictor is, measured with labels, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from trueup import _validate
from trueup._render import html_table, json_number
from trueup._validate import Ints
from trueup.errors import InvalidInputError, UnknownNameError
from trueup.evaluate import _render
from trueup.evaluate._descriptions import METRICS
from trueup.evaluate._inputs import (
    Labelled,
    read_codes,
    read_labelled,
    read_like,
    read_reports,
    read_rng,
    read_whole_number,
)
from trueup.evaluate._resampling import Estimate, Resampled, resampled_counts
from trueup.evaluate._scores import Plan, Scores, score


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Metrics of one predictor on labelled items, each with an interval.

    ``result["ece"]`` is an :class:`Estimate`, a tuple (value, lower, upper). A metric
    that these predictions cannot have is not there, and asking for it says why.

    Attributes
    ----------
    metrics
        The estimates by name.
    absent
        Metrics that cannot be computed, and why.
    differences
        These predictions minus the ones they were compared with, by metric; empty
        without ``against``. The intervals are of the paired difference.
    against
        The other predictor's evaluation, under the same resampling.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([.9, .8, .3, .6])
    >>> result = evaluate(p, [1, 1, 0, 0], against=np.full(4, .5), n_bootstrap=100)
    >>> "log_loss" in result, result["accuracy"].value
    (True, 0.75)
    >>> round(result.differences["brier"].value, 3)
    -0.25
    """

    metrics: Mapping[str, Estimate]
    absent: Mapping[str, str]
    differences: Mapping[str, Estimate]
    against: Evaluation | None
    n_items: int
    n_outcomes: int
    about: str
    level: float
    n_bootstrap: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        if name in self.metrics:
            return self.metrics[name]
        if name in self.absent:
            message = f"metric {name!r} is absent: {self.absent[name]}."
            raise InvalidInputError(message)
        raise UnknownNameError.of("metric", name, self.metrics)

    def __contains__(self, name: object) -> bool:
        return name in self.metrics

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __repr__(self) -> str:
        shown = [name for name in _HEADLINE if name in self.metrics][:3]
        parts = []
        for name in shown:
            one = self.metrics[name]
            limits = _render.interval(one.lower, one.upper)
            parts.append(f"{name} {_render.number(one.value)} {limits}")
        return f"Evaluation({self._sample()}: {', '.join(parts)})"

    def table(self) -> str:
        """The metrics as text for a terminal."""
        lines = [self._caption(), _render.text_table(self._header(), self._rows())]
        return "\n".join([*lines, *self._remarks()])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values; infinities become text."""
        return {
            "n_items": self.n_items,
            "n_outcomes": self.n_outcomes,
            "about": self.about,
            "level": self.level,
            "n_bootstrap": self.n_bootstrap,
            "metrics": _plain(self.metrics),
            "absent": dict(self.absent),
            "differences": _plain(self.differences),
            "against": None if self.against is None else self.against.to_dict(),
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        return html_table(
            self._caption(), self._header(), self._rows(), self._remarks()
        )

    def _sample(self) -> str:
        return f"{self.n_items:,} items, {self.n_outcomes:,} outcomes"

    def _caption(self) -> str:
        return (
            f"{self.about} on {self._sample()}; {self.level:.0%} intervals from "
            f"{self.n_bootstrap:,} bootstrap draws"
        )

    def _header(self) -> tuple[str, ...]:
        compared = ("against", "difference", "interval") if self.against else ()
        return ("metric", "value", "interval", *compared, "better", "meaning")

    def _rows(self) -> list[tuple[str, ...]]:
        return [self._row(name, one) for name, one in self.metrics.items()]

    def _row(self, name: str, one: Estimate) -> tuple[str, ...]:
        compared: tuple[str, ...] = ()
        if self.against is not None:
            other, gap = self.against.metrics.get(name), self.differences.get(name)
            compared = (
                "" if other is None else _render.number(other.value),
                "" if gap is None else _render.number(gap.value),
                "" if gap is None else _render.interval(gap.lower, gap.upper),
            )
        metric = METRICS[name]
        limits = _render.interval(one.lower, one.upper)
        value = _render.number(one.value)
        return (name, value, limits, *compared, metric.better, metric.title)

    def _remarks(self) -> list[str]:
        absent = [f"absent: {name}: {why}" for name, why in self.absent.items()]
        return [*absent, *(f"note: {note}" for note in self.notes)]


_HEADLINE = (
    "accuracy",
    "ece",
    "brier_top",
    "squared_loss",
    "pinball_loss",
    "expectile_loss",
    "coverage_below",
    "coverage_at_or_below",
    "mean_residual",
    "identification",
    "calibration_error",
)


def evaluate(
    predictions: object,
    labels: object,
    *,
    against: object | None = None,
    outcomes: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    blocks: Iterable[Any] | None = None,
    n_bins: int = 10,
    n_bootstrap: int = 1000,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Evaluation:
    """Measure with labels how good predictions are, with bootstrap intervals.

    Distributions get every metric; an answer with a confidence gets those that need no
    more; a point report gets the canonical loss of its property and how well it is
    calibrated (coverage for quantiles). Brier loss is the sum over outcomes, for two
    outcomes twice the binary squared error; ``brier_top`` is the squared error of the
    confidence.

    Parameters
    ----------
    predictions
        An (n, K) array, a 1-D array of P(outcome 1), :class:`~trueup.AnswerConfidence`
        or :class:`~trueup.PointReport`; also what a map's ``apply`` returns.
    labels
        What happened, one an item: outcomes by name or, where outcomes are not
        numbers, by position.
    against
        A second predictor on the same items; its paired differences are reported.
    outcomes
        Names of the K outcomes, in the order of the columns.
    sample_weight
        How much each item counts. Items remain the units of resampling.
    blocks
        One value an item; items with the same value are dependent and are resampled
        together.
    n_bins
        Bins of the calibration errors. Bins of equal width are (a, b], and zero
        belongs to the first; bins of equal mass never separate equal confidences.
    n_bootstrap
        Number of resamples.
    level
        Of the intervals.
    rng
        Source of the resamples; ``numpy.random.default_rng(0)`` when left out, so that
        results repeat.

    Returns
    -------
    Evaluation
        Estimates by name, a table for terminals and notebooks, plain JSON values.

    Notes
    -----
    Intervals of means and of AUROC are percentiles of the resamples. Calibration
    errors are biased upwards, and resampling them doubles the bias; their intervals
    instead bound the true error from both sides and hold for calibrated predictors too.

    Examples
    --------
    Three of four answers are right; the mean confidence is 0.75:

    >>> import numpy as np
    >>> p = np.array([[.9, .1], [.8, .2], [.3, .7], [.6, .4]])
    >>> result = evaluate(p, [0, 0, 1, 1], n_bootstrap=200)
    >>> result["accuracy"].value, round(result["brier_top"].value, 4)
    (0.75, 0.125)
    >>> round(result["confidence_loss"].value, 4)
    -0.625
    """
    chosen = _validate.unit_number(level, "level", inclusive=False)
    n_draws = read_whole_number(n_bootstrap, "n_bootstrap", at_least=10)
    sample = read_labelled(
        predictions,
        labels,
        name="predictions",
        outcomes=outcomes,
        sample_weight=sample_weight,
    )
    units = _units(read_codes(blocks, sample.n_given, "blocks"), sample)
    plan = Plan(read_whole_number(n_bins, "n_bins", at_least=1), chosen, units)
    first = score(sample, plan)
    second = None
    if against is not None:
        second = score(_compared(against, predictions, sample, outcomes), plan)
    combined = {_OWN + name: one for name, one in first.statistics.items()}
    if second is not None:
        combined |= {_OTHER + name: one for name, one in second.statistics.items()}
    counts = resampled_counts(len(sample), n_draws, read_rng(rng), units)
    drawn = Resampled.of(combined, counts, sample.weights, chosen)
    report = _Report(sample, drawn, n_draws)
    return report.compared(first, second)


_OWN, _OTHER = "own/", "against/"


@dataclass(frozen=True, slots=True, eq=False)
class _Report:
    """Turns resampled statistics into the result the user sees."""

    sample: Labelled
    drawn: Resampled
    n_draws: int

    def compared(self, first: Scores, second: Scores | None) -> Evaluation:
        """The first predictor's evaluation, with the second's inside it."""
        if second is None:
            return self._evaluation(_OWN, first, {}, None)
        shared = [name for name in first.statistics if name in second.statistics]
        if not shared:
            message = (
                "predictions and against have no metric in common: one reports "
                f"{', '.join(first.statistics)}, the other "
                f"{', '.join(second.statistics)}.\n"
                "hint: compare predictors that report the same kind of thing."
            )
            raise InvalidInputError(message)
        gaps, undefined = {}, []
        for name in shared:
            if np.isinf(first.statistics[name].value) and np.isinf(
                second.statistics[name].value
            ):
                undefined.append(f"{name}: both are infinite, so no difference exists")
                continue
            gaps[name] = self.drawn.difference(_OWN + name, _OTHER + name)
        other = self._evaluation(_OTHER, second, {}, None)
        return self._evaluation(_OWN, first.noting(*undefined), gaps, other)

    def _evaluation(
        self,
        prefix: str,
        scores: Scores,
        gaps: dict[str, Estimate],
        other: Evaluation | None,
    ) -> Evaluation:
        ordered = [name for name in METRICS if name in scores.statistics]
        found = {name: self.drawn.estimate(prefix + name) for name in ordered}
        return Evaluation(
            metrics=MappingProxyType(found),
            absent=MappingProxyType(scores.absent),
            differences=MappingProxyType({n: gaps[n] for n in ordered if n in gaps}),
            against=other,
            n_items=len(self.sample),
            n_outcomes=self.sample.reports.n_outcomes,
            about=scores.about,
            level=self.drawn.level,
            n_bootstrap=self.n_draws,
            notes=scores.notes,
        )


def _units(codes: Ints | None, sample: Labelled) -> Ints | None:
    """Blocks of the items that count, numbered without holes."""
    if codes is None:
        return None
    return np.unique(codes[sample.used], return_inverse=True)[1]


def _compared(
    against: object,
    predictions: object,
    sample: Labelled,
    outcomes: Iterable[Any] | None,
) -> Labelled:
    """The second predictor on the items of the first."""
    whole = read_reports(predictions, "predictions", outcomes)
    other = read_like(against, "against", whole, "predictions")
    return replace(sample, reports=other.take(sample.used))


def _plain(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {
        name: {key: json_number(x) for key, x in one._asdict().items()}
        for name, one in estimates.items()
    }
