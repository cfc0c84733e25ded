"""The most that zero-trades with one predictor earn under given outcome rates.

Trades with two predictors earn at most what they could earn with each of them alone:
for *any* rates the sum of both is an upper bound on arbitrage. With one predictor the
cells separate, and the dual of each is to shift the least mass, from or to anywhere or
nowhere, until the report is right about what is left. Written from the properties, in
closed form, without anything that a solver returned but the rates.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats
from trueup.audit.pair import Pair, Side
from trueup.core.identification import cap_impossible
from trueup.core.reports import AnswerConfidence, Distributions, PointReport


def most_earned(pair: Pair, rates: Floats) -> float:
    """Upper bound on arbitrage; infinite where a side has no closed form."""
    mass = pair.rows.weight[:, None] * rates
    return sum(_with_one(side, mass) for side in pair.sides)


def _with_one(side: Side, mass: Floats) -> float:
    moments, offers = side.moments, side.offers
    on_nodes = group_sums(side.node, mass, len(moments.anchors))
    if moments.form == "single":
        return float(_one_moment(side, on_nodes).sum())
    if not len(moments.anchors) == moments.n_cells == len(offers.node):
        return np.inf  # several reports share multipliers of several moments
    by_offer = on_nodes[offers.node]
    if moments.form == "vector":
        return float(_whole_distributions(side, by_offer).sum())
    if moments.form == "capped":
        has_caps = np.bincount(moments.cell_of_row)[moments.cell_of_node] > 1
        alone = _one_moment(side, on_nodes)[moments.cell_of_node]
        shifted = np.where(
            has_caps[offers.node], _capped_answers(side, by_offer), alone[offers.node]
        )
        return float(shifted.sum())
    if moments.form == "quantile":
        return _quantiles(side, on_nodes)
    if moments.form == "mode":
        return float(_modes(side, by_offer).sum())
    return np.inf


def _one_moment(side: Side, on_nodes: Floats) -> Floats:
    """(cells,) put right where a unit of mass changes the moment the most."""
    moments, offers = side.moments, side.offers
    first = moments.slot_of_row[moments.row] == 0
    coefficients = np.zeros(moments.anchors.shape)
    coefficients[moments.node[first], moments.outcome[first]] = moments.coefficient[
        first
    ]
    stated = side.reading.targets[offers.report, 0]
    reach = np.abs(coefficients[offers.node] - stated[:, None]).max(axis=1)
    most = np.zeros(moments.n_cells)
    np.maximum.at(most, moments.cell_of_node[offers.node], reach)
    wrong = np.zeros(moments.n_cells)
    rows = np.flatnonzero(moments.slot_of_row == 0)
    wrong[moments.cell_of_row[rows]] = np.abs(moments.residuals(on_nodes))[rows]
    return np.divide(wrong, most, out=np.zeros_like(wrong), where=most > 0)


def _whole_distributions(side: Side, mass: Floats) -> Floats:
    """Least |mass - total * stated| over all totals: one of the ratios is best."""
    reports = cast("Distributions", side.reports)
    stated = reports.probabilities[side.offers.report]
    totals = np.divide(mass, stated, out=np.zeros_like(mass), where=stated > 0)
    wrong = np.abs(mass[:, None, :] - totals[:, :, None] * stated[:, None, :])
    return np.asarray(wrong.sum(axis=2).min(axis=1))


def _capped_answers(side: Side, mass: Floats) -> Floats:
    """The answer gets its share of some total, no other outcome more than that.

    The least shift is convex and piecewise linear in the total; it bends where an
    outcome meets the answer's share, and where nothing but the answer is missing.
    """
    reports = cast("AnswerConfidence", side.reports)
    report, n_outcomes = side.offers.report, reports.n_outcomes
    answer, share = reports.answer[report], reports.confidence[report][:, None]
    own = np.take_along_axis(mass, answer[:, None], axis=1)
    is_own = np.arange(n_outcomes) == answer[:, None]
    others = mass[~is_own].reshape(len(mass), n_outcomes - 1)
    filled = np.cumsum(np.sort(others, axis=1), axis=1)
    room = 1 - share - share * np.arange(n_outcomes - 2, -1, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        bends = np.hstack([own / share, others / share, filled / room])
    totals = np.where(np.isfinite(bends) & (bends > 0), bends, 0.0)
    totals[cap_impossible(share[:, 0], n_outcomes)] = 0.0  # nothing else is right
    right = share * totals
    over = np.maximum(others[:, None, :] - right[:, :, None], 0.0).sum(axis=2)
    kept = np.minimum(others[:, None, :], right[:, :, None]).sum(axis=2)
    shifted = np.abs(right - own) + over + np.abs(totals - right - kept)
    return np.asarray(np.minimum(shifted.min(axis=1), mass.sum(axis=1)))


def _quantiles(side: Side, on_nodes: Floats) -> float:
    """Take from the side that has too much, or add at the report."""
    level = cast("float", side.reports.about.level)
    excess = np.maximum(side.moments.residuals(on_nodes), 0.0)
    return float(excess.sum()) / max(level, 1 - level)


def _modes(side: Side, mass: Floats) -> Floats:
    """Raise the mode to some level and lower to it what is above."""
    stated = cast("PointReport", side.reports).value[side.offers.report]
    own = np.take_along_axis(mass, stated.astype(np.int64)[:, None], axis=1)
    over = np.maximum(mass[:, None, :] - mass[:, :, None], 0.0).sum(axis=2)
    # At a level above its own mass the mode is none of what is lowered.
    over -= np.maximum(own - mass, 0.0)
    return np.asarray((over + np.abs(mass - own)).min(axis=1))
