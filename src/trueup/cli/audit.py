"""``trueup audit``: where two predictors contradict each other, without labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trueup.cli._inputs import (
    audit_cells,
    belief_options,
    both_as_answers,
    pair_arguments,
    pair_json,
    pair_options,
    predictor_names,
    read_pair,
)
from trueup.cli._output import Console, reporting, wrapped

if TYPE_CHECKING:
    from trueup.audit.result import Audit
    from trueup.data.pairing import Pair


@click.command("audit")
@pair_arguments
@belief_options
@pair_options
@click.option(
    "--method",
    type=click.Choice(["exact", "step"]),
    help="exact: every distinct report is a cell. step: reports rounded to a grid.  "
    "[default: exact where reports repeat]",
)
@click.option("--step", type=float, help="Width of the grid.")
@click.option(
    "--contracts",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How many bets to show.",
)
@reporting
def command(
    console: Console,
    *,
    primary: str,
    reference: str | None,
    method: str | None,
    step: float | None,
    contracts: int,
    trust: str | None,
    caps: bool | None,
    groups: str | None,
    reference_error: float,
    **given: Any,  # noqa: ANN401 - the column options
) -> None:
    """Say where PRIMARY and REFERENCE contradict each other, without labels.

    A contradiction is conclusive: one of the two is not what it is taken for. No
    contradiction does not mean that the primary is calibrated. Distributions over more
    than two outcomes are reduced to answers (--distributions keeps them).

    \b
    Example:
      trueup audit strong.csv trusted.csv
    """
    from trueup.audit.audit import audit

    pair = read_pair(console, primary, reference, aside=(groups,), **given)
    if given["answers"] is None and trust != "distribution":
        stated = pair.reference.reports
        pair = _reduced(console, pair)
        # What a distribution puts first is not asserted to be the most likely outcome.
        if caps is None and pair.reference.reports is not stated:
            caps = False
    cells = audit_cells(console, pair, method, step)
    with console.working("auditing"):
        found = audit(
            pair.primary.reports,
            pair.reference.reports,
            trust=trust,
            caps=caps,
            groups=pair.column(groups) if groups else None,
            sample_weight=pair.weights,
            cells=cells,
            reference_error=reference_error,
        )
        names = predictor_names(pair.primary, pair.reference)
        text, content = _text(found, contracts, names), found.to_dict()
    content["assumption"] = found.assumption
    console.result(text, {"inputs": pair_json(pair), "audit": content})


def _reduced(console: Console, pair: Pair) -> Pair:
    from trueup.core.reports import Distributions

    sides = pair.primary, pair.reference
    wide = [
        isinstance(side.reports, Distributions) and len(side.outcomes) > 2
        for side in sides
    ]
    if not any(wide):
        return pair
    console.say("  distributions are reduced to answers (--distributions keeps them)")
    return both_as_answers(pair)


def _text(found: Audit, n_contracts: int, names: tuple[str, str]) -> str:
    parts = [wrapped(found.table())]
    if n_contracts and found.arbitrage.value > 0:
        parts.append(_contracts(found, n_contracts, names))
    parts.append(wrapped(f"assumption: {found.assumption}"))
    return "\n\n".join(parts)


def _contracts(found: Audit, n_contracts: int, names: tuple[str, str]) -> str:
    from trueup.report._contradictions import sentence_of

    called = dict(zip(("primary", "reference"), names, strict=True))
    sentences = [
        sentence_of(one, called[one.who])
        for one in found.arbitrage.contracts[:n_contracts]
    ]
    return "\n".join(
        ["The best bets, in words:", *(wrapped(f"- {one}") for one in sentences)]
    )
