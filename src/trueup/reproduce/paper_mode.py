"""The paper's mode, to the letter."""

from __future__ import annotations

from trueup.api import fit
from trueup.core.cells import Step
from trueup.core.reports import AnswerConfidence
from trueup.maps.report_map import ReportMap

PAPER_STEP = 0.01
"""Grid of the paper's experiment."""


def paper_map(
    primary: AnswerConfidence, reference: AnswerConfidence, step: float = PAPER_STEP
) -> ReportMap:
    """Confidence loss, rounded confidences, and the reference's answer the likeliest.

    Examples
    --------
    >>> from trueup import AnswerConfidence
    >>> said = AnswerConfidence(answer=["A", "B"], confidence=[0.5, 0.6],
    ...                         outcomes=["A", "B"])
    >>> weak = AnswerConfidence(answer=["A", "A"], confidence=[0.7, 0.7],
    ...                         outcomes=["A", "B"])
    >>> fitted = paper_map(said, weak)
    >>> round(fitted.certificate.guaranteed_improvement, 4)
    0.0625
    """
    return fit(
        primary,
        reference,
        loss="confidence",
        trust="answer-confidence",
        caps=True,
        cells=Step(step),
    )
