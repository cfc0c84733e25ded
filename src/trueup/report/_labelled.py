"""What labels say about the map, the guarantee, the reference and the baselines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from trueup._validate import Floats, Ints
from trueup.core.losses import get_loss
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.errors import InvalidInputError, TrueupError
from trueup.evaluate._descriptions import METRICS
from trueup.evaluate._inputs import read_labels
from trueup.evaluate.baselines import cross_fitted, get_baseline
from trueup.evaluate.metrics import evaluate
from trueup.evaluate.reference_check import check_reference
from trueup.evaluate.reliability import reliability_curve
from trueup.maps.report_map import floored
from trueup.report._material import Material, Progress, quiet
from trueup.report._words import METRICS as SHOWN
from trueup.report._words import loss_title, number
from trueup.report.summary import (
    Guarantee,
    Labelled,
    Metric,
    ReferenceRung,
    Reliability,
    ReliabilityBin,
    Score,
)

_DRAWS = 300
_LEVEL = 0.95
_Z = 1.96
_SUPERVISED = ("temperature", "isotonic", "histogram")
_LABEL_FREE = ("max-confidence", "daca")


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The items with labels."""

    given: Material
    index: Ints
    labels: Ints
    """(index,) position of what happened."""

    def names(self) -> list[Any]:
        """What happened, by name."""
        return [self.given.primary.outcomes[place] for place in self.labels.tolist()]

    def of(self, reports: Reports) -> Any:  # noqa: ANN401 - an array, or reports
        """A predictor's reports on these items, as the evaluation takes them."""
        return _native(reports.take(self.index))

    @property
    def weights(self) -> Floats | None:
        """Their weights, where items were weighted."""
        if self.given.sample_weight is None:
            return None
        return self.given.shares[self.index]

    @property
    def blocks(self) -> list[Any] | None:
        """Their blocks, where items depend on each other."""
        blocks = self.given.blocks
        return None if blocks is None else [blocks[place] for place in self.index]


def labelled(
    given: Material, labels: Iterable[Any], own: Guarantee, progress: Progress
) -> Labelled | None:
    """Measure everything; None where no item has a label."""
    known = _known(given, labels)
    if not len(known.index):
        return None
    progress("labels: how far the loss fell", 0.0)
    fall, low, high = _fall(known, own.loss)
    progress("labels: metrics and baselines", 0.2)
    scores, notes = _scores(known, progress)
    progress("labels: the reference", 0.9)
    rungs, recommendation = _reference(known)
    refuted = _beyond_break_even(given, own, rungs)
    verdict, explanation = _verdict(own, fall, low, high)
    return Labelled(
        n_items=len(known.index),
        level=_LEVEL,
        loss=own.loss,
        guaranteed=own.guaranteed_improvement,
        improvement=fall,
        improvement_lower=low,
        improvement_upper=high,
        verdict=verdict,
        assumption_refuted=bool(refuted),
        explanation=explanation + refuted,
        scores=tuple(scores),
        reliability=tuple(_reliability(known)),
        reference=rungs,
        recommendation=recommendation,
        notes=tuple(notes),
    )


def _known(given: Material, labels: Iterable[Any]) -> _Known:
    listed = list(labels)
    present = np.array([not _is_missing(one) for one in listed], dtype=bool)
    index = np.flatnonzero(present)
    happened = read_labels([listed[place] for place in index], given.primary.outcomes)
    if len(listed) != len(given.primary):
        raise InvalidInputError.lengths(
            "primary", len(given.primary), "labels", len(listed)
        )
    return _Known(given, index, happened)


def _is_missing(label: object) -> bool:
    return label is None or (isinstance(label, float) and math.isnan(label))


def _fall(known: _Known, loss: str) -> tuple[float, float, float]:
    """By how much the map's own loss fell, with an interval for the mean."""
    given, index = known.given, known.index
    chosen = get_loss(loss, given.primary.about)
    old = chosen.vectors(floored(given.primary.take(index), given.fitted.floor))
    new = chosen.vectors(given.better.take(index))
    rows = np.arange(len(index))
    gain = old[rows, known.labels] - new[rows, known.labels]
    weight = given.shares[index] / given.shares[index].sum()
    mean = float(weight @ gain)
    unit, scaled = rows, weight * (gain - mean)
    if given.blocks is not None:  # dependent items vary together
        _, unit = np.unique(
            np.array(list(map(str, known.blocks or []))), return_inverse=True
        )
    spread = float(np.sqrt((np.bincount(unit, scaled) ** 2).sum()))
    return mean, mean - _Z * spread, mean + _Z * spread


def _verdict(own: Guarantee, fall: float, low: float, high: float) -> tuple[str, str]:
    title = loss_title(own.loss)
    told = (
        f"On these labels the {title} fell by {number(fall)} "
        f"(95 % interval {number(low)} to {number(high)})."
    )
    if own.guaranteed_improvement <= 0:
        return "nothing guaranteed", f"Nothing had been guaranteed. {told}"
    promised = f"A fall of at least {number(own.guaranteed_improvement)} was guaranteed"
    if fall >= own.guaranteed_improvement:
        return "held", f"{promised}, and the labels agree. {told}"
    if high < own.guaranteed_improvement:
        return "contradicted", (
            f"{promised}, but the labels say otherwise. {told} The assumption about "
            "the reference does not hold here: trust it for less."
        )
    return "open", (
        f"{promised}; the labels show less, but so few of them cannot tell. {told}"
    )


def _scores(known: _Known, progress: Progress) -> tuple[list[Score], list[str]]:
    given = known.given
    primary = known.of(given.primary)
    name, other = given.names
    wanted: list[tuple[str, str, str, Callable[[], Any]]] = [
        (name, "primary", "as it is", lambda: primary),
        ("map", "map", "fitted without labels", lambda: known.of(given.better)),
        (other, "reference", "as it is", lambda: known.of(given.reference)),
    ]
    if isinstance(given.primary, Distributions | AnswerConfidence):
        wanted += _baselines(known)
    scores, notes = [], []
    for place, (title, kind, note, make) in enumerate(wanted):
        progress(f"labels: {title}", 0.2 + 0.6 * place / len(wanted))
        try:
            scores.append(_score(known, title, kind, note, make()))
        except TrueupError as error:
            reason = str(error).split("\nhint:", maxsplit=1)[0]
            notes.append(f"{title} was left out: {reason}")
    return scores, notes


def _baselines(known: _Known) -> list[tuple[str, str, str, Callable[[], Any]]]:
    primary, reference = known.given.primary, known.given.reference
    others = [known.of(primary), known.of(reference)]

    def supervised(name: str) -> Callable[[], Any]:
        return lambda: (
            cross_fitted(
                name,
                primary.take(known.index),
                known.names(),
                sample_weight=known.weights,
                blocks=known.blocks,
            ).reports
        )

    def label_free(name: str) -> Callable[[], Any]:
        def made() -> Any:  # noqa: ANN401 - reports of the primary's kind
            fitting = cast("Any", get_baseline(name)).fit
            return fitting(*map(_named(known), others)).apply(
                _named(known)(others[0]), reference=_named(known)(others[1])
            )

        return made

    free, seen = "baseline without labels", "baseline that sees labels, cross-fitted"
    return [
        *((name, "label-free", free, label_free(name)) for name in _LABEL_FREE),
        *((name, "supervised", seen, supervised(name)) for name in _SUPERVISED),
    ]


def _named(known: _Known) -> Callable[[Any], Any]:
    """Arrays with the names of their outcomes; reports have them already."""

    def named(reports: Any) -> Any:  # noqa: ANN401 - an array, or reports
        if isinstance(reports, Reports):
            return reports
        return Distributions(reports, known.given.primary.outcomes)

    return named


def _score(known: _Known, title: str, kind: str, note: str, reports: object) -> Score:
    named = _named(known)
    against = None if kind == "primary" else named(known.of(known.given.primary))
    with quiet():
        found = evaluate(
            named(reports),
            known.names(),
            against=against,
            sample_weight=known.weights,
            blocks=known.blocks,
            n_bootstrap=_DRAWS,
            level=_LEVEL,
        )
    ordered = sorted(found.metrics, key=_rank)
    metrics = []
    for metric in ordered:
        one, gap = found.metrics[metric], found.differences.get(metric)
        change = (math.nan,) * 3 if gap is None else (gap.value, gap.lower, gap.upper)
        words = METRICS[metric]
        metrics.append(
            Metric(metric, words.title, words.better, *map(float, (*one, *change)))
        )
    return Score(title, kind, note, tuple(metrics))


def _rank(name: str) -> tuple[int, str]:
    first = list(SHOWN)
    return (first.index(name) if name in first else len(first)), name


def _reliability(known: _Known) -> list[Reliability]:
    given = known.given
    several = (
        (given.names[0], "primary", given.primary),
        ("map", "map", given.better),
        (given.names[1], "reference", given.reference),
    )
    found = []
    for name, kind, reports in several:
        if not isinstance(reports, Distributions | AnswerConfidence):
            continue
        curve = reliability_curve(
            reports.take(known.index),
            known.names(),
            sample_weight=known.weights,
            level=_LEVEL,
        )
        bins = tuple(
            ReliabilityBin(
                float(curve.stated[b]),
                float(curve.observed[b]),
                float(curve.band_lower[b]),
                float(curve.band_upper[b]),
                int(curve.n_items[b]),
                bool(curve.is_outside[b]),
            )
            for b in range(len(curve))
        )
        found.append(
            Reliability(name, kind, curve.of, curve.ece, curve.p_value, _LEVEL, bins)
        )
    return found


def _reference(known: _Known) -> tuple[tuple[ReferenceRung, ...], str]:
    groups = known.given.groups
    try:
        found = check_reference(
            known.given.reference.take(known.index),
            known.names(),
            groups=None if groups is None else [groups[one] for one in known.index],
            sample_weight=known.weights,
        )
    except TrueupError as error:
        return (), f"The reference could not be checked: {error}"
    rungs = tuple(
        ReferenceRung(
            one.title,
            one.error.value,
            one.error.lower,
            one.error.upper,
            one.p_value,
            one.p_value < 1 - found.level,
        )
        for one in found.rungs
    )
    return rungs, found.recommendation


def _beyond_break_even(
    given: Material, own: Guarantee, rungs: tuple[ReferenceRung, ...]
) -> str:
    """Say so where the labels refute what the guarantee rests on."""
    mine = next((one for one in rungs if one.title == own.title), None)
    limit = own.guaranteed_until
    if own.guaranteed_improvement <= 0 or mine is None or mine.lower <= limit:
        return ""
    return (
        f" But they also say that {given.names[1]}’s error at rung {own.title} is at "
        f"least {number(mine.lower)}, above the break-even of {number(limit)}: what "
        "the guarantee assumes is refuted, so it does not explain the improvement."
    )


def _native(reports: Reports) -> Any:  # noqa: ANN401 - an array, or the reports
    return reports.probabilities if isinstance(reports, Distributions) else reports
