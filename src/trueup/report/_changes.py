"""What applying the map changes: moves, bands, the joint table, the most moved."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.core.stated import stated
from trueup.report._material import Material
from trueup.report._words import number, one_line, percent
from trueup.report.summary import Band, Changes, JointCell, Move, Moved, Scale

_MOVE_BINS, _BANDS, _JOINT_BINS = 25, 20, 10
_MOST_ANSWERS = 12
_MOST_MOVED = 8
_MOVED = 1e-3


def changes(given: Material) -> Changes:
    """Everything the section on changes shows."""
    before, scale = _stated(given.primary)
    after, _ = _stated(given.better)
    old, new = given.primary.answers(), given.better.answers()
    distance, how = _distances(given.primary, given.better)
    joint, titles, bands = _joint(given)
    changed = 0.0 if old is None or new is None else given.shares @ (old != new)
    return Changes(
        scale=scale,
        mean_before=float(given.shares @ before),
        mean_after=float(given.shares @ after),
        answers_changed=float(changed),
        share_moved=float(given.shares @ (distance > _MOVED)),
        mean_distance=float(given.shares @ distance),
        distance=how,
        answers=_answers(given),
        moves=tuple(_moves(given, before, after, scale)),
        bands=tuple(_bands(given, before, after, scale)),
        joint=joint,
        joint_titles=titles,
        joint_bands=bands,
        answer_joint=_answer_joint(given),
        agreement=_agreement(given),
        most_moved=tuple(_most_moved(given, distance)),
    )


def _stated(reports: Reports) -> tuple[Floats, Scale]:
    """(n,) the number a report is plotted by, and its scale."""
    found = stated(reports)
    return found.values, Scale(one_line(found.title, 40), found.low, found.high)


def _distances(old: Reports, new: Reports) -> tuple[Floats, str]:
    """(n,) how far each report moves."""
    if isinstance(old, Distributions) and isinstance(new, Distributions):
        gaps = np.abs(old.probabilities - new.probabilities).sum(axis=1) / 2
        return gaps, "probability moved from some outcomes to others"
    if isinstance(old, AnswerConfidence) and isinstance(new, AnswerConfidence):
        same = old.answer == new.answer
        gap = np.abs(old.confidence - new.confidence)
        both = np.maximum(old.confidence, new.confidence)
        return np.where(same, gap, both), "change of the answer's confidence"
    before, after = old.keys()[:, 0], new.keys()[:, 0]
    if old.answers() is not None:
        return (before != after).astype(np.float64), "whether the answer changes"
    return np.abs(before - after), f"change of the {old.about.title}"


def _answers(given: Material) -> tuple[str, ...]:
    if given.primary.answers() is None or len(given.outcomes) > _MOST_ANSWERS:
        return ()
    if isinstance(given.primary, Distributions) and len(given.outcomes) == 2:
        return ()
    return given.outcomes


def _index(values: Floats, scale: Scale, n_bins: int) -> Ints:
    """(n,) equal-width bins of the scale; the last holds its upper end."""
    place = (values - scale.low) / (scale.high - scale.low) * n_bins
    return np.clip(np.floor(place + 1e-9), 0, n_bins - 1).astype(np.int64)


def _moves(given: Material, before: Floats, after: Floats, scale: Scale) -> list[Move]:
    bins = _index(before, scale, _MOVE_BINS)
    found = _moves_of("", bins, before, after, given.shares)
    answers = given.primary.answers()
    if answers is None:
        return found
    for place, name in enumerate(_answers(given)):
        mine = np.flatnonzero(answers == place)
        part = (bins[mine], before[mine], after[mine], given.shares[mine])
        found += _moves_of(name, *part)
    return found


def _moves_of(
    answer: str, bins: Ints, before: Floats, after: Floats, shares: Floats
) -> list[Move]:
    found = []
    for place in np.unique(bins).tolist():
        mine = np.flatnonzero(bins == place)
        weight = shares[mine]
        if weight.sum() == 0:
            continue
        low, high = np.quantile(after[mine], [0.1, 0.9])
        found.append(
            Move(
                answer=answer,
                before=float(np.average(before[mine], weights=weight)),
                after=float(np.average(after[mine], weights=weight)),
                after_low=float(low),
                after_high=float(high),
                n_items=len(mine),
                share=float(weight.sum()),
            )
        )
    return found


def _bands(given: Material, before: Floats, after: Floats, scale: Scale) -> list[Band]:
    edges = np.linspace(scale.low, scale.high, _BANDS + 1)
    old = group_sums(_index(before, scale, _BANDS), given.shares, _BANDS)
    new = group_sums(_index(after, scale, _BANDS), given.shares, _BANDS)
    return [
        Band(float(edges[b]), float(edges[b + 1]), float(old[b]), float(new[b]))
        for b in range(_BANDS)
    ]


def _joint(
    given: Material,
) -> tuple[
    tuple[JointCell, ...], tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]
]:
    """The joint table in bands of what both state."""
    (first, one), (second, two) = _stated(given.primary), _stated(given.reference)
    labels = _band_labels(one), _band_labels(two)
    row = _index(first, one, _JOINT_BINS)
    column = _index(second, two, _JOINT_BINS)
    cells = _cells(given, row, column, labels)
    return cells, (one.title, two.title), labels


def _band_labels(scale: Scale) -> tuple[str, ...]:
    edges = np.linspace(scale.low, scale.high, _JOINT_BINS + 1)
    names = [f"{edge:.4g}" for edge in edges.tolist()]
    return tuple(f"{a} to {b}" for a, b in pairwise(names))


def _cells(
    given: Material,
    row: Ints,
    column: Ints,
    labels: tuple[tuple[str, ...], tuple[str, ...]],
) -> tuple[JointCell, ...]:
    n_columns = len(labels[1])
    key = row * n_columns + column
    size = len(labels[0]) * n_columns
    share = group_sums(key, given.shares, size)
    n_items = np.bincount(key, minlength=size)
    same = _same_answer(given)
    agreed = group_sums(key, given.shares * same, size)
    return tuple(
        JointCell(
            primary=labels[0][place // n_columns],
            reference=labels[1][place % n_columns],
            share=float(share[place]),
            n_items=int(n_items[place]),
            agree=float(agreed[place] / share[place]),
        )
        for place in np.flatnonzero(share > 0).tolist()
    )


def _same_answer(given: Material) -> Floats:
    first, second = given.primary.answers(), given.reference.answers()
    if first is None or second is None:
        return np.full(len(given.primary), np.nan)
    return (first == second).astype(np.float64)


def _agreement(given: Material) -> float:
    return float(given.shares @ _same_answer(given))


def _answer_joint(given: Material) -> tuple[JointCell, ...]:
    first, second = given.primary.answers(), given.reference.answers()
    if first is None or second is None or len(given.outcomes) > _MOST_ANSWERS:
        return ()
    return _cells(given, first, second, (given.outcomes, given.outcomes))


def _most_moved(given: Material, distance: Floats) -> list[Moved]:
    """The furthest moves, some of every answer; what looks alike is shown once."""
    answers = given.primary.answers()
    codes = np.zeros(len(distance)) if answers is None else answers
    moved = distance > _MOVED
    kinds = np.unique(codes[moved])
    each = math.ceil(_MOST_MOVED / max(1, len(kinds)))
    found: list[tuple[tuple[str, str], list[int]]] = []
    for kind in kinds.tolist():
        mine = np.flatnonzero(moved & (codes == kind))
        order = mine[np.argsort(-distance[mine], kind="stable")]
        found += _furthest(given, order.tolist(), each).items()
    found.sort(key=lambda one: -distance[one[1][0]])
    return [
        _moved(given, distance, shown, places) for shown, places in found[:_MOST_MOVED]
    ]


def _furthest(
    given: Material, order: list[int], most: int
) -> dict[tuple[str, str], list[int]]:
    """Places by what is shown of them: the first few kinds in the order given."""
    found: dict[tuple[str, str], list[int]] = {}
    for place in order:
        shown = _text(given.primary, place), _text(given.better, place)
        if shown not in found and len(found) == most:
            break
        found.setdefault(shown, []).append(place)
    return found


def _moved(
    given: Material, distance: Floats, shown: tuple[str, str], places: list[int]
) -> Moved:
    said = {_text(given.reference, place) for place in places}
    item = ""
    if len(places) == 1:
        item = f"row {places[0]}" if given.ids is None else given.ids[places[0]]
    return Moved(
        item=item,
        before=shown[0],
        after=shown[1],
        reference=said.pop() if len(said) == 1 else "",
        distance=float(distance[places[0]]),
        n_items=len(places),
    )


def _text(reports: Reports, place: int) -> str:
    """One report, short."""
    names = reports.outcomes
    if isinstance(reports, AnswerConfidence):
        name = one_line(names[int(reports.answer[place])], 40)
        return f"“{name}” {percent(float(reports.confidence[place]), 1)}"
    if isinstance(reports, Distributions):
        row = reports.probabilities[place]
        if len(names) == 2:
            return f"P({one_line(names[1], 40)}) = {number(float(row[1]), 3)}"
        top = [k for k in np.argsort(-row, kind="stable")[:2].tolist() if row[k] > 5e-3]
        return ", ".join(
            f"“{one_line(names[k], 40)}” {percent(float(row[k]), 1)}" for k in top
        )
    value = reports.keys()[place, 0]
    if isinstance(reports, PointReport) and reports.answers() is not None:
        return one_line(names[int(value)], 40)
    return "–" if math.isnan(value) else number(float(value), 4)
