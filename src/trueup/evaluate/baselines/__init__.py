"""Baselines: what our maps are compared with, as maps of the same kind.

Supervised ones are fitted to labels, label-free ones to the reference. Each is a class
with ``fit``; what it returns has ``apply`` and ``save`` like a map of ours.
"""

from __future__ import annotations

from trueup.evaluate.baselines.base import BaselineFit, BaselineMap, SupervisedMap
from trueup.evaluate.baselines.choices import MaxConfidence, ReferenceCopy
from trueup.evaluate.baselines.cross_fit import CrossFitted, cross_fitted
from trueup.evaluate.baselines.registry import BASELINES, get_baseline
from trueup.evaluate.baselines.scalar import (
    BetaCalibration,
    ConfidenceTemperature,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
)
from trueup.evaluate.baselines.temperature import Daca, TemperatureScaling

__all__ = [
    "BASELINES",
    "BaselineFit",
    "BaselineMap",
    "BetaCalibration",
    "ConfidenceTemperature",
    "CrossFitted",
    "Daca",
    "HistogramBinning",
    "IsotonicCalibration",
    "MaxConfidence",
    "PlattScaling",
    "ReferenceCopy",
    "SupervisedMap",
    "TemperatureScaling",
    "cross_fitted",
    "get_baseline",
]
