"""Calibrate a strong model without labels, against a weaker reference you trust."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup._packages import lazy_names

if TYPE_CHECKING:
    from trueup.api import fit, load
    from trueup.audit.audit import audit
    from trueup.audit.bounds import bounds, compare, worst_case_improvement
    from trueup.core.cells import Step
    from trueup.core.generator_loss import GeneratorLoss
    from trueup.core.joint import JointTable
    from trueup.core.reports import AnswerConfidence, PointReport
    from trueup.elicit.runner import elicit
    from trueup.errors import TrueupError, TrueupWarning
    from trueup.estimator import LabelFreeCalibrator as LabelFreeCalibrator
    from trueup.evaluate.metrics import evaluate
    from trueup.evaluate.reference_check import check_reference
    from trueup.maps.report_map import ReportMap
    from trueup.scale.api import fit_frame
    from trueup.scale.online import OnlineCalibrator
    from trueup.solve.certificate import Certificate
    from trueup.solve.projection import Projection, project

__all__ = [
    "AnswerConfidence",
    "Certificate",
    "GeneratorLoss",
    "JointTable",
    "OnlineCalibrator",
    "PointReport",
    "Projection",
    "ReportMap",
    "Step",
    "TrueupError",
    "TrueupWarning",
    "audit",
    "bounds",
    "check_reference",
    "compare",
    "elicit",
    "evaluate",
    "fit",
    "fit_frame",
    "load",
    "project",
    "worst_case_improvement",
]

_EXTRAS = {"LabelFreeCalibrator": "trueup.estimator"}
"""Public names that need an extra, and that ``import *`` therefore leaves out."""

_HOMES = {
    **_EXTRAS,
    "AnswerConfidence": "trueup.core.reports",
    "Certificate": "trueup.solve.certificate",
    "GeneratorLoss": "trueup.core.generator_loss",
    "JointTable": "trueup.core.joint",
    "OnlineCalibrator": "trueup.scale.online",
    "PointReport": "trueup.core.reports",
    "Projection": "trueup.solve.projection",
    "ReportMap": "trueup.maps.report_map",
    "Step": "trueup.core.cells",
    "TrueupError": "trueup.errors",
    "TrueupWarning": "trueup.errors",
    "audit": "trueup.audit",
    "bounds": "trueup.audit.bounds",
    "check_reference": "trueup.evaluate.reference_check",
    "compare": "trueup.audit.bounds",
    "elicit": "trueup.elicit",
    "evaluate": "trueup.evaluate",
    "fit": "trueup.api",
    "fit_frame": "trueup.scale.api",
    "load": "trueup.api",
    "project": "trueup.solve.projection",
    "report": "trueup.report",
    "worst_case_improvement": "trueup.audit.bounds",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
