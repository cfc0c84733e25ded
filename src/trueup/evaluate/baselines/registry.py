"""Every baseline by its name."""

from __future__ import annotations

from trueup.errors import UnknownNameError
from trueup.evaluate.baselines.base import BaselineMap
from trueup.evaluate.baselines.choices import MaxConfidence, ReferenceCopy
from trueup.evaluate.baselines.scalar import (
    BetaCalibration,
    ConfidenceTemperature,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
)
from trueup.evaluate.baselines.temperature import Daca, TemperatureScaling

BASELINES: dict[str, type[BaselineMap]] = {
    made.name: made
    for made in (
        TemperatureScaling,
        ConfidenceTemperature,
        PlattScaling,
        HistogramBinning,
        IsotonicCalibration,
        BetaCalibration,
        MaxConfidence,
        Daca,
        ReferenceCopy,
    )
}
"""The built-in baselines; ``needs`` says whether one is fitted to labels."""


def get_baseline(name: str) -> type[BaselineMap]:
    """Look a baseline up by name.

    Examples
    --------
    >>> get_baseline("temperature").__name__
    'TemperatureScaling'
    """
    if name not in BASELINES:
        raise UnknownNameError.of("baseline", name, BASELINES)
    return BASELINES[name]
