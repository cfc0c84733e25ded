"""What can be said with labels: metrics, checks of the reference, baselines.

Nothing that fits, audits or applies imports this package, so no label can reach them.
The package can be called: ``trueup.evaluate(predictions, labels)`` is
:func:`trueup.evaluate.metrics.evaluate`, and works whether or not parts of the package
were imported before.

Examples
--------
>>> import trueup.evaluate
>>> result = trueup.evaluate([0.9, 0.8, 0.3, 0.6], [1, 1, 0, 0], n_bootstrap=100)
>>> result["accuracy"].value
0.75
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup._packages import lazy_names, make_callable

if TYPE_CHECKING:
    from trueup.evaluate._resampling import Estimate
    from trueup.evaluate._rung_advice import RungCheck
    from trueup.evaluate.baselines import (
        BASELINES,
        BaselineMap,
        BetaCalibration,
        ConfidenceTemperature,
        CrossFitted,
        Daca,
        HistogramBinning,
        IsotonicCalibration,
        MaxConfidence,
        PlattScaling,
        ReferenceCopy,
        TemperatureScaling,
        cross_fitted,
        get_baseline,
    )
    from trueup.evaluate.decomposition import Decomposition, decompose
    from trueup.evaluate.metrics import Evaluation, evaluate
    from trueup.evaluate.reference_check import ReferenceCheck, check_reference
    from trueup.evaluate.reliability import ReliabilityCurve, reliability_curve

__all__ = [
    "BASELINES",
    "BaselineMap",
    "BetaCalibration",
    "ConfidenceTemperature",
    "CrossFitted",
    "Daca",
    "Decomposition",
    "Estimate",
    "Evaluation",
    "HistogramBinning",
    "IsotonicCalibration",
    "MaxConfidence",
    "PlattScaling",
    "ReferenceCheck",
    "ReferenceCopy",
    "ReliabilityCurve",
    "RungCheck",
    "TemperatureScaling",
    "check_reference",
    "cross_fitted",
    "decompose",
    "evaluate",
    "get_baseline",
    "reliability_curve",
]

_HOMES = {
    "Decomposition": "trueup.evaluate.decomposition",
    "Estimate": "trueup.evaluate._resampling",
    "Evaluation": "trueup.evaluate.metrics",
    "ReferenceCheck": "trueup.evaluate.reference_check",
    "ReliabilityCurve": "trueup.evaluate.reliability",
    "RungCheck": "trueup.evaluate._rung_advice",
    "check_reference": "trueup.evaluate.reference_check",
    "decompose": "trueup.evaluate.decomposition",
    "evaluate": "trueup.evaluate.metrics",
    "reliability_curve": "trueup.evaluate.reliability",
}


__getattr__ = lazy_names(
    __name__, dict.fromkeys(__all__, "trueup.evaluate.baselines") | _HOMES
)


def __dir__() -> list[str]:
    return sorted(__all__)


make_callable(__name__, "trueup.evaluate.metrics", "evaluate")
