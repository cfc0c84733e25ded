"""Counting on any engine: the statistics of two predictors in a lazy table.

One narwhals program serves DuckDB, Spark and polars. Nothing leaves the engine but
sums over groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from trueup.core.folds import fold_of, mixed
from trueup.core.statistics import CellLayout, CellStatistics, ScoreCounts
from trueup.errors import PredictionFileError
from trueup.scale import expressions as ex

_MIX = "__trueup_mix"
_PLACE = "__trueup_place"


@dataclass(frozen=True, slots=True)
class Side:
    """One predictor's columns in the table."""

    name: str
    """``primary`` or ``reference``; also the prefix of its working columns."""
    probabilities: tuple[str, ...]
    """A column for every outcome, in their order; empty for answers."""
    answer: str | None = None
    """The column of answers."""
    confidence: str | None = None

    @property
    def kind(self) -> str:
        """What is reported."""
        return "distribution" if self.probabilities else "answer-confidence"

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read."""
        both = (self.answer, self.confidence)
        return self.probabilities or tuple(name for name in both if name)

    def own(self, index: int) -> str:
        """Working column of a normalised probability."""
        return f"__trueup_{self.name}_{index}"

    @property
    def top(self) -> str:
        """Working column of the confidence."""
        return f"__trueup_{self.name}_top"

    @property
    def said(self) -> str:
        """Working column of the position of the answer."""
        return f"__trueup_{self.name}_answer"

    @property
    def summed(self) -> tuple[str, ...]:
        """Working columns whose sums are kept."""
        n = len(self.probabilities)
        return tuple(self.own(k) for k in range(n)) if n else (self.top,)


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """A lazy table that holds both predictors, and how items are told apart."""

    frame: Any
    """A narwhals LazyFrame."""
    primary: Side
    reference: Side
    outcomes: tuple[Any, ...]
    name: str
    number: str
    """Column of whole numbers, one an item, that decides the fold."""
    group: str | None = None
    groups: tuple[Any, ...] = ()

    def prepared(self) -> Any:  # noqa: ANN401 - narwhals
        """The table with answers, confidences and normalised reports."""
        mix = mixed(nw.col(self.number).cast(nw.Int64))
        frame = self.frame.with_columns(mix.alias(_MIX))
        for side in (self.primary, self.reference):
            frame = _with_side(frame, side, self.outcomes)
        return frame

    def check(self) -> int:
        """Refuse gaps and impossible reports, naming column and count; items in all."""
        sides = (self.primary, self.reference)
        columns = [c for side in sides for c in side.columns] + [self.number]
        columns += [self.group] if self.group else []
        gaps = {c: nw.col(c).is_null().cast(nw.Int64).sum() for c in columns}
        sums = [total.alias(f"gap{i}") for i, total in enumerate(gaps.values())]
        wrong = [
            _wrong(side, self.outcomes).cast(nw.Int64).sum().alias(f"bad{i}")
            for i, side in enumerate(sides)
        ]
        found = _collected(self.frame.select(nw.len().alias("n"), *sums, *wrong))
        n_items = int(found["n"][0])
        if n_items == 0:
            raise PredictionFileError.of(
                self.name, "it has no rows.", "pass at least one"
            )
        for i, column in enumerate(columns):
            self._refuse_gaps(column, int(found[f"gap{i}"][0] or 0), n_items)
        for i, side in enumerate(sides):
            self._refuse_wrong(side, int(found[f"bad{i}"][0] or 0), n_items)
        return n_items

    def _refuse_gaps(self, column: str, n_missing: int, n_items: int) -> None:
        if n_missing:
            raise PredictionFileError.of(
                self.name,
                f"column {column!r} has {n_missing:,} missing values in {n_items:,} "
                "rows.",
                "fill them in, or remove these items",
            )

    def _refuse_wrong(self, side: Side, n_wrong: int, n_items: int) -> None:
        if not n_wrong:
            return
        listed = ", ".join(side.columns)
        what = (
            "hold a number outside [0, 1] or do not sum to one"
            if side.probabilities
            else f"hold a confidence outside [0, 1] or an answer that is none of "
            f"{', '.join(map(str, self.outcomes))}"
        )
        raise PredictionFileError.of(
            self.name,
            f"{n_wrong:,} of {n_items:,} rows of the {side.name} ({listed}) {what}.",
            "repair or remove these items; percentages must be divided by 100",
        )

    def score_counts(self, share: int = 1) -> ScoreCounts:
        """Sketch of the confidences, from one item in ``share``."""
        frame = self.prepared()
        if share > 1:  # the fold is the lowest bit, so sample by the others
            frame = frame.filter((nw.col(_MIX) // 2) % share == 0)
        counts = ScoreCounts.empty(len(self.outcomes))
        keys = {
            "fold": fold_of(nw.col(_MIX)),
            "answer": nw.col(self.primary.said),
            "place": ex.place(nw.col(self.primary.top)),
        }
        found, n_items, _ = _grouped(frame, keys, ())
        np.add.at(counts.primary, tuple(found.T), n_items)
        del keys["answer"]
        keys["place"] = ex.place(nw.col(self.reference.top))
        found, n_items, _ = _grouped(frame, keys, ())
        np.add.at(counts.reference, tuple(found.T), n_items)
        return counts

    def statistics(self, layout: CellLayout) -> CellStatistics:
        """One aggregation: counts and sums per combination of cells."""
        fold = fold_of(nw.col(_MIX))
        edges = layout.edges

        def reached(which: str, top: str) -> Any:  # noqa: ANN401 - narwhals
            score = nw.col(top)
            both = [ex.edges_reached(score, getattr(one, which)) for one in edges]
            return nw.when(fold == 0).then(both[0]).otherwise(both[1])

        keys = {
            "fold": fold,
            "group": self._group_code(layout),
            "bin": reached("reference", self.reference.top),
            "reference_answer": nw.col(self.reference.said),
            "place": nw.col(self.primary.said),
            "micro": reached("micro", self.primary.top),
        }
        frame = self.prepared()
        if layout.frame == "rank":
            frame = _in_rank_order(frame, self.primary, self.reference)
            keys["place"] = nw.col(_PLACE)
        summed = (*self.reference.summed, *self.primary.summed)
        found, n_items, sums = _grouped(frame, keys, summed)
        split = layout.n_reference_sums
        return CellStatistics.gather(
            layout, found, n_items, sums[:, :split], sums[:, split:]
        )

    def group_names(self) -> tuple[Any, ...]:
        """The distinct groups, in the order of their text."""
        if self.group is None:
            return ()
        found = _collected(self.frame.select(self.group).unique())[self.group].to_list()
        return tuple(sorted(found, key=lambda value: (str(type(value)), str(value))))

    def _group_code(self, layout: CellLayout) -> Any:  # noqa: ANN401 - narwhals
        code: Any = nw.lit(0)
        if self.group is not None:
            for index, name in enumerate(layout.groups):
                code = (
                    nw.when(nw.col(self.group) == name)
                    .then(nw.lit(index))
                    .otherwise(code)
                )
        return code


def _with_side(frame: Any, side: Side, outcomes: Sequence[Any]) -> Any:  # noqa: ANN401
    if not side.probabilities:
        answer: Any = nw.lit(0)
        for index, name in enumerate(outcomes):
            answer = (
                nw.when(nw.col(side.answer or "") == name)
                .then(nw.lit(index))
                .otherwise(answer)
            )
        confidence = nw.col(side.confidence or "").cast(nw.Float64)
        return frame.with_columns(
            answer.cast(nw.Int64).alias(side.said), confidence.alias(side.top)
        )
    terms = [nw.col(column).cast(nw.Float64) for column in side.probabilities]
    total = f"__trueup_{side.name}_total"
    frame = frame.with_columns(ex.divisor(ex.row_sum(terms)).alias(total))
    own = [side.own(k) for k in range(len(terms))]
    frame = frame.with_columns(
        *(
            (term / nw.col(total)).alias(name)
            for term, name in zip(terms, own, strict=True)
        )
    )
    frame = frame.with_columns(ex.largest(own).alias(side.top))
    return frame.with_columns(ex.first_equal(own, side.top).alias(side.said))


def _in_rank_order(frame: Any, primary: Side, reference: Side) -> Any:  # noqa: ANN401
    """Place of the reference's answer in the primary's order, and sorted reports."""
    said = nw.col(reference.said)
    if not primary.probabilities:
        own = nw.col(primary.said)
        moved = nw.when(said == 0).then(own).otherwise(said)
        place = nw.when(said == own).then(nw.lit(0)).otherwise(moved)
        return frame.with_columns(place.cast(nw.Int64).alias(_PLACE))
    columns = primary.summed
    value: Any = nw.col(columns[-1])
    for k in range(len(columns) - 2, -1, -1):
        value = nw.when(said == k).then(nw.col(columns[k])).otherwise(value)
    frame = frame.with_columns(value.alias(_PLACE))
    place = nw.lit(0)
    for k, column in enumerate(columns):
        tied = (nw.col(column) == nw.col(_PLACE)) & (said > k)
        before = (nw.col(column) > nw.col(_PLACE)) | tied
        place = place + nw.when(before).then(nw.lit(1)).otherwise(nw.lit(0))
    frame = frame.with_columns(place.cast(nw.Int64).alias(_PLACE))
    for a, b in ex.sorting_network(len(columns)):
        first, second = nw.col(columns[a]), nw.col(columns[b])
        frame = frame.with_columns(
            nw.max_horizontal(first, second).alias(columns[a]),
            nw.min_horizontal(first, second).alias(columns[b]),
        )
    return frame


def _wrong(side: Side, outcomes: Sequence[Any]) -> Any:  # noqa: ANN401 - narwhals
    if side.probabilities:
        terms = [nw.col(column).cast(nw.Float64) for column in side.probabilities]
        return ex.is_no_distribution(side.probabilities, ex.row_sum(terms))
    confidence = nw.col(side.confidence or "")
    known = nw.col(side.answer or "").is_in(list(outcomes))
    return (confidence < 0.0) | (confidence > 1.0) | ~known


def _grouped(
    frame: Any,  # noqa: ANN401 - narwhals
    keys: dict[str, Any],
    summed: Sequence[str],
) -> tuple[Any, Any, Any]:
    """Keys, counts and sums of units, as arrays of whole numbers."""
    named = [expr.cast(nw.Int64).alias(name) for name, expr in keys.items()]
    sums = [ex.units(nw.col(column)).alias(f"s{i}") for i, column in enumerate(summed)]
    wanted = frame.select(*named, *sums)
    totals = [nw.col(f"s{i}").sum() for i in range(len(summed))]
    found = _collected(wanted.group_by(*keys).agg(nw.len().alias("n"), *totals))

    def numbers(names: Sequence[str]) -> Any:  # noqa: ANN401 - an array
        shape = (len(found), len(names))
        columns = [_integers(found[name]) for name in names]
        return np.column_stack(columns) if columns else np.zeros(shape, dtype=np.int64)

    sums_found = numbers([f"s{i}" for i in range(len(summed))])
    return numbers(list(keys)), _integers(found["n"]), sums_found


def _integers(column: Any) -> Any:  # noqa: ANN401 - a narwhals series
    """A column of whole numbers; engines widen sums to decimals, which stay exact."""
    return np.array([int(value) for value in column.to_list()], dtype=np.int64)


def _collected(frame: Any) -> Any:  # noqa: ANN401 - narwhals
    return frame.collect("pyarrow") if isinstance(frame, nw.LazyFrame) else frame
