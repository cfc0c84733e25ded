"""Losses on an answer: confidence loss and zero-one loss, drawn or held.

Their generators have kinks, so the optimum may draw an answer. Holding one answer per
report makes the problem smooth again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.loss import Deployment, ProperLoss, Solved
from trueup.core.reports import AnswerConfidence, PointReport, Reports
from trueup.core.simplex import normalise_rows, project_rows


class ConfidenceLoss(ProperLoss):
    """Confidence loss c^2 - 2 c 1[y = answer]: top-label Brier minus accuracy."""

    name = "confidence"
    draws = True

    def vectors(self, reports: Reports) -> Floats:
        stated = cast("AnswerConfidence", reports)
        return answer_losses(stated.answer, stated.confidence, stated.n_outcomes)

    def generator(self, p: Floats) -> Floats:
        return cast("Floats", p.max(axis=1) ** 2)

    def least_divergence(self, reports: Reports) -> Floats:
        stated = cast("AnswerConfidence", reports)
        return np.maximum(1 / stated.n_outcomes - stated.confidence, 0) ** 2

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        """Draw answers with weights theta and report the confidence m for each."""
        stated = cast("AnswerConfidence", reports)
        slopes = solved.tilt.copy()
        slopes[np.arange(len(stated)), stated.answer] += 2 * stated.confidence
        confidence, doubled = self.draws_of(slopes)
        weights = normalise_rows(doubled)
        losses = confidence[:, None] ** 2 - 2 * confidence[:, None] * weights
        return Deployment(losses, None, weights, confidence)

    def draws_of(self, slopes: Floats) -> tuple[Floats, Floats]:
        """(n,) confidence m, and (n, K) 2 m theta."""
        return drawn_answers(slopes)

    def hold(self, answers: Ints) -> HeldAnswerLoss:
        return HeldAnswerLoss(answers)


class HeldAnswerLoss(ProperLoss):
    """Confidence loss with the new answer fixed and the confidence free.

    Its generator is p_a^2, smooth, so no draw is needed: deploy h_a for answer a.
    """

    name = "confidence"

    def __init__(self, answers: Ints) -> None:
        self.answers = answers

    def vectors(self, reports: Reports) -> Floats:
        return ConfidenceLoss().vectors(reports)

    def generator(self, p: Floats) -> Floats:
        return self.held(p) ** 2

    def held(self, p: Floats) -> Floats:
        """(n,) probability of the answer that is held."""
        return p[np.arange(len(p)), self.answers]

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        stated = cast("AnswerConfidence", reports)
        rows = np.arange(len(stated))
        slopes = solved.tilt.copy()
        slopes[rows, stated.answer] += 2 * stated.confidence
        held = slopes[rows, self.answers]
        slopes[rows, self.answers] = -np.inf
        confidence = np.clip((held - slopes.max(axis=1)) / 2, 0, 1)
        better = AnswerConfidence._of(self.answers, confidence, reports.outcomes)
        return Deployment(self.vectors(better), better)


class OwnAnswerLoss(ProperLoss):
    """Confidence loss that keeps the primary's answers: only confidence moves."""

    name = "confidence"

    def vectors(self, reports: Reports) -> Floats:
        return ConfidenceLoss().vectors(reports)

    def generator(self, p: Floats) -> Floats:
        return p.max(axis=1) ** 2  # where p's own mode is held; see divergence

    def divergence(self, p: Floats, reports: Reports) -> Floats:
        return self.held_by(reports).divergence(p, reports)

    def held_by(self, reports: Reports) -> HeldAnswerLoss:
        """The loss with these reports' answers held."""
        return HeldAnswerLoss(cast("AnswerConfidence", reports).answer)

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        return self.held_by(reports).deploy(reports, solved)

    def average(self, deployed: Sequence[Deployment]) -> Reports:
        first = cast("AnswerConfidence", deployed[0].reports)
        stated = [cast("AnswerConfidence", one.reports).confidence for one in deployed]
        mean = cast("Floats", np.mean(stated, axis=0))
        return AnswerConfidence._of(first.answer, mean, first.outcomes)


class ZeroOneLoss(ProperLoss):
    """Zero-one loss of the reported outcome, minus one: -1[y = r]."""

    name = "zero-one"
    draws = True

    def vectors(self, reports: Reports) -> Floats:
        stated = cast("PointReport", reports)
        losses = np.zeros((len(stated), stated.n_outcomes))
        losses[np.arange(len(stated)), stated.value.astype(np.int64)] = -1
        return losses

    def constants(self, n_outcomes: int) -> Floats:
        return np.ones(n_outcomes)

    def generator(self, p: Floats) -> Floats:
        return cast("Floats", p.max(axis=1))

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        weights = project_rows(solved.tilt - self.vectors(reports))
        return Deployment(-weights, None, weights)

    def hold(self, answers: Ints) -> HeldModeLoss:
        return HeldModeLoss(answers)


class HeldModeLoss(ProperLoss):
    """Zero-one loss with the new outcome fixed: nothing is left to choose."""

    name = "zero-one"

    def __init__(self, answers: Ints) -> None:
        self.answers = answers

    def vectors(self, reports: Reports) -> Floats:
        return ZeroOneLoss().vectors(reports)

    def generator(self, p: Floats) -> Floats:
        return p[np.arange(len(p)), self.answers]

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        del solved  # the answers are given
        stated = cast("PointReport", reports)
        held = self.answers.astype(np.float64)
        better = PointReport._of(held, stated.outcomes, stated.about)
        return Deployment(self.vectors(better), better)


def answer_losses(answer: Ints, confidence: Floats, n_outcomes: int) -> Floats:
    """(n, K) confidence loss of an answer and confidence under each outcome."""
    losses = np.repeat(confidence[:, None] ** 2, n_outcomes, axis=1)
    losses[np.arange(len(answer)), answer] -= 2 * confidence
    return losses


def drawn_answers(
    slopes: Floats, members: Floats | None = None
) -> tuple[Floats, Floats]:
    """Confidence m and 2 m theta = (u - k)_+ of METHOD section 5, by sorting u.

    For each number of answers drawn from there are two candidates: all of them share
    the whole mass (m = 1/count), or the next slope is the threshold k and answers at
    it are not drawn. Exactly one candidate satisfies its own conditions; rounding can
    make that none, so the least violated is taken. ``members`` says how many answers
    alike a column stands for; 2 m theta is that of each.
    """
    n_rows, n_columns = slopes.shape
    order = np.argsort(-slopes, axis=1, kind="stable")
    ordered = np.take_along_axis(slopes, order, axis=1)
    each = np.ones_like(slopes) if members is None else members
    each = np.take_along_axis(each, order, axis=1)
    counts = np.cumsum(each, axis=1)
    sums = np.cumsum(each * ordered, axis=1)
    ordered = np.column_stack([ordered, np.full(n_rows, -np.inf)])
    at_least = _through_ties(ordered, counts)
    best = np.full(n_rows, np.inf)
    chosen, threshold = np.ones(n_rows), np.zeros(n_rows)
    for place in range(n_columns):
        count = np.maximum(counts[:, place], 1e-300)
        smallest, following = ordered[:, place], ordered[:, place + 1]
        shared = (sums[:, place] - 2 / count) / count
        violation = np.maximum(following - shared, shared - smallest)
        candidates = [(violation, 1 / count, shared)]
        if place + 1 < n_columns:
            m = (sums[:, place] - count * following) / 2
            violation = np.maximum(count * m - 1, 1 - at_least[:, place + 1] * m)
            # Among equal slopes only the last one is followed by a threshold.
            violation = np.where(smallest > following, violation, np.inf)
            candidates.append((violation, m, following))
        for violation, m, level in candidates:
            better = (violation < best) & (counts[:, place] > 0)
            best = np.where(better, violation, best)
            chosen = np.where(better, m, chosen)
            threshold = np.where(better, level, threshold)
    return np.clip(chosen, 0, 1), np.maximum(slopes - threshold[:, None], 0)


def _through_ties(ordered: Floats, counts: Floats) -> Floats:
    """(n, K) the count at the last of the slopes that equal each."""
    last = ordered[:, 1:] != ordered[:, :-1]
    reached = np.where(last, counts, np.inf)
    return np.minimum.accumulate(reached[:, ::-1], axis=1)[:, ::-1]
