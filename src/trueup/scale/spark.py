"""Spark: counting and applying as column expressions, certifying batch by batch.

Nothing is collected but statistics. Counting and applying run inside Spark's engine;
certifying runs the compiled loops on Arrow batches in Spark's Python workers, which
need trueup installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from trueup.core.resolution import Resolution
from trueup.errors import MissingExtraError, PredictionFileError
from trueup.maps.report_map import ReportMap
from trueup.scale.batches import BatchApplier
from trueup.scale.certify import Totals
from trueup.scale.files import NUMBER, choose_columns, known_outcomes
from trueup.scale.fitting import (
    SKETCHED,
    Wanted,
    as_map,
    best_of,
    enough_items,
    layout_of,
    needs_positive,
    zero_under_log_loss,
)
from trueup.scale.frames import PairTable, Side

if TYPE_CHECKING:
    import pyarrow as pa

    from trueup.data.schema import Columns

_NAME = "the dataframe"
MOST_UNROLLED = 6
"""Outcomes up to which a projection is written out as column expressions."""


def functions() -> Any:  # noqa: ANN401 - pyspark ships no strict types
    """Spark's functions, or the command that installs them."""
    try:
        from pyspark.sql import functions as found
    except ImportError as error:
        raise MissingExtraError.of("pyspark", "spark") from error
    return found


@dataclass(frozen=True, slots=True, eq=False)
class SparkPair:
    """A Spark dataframe with both predictors."""

    frame: Any
    table: PairTable
    columns: tuple[Columns, Columns]

    @property
    def outcomes(self) -> tuple[Any, ...]:
        """Names of the outcomes."""
        return self.table.outcomes

    @property
    def groups(self) -> tuple[Any, ...]:
        """Names of the groups."""
        return self.table.groups

    @property
    def kinds(self) -> tuple[str, str]:
        """What the primary and the reference report."""
        return self.table.primary.kind, self.table.reference.kind


def open_spark(
    frame: Any,  # noqa: ANN401 - a Spark dataframe
    *,
    primary_prefix: str | None,
    reference_prefix: str | None,
    id: str | None,  # noqa: A002 - what users call it
    group: str | None,
    outcomes: tuple[Any, ...] | None,
) -> SparkPair:
    """Choose columns; an id is needed, for rows of Spark have no number."""
    numeric = {name: is_number(kind) for name, kind in frame.dtypes}
    chosen = choose_columns(
        (numeric, numeric),
        ("the dataframe",) * 2,
        (primary_prefix, reference_prefix),
        id=id,
        group=group,
    )
    if chosen.id is None:
        raise PredictionFileError.of(
            _NAME,
            "items are split in halves by their ids, but no column holds any.",
            "name the column with id=...; rows of Spark have no number of their own",
        )
    both = (chosen.primary, chosen.reference)
    known = known_outcomes(both, outcomes)
    numbered = frame.withColumn(NUMBER, _number(frame, chosen.id))
    table = PairTable(
        nw.from_native(numbered),
        _side("primary", chosen.primary, known),
        _side("reference", chosen.reference, known),
        known,
        "the dataframe",
        NUMBER,
        group,
    )
    named = replace(table, groups=table.group_names())
    return SparkPair(numbered, named, both)


def fit_spark(pair: SparkPair, **options: Any) -> ReportMap:  # noqa: ANN401 - see Wanted
    """Fit with counting inside Spark; the driver sees statistics only."""
    resolution = options.pop("resolution", None) or Resolution()
    wanted = Wanted.check(pair.outcomes, pair.kinds, len(pair.groups), **options)
    n_items = enough_items(pair.table.check())
    share = max(1, n_items // SKETCHED)
    scores = pair.table.score_counts(share)
    layout = layout_of(scores, pair, wanted.frame, resolution)
    statistics = pair.table.statistics(layout)
    if needs_positive(wanted) and _has_zeros(pair):
        raise zero_under_log_loss()
    tried = wanted.halves(statistics, resolution)
    totals = certify_spark(pair, tried, wanted)
    halves, estimate = best_of(tried, totals, wanted.trust)
    return as_map(statistics, halves, estimate, wanted)


def certify_spark(pair: SparkPair, tried: list[Any], wanted: Wanted) -> list[Totals]:
    """Sums of z from Spark's workers: a few numbers a partition."""
    certifiers = [wanted.certifier(halves, pair) for halves in tried]
    reader = _Reader(
        pair.table.primary, pair.table.reference, pair.outcomes, pair.groups
    )
    reader = reader.of(pair.table.group)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        totals = [Totals.empty() for _ in certifiers]
        for batch in batches:
            if len(batch):
                read = reader.read(batch)
                for certifier, total in zip(certifiers, totals, strict=True):
                    certifier.add(total, read)
        rows = [
            (which, fold, *sums)
            for which, total in enumerate(totals)
            for fold, sums in enumerate(total.sums)
        ]
        names = ("which", "fold", "n", "z", "zz")
        columns = {n: [str(r[i]) for r in rows] for i, n in enumerate(names)}
        yield pa.RecordBatch.from_pydict(columns)

    wide = pair.frame.select(*reader.columns)
    schema = "which string, fold string, n string, z string, zz string"
    found = wide.mapInArrow(work, schema).collect()
    totals = [Totals.empty() for _ in tried]
    for row in found:  # text, so that no sum is too large for Spark's numbers
        totals[int(row["which"])].add(
            int(row["fold"]), int(row["n"]), int(row["z"]), int(row["zz"])
        )
    return totals


@dataclass(frozen=True, slots=True)
class _Reader:
    """Arrow batches of Spark's workers as batches of arrays."""

    primary: Side
    reference: Side
    outcomes: tuple[Any, ...]
    groups: tuple[Any, ...]
    group: str | None = None

    def of(self, group: str | None) -> _Reader:
        return _Reader(self.primary, self.reference, self.outcomes, self.groups, group)

    @property
    def columns(self) -> list[str]:
        own = [NUMBER, *self.primary.columns, *self.reference.columns]
        return own + ([self.group] if self.group else [])

    def read(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401 - a Batch
        from trueup.scale.batch_counts import Batch
        from trueup.scale.pairs import positions

        groups = np.empty(0, dtype=np.int64)
        if self.group:
            groups = positions(batch.column(self.group), self.groups)
        return Batch(
            self._side(batch, self.primary),
            self._side(batch, self.reference),
            batch.column(NUMBER).to_numpy(zero_copy_only=False),
            groups,
        )

    def _side(self, batch: pa.RecordBatch, side: Side) -> Any:  # noqa: ANN401
        from trueup.scale.batch_counts import SideBatch
        from trueup.scale.pairs import positions

        if not side.probabilities:
            answers = positions(batch.column(side.answer), self.outcomes)
            confidence = _doubles(batch.column(side.confidence))
            return SideBatch(confidence[:, None], answers)
        rows = np.empty((len(side.probabilities), len(batch)))
        for k, name in enumerate(side.probabilities):
            rows[k] = _doubles(batch.column(name))
        return SideBatch(rows.T, np.empty(0, dtype=np.int64))


def apply_spark(fitted: ReportMap, frame: Any, columns: Columns) -> Any:  # noqa: ANN401
    """Better reports in place of the old ones, lazily."""
    compiled = fitted.compiled
    applier = BatchApplier(fitted, columns, "the dataframe")
    small = len(fitted.outcomes) <= MOST_UNROLLED
    if compiled is not None and applier.order and small:
        return _unrolled(fitted, frame, applier)
    schema = _schema_after(frame, applier, fitted)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            if len(batch):
                made = applier(pa.Table.from_batches([batch]))
                yield from made.combine_chunks().to_batches()

    return frame.mapInArrow(work, schema)


def _schema_after(frame: Any, applier: BatchApplier, fitted: ReportMap) -> Any:  # noqa: ANN401
    """The dataframe's schema with new reports where the old ones stood."""
    from pyspark.sql.types import DoubleType, StructField, StructType

    kept, said = set(applier.kept(frame.columns)), set(applier.columns.predictions)
    fields, placed = [], False
    for one in frame.schema.fields:
        if one.name in said and not placed:
            placed = True
            if applier.columns.answer is not None and not applier.columns.outcomes:
                fields += [f for f in frame.schema.fields if f.name in said]
            else:
                fields += [
                    StructField(f"p_{outcome}", DoubleType())
                    for outcome in fitted.outcomes
                ]
        if one.name in kept:
            fields.append(one)
    return StructType(fields)


def _unrolled(fitted: ReportMap, frame: Any, applier: BatchApplier) -> Any:  # noqa: ANN401
    """Column expressions: the cell's slopes by a broadcast join, then the formula."""
    from trueup.scale.unrolled import checked, new_reports

    F = functions()  # noqa: N806 - what everybody calls it
    compiled = fitted.compiled
    if compiled is None:
        message = "the map has no compiled form"
        raise TypeError(message)
    kept = applier.kept(frame.columns)
    n_tilts, n_outcomes, n_cells = compiled.slopes.shape
    names = [f"__trueup_s{t}_{k}" for t in range(n_tilts) for k in range(n_outcomes)]
    rows = compiled.slopes.reshape(-1, n_cells).T.tolist()
    cells = frame.sparkSession.createDataFrame(
        [(index, *row) for index, row in enumerate(rows)],
        "__trueup_cell long, " + ", ".join(f"{name} double" for name in names),
    )
    bad = checked(F, applier.order)
    guarded = frame.withColumn(applier.order[0], bad)
    lazy = new_reports(nw.from_native(guarded), applier.order, compiled, "cell")
    joined = lazy.to_native().join(F.broadcast(cells), "__trueup_cell", "left")
    done = new_reports(nw.from_native(joined), applier.order, compiled, "tilt")
    first = min(frame.columns.index(name) for name in applier.order)
    new = [f"p_{outcome}" for outcome in fitted.outcomes]
    before = [c for c in frame.columns[:first] if c in set(kept)]
    after = [c for c in frame.columns[first:] if c in set(kept)]
    renamed = done.select(
        *before,
        *(nw.col(f"__trueup_new_{k}").alias(name) for k, name in enumerate(new)),
        *after,
    )
    return renamed.to_native()


def _number(frame: Any, column: str) -> Any:  # noqa: ANN401 - a Spark column
    F = functions()  # noqa: N806
    kind = dict(frame.dtypes)[column]
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return F.col(column).cast("long")
    if kind == "string":
        digest = F.substring(F.md5(F.col(column)), 1, 8)
        return F.conv(digest, 16, 10).cast("long")
    raise PredictionFileError.of(
        _NAME,
        f"column {column!r} is of type {kind}; items are named by whole numbers or "
        "text.",
        "convert the column",
    )


def _side(name: str, columns: Columns, outcomes: tuple[Any, ...]) -> Side:
    from trueup.data.labels import outcome_names

    if not columns.outcomes:
        return Side(name, (), columns.answer, columns.confidence)
    own = dict(
        zip(outcome_names(columns.outcomes), columns.outcomes.values(), strict=True)
    )
    if set(own) != set(outcomes):
        raise PredictionFileError.of(
            _NAME,
            f"the {name} is about {', '.join(map(str, own))}, not about "
            f"{', '.join(map(str, outcomes))}.",
            "name the same outcomes on both sides",
        )
    return Side(name, tuple(own[outcome] for outcome in outcomes))


def _has_zeros(pair: SparkPair) -> bool:
    columns = pair.table.primary.probabilities
    if not columns:
        return False
    lowest = nw.min_horizontal(*(nw.col(c) for c in columns)).min().alias("low")
    found = pair.table.frame.select(lowest).collect("pyarrow")
    return bool(found["low"][0] == 0)


def is_number(kind: str) -> bool:
    """Whether a type of Spark holds numbers."""
    head = kind.partition("(")[0]
    return head in {
        "tinyint", "smallint", "int", "bigint", "float", "double", "decimal",
    }  # fmt: skip


def _doubles(column: pa.Array) -> Any:  # noqa: ANN401 - an array
    import pyarrow as pa

    return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
