"""Every method of the tables: what it is called, what it may see, how it runs.

The paper's own mode is run to the letter: confidence loss, confidences rounded to .01,
the reference's answer taken as the most likely one (caps), fitted on the unlabelled
outputs of the evaluation items themselves. The same items fit the adaptive maps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup.api import fit
from trueup.core.reports import AnswerConfidence
from trueup.errors import InvalidInputError, TrueupWarning, UnknownNameError
from trueup.evaluate.baselines import cross_fitted, get_baseline
from trueup.reproduce.sample import Sample
from trueup.reproduce.scoring import Said
from trueup.solve.certificate import Certificate

INFORMATIVE_ERROR = 0.02
"""Budget that goes with the assertions, fixed before any data."""

GIVEN, SUPERVISED, LABEL_FREE, PAPER, ADAPTIVE = (
    "as given",
    "supervised",
    "label-free",
    "the paper's mode",
    "adaptive",
)


class NotApplicableError(InvalidInputError):
    """A method that these predictions do not admit; says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Produced:
    """What a method made of the primary on all items."""

    said: Said
    certificate: Certificate | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the tables."""

    name: str
    title: str
    kind: str
    run: Callable[[Sample], Produced]

    def __call__(self, sample: Sample) -> Produced:
        """Run, keeping what trueup warns about as notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TrueupWarning)
            made = self.run(sample)
        told = tuple(
            dict.fromkeys(
                str(one.message)
                for one in caught
                if issubclass(one.category, TrueupWarning)
            )
        )
        return Produced(made.said, made.certificate, (*made.notes, *told))


def _base(sample: Sample) -> Produced:
    return Produced(Said.of(sample.reference))


def _instruct(sample: Sample) -> Produced:
    return Produced(Said.of(sample.primary))


def _supervised(name: str) -> Callable[[Sample], Produced]:
    def run(sample: Sample) -> Produced:
        split = sample.calibration
        if split is not None:
            labels = [split.reports.outcomes[k] for k in split.labels]
            fitted: Any = get_baseline(name)
            made = fitted.fit(split.reports, labels).apply(sample.primary)
            note = f"fitted on a calibration split of {len(labels):,} items"
            return Produced(Said.of(made), notes=(note,))
        if len(sample.scored) != len(sample):
            message = "labels are missing, and there is no calibration split"
            raise NotApplicableError(message)
        labels = [sample.primary.outcomes[k] for k in sample.labels]
        crossed = cross_fitted(name, sample.primary, labels)
        note = "no calibration split: cross-fitted on two halves of the labelled items"
        return Produced(Said.of(crossed.reports), notes=(note,))

    return run


def _chosen(name: str) -> Callable[[Sample], Produced]:
    def run(sample: Sample) -> Produced:
        rule: Any = get_baseline(name)
        fitted = rule.fit(sample.primary, sample.reference)
        made = fitted.apply(sample.primary, reference=sample.reference)
        return Produced(Said.of(made))

    return run


def _daca(sample: Sample) -> Produced:
    primary, reference = sample.primary_vectors, sample.reference_vectors
    if primary is None or reference is None:
        message = "it needs a probability for every option from both models"
        raise NotApplicableError(message)
    rule: Any = get_baseline("daca")
    fitted = rule.fit(primary, reference)
    made = fitted.apply(primary)
    answers = AnswerConfidence.from_distributions(made, outcomes=primary.outcomes)
    return Produced(Said.of(answers))


def _paper(sample: Sample) -> Produced:
    fitted = sample.paper_map
    return Produced(Said.of(fitted.apply(sample.primary)), fitted.certificate)


def _paper_drawn(sample: Sample) -> Produced:
    """The optimum of the paper's programme, which draws among tied answers."""
    drawn = sample.paper_map.randomised
    if drawn is None:
        return _paper(sample)
    one = drawn.apply(sample.primary, rng=np.random.default_rng(0))
    said = Said(one.confidence, drawn.weights(sample.primary))
    return Produced(said, drawn.certificate)


def _adaptive(options: Mapping[str, Any]) -> Callable[[Sample], Produced]:
    def run(sample: Sample) -> Produced:
        reference: object = sample.reference
        if options["trust"] == "distribution":
            reference = sample.reference_vectors
            if reference is None:
                message = "it needs a probability for every option from the reference"
                raise NotApplicableError(message)
        fitted = fit(
            sample.primary, reference, loss="confidence", cells="auto", **options
        )
        certificate = fitted.certificate
        note = () if certificate.supported else (certificate.reason,)
        return Produced(Said.of(fitted.apply(sample.primary)), certificate, note)

    return run


_RUNGS: dict[str, tuple[str, dict[str, Any]]] = {
    "mean": ("mean", {"trust": "mean"}),
    "confidence": ("confidence", {"trust": "confidence"}),
    "answer-confidence": (
        "answer-confidence",
        {"trust": "answer-confidence", "caps": False},
    ),
    "answer-confidence-caps": (
        "answer-confidence with caps",
        {"trust": "answer-confidence", "caps": True},
    ),
    "distribution": ("distribution", {"trust": "distribution"}),
    "informative": (
        f"mean up to {INFORMATIVE_ERROR:g}, informative",
        {
            "trust": "mean",
            "assume": "informative",
            "reference_error": INFORMATIVE_ERROR,
        },
    ),
    "informative-by-confidence": (
        f"confidence up to {INFORMATIVE_ERROR:g}, informative by confidence",
        {
            "trust": "confidence",
            "assume": "informative-by-confidence",
            "reference_error": INFORMATIVE_ERROR,
        },
    ),
}

METHODS = (
    Method("base", "Base model (reference)", GIVEN, _base),
    Method("instruct", "Instruct model (primary)", GIVEN, _instruct),
    Method(
        "temperature",
        "Temperature scaling",
        SUPERVISED,
        _supervised("confidence-temperature"),
    ),
    Method("histogram", "Histogram binning", SUPERVISED, _supervised("histogram")),
    Method("isotonic", "Isotonic regression", SUPERVISED, _supervised("isotonic")),
    Method("max-confidence", "Max-Confidence", LABEL_FREE, _chosen("max-confidence")),
    Method("daca", "DACA", LABEL_FREE, _daca),
    Method("paper", "Paper's mode", PAPER, _paper),
    Method("paper-drawn", "Paper's mode, tied answers drawn", PAPER, _paper_drawn),
    *(
        Method(f"auto-{name}", f"Adaptive: {words}", ADAPTIVE, _adaptive(options))
        for name, (words, options) in _RUNGS.items()
    ),
)
"""In the order of the tables."""


def get_method(name: str) -> Method:
    """A method by its name."""
    for method in METHODS:
        if method.name == name:
            return method
    raise UnknownNameError.of("method", name, [one.name for one in METHODS])
