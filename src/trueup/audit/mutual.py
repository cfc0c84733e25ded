"""Mutual calibration: the pair's break-even, and the nearest compatible pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueup._arrays import group_sums
from trueup._render import json_number
from trueup._validate import Bools, Floats
from trueup.audit import _render
from trueup.audit._render import Shown, Table, number, percent
from trueup.audit.pair import Pair, Side
from trueup.audit.programme import Programme, Stakes, balance, limit_stakes
from trueup.audit.trade import Limits, Proof, Trade, sure_profit
from trueup.core.reports import AnswerConfidence
from trueup.solve.model import ConicModel
from trueup.solve.rounding import round_to_witness

_DUST = 1e-7
"""Moves below this are the solver's, not the pair's."""


@dataclass(frozen=True, slots=True, eq=False)
class BreakEven:
    """The least reference error under which the primary can be right everywhere."""

    lower: float
    """Certified: no truth that fits the primary gives the reference less error."""
    upper: float
    """Attained by ``rates``."""
    rates: Floats | None
    """(rows, K) rates that fit every primary report exactly; None if none can."""
    engine: str = ""
    """Who found it."""


class _LeastReferenceError(Programme):
    """Stakes up to one against the reference, any against the primary."""

    @property
    def limits(self) -> Limits:
        reference, primary = (side.moments for side in self.pair.sides)
        free = np.where(_idle(self.pair.primary), 0.0, np.inf)
        return Limits((np.ones(reference.n_rows), free), excluded=~primary.allowed)

    def judge(self, trade: Trade) -> Proof:
        pair = self.pair
        bound = sure_profit(pair, trade, ~pair.primary.moments.allowed)
        anchors = pair.reference.moments.anchors
        rates = round_to_witness(pair.mirrored(), trade.rates, anchors).outcome_rates
        upper = float(pair.errors(rates)[0].sum())
        return Proof(trade, min(bound.break_even, upper), upper, rates)

    def limit(self, model: ConicModel, reference: Stakes, primary: Stakes) -> None:
        limit_stakes(model, reference, 1.0)
        balance(model, primary)
        idle = _idle(primary.side)
        numbers = primary.number[idle & (primary.number >= 0)]
        if numbers.size:
            order, ones = np.arange(numbers.size), np.ones(numbers.size)
            zeros = np.zeros(numbers.size)
            model.constrain("zero", [(order, numbers, ones)], zeros)


def _idle(side: Side) -> Bools:
    """Moments of equalities at the end of their range: ruling outcomes out says all.

    Their multipliers would be free to run away.
    """
    moments = side.moments
    if moments.shiftable:
        return moments.target <= 0
    at_end = np.zeros(moments.n_cells, dtype=bool)
    at_end[moments.cell_of_node[~moments.allowed.all(axis=1)]] = True
    return at_end[moments.cell_of_row] & moments.equality


def pair_break_even(pair: Pair) -> BreakEven:
    """The smallest budget at which some truth calibrates every primary report."""
    if pair.impossible.any():
        return BreakEven(np.inf, np.inf, None)
    found = _LeastReferenceError(pair).solve()
    return BreakEven(found.lower, found.upper, found.rates, found.trade.engine)


class _LeastError(Programme):
    """A limited stake on every moment of both sides."""

    @property
    def limits(self) -> Limits:
        first, second = (
            np.full(side.moments.n_rows, price_of(side)) for side in self.pair.sides
        )
        return Limits((first, second))

    def judge(self, trade: Trade) -> Proof:
        pair = self.pair
        first, second = (price_of(side) for side in pair.sides)
        within = replace(
            trade,
            reference=np.clip(trade.reference, -first, first),
            primary=np.clip(trade.primary, -second, second),
        )
        bound = sure_profit(pair, within)
        lower = max(bound.base - bound.rounding, 0.0)
        wrong = pair.errors(trade.rates)
        upper = first * float(wrong[0].sum()) + second * float(wrong[1].sum())
        return Proof(within, lower, max(upper, lower), trade.rates)

    def limit(self, model: ConicModel, reference: Stakes, primary: Stakes) -> None:
        for stakes in (reference, primary):
            limit_stakes(model, stakes, price_of(stakes.side))


def price_of(side: Side) -> float:
    """What a unit of moment error counts in MinECE.

    The moments of a whole distribution count each misplaced mass twice, where it is
    missing and where it is too much: half of their sum is the total variation.
    """
    return 0.5 if side.moments.shiftable else 1.0


@dataclass(frozen=True, slots=True)
class Move:
    """One report of one predictor, and what it would have to be."""

    who: str
    report: str
    implied: str
    """What the report would have to be, as far as it can be said in one report."""
    rates: tuple[float, ...]
    """Outcome rates where the report is made."""
    distance: float
    """Moment error there; for distributions total variation."""
    share: float
    """Share of items."""

    @property
    def contribution(self) -> float:
        """Part of MinECE: distance times share."""
        return self.distance * self.share

    def to_dict(self) -> dict[str, Any]:
        """The move as one JSON object."""
        return {
            "who": self.who,
            "report": self.report,
            "implied": self.implied,
            "rates": list(self.rates),
            "distance": self.distance,
            "share": self.share,
            "contribution": self.contribution,
        }


@dataclass(frozen=True, eq=False)
class Nearest(Shown):
    """The nearest compatible pair: who would have to move, and how far.

    Attributes
    ----------
    lower
        Certified: every truth gives the two predictors at least this much error
        together. This is MinECE.
    upper
        The error under ``outcome_rates``, which attains MinECE up to ``gap``.
    moves
        The reports that differ from what those rates imply, largest part first.
    """

    lower: float
    upper: float
    outcome_rates: Floats
    """(pairs of the joint table, K)."""
    moves: tuple[Move, ...]
    engine: str = ""
    """Who found it; nothing above rests on it."""

    @property
    def gap(self) -> float:
        """Attained error minus certified bound."""
        return self.upper - self.lower

    @property
    def reference_part(self) -> float:
        """How much of the error lies with the reference."""
        return sum(move.contribution for move in self.moves if move.who == "reference")

    @property
    def primary_part(self) -> float:
        """How much of the error lies with the primary."""
        return sum(move.contribution for move in self.moves if move.who == "primary")

    def _table(self) -> Table:
        rows = [
            (
                move.who,
                move.report,
                move.implied,
                number(move.distance),
                percent(move.share),
                number(move.contribution),
            )
            for move in self.moves
        ]
        shown, more = _render.shortened(rows)
        caption = (
            f"MinECE {number(self.lower)}: reference {number(self.reference_part)}, "
            f"primary {number(self.primary_part)}"
            if self.moves
            else "MinECE 0: nobody has to move"
        )
        header = ("who", "reports", "would have to be", "distance", "items", "part")
        return Table(caption, header, shown, more)

    def to_dict(self) -> dict[str, Any]:
        """The nearest pair as one JSON object."""
        return {
            "min_ece": json_number(self.lower),
            "upper": json_number(self.upper),
            "reference_part": self.reference_part,
            "primary_part": self.primary_part,
            "moves": [move.to_dict() for move in self.moves],
        }

    def __repr__(self) -> str:
        return (
            f"Nearest(min_ece {number(self.lower)}, reference "
            f"{number(self.reference_part)}, primary {number(self.primary_part)}, "
            f"{len(self.moves):,} reports move)"
        )


def nearest_pair(pair: Pair) -> Nearest:
    """The truth under which both predictors together are least wrong."""
    found = _LeastError(pair).solve()
    moves: list[Move] = []
    if found.lower > 0:
        errors = pair.errors(found.rates)
        for side, error in zip(pair.sides, errors, strict=True):
            moves += _moves(pair, side, price_of(side) * error, found.rates)
    moves.sort(key=lambda move: -move.contribution)
    return Nearest(
        found.lower,
        found.upper,
        found.rates[pair.row_of_pair],
        tuple(moves),
        found.trade.engine,
    )


def _moves(pair: Pair, side: Side, error: Floats, rates: Floats) -> list[Move]:
    moments = side.moments
    share = side.cell_share
    distance = group_sums(moments.cell_of_row, error, moments.n_cells) / share
    cell_of_row = moments.cell_of_node[side.node]
    mass = group_sums(cell_of_row, pair.rows.weight[:, None] * rates, moments.n_cells)
    implied = mass / mass.sum(axis=1, keepdims=True)
    says = _first_moments(pair, side, rates)
    return [
        Move(
            who=side.who,
            report=cell_text(pair, side, cell),
            implied=_implied_text(side, cell, implied[cell], says[cell]),
            rates=tuple(map(float, implied[cell])),
            distance=float(distance[cell]),
            share=float(share[cell]),
        )
        for cell in np.flatnonzero(distance > _DUST).tolist()
    ]


def _first_moments(pair: Pair, side: Side, rates: Floats) -> Floats:
    """(cells,) mean of the first identification function under the rates."""
    moments = side.moments
    mass = group_sums(
        side.node, pair.rows.weight[:, None] * rates, len(moments.anchors)
    )
    first = moments.slot_of_row == 0
    sums = np.zeros(moments.n_cells)
    sums[moments.cell_of_row[first]] = (moments.residuals(mass) + moments.target)[first]
    return sums / side.cell_share


def _implied_text(side: Side, cell: int, rates: Floats, mean: float) -> str:
    reports, offers = side.reports, side.offers
    members = np.flatnonzero(side.moments.cell_of_node[offers.node] == cell)
    if isinstance(reports, AnswerConfidence):
        if len(members) > 1:
            return f"right {percent(mean)} of the time"
        answer = reports.outcomes[int(reports.answer[offers.report[members[0]]])]
        return f"P({answer}) = {number(mean)}"
    if reports.about.name == "mean":
        return f"mean {number(mean)}"
    return _render.distribution_text(reports.outcomes, rates)


def cell_text(pair: Pair, side: Side, cell: int) -> str:
    """A cell of reports in words."""
    reports, offers = side.reports, side.offers
    members = np.flatnonzero(side.moments.cell_of_node[offers.node] == cell)
    first = int(offers.report[members[0]])
    groups = pair.joint.groups
    grouped = side.who == "reference" and bool(groups)
    within = f" in group {groups[int(offers.group[members[0]])]}" if grouped else ""
    if len(members) == 1:
        return _render.report_text(reports, first) + within
    if isinstance(reports, AnswerConfidence):
        stated = reports.confidence[offers.report[members]]
        if stated.min() == stated.max():
            return f"(any answer, {number(float(stated[0]))}){within}"
    return f"all of {len(members):,} reports{within}"
