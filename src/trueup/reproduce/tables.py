"""From results to tables: the paper's three, and two that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trueup.reproduce.methods import ADAPTIVE, GIVEN, METHODS, PAPER
from trueup.reproduce.paper import METRICS, PaperRow, printed, set_title

HARM = 0.002
"""Change in top-label Brier that counts as help or harm."""
NOISE = 1.645
"""Standard errors beyond which a promise counts as broken despite sampling noise."""
SHORT = {"accuracy": "ACC", "brier_top": "BS", "ece": "ECE", "confidence_loss": "CL"}
FIRST_TABLE = ("base", "instruct", "temperature", "paper")
NOTHING = "–"
_LEGEND = (
    "ACC accuracy, BS squared error of the confidence against correctness, ECE over 10 "
    "bins (a, b], CL confidence loss = BS - ACC. Lower is better but for ACC. The "
    "paper's mode and the adaptive maps are fitted on these items without labels; what "
    "follows “Adaptive” is how far the reference is trusted."
)
_PROMISES = (
    "Guaranteed: for the paper's mode the bound on the very items it was fitted on, "
    "which does not account for sampling; for adaptive maps the lower 95 % limit on "
    "items not fitted on. Both hold only as far as the reference is what its rung "
    "says. Realised: fall in confidence loss by the labels, with its standard error."
)
_SUMMARY = (
    "Mean changes against the instruct model over all pairs, which share models. "
    f"Helped and harmed: BS moved by more than {HARM:g}. Guarantees: pairs for which "
    "something is guaranteed; not reached: the labels say less, by anything; "
    "contradicted: by "
    f"more than {NOISE} standard errors."
)

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as text, for any page."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 2
    """How many columns hold words."""
    notes: tuple[str, ...] = ()


def make_tables(results: Sequence[Result]) -> tuple[Table, ...]:
    """Every table that the results fill."""
    main = [one for one in results if one["main"]]
    rest = [one for one in results if not one["main"]]
    every = tuple(method.name for method in METHODS)
    tables = [
        _scores("Table 1. Main results", main, FIRST_TABLE),
        _scores("Table 2. All baselines and rungs", main, every),
        _scores("Table 3. Other sizes and pairs", rest, every),
        _promises(results),
        _summary(results),
    ]
    return tuple(table for table in tables if table.rows)


def _scores(title: str, results: Sequence[Result], names: Sequence[str]) -> Table:
    sets = list(dict.fromkeys(one["set"] for one in results))
    models = list(dict.fromkeys(one["model"] for one in results))
    columns = [
        f"{set_title(name)} {SHORT[metric]}" for name in sets for metric in METRICS
    ]
    by_place = {(one["model"], one["set"]): one for one in results}
    rows: list[tuple[str, ...]] = []
    for model in models:
        here = [by_place.get((model, name)) for name in sets]
        rows.extend(_model_rows(model, here, sets, names))
    return Table(
        title, ("model", "method", *columns), tuple(rows), 2, _remarks(results)
    )


def _model_rows(
    model: str,
    here: Sequence[Result | None],
    sets: Sequence[str],
    names: Sequence[str],
) -> list[tuple[str, ...]]:
    rows = []
    for name in names:
        found = [None if one is None else one["methods"].get(name) for one in here]
        told = [one for one in found if one is not None]
        if not told:
            continue
        title = told[0]["title"]
        rows.append((model, title, *_flat(found, _value)))
        known = [printed(model, on, name) for on in sets]
        if any(known) and any("absent" not in one for one in told):
            pairs = list(zip(found, known, strict=True))
            rows.append((model, "  printed in the paper", *_flat(pairs, _printed)))
            rows.append((model, "  ours minus printed", *_flat(pairs, _difference)))
    return rows


def _flat(items: Sequence[Any], shown: Callable[[Any, str], str]) -> list[str]:
    return [shown(item, metric) for item in items for metric in METRICS]


def _value(row: Result | None, metric: str) -> str:
    if row is None or "absent" in row:
        return NOTHING
    return shown_metric(metric, row[metric])


def _printed(pair: tuple[Result | None, PaperRow | None], metric: str) -> str:
    number = None if pair[1] is None else getattr(pair[1], metric)
    return NOTHING if number is None else shown_metric(metric, number)


def _difference(pair: tuple[Result | None, PaperRow | None], metric: str) -> str:
    gap = difference(pair[0], pair[1], metric)
    return NOTHING if gap is None else shown_metric(metric, gap, signed=True)


def difference(row: Result | None, known: PaperRow | None, metric: str) -> float | None:
    """Ours minus what the paper prints, where both exist."""
    number = None if known is None else getattr(known, metric)
    if row is None or "absent" in row or number is None:
        return None
    return float(row[metric] - number)


def shown_metric(metric: str, value: float, *, signed: bool = False) -> str:
    """A number as the paper prints it: accuracy in percent, others with four digits."""
    sign = "+" if signed else ""
    if metric == "accuracy":
        return f"{100 * value + 0.0:{sign}.2f}%"
    return f"{value + 0.0:{sign}.4f}"


def _remarks(results: Sequence[Result]) -> tuple[str, ...]:
    notes = [_LEGEND]
    crossed = sorted({one["set"] for one in results if one["n_calibration"] is None})
    if crossed:
        shown = ", ".join(map(set_title, crossed))
        notes.append(
            f"No calibration split for {shown}: supervised baselines are cross-fitted "
            "on two halves of the evaluation items, whose labels they see."
        )
    absent = dict.fromkeys(
        f"{row['title']} is absent for {one['model']} on {set_title(one['set'])}: "
        f"{row['absent']}"
        for one in results
        for row in one["methods"].values()
        if "absent" in row
    )
    return (*notes, *absent)


def _promises(results: Sequence[Result]) -> Table:
    rows = []
    for one in results:
        for row in one["methods"].values():
            proof = row.get("certificate")
            if proof is None:
                continue
            said = proof["guaranteed_improvement"]
            rows.append(
                (
                    one["model"],
                    set_title(one["set"]),
                    row["title"],
                    f"{said:.4f}" if proof["supported"] else "none",
                    f"{row['gain']:+.4f} ± {row['gain_error'] or 0:.4f}",
                    verdict(row),
                )
            )
    header = ("model", "set", "method", "guaranteed", "realised", "verdict")
    title = "Table 4. What was guaranteed, and what happened"
    return Table(title, header, tuple(rows), 3, (_PROMISES,))


def verdict(row: Result) -> str:
    """Whether labels bear a guarantee out."""
    proof = row["certificate"]
    if not proof["supported"]:
        return "no guarantee"
    lack = proof["guaranteed_improvement"] - row["gain"]
    if lack <= 0:
        return "held"
    is_noise = lack <= NOISE * (row["gain_error"] or 0)
    return "not reached, within noise" if is_noise else "contradicted"


def _summary(results: Sequence[Result]) -> Table:
    rows = []
    for method in METHODS:
        found = [
            (one["methods"]["instruct"], one["methods"][method.name])
            for one in results
            if "absent" not in one["methods"].get(method.name, {"absent": ""})
        ]
        if found and method.name != "instruct":
            rows.append(_summary_row(method.title, method.kind, found))
    header = (
        "method",
        "kind",
        "pairs",
        *(f"{SHORT[metric]} change" for metric in METRICS),
        "helped",
        "harmed",
        "guarantees",
        "not reached",
        "contradicted",
    )
    return Table("Table 5. All pairs together", header, tuple(rows), 2, (_SUMMARY,))


def _summary_row(
    title: str, kind: str, found: Sequence[tuple[Result, Result]]
) -> tuple[str, ...]:
    n_pairs = len(found)
    changes = [
        sum(after[metric] - before[metric] for before, after in found) / n_pairs
        for metric in METRICS
    ]
    moves = [after["brier_top"] - before["brier_top"] for before, after in found]
    verdicts = [verdict(after) for _, after in found if after.get("certificate")]
    promised = [one for one in verdicts if one != "no guarantee"]
    told = (NOTHING,) * 3
    if kind in (PAPER, ADAPTIVE):
        told = (
            str(len(promised)),
            str(sum(one != "held" for one in promised)),
            str(promised.count("contradicted")),
        )
    return (
        title,
        kind if kind != GIVEN else "the reference instead",
        str(n_pairs),
        *(
            shown_metric(metric, change, signed=True)
            for metric, change in zip(METRICS, changes, strict=True)
        ),
        str(sum(move < -HARM for move in moves)),
        str(sum(move > HARM for move in moves)),
        *told,
    )
