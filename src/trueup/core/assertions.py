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
from trueup._validate import Floats, Ints
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.errors import DoubtfulInputWarning, InvalidInputError, UnknownNameError

ASSERTIONS = {
    "informative": "given the primary's report, the reference's answer is not evidence "
    "against itself",
    "stronger": "the primary's answer is right at least as often as the reference's",
}


@dataclass(frozen=True, slots=True, eq=False)
class Assertion:
    """An asserted inequality: E[coefficient(cell, Y)] <= E[sign * c0]."""

    name: str
    coefficients: Floats
    """(primary cells, K)."""
    sign: float
    """+1 where the reference's confidence bounds from above, -1 from below."""

    def targets(self, reference: Reports) -> Floats:
        """(n,) what each item adds to the right-hand side."""
        return self.sign * top_of(reference).confidence


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


def make_assertion(
    name: str,
    primary: Reports,
    reference: Reports,
    cell: Ints,
    n_cells: int,
    weights: Floats,
) -> Assertion:
    """Write an assertion down for primary cells fitted on these items.

    ``informative``: E[h(R1)(a0)] <= E[c0], where the share of each reference answer a0
    in a primary cell stands for its distribution there. ``stronger``: E[h(R1)(a1)] is
    at least E[c0], where a1 is the primary's answer.
    """
    n_outcomes = primary.n_outcomes
    if name == "informative":
        given = np.eye(n_outcomes)[top_of(reference).answer]
        shares = group_sums(cell, weights[:, None] * given, n_cells)
        total = np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        return Assertion(name, shares / total, 1.0)
    answers = cast("Ints", primary.answers())
    own = np.zeros((n_cells, n_outcomes))
    own[cell, answers] = -1.0
    return Assertion(name, own, -1.0)


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
