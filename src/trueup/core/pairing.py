"""Reading two predictors' input and bringing it to the same outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from trueup._frames import is_frame, read_frame, read_two_frames
from trueup._validate import Label
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.errors import InvalidInputError


def parse_reports(values: object, name: str, outcomes: Iterable[Any] | None) -> Reports:
    """Reports as they are, dataframes by their columns, the rest as an array."""
    if is_frame(values):
        named = None if outcomes is None else tuple(outcomes)
        values, outcomes = read_frame(values, name, named), None
    if isinstance(values, Reports):
        if outcomes is not None and set(outcomes) != set(values.outcomes):
            message = (
                f"outcomes={list(outcomes)!r} differs from the outcomes of {name}, "
                f"{list(values.outcomes)!r}."
            )
            raise InvalidInputError(message)
        return values
    return Distributions.parse(values, name, outcomes)


def same_outcomes(
    reports: Reports, other: Reports, name: str, other_name: str
) -> Reports:
    """``reports`` with the outcomes of ``other``, in its order."""
    return with_outcomes(reports, other.outcomes, name, other_name)


def with_outcomes(
    reports: Reports, wanted: tuple[Label, ...], name: str, other_name: str
) -> Reports:
    """``reports`` with the wanted outcomes, in that order.

    Unnamed outcomes (0, 1, ...) of an array take over the names of the other side;
    named ones must be the same set.
    """
    if reports.outcomes == wanted:
        return reports
    if reports.n_outcomes != len(wanted):
        message = (
            f"{name} is about {reports.n_outcomes} outcomes but {other_name} about "
            f"{len(wanted)}.\nhint: both must predict the same thing."
        )
        raise InvalidInputError(message)
    unnamed = tuple(range(reports.n_outcomes))
    if isinstance(reports, Distributions) and reports.outcomes == unnamed:
        return replace(reports, outcomes=wanted)
    if set(reports.outcomes) != set(wanted):
        message = (
            f"{name} is about the outcomes {list(reports.outcomes)!r} but {other_name} "
            f"about {list(wanted)!r}.\nhint: name the same outcomes on both sides."
        )
        raise InvalidInputError(message)
    return reports.reordered(wanted)


def concatenated(first: Reports, second: Reports) -> Reports:
    """Reports of one predictor, one after the other; both about the same thing."""
    second = same_outcomes(second, first, "the second table", "the first")
    if isinstance(first, Distributions) and isinstance(second, Distributions):
        rows = np.concatenate([first.probabilities, second.probabilities])
        n_normalised = first.n_normalised + second.n_normalised
        return replace(first, probabilities=rows, n_normalised=n_normalised)
    if isinstance(first, AnswerConfidence) and isinstance(second, AnswerConfidence):
        return AnswerConfidence._of(
            np.append(first.answer, second.answer),
            np.append(first.confidence, second.confidence),
            first.outcomes,
        )
    if (
        isinstance(first, PointReport)
        and isinstance(second, PointReport)
        and first.about.title == second.about.title
    ):
        value = np.append(first.value, second.value)
        return PointReport._of(value, first.outcomes, first.about)
    message = (
        f"one table holds {first.about.title} reports and the other "
        f"{second.about.title} reports.\nhint: add tables of the same two predictors."
    )
    raise InvalidInputError(message)


def paired_reports(
    primary: object, reference: object, outcomes: tuple[Any, ...] | None
) -> tuple[Reports, Reports]:
    """Read both predictors and bring them to the same outcomes in the same order."""
    if is_frame(primary) and is_frame(reference):
        primary, reference = read_two_frames(primary, reference, outcomes)
        outcomes = None
    first = parse_reports(primary, "primary", outcomes)
    second = parse_reports(reference, "reference", outcomes)
    if len(first) != len(second):
        raise InvalidInputError.lengths("primary", len(first), "reference", len(second))
    first_unnamed = first.outcomes == tuple(range(first.n_outcomes))
    if first_unnamed and second.outcomes != first.outcomes:
        first = same_outcomes(first, second, "primary", "reference")
    else:
        second = same_outcomes(second, first, "reference", "primary")
    first.about.check(first, "primary")
    second.about.check(second, "reference")
    return first, second
