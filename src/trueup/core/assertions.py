"""Assertions beyond calibration: facts about both predictors that the user vouches for.

Each is one inequality that is linear in the truth, like a moment of the reference; its
coefficients depend on the primary's cell instead of the reference's.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.core.resolution import (
    PrimaryCells,
    Resolution,
    equal_mass_edges,
    in_order,
)
from trueup.errors import DoubtfulInputWarning, InvalidInputError, UnknownNameError

ASSERTIONS = {
    "informative": "given the primary's report, the reference's answer is not evidence "
    "against itself",
    "informative-by-confidence": "at every level of the reference's confidence, given "
    "the primary's report, the reference's answer is not evidence against itself",
    "stronger": "the primary's answer is right at least as often as the reference's",
}


ANY_CONFIDENCE = (0.0, 2.0)


@dataclass(frozen=True, slots=True, eq=False)
class Assertion:
    """An asserted inequality: E[coefficient(cell, Y)] <= E[sign * c0; c0 in range]."""

    name: str
    coefficients: Floats
    """(primary cells, K), in the frame of the cells."""
    sign: float
    """+1 where the reference's confidence bounds from above, -1 from below."""
    confidence: tuple[float, float] = ANY_CONFIDENCE
    """Confidences of the reference, low <= c0 < high, that the inequality is about."""

    def concerns(self, reference: Reports) -> Bools:
        """(n,) items whose reference confidence lies in the range."""
        low, high = self.confidence
        stated = top_of(reference).confidence
        return (stated >= low) & (stated < high)

    def targets(self, reference: Reports) -> Floats:
        """(n,) what each item adds to the right-hand side."""
        stated = self.sign * top_of(reference).confidence
        return np.where(self.concerns(reference), stated, 0.0)


def check_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """The names, each known, without repetition."""
    chosen = (names,) if isinstance(names, str) else tuple(names)
    for name in chosen:
        if name not in ASSERTIONS:
            raise UnknownNameError.of("assertion", name, ASSERTIONS)
    return tuple(dict.fromkeys(chosen))


def check_assertions(
    names: str | Iterable[str], primary: Reports, reference: Reports
) -> tuple[str, ...]:
    """The names, each known and possible for these predictors."""
    chosen = check_names(names)
    for name in chosen:
        for reports, who in ((primary, "primary"), (reference, "reference")):
            if not isinstance(reports, Distributions | AnswerConfidence):
                message = (
                    f"assume={name!r} is about answers, but the {who} reports a "
                    f"{reports.about.title}.\nhint: leave assume out."
                )
                raise InvalidInputError(message)
    return chosen


def check_rung(assume: tuple[str, ...], rung: str) -> None:
    """Refuse an assertion about levels of confidence that are not trusted."""
    if "informative-by-confidence" in assume and rung in ("mean", "point"):
        message = (
            "assume='informative-by-confidence' needs a reference that is trusted at "
            f"every level of its confidence, but trust={rung!r}.\n"
            "hint: use trust='confidence' or higher, or assume='informative'."
        )
        raise InvalidInputError(message)


def make_assertions(
    names: tuple[str, ...],
    primary: Reports,
    reference: Reports,
    weights: Floats,
    *,
    cells: PrimaryCells,
    resolution: Resolution,
) -> tuple[Assertion, ...]:
    """Write assertions down for primary cells fitted on these items.

    ``informative``: E[h(R1)(a0)] <= E[c0], where the share of each reference answer a0
    in a primary cell stands for its distribution there; ``informative-by-confidence``
    says so for each of some bins of c0. ``stronger``: E[h(R1)(a1)] is at least E[c0],
    where a1 is the primary's answer.
    """
    if not names:  # point reports have no answer to assert anything about
        return ()
    order = cells.order(primary)
    where, n_cells = cells.assign(primary), cells.n_cells
    stated = top_of(reference)
    answer = cast("AnswerConfidence", in_order(stated, order)).answer
    total = np.maximum(group_sums(where, weights, n_cells), 1e-300)[:, None]
    made = []
    for name in names:
        if name == "stronger":
            own = np.zeros((n_cells, primary.n_outcomes))
            first = cast("Ints", in_order(top_of(primary), order).answers())
            own[where, first] = -1.0
            made.append(Assertion(name, own, -1.0))
            continue
        for low, high in _levels(name, stated, weights, resolution):
            inside = (stated.confidence >= low) & (stated.confidence < high)
            given = np.eye(primary.n_outcomes)[answer] * (weights * inside)[:, None]
            shares = group_sums(where, given, n_cells) / total
            made.append(Assertion(name, shares, 1.0, (low, high)))
    return tuple(made)


def _levels(
    name: str, stated: AnswerConfidence, weights: Floats, resolution: Resolution
) -> list[tuple[float, float]]:
    """Ranges of the reference's confidence that an assertion tells apart."""
    low, high = ANY_CONFIDENCE
    if name == "informative":
        return [(low, high)]
    n_bins = min(resolution.asserted_bins, len(stated) // resolution.asserted_items)
    edges = equal_mass_edges(stated.confidence, weights, n_bins).tolist()
    return list(zip([low, *edges], [*edges, high], strict=True))


def top_of(reports: Reports) -> AnswerConfidence:
    """Answer and confidence, as the lower rungs read them."""
    if isinstance(reports, AnswerConfidence):
        return reports
    stated = cast("Distributions", reports)
    return AnswerConfidence._of(
        stated.answers(), stated.probabilities.max(axis=1), stated.outcomes
    )


def warn_without_skill(reference: Reports, weights: Floats) -> None:
    """Warn about a reference that knows little more than the commonest outcome."""
    if not isinstance(reference, Distributions) or reference.n_outcomes == 2:
        return
    share = weights / weights.sum()
    confidence = float(share @ reference.probabilities.max(axis=1))
    commonest = float((share @ reference.probabilities).max())
    if confidence < commonest + 0.05:
        warnings.warn(
            f"the reference shows little skill: its mean confidence {confidence:.3f} "
            f"is hardly above its largest mean probability {commonest:.3f}. "
            "Assertions about such a reference have done harm.",
            DoubtfulInputWarning,
            stacklevel=4,
        )
