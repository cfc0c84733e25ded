"""Contracts: the bets of an arbitrage, which check themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from trueup import _validate
from trueup._arrays import group_sums
from trueup._validate import Floats, Ints, Label
from trueup.audit import _render
from trueup.audit._belief import believes_caps, least_means
from trueup.audit._render import Shown, Table, number, percent
from trueup.audit.pair import Pair, Side
from trueup.errors import InvalidInputError, SolverError

_CHECKED = 1e-9
"""Accuracy to which contracts keep their promises."""


@dataclass(frozen=True, slots=True)
class ArbitrageContract:
    """One bet: whenever a predictor makes a report, it pays or receives.

    Attributes
    ----------
    who
        ``"primary"`` or ``"reference"``.
    report
        The report that triggers the bet: (answer, confidence), a distribution, or a
        value.
    payoffs
        What the predictor receives under each outcome; negative where it pays.
    share
        Share of items on which the report is made.
    contribution
        Part of the sure profit that comes from this bet: what the predictor loses on
        it, per item of all items, under the truth that is hardest to earn from. A
        bet that only covers the other side's risk contributes little or less than
        nothing.
    """

    who: str
    report: Any
    payoffs: tuple[float, ...]
    share: float
    contribution: float
    outcomes: tuple[Label, ...]
    text: str
    """The report as a reader would write it."""
    group: Any = None
    """Of the items, where the reference is trusted inside groups."""

    @property
    def sentence(self) -> str:
        """The bet in words."""
        return (
            f"You sell {self.who.upper()}, whenever it reports {self.text} "
            f"[{percent(self.share)} of items]: it {self.terms}."
        )

    @property
    def terms(self) -> str:
        """What is paid when, equal payoffs together and the commonest last."""
        groups: dict[str, list[Label]] = {}
        for outcome, payoff in zip(self.outcomes, self.payoffs, strict=True):
            groups.setdefault(_amount(payoff), []).append(outcome)
        ordered = sorted(groups.items(), key=lambda item: len(item[1]))
        parts = [f"{amount} if {_any_of(names)}" for amount, names in ordered[:-1]]
        last, names = ordered[-1]
        if not parts:
            return f"{last} whatever happens"
        end = f"if {_any_of(names)}" if len(self.outcomes) == 2 else "otherwise"
        return ", ".join([*parts, f"{last} {end}"])

    def to_dict(self) -> dict[str, Any]:
        """The contract as one JSON object."""
        report = list(self.report) if isinstance(self.report, tuple) else self.report
        return {
            "who": self.who,
            "report": report,
            "group": None if self.group is None else str(self.group),
            "payoffs": dict(zip(map(str, self.outcomes), self.payoffs, strict=True)),
            "share": self.share,
            "contribution": self.contribution,
            "sentence": self.sentence,
        }


def _amount(payoff: float) -> str:
    size = f"{abs(payoff):.4f}"
    if float(size) == 0:
        return "neither pays nor receives"
    return f"{'pays' if payoff < 0 else 'receives'} {size}"


def _any_of(names: Sequence[Label]) -> str:
    if len(names) == 1:
        return str(names[0])
    return ", ".join(map(str, names[:-1])) + f" or {names[-1]}"


@dataclass(frozen=True, eq=False)
class Contracts(Shown, Sequence[ArbitrageContract]):
    """The bets of an arbitrage, the largest contribution first.

    A sequence of :class:`ArbitrageContract`; call it with ``margin`` for bets that
    pay each predictor to accept.
    """

    _pair: Pair
    _payoffs: tuple[Floats, Floats]
    """(offers, K) of the reference and of the primary, without the margin."""
    _rates: Floats
    """(rows, K) the truth that is hardest to earn from."""
    margin: float = 0.0
    """What each predictor expects to gain from every contract it accepts."""

    def __call__(self, margin: float = 0.0) -> Contracts:
        """The same bets, each paying its predictor ``margin`` to accept.

        A payoff t becomes (1 - margin) t + margin, so that it stays within [-1, 1]
        and its mean by the predictor's own report is at least the margin. With s the
        share of items on which the reference is offered a bet plus that on which the
        primary is, the sure profit becomes

            (1 - margin) value - margin s,

        positive as long as margin < value / (value + s).
        """
        size = _validate.non_negative(margin, "margin")
        if size >= 1:
            message = (
                f"margin must be below 1, the largest payoff, got {margin!r}.\n"
                f"hint: profit is left up to a margin of {self.largest_margin:.3g}."
            )
            raise InvalidInputError(message)
        return Contracts(self._pair, self._payoffs, self._rates, size)

    @cached_property
    def profit(self) -> float:
        """Sure profit per item, recomputed from the payoffs pair by pair."""
        if not any(one.any() for one in self._payoffs):
            return 0.0
        reference, primary = (
            paid[side.offers.of_pair]
            for side, paid in zip(self._pair.sides, self._paid(), strict=True)
        )
        largest = (reference + primary).max(axis=1)
        return -float(self._pair.joint.weights @ largest)

    @property
    def largest_margin(self) -> float:
        """Margin at which the profit is used up."""
        plain = self if self.margin == 0 else self(0.0)
        value = max(plain.profit, 0.0)
        offered = sum(
            float(side.offers.share[one.any(axis=1)].sum())
            for side, one in zip(self._pair.sides, self._payoffs, strict=True)
        )
        return value / (value + offered) if value > 0 else 0.0

    def check(self) -> None:
        """Check every promise from the contracts alone; an error says what is broken.

        No payoff is outside [-1, 1]; by its own report no predictor expects to lose
        (the least mean over all distributions with the stated property is at least
        the margin); and the contracts as listed earn :attr:`profit`.
        """
        listed = _profit_of_listed(self._pair, self._items)
        if abs(listed - self.profit) > _CHECKED:
            message = f"the contracts earn {listed!r}, not {self.profit!r}."
            raise SolverError(message)
        for side, paid in zip(self._pair.sides, self._paid(), strict=True):
            offered = np.flatnonzero(paid.any(axis=1))
            if not offered.size:
                continue
            size = float(np.abs(paid).max())
            if size > 1:
                message = f"a contract with the {side.who} pays {size!r}, more than 1."
                raise SolverError(message)
            self._check_means(side, paid[offered], offered)

    def _check_means(self, side: Side, paid: Floats, offered: Ints) -> None:
        reports = side.reports.take(side.offers.report[offered])
        is_reference = side is self._pair.reference
        caps = (
            self._pair.problem.trust.caps
            if is_reference
            else believes_caps(side.reports)
        )
        means = least_means(reports, paid, caps=caps)
        worst = int(means.argmin())
        if means[worst] < self.margin - _CHECKED:
            text = _render.report_text(reports, worst)
            message = (
                f"the contract for the {side.who}'s report {text} is worth "
                f"{means[worst]!r} by that report, less than {self.margin!r}."
            )
            raise SolverError(message)

    def _paid(self) -> tuple[Floats, Floats]:
        first, second = (
            np.where(
                one.any(axis=1, keepdims=True),
                (1 - self.margin) * one + self.margin,
                0.0,
            )
            for one in self._payoffs
        )
        return first, second

    @cached_property
    def _items(self) -> tuple[ArbitrageContract, ...]:
        pair, made = self._pair, []
        for side, paid in zip(pair.sides, self._paid(), strict=True):
            lost = _losses(pair, side, paid, self._rates)
            made += [
                _contract(pair, side, offer, paid[offer], float(lost[offer]))
                for offer in np.flatnonzero(paid.any(axis=1))
            ]
        return tuple(sorted(made, key=lambda one: -one.contribution))

    @overload
    def __getitem__(self, index: int) -> ArbitrageContract: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ArbitrageContract, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> ArbitrageContract | tuple[ArbitrageContract, ...]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def _table(self) -> Table:
        rows = [
            (
                one.who.upper(),
                one.text,
                percent(one.share),
                f"it {one.terms}",
                number(one.contribution),
            )
            for one in self._items
        ]
        shown, more = _render.shortened(rows)
        accepts = f", {number(self.margin)} paid to accept" if self.margin else ""
        caption = f"{len(rows):,} contracts, sure profit {number(self.profit)} an item"
        header = ("you sell", "whenever it reports", "items", "terms", "profit")
        return Table(caption + accepts, header, shown, more)

    def to_dict(self) -> dict[str, Any]:
        """All contracts as one JSON object."""
        return {
            "profit": self.profit,
            "margin": self.margin,
            "contracts": [one.to_dict() for one in self._items],
        }

    def __repr__(self) -> str:
        margin = f", margin {number(self.margin)}" if self.margin else ""
        return (
            f"Contracts({len(self):,} contracts, sure profit "
            f"{number(self.profit)}{margin})"
        )


def _losses(pair: Pair, side: Side, paid: Floats, rates: Floats) -> Floats:
    """(offers,) what the predictor loses on each offer under the rates."""
    weight, row = pair.joint.weights, pair.row_of_pair
    offer = side.offers.of_pair
    mean = (paid[offer] * rates[row]).sum(axis=1)
    return -group_sums(offer, weight * mean, len(paid))


def _contract(
    pair: Pair, side: Side, offer: int, paid: Floats, contribution: float
) -> ArbitrageContract:
    report = int(side.offers.report[offer])
    groups = pair.joint.groups
    grouped = side is pair.reference and bool(groups)
    group = groups[int(side.offers.group[offer])] if grouped else None
    within = f" in group {group}" if grouped else ""
    return ArbitrageContract(
        who=side.who,
        report=_render.report_value(side.reports, report),
        payoffs=tuple(map(float, paid)),
        share=float(side.offers.share[offer]),
        contribution=contribution,
        outcomes=side.reports.outcomes,
        text=_render.report_text(side.reports, report) + within,
        group=group,
    )


def _profit_of_listed(pair: Pair, contracts: Sequence[ArbitrageContract]) -> float:
    """Sure profit of contracts looked up by report, item by item."""
    book = {(one.who, one.report, one.group): one.payoffs for one in contracts}
    nothing = (0.0,) * pair.joint.n_outcomes
    joint, groups = pair.joint, pair.joint.groups
    read = [
        [_render.report_value(side.reports, one) for one in range(len(side.reports))]
        for side in pair.sides
    ]
    total = 0.0
    for weight, i, j, g in zip(
        joint.weights.tolist(),
        joint.reference_index.tolist(),
        joint.primary_index.tolist(),
        joint.group_index.tolist(),
        strict=True,
    ):
        group = groups[g] if groups else None
        first = book.get(("reference", read[0][i], group), nothing)
        second = book.get(("primary", read[1][j], None), nothing)
        total -= weight * max(map(sum, zip(first, second, strict=True)))
    return total
