"""What each metric is called, means, and which direction is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One line about a metric."""

    name: str
    title: str
    better: str
    """``higher``, ``lower`` or ``zero``; a level for coverages."""


_ALL = (
    Metric("accuracy", "share of answers that are right", "higher"),
    Metric("overconfidence", "mean confidence minus accuracy", "zero"),
    Metric("ece", "top-label ECE, equal-width bins (a, b]", "lower"),
    Metric("ece_equal_mass", "top-label ECE, equal-mass bins", "lower"),
    Metric("ece_debiased", "top-label ECE less its estimated bias", "lower"),
    Metric("ece_classwise", "mean over outcomes of each one's ECE", "lower"),
    Metric("brier_top", "squared error of confidence against correctness", "lower"),
    Metric("brier", "squared error summed over outcomes, in [0, 2]", "lower"),
    Metric("log_loss", "minus log probability of what happened, in nats", "lower"),
    Metric("confidence_loss", "c^2 - 2c [right]: brier_top minus accuracy", "lower"),
    Metric("auroc", "how often a right answer is the more confident one", "higher"),
    Metric("squared_loss", "squared error (y - r)^2", "lower"),
    Metric("pinball_loss", "pinball loss of the quantile", "lower"),
    Metric("expectile_loss", "asymmetric squared error of the expectile", "lower"),
    Metric("zero_one_loss", "share of answers that are wrong", "lower"),
    Metric("mean_residual", "mean of outcome minus report", "zero"),
    Metric("identification", "mean of the identification function", "zero"),
    Metric("coverage_below", "share of outcomes below the report", "at most level"),
    Metric(
        "coverage_at_or_below",
        "share of outcomes at or below the report",
        "at least level",
    ),
    Metric("calibration_error", "moment error over equal-mass cells", "lower"),
)

METRICS = {metric.name: metric for metric in _ALL}
