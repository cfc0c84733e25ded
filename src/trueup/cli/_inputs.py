"""Options that commands share, and the predictions they lead to."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trueup.cli._output import Console
from trueup.errors import PredictionFileError

if TYPE_CHECKING:
    from trueup.core.cells import Cells
    from trueup.core.reports import Reports
    from trueup.data.pairing import Pair
    from trueup.data.predictions import Predictions

Function = TypeVar("Function", bound=Callable[..., Any])

_COLUMNS = (
    click.option(
        "--outcomes",
        metavar="A,B,...",
        help="All outcomes, where answers or values do not name them.",
    ),
    click.option(
        "--property",
        "stated",
        type=click.Choice(["mean", "median", "quantile", "expectile"]),
        help="What a column 'value' states.  [default: mean]",
    ),
    click.option("--level", type=float, help="Level of the quantile or expectile."),
    click.option("--label", metavar="COLUMN", help="Column that holds labels."),
    click.option("--weight", metavar="COLUMN", help="Column that holds weights."),
    click.option("--id", "item_id", metavar="COLUMN", help="Column that names items."),
)

_PAIR = (
    click.option(
        "--drop-unpaired",
        is_flag=True,
        help="Leave out items that only one side has, and name them.",
    ),
    click.option(
        "--answers/--distributions",
        "answers",
        default=None,
        help="Reduce distributions to the most likely outcome and its probability, "
        "or leave them.",
    ),
    click.option("--reference-prefix", metavar="TEXT", help="Prefix of the reference."),
    click.option(
        "--primary-prefix",
        metavar="TEXT",
        help="Prefix of the primary's columns where several predictors share a file.",
    ),
)

_BELIEF = (
    click.option(
        "--reference-error",
        type=click.FloatRange(min=0),
        default=0.0,
        show_default=True,
        help="How wrong the reference may be, in the units of its rung.",
    ),
    click.option("--groups", metavar="COLUMN", help="Trust the reference per group."),
    click.option(
        "--caps/--no-caps",
        default=None,
        help="Whether the reference's answer is the most likely outcome.",
    ),
    click.option(
        "--trust",
        type=click.Choice(["mean", "confidence", "answer-confidence", "distribution"]),
        help="How far the reference is trusted.  [default: distribution for two "
        "outcomes, else answer-confidence]",
    ),
)


@dataclass(frozen=True)
class Belief:
    """How far the reference is trusted, as options say."""

    trust: str | None
    caps: bool | None
    groups: str | None
    reference_error: float


def column_options(function: Function) -> Function:
    """Options about the columns of prediction files."""
    return _with(function, _COLUMNS)


def pair_options(function: Function) -> Function:
    """Options about the columns of two predictors and how they are paired."""
    return column_options(_with(function, _PAIR))


def pair_arguments(function: Function) -> Function:
    """The two files."""
    function = click.argument("reference", required=False)(function)
    return click.argument("primary")(function)


def belief_options(function: Function) -> Function:
    """Options about how far the reference is trusted."""
    return _with(function, _BELIEF)


def _with(function: Function, options: tuple[Callable[..., Any], ...]) -> Function:
    for option in options:
        function = option(function)
    return function


def parsed_outcomes(text: str | None) -> tuple[Any, ...] | None:
    """``A,B`` as names, ``0,1,2.5`` as numbers."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        message = "expected names with commas between them, e.g. A,B,C"
        raise click.BadParameter(message, param_hint="--outcomes")
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return tuple(names)
    return tuple(int(n) if n.is_integer() else n for n in numbers)


def read_one(
    console: Console,
    source: str,
    *,
    prefix: str | None = None,
    group: str | None = None,
    fallback_outcomes: tuple[Any, ...] | None = None,
    optional: Collection[str] = (),
    aside: Collection[str] = (),
    **given: Any,  # noqa: ANN401 - the column options
) -> Predictions:
    """Read one predictor and explain what was read."""
    from trueup.data.predictions import read_predictions

    outcomes = parsed_outcomes(given["outcomes"])
    read = read_predictions(
        source,
        prefix=prefix,
        id=given["item_id"],
        label=given["label"],
        weight=given["weight"],
        group=group,
        outcomes=outcomes or fallback_outcomes,
        property=given["stated"],
        level=given["level"],
        optional=optional,
        aside=aside,
    )
    console.say(f"{read.name}: {len(read):,} items")
    console.explain(read.explanation)
    console.explain_once(
        "(other columns: --id, --label, --weight, --outcomes, or a prefix)"
    )
    return read


def read_pair(
    console: Console,
    primary: str,
    reference: str | None,
    *,
    answers: bool | None,
    primary_prefix: str | None,
    reference_prefix: str | None,
    drop_unpaired: bool,
    aside: Collection[str | None] = (),
    **given: Any,  # noqa: ANN401 - the column options
) -> Pair:
    """Read two predictors, pair their items, and explain how."""
    from trueup.data.pairing import pair_predictions

    if reference is None and None in (primary_prefix, reference_prefix):
        message = (
            "one file was given. Name a second file, or choose two predictors of this "
            "one with --primary-prefix and --reference-prefix"
        )
        raise click.UsageError(message)
    if primary == reference == "-":
        message = "only one side can come from standard input"
        raise click.UsageError(message)
    # A label or a weight may be in either file, and so may what options name.
    given["optional"] = ("label", "weight")
    given["aside"] = tuple(name for name in aside if name)
    first = read_one(console, primary, prefix=primary_prefix, **given)
    if reference is None:
        second = _again(console, first, reference_prefix, given)
    else:
        point = first.outcomes if first.columns.kind == "values" else None
        second = read_one(
            console,
            reference,
            prefix=reference_prefix,
            fallback_outcomes=point,
            **given,
        )
    _check_found(first, second, given)
    pair = pair_predictions(first, second, drop_unpaired=drop_unpaired)
    console.explain(pair.explanation)
    if answers:
        console.say("  distributions are reduced to answers and their probability")
        pair = both_as_answers(pair)
    return pair


def _check_found(
    first: Predictions, second: Predictions, given: dict[str, Any]
) -> None:
    for role in ("label", "weight"):
        wanted = given[role]
        found = {getattr(side.columns, role) for side in (first, second)}
        if wanted is not None and wanted not in found:
            raise PredictionFileError.of(
                first.name,
                f"neither this nor {second.name} has a column {wanted!r}.",
                f"name the {role} with --{role}, or leave that out",
            )


def _again(
    console: Console, first: Predictions, prefix: str | None, given: dict[str, Any]
) -> Predictions:
    """Another predictor of the table that was read, which standard input gives once."""
    from trueup.data.predictions import read_predictions

    read = read_predictions(
        first.table,
        prefix=prefix,
        id=given["item_id"],
        label=given["label"],
        weight=given["weight"],
        outcomes=parsed_outcomes(given["outcomes"]),
        property=given["stated"],
        level=given["level"],
        name=first.name,
        optional=given["optional"],
        aside=given["aside"],
    )
    console.explain(read.explanation[:1])
    return read


def as_answers(predictions: Predictions) -> Predictions:
    """Distributions as their most likely outcome and its probability."""
    return replace(predictions, reports=answers_of(predictions.reports))


def both_as_answers(pair: Pair) -> Pair:
    """Both sides as answers and their probability."""
    return replace(
        pair, primary=as_answers(pair.primary), reference=as_answers(pair.reference)
    )


def answers_of(reports: Reports) -> Reports:
    """Distributions reduced to answers; other reports as they are."""
    from trueup.core.reports import AnswerConfidence, Distributions

    if not isinstance(reports, Distributions):
        return reports
    confidence = reports.probabilities.max(axis=1)
    return AnswerConfidence._of(reports.answers(), confidence, reports.outcomes)


def audit_cells(
    console: Console, pair: Pair, method: str | None, step: float | None
) -> str | Cells:
    """Cells of audits: exact where reports repeat, a grid where they do not."""
    from trueup._arrays import distinct_rows
    from trueup.core.cells import Step

    if method == "exact":
        return "exact"
    if method is None and step is None:
        n_distinct = len(distinct_rows(pair.reference.reports.keys())[0])
        if len(pair) >= 8 * n_distinct:
            return "exact"
        console.say(
            "  reports rarely repeat: they are rounded to steps of 0.05 (choose with "
            "--method step --step 0.01, or --method exact)"
        )
    return Step(0.05 if step is None else step)


def source_json(predictions: Predictions) -> dict[str, Any]:
    """What was read, for JSON."""
    return {
        "source": predictions.name,
        "n_items": len(predictions),
        "outcomes": list(predictions.outcomes),
        "reports": predictions.reports.about.name,
        "columns": list(predictions.columns.predictions),
        "explanation": list(predictions.explanation),
    }


def pair_json(pair: Pair) -> dict[str, Any]:
    """What was read from both sides, for JSON."""
    return {
        "primary": source_json(pair.primary),
        "reference": source_json(pair.reference),
        "pairing": list(pair.explanation),
        "n_items": len(pair),
    }


def predictor_names(primary: Predictions, reference: Predictions) -> tuple[str, str]:
    """Predictors by their prefix, or else by their file."""
    names = tuple(
        side.columns.prefix.rstrip("_") or Path(side.name).name.partition(".")[0]
        for side in (primary, reference)
    )
    first, second = names
    return (first, second) if first != second else (primary.name, reference.name)
