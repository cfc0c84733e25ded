"""One pair of predictors on one set, as every method sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from trueup._validate import Ints, Label, is_missing
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.data.convert import Objects
from trueup.data.labels import label_positions
from trueup.data.pairing import pair_predictions
from trueup.data.predictions import Predictions, read_predictions
from trueup.errors import PredictionFileError
from trueup.maps.report_map import ReportMap
from trueup.reproduce.paper_mode import paper_map
from trueup.reproduce.study import PairSpec, Source


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Answers with their labels: what a supervised baseline is fitted to."""

    reports: AnswerConfidence
    labels: Ints


@dataclass(frozen=True, eq=False)
class Sample:
    """Both predictors' reports; labels only score, and fit supervised baselines."""

    primary: AnswerConfidence
    reference: AnswerConfidence
    primary_vectors: Distributions | None
    """The primary's whole distributions, where the file has them."""
    reference_vectors: Distributions | None
    scored: Ints
    """Positions of the items with a label."""
    labels: Ints
    """Labels of those items."""
    calibration: Labelled | None
    """Another labelled split of the primary, if there is one."""
    notes: tuple[str, ...]

    @classmethod
    def read(cls, spec: PairSpec, *, drop_unpaired: bool = False) -> Self:
        """Read the files of a pair."""
        pair = pair_predictions(
            _read(spec.primary), _read(spec.reference), drop_unpaired=drop_unpaired
        )
        primary = _probabilities(pair.primary)
        reference = _probabilities(pair.reference)
        if reference.outcomes != primary.outcomes:
            reference = _same_outcomes(reference, primary, pair.reference.name)
        values = pair.labels
        if values is None:
            raise PredictionFileError.of(
                pair.primary.name,
                "there is no column 'label', and tables need labels to score.",
                "add one to either file; methods without labels never see it",
            )
        scored, labels = _known(values, primary.outcomes, pair.primary.name)
        calibration = None
        if spec.calibration is not None:
            calibration = _labelled(_read(spec.calibration), primary)
        return cls(
            primary=_answers(primary),
            reference=_answers(reference),
            primary_vectors=_vectors(primary),
            reference_vectors=_vectors(reference),
            scored=scored,
            labels=labels,
            calibration=calibration,
            notes=pair.explanation,
        )

    @cached_property
    def paper_map(self) -> ReportMap:
        """The paper's mode, fitted on all items without labels."""
        return paper_map(self.primary, self.reference)

    def __len__(self) -> int:
        return len(self.primary)


def _read(source: Source) -> Predictions:
    return read_predictions(source.path, prefix=source.prefix)


def _probabilities(read: Predictions) -> Distributions | AnswerConfidence:
    if isinstance(read.reports, Distributions | AnswerConfidence):
        return read.reports
    raise PredictionFileError.of(
        read.name,
        f"it holds a {read.reports.about.title}, but the paper's experiment is about "
        "answers with a confidence.",
        "give p_<outcome> columns, or answer and confidence",
    )


def _same_outcomes(
    reports: Distributions | AnswerConfidence, other: Reports, name: str
) -> Distributions | AnswerConfidence:
    if set(reports.outcomes) != set(other.outcomes):
        raise PredictionFileError.of(
            name,
            f"its outcomes are {', '.join(map(str, reports.outcomes))}, the primary's "
            f"{', '.join(map(str, other.outcomes))}.",
            "both models must answer the same questions with the same letters",
        )
    return reports.reordered(other.outcomes)


def _answers(reports: Distributions | AnswerConfidence) -> AnswerConfidence:
    if isinstance(reports, AnswerConfidence):
        return reports
    confidence = reports.probabilities.max(axis=1)
    return AnswerConfidence._of(reports.answers(), confidence, reports.outcomes)


def _vectors(reports: Reports) -> Distributions | None:
    return reports if isinstance(reports, Distributions) else None


def _labelled(read: Predictions, primary: Reports) -> Labelled:
    reports = _probabilities(read)
    if reports.outcomes != primary.outcomes:
        reports = _same_outcomes(reports, primary, read.name)
    if read.labels is None:
        raise PredictionFileError.of(
            read.name,
            "a calibration split without a column 'label' can fit nothing.",
            "add the column, or remove the file",
        )
    known, labels = _known(read.labels, reports.outcomes, read.name)
    return Labelled(_answers(reports.take(known)), labels)


def _known(
    values: Objects, outcomes: tuple[Label, ...], name: str
) -> tuple[Ints, Ints]:
    """Which items have a label, and those labels as positions."""
    has = np.array([not is_missing(value) for value in values])
    index = np.flatnonzero(has)
    if len(index) < 2:
        raise PredictionFileError.of(
            name,
            f"{len(index)} of {len(has):,} items have a label.",
            "label at least two",
        )
    labels, _ = label_positions(values[index], outcomes, name)
    return index, labels
