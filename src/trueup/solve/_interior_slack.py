"""Compiled loops of the interior-point method: slacks of the moments and their budget.

With a budget a moment may be missed by ``over`` or ``under``, whose sum is paid for at
a price; their partners in the products are how far the multiplier is from plus and
minus the price. An inequality may be missed downwards for nothing, budget or not.
"""

from __future__ import annotations

from typing import NamedTuple

from trueup._validate import Floats, Ints
from trueup.solve._jit import inner
from trueup.solve._newton import Conditions


class Slack(NamedTuple):
    """By how much moments are missed."""

    over: Floats
    under: Floats
    over_crossed: Floats
    """Products of the first try's steps."""
    under_crossed: Floats
    over_step: Floats
    under_step: Floats
    barrier: Floats
    purse: Floats
    """Price of the budget, what is left of it, the product of the first try's steps,
    the steps of price and rest, and the barrier."""


PRICE, REST, CROSSED, PRICE_STEP, REST_STEP, BARRIER = range(6)


@inner
def shorter(longest: float, value: float, step: float) -> float:
    """The longest step that keeps a value positive."""
    if value + longest * step < 0:
        return -value / step
    return longest


@inner
def slack_matrix(
    given: Conditions, slack: Slack, multipliers: Floats, pivot: Ints, matrix: Floats
) -> None:
    """Looseness of the moments, on the diagonal."""
    price = slack.purse[PRICE]
    for m in range(len(multipliers)):
        if pivot[m] < 0:
            continue
        if given.budget > 0:
            matrix[pivot[m]] += slack.over[m] / (price + multipliers[m])
        if not given.equality[m]:
            matrix[pivot[m]] += slack.under[m] / -multipliers[m]
        elif given.budget > 0:
            matrix[pivot[m]] += slack.under[m] / (price - multipliers[m])


@inner
def budget_border(
    given: Conditions, slack: Slack, multipliers: Floats, border: Floats
) -> float:
    """How moments answer to the price, and the budget itself."""
    price = slack.purse[PRICE]
    corner = slack.purse[REST] / price
    for m in range(len(multipliers)):
        up = slack.over[m] / (price + multipliers[m])
        down = 0.0
        if given.equality[m]:
            down = slack.under[m] / (price - multipliers[m])
        border[m] = up - down
        corner += up + down
    return corner


@inner
def slack_side(
    given: Conditions, slack: Slack, multipliers: Floats, t: float, out: Floats
) -> float:
    """Targets, and what the slacks are asked to be; the same for the budget."""
    price, side = slack.purse[PRICE], -given.budget
    if given.budget > 0:
        side += (t * slack.purse[BARRIER] - slack.purse[CROSSED]) / price
    for m in range(len(multipliers)):
        out[m] = given.target[m]
        wanted = t * slack.barrier[m] - slack.under_crossed[m]
        if not given.equality[m]:
            out[m] -= wanted / -multipliers[m]
        elif given.budget > 0:
            out[m] -= wanted / (price - multipliers[m])
            side += wanted / (price - multipliers[m])
        if given.budget > 0:
            wanted = t * slack.barrier[m] - slack.over_crossed[m]
            out[m] += wanted / (price + multipliers[m])
            side += wanted / (price + multipliers[m])
    return side


@inner
def _pair(
    value: float, force: float, force_step: float, wanted: float, longest: float
) -> tuple[float, float, float, float, float]:
    """Step of one slack; the longest step, and the three sums it adds to."""
    step = (wanted - value * force - value * force_step) / force
    longest = shorter(shorter(longest, force, force_step), value, step)
    linear = force * step + value * force_step
    return step, longest, value * force, linear, step * force_step


@inner
def slack_direction(
    given: Conditions,
    slack: Slack,
    multipliers: Floats,
    ahead: Floats,
    price_step: float,
    t: float,
    is_first: bool,
    longest: float,
) -> tuple[float, float, float, float]:
    """Steps of all slacks; see :func:`trueup.solve._interior.direction`."""
    purse, now, linear, square = slack.purse, 0.0, 0.0, 0.0
    for m in range(len(multipliers)):
        paid = given.budget > 0 and given.equality[m]
        if paid or not given.equality[m]:
            force, force_step = -multipliers[m], -ahead[m]
            if paid:
                force, force_step = purse[PRICE] + force, price_step + force_step
            wanted = t * slack.barrier[m] - slack.under_crossed[m]
            step, longest, a, b, c = _pair(
                slack.under[m], force, force_step, wanted, longest
            )
            slack.under_step[m] = step
            if is_first:
                slack.under_crossed[m] = c
            now, linear, square = now + a, linear + b, square + c
        if given.budget > 0:
            force = purse[PRICE] + multipliers[m]
            wanted = t * slack.barrier[m] - slack.over_crossed[m]
            step, longest, a, b, c = _pair(
                slack.over[m], force, price_step + ahead[m], wanted, longest
            )
            slack.over_step[m] = step
            if is_first:
                slack.over_crossed[m] = c
            now, linear, square = now + a, linear + b, square + c
    if given.budget > 0:
        wanted = t * purse[BARRIER] - purse[CROSSED]
        step, longest, a, b, c = _pair(
            purse[REST], purse[PRICE], price_step, wanted, longest
        )
        purse[PRICE_STEP], purse[REST_STEP] = price_step, step
        if is_first:
            purse[CROSSED] = c
        now, linear, square = now + a, linear + b, square + c
    return longest, now, linear, square


@inner
def advance_slack(slack: Slack, a: float) -> None:
    """Go a share of the steps, and forget the first try."""
    for m in range(len(slack.over)):
        slack.over[m] += a * slack.over_step[m]
        slack.under[m] += a * slack.under_step[m]
        slack.over_crossed[m] = slack.under_crossed[m] = 0.0
    slack.purse[PRICE] += a * slack.purse[PRICE_STEP]
    slack.purse[REST] += a * slack.purse[REST_STEP]
    slack.purse[CROSSED] = 0.0
