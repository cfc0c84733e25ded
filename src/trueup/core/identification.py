"""Identification functions in sparse form, and the shapes they come in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._validate import Bools, Floats, Ints

NO_EXTREME, LOW, HIGH, OWN = 0, -1, 1, 2
"""Why outcomes are ruled out: not at all, a moment at an end of its range, a zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Identification:
    """The identification functions of n reports about K outcomes.

    Moments are numbered by ``slot``, alike for all reports of a property. The
    coefficients T are sparse: entry e says T_{slot[e]}(report[e], outcome[e]).
    """

    equality: Bools
    """(S,) whether the moment of a slot vanishes, or is only at most zero."""
    targets: Floats
    """(n, S) the numbers t."""
    applies: Bools
    """(n, S) whether a report has this moment at all."""
    report: Ints
    slot: Ints
    outcome: Ints
    coefficient: Floats
    anchors: Floats
    """(n, K) a distribution that has the stated property, inside every inequality."""
    allowed: Bools
    """(n, K) outcomes possible at all if the report is right: zeros it rules out."""
    extreme: Ints
    """(n,) why outcomes are ruled out; zeros survive pooling only among equals."""
    form: str
    """Shape of the moments, for solvers that know it: ``single`` (one equality),
    ``vector`` (a whole distribution), ``capped`` (an equality and caps), ``quantile``
    or ``mode``."""

    @property
    def shiftable(self) -> bool:
        """Whether the moments of a report sum to zero: multipliers may shift."""
        return self.form == "vector"


def cap_impossible(confidence: Floats, n_outcomes: int) -> Bools:
    """Confidences that cannot belong to the most likely outcome.

    A third, rounded, is still a third.
    """
    return confidence < 1 / n_outcomes - 1e-12


def other_outcomes(chosen: Ints, n_outcomes: int) -> Ints:
    """(n, K - 1) the outcomes that were not chosen, ascending."""
    slots = np.arange(n_outcomes - 1)
    return slots + (slots >= chosen[:, None])


def single_equality(
    coefficients: Floats, targets: Floats, anchors: Floats
) -> Identification:
    """One moment that vanishes; at the ends of its range it rules outcomes out."""
    low, high = coefficients.min(axis=1), coefficients.max(axis=1)
    extreme = np.where(targets == high, HIGH, np.where(targets == low, LOW, 0))
    bound = np.where(extreme == HIGH, high, low)
    allowed = (extreme == NO_EXTREME)[:, None] | (coefficients == bound[:, None])
    report, outcome = np.nonzero(coefficients)
    return Identification(
        equality=np.ones(1, dtype=bool),
        targets=targets[:, None],
        applies=np.ones((len(targets), 1), dtype=bool),
        report=report,
        slot=np.zeros(len(report), dtype=np.int64),
        outcome=outcome,
        coefficient=coefficients[report, outcome],
        anchors=anchors,
        allowed=allowed,
        extreme=extreme,
        form="single",
    )


def with_caps(
    single: Identification, answer: Ints, confidence: Floats, n_outcomes: int
) -> Identification:
    """Add p_y <= confidence for the outcomes that were not answered.

    A cap has the slot 1 + y, so that answers pooled in one cell share it.
    """
    capped = ~cap_impossible(confidence, n_outcomes)
    report = np.repeat(np.flatnonzero(capped), n_outcomes - 1)
    outcome = other_outcomes(answer, n_outcomes)[capped].ravel()
    applies = np.zeros((len(answer), n_outcomes), dtype=bool)
    applies[report, outcome] = True
    return Identification(
        equality=np.append(True, np.zeros(n_outcomes, dtype=bool)),
        targets=np.repeat(confidence[:, None], n_outcomes + 1, axis=1),
        applies=np.column_stack([single.applies, applies]),
        report=np.append(single.report, report),
        slot=np.append(single.slot, 1 + outcome),
        outcome=np.append(single.outcome, outcome),
        coefficient=np.append(single.coefficient, np.ones(len(report))),
        anchors=single.anchors,
        allowed=single.allowed,
        extreme=single.extreme,
        form="capped",
    )


def inequalities(
    dense: Floats, targets: Floats, anchors: Floats, form: str
) -> Identification:
    """Moments at most zero, from (n, S, K) coefficients; they rule nothing out."""
    report, slot, outcome = np.nonzero(dense)
    return Identification(
        equality=np.zeros(targets.shape[1], dtype=bool),
        targets=targets,
        applies=np.ones_like(targets, dtype=bool),
        report=report,
        slot=slot,
        outcome=outcome,
        coefficient=dense[report, slot, outcome],
        anchors=anchors,
        allowed=np.ones_like(anchors, dtype=bool),
        extreme=np.zeros(len(anchors), dtype=np.int64),
        form=form,
    )
