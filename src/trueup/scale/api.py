"""Dataframes of any size: fit_frame, and what ReportMap.apply_frame does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trueup.data.convert import is_numeric
from trueup.data.frames import to_table
from trueup.data.schema import Columns, detect_columns
from trueup.errors import PredictionFileError
from trueup.maps.report_map import ReportMap
from trueup.scale.batches import BatchApplier
from trueup.scale.files import NUMBER, Database, choose_columns, known_outcomes, named
from trueup.scale.fitting import Progress, fit_source
from trueup.scale.pairs import FilePair

if TYPE_CHECKING:
    import pyarrow as pa

_VIEW = "trueup_table"
_NAME = "the dataframe"


def fit_frame(
    frame: object,
    *,
    primary_prefix: str | None = "primary",
    reference_prefix: str | None = "reference",
    id: str | None = None,  # noqa: A002 - what users call it
    group: str | None = None,
    outcomes: Iterable[Any] | None = None,
    loss: str | None = None,
    trust: str | None = None,
    caps: bool | None = None,
    reference_error: float = 0.0,
    assume: str | Iterable[str] = (),
    family: str | None = None,
    floor: float | None = None,
    fallback: str = "map",
    progress: Progress | None = None,
) -> ReportMap:
    """Fit a map on a dataframe that holds both predictors and need not fit in memory.

    A Spark dataframe is counted inside Spark and nothing is collected but statistics; a
    DuckDB relation is read in batches; other dataframes are in memory already.

    Parameters
    ----------
    frame
        A dataframe of Spark, DuckDB, polars, pandas or pyarrow with columns
        ``primary__p_<outcome>`` and ``reference__p_<outcome>``, or ``__answer`` and
        ``__confidence``.
    primary_prefix, reference_prefix
        Prefixes of the two predictors' columns.
    id
        Column that names items, ``item_id`` if there is one. It decides which half an
        item belongs to; Spark needs it, elsewhere the place of a row will do.
    group
        Column of groups inside which the reference is trusted.
    outcomes
        All outcomes, where answers do not name them.
    loss, trust, caps, reference_error, assume, family, floor, fallback
        As for :func:`trueup.fit`.
    progress
        Called with what is being done, items done, and items in all.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> rng = np.random.default_rng(0)
    >>> reference = rng.choice([0.2, 0.3, 0.4], size=900)
    >>> primary = 3 * reference - 0.5
    >>> fitted = fit_frame(pl.DataFrame({
    ...     "primary__p_no": 1 - primary, "primary__p_yes": primary,
    ...     "reference__p_no": 1 - reference, "reference__p_yes": reference,
    ... }))
    >>> fitted.certificate.n_items, fitted.certificate.supported
    (900, True)
    """
    known = None if outcomes is None else tuple(outcomes)
    options: dict[str, Any] = {
        "loss": loss,
        "trust": trust,
        "caps": caps,
        "reference_error": reference_error,
        "assume": assume,
        "family": family,
        "floor": floor,
        "fallback": fallback,
    }
    columns: dict[str, Any] = {
        "primary_prefix": primary_prefix,
        "reference_prefix": reference_prefix,
        "id": id,
        "group": group,
        "outcomes": known,
    }
    if _is_spark(frame):
        from trueup.scale.spark import fit_spark, open_spark

        return fit_spark(open_spark(frame, **columns), **options)
    with _opened(frame, **columns) as source:
        return fit_source(source, progress=progress, **options)


def apply_frame(
    fitted: ReportMap,
    frame: object,
    *,
    prefix: str | None = None,
    id: str | None = None,  # noqa: A002 - what users call it
) -> Any:  # noqa: ANN401 - a dataframe of the same library
    """A dataframe with better reports in place of the primary's; the rest is kept."""
    if _is_spark(frame):
        from trueup.scale.spark import apply_spark

        numeric = {n: _spark_number(kind) for n, kind in frame.dtypes}  # type: ignore[attr-defined]
        found = detect_columns(numeric, name="the dataframe", prefix=prefix, id=id)
        return apply_spark(fitted, frame, found)
    import narwhals as nw

    native: Any = nw.from_native(frame)
    table = to_table(frame)
    columns = _columns(table, prefix, id)
    applier = BatchApplier(fitted, columns, "the dataframe")
    made = applier(table)
    applier.finish()
    if isinstance(native, nw.LazyFrame):
        import duckdb

        if native.implementation.is_duckdb():
            return duckdb.from_arrow(made)
        return nw.from_arrow(made, backend=native.implementation).lazy().to_native()
    return nw.from_arrow(made, backend=native.implementation).to_native()


def _columns(table: pa.Table, prefix: str | None, id_: str | None) -> Columns:
    numeric = {field.name: is_numeric(field.type) for field in table.schema}
    return detect_columns(numeric, name="the dataframe", prefix=prefix, id=id_)


def _is_spark(frame: object) -> bool:
    """Whether this is a Spark dataframe; imports nothing to find out."""
    kind = type(frame)
    return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"


def _spark_number(kind: str) -> bool:
    from trueup.scale.spark import is_number

    return is_number(kind)


@dataclass(frozen=True, slots=True, eq=False)
class _Relation(Database):
    """A table that DuckDB sees as a relation, in the connection it came from."""

    relation: Any = None

    @property
    def name(self) -> str:
        """How messages call the data."""
        return "the dataframe"

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """A small result."""
        with self._naming_damage():
            found: list[tuple[Any, ...]] = self._query(sql).fetchall()
            return found

    def reader(self, sql: str) -> Any:  # noqa: ANN401 - a reader of batches
        """A large result."""
        return self._query(sql)

    def _query(self, sql: str) -> Any:  # noqa: ANN401 - a relation
        return self.relation.query(_VIEW, sql)


@contextmanager
def _opened(
    frame: object,
    *,
    primary_prefix: str | None,
    reference_prefix: str | None,
    id: str | None,  # noqa: A002 - what users call it
    group: str | None,
    outcomes: tuple[Any, ...] | None,
) -> Iterator[FilePair]:
    """Any dataframe but Spark's as a source of batches."""
    import duckdb

    is_relation = isinstance(frame, duckdb.DuckDBPyRelation)
    relation: Any = frame if is_relation else duckdb.from_arrow(to_table(frame))
    database = _Relation(duckdb.default_connection, (), relation)
    numeric = {
        row[0]: database.is_number(row[1])
        for row in database.rows(f"DESCRIBE SELECT * FROM {_VIEW}")
    }
    chosen = choose_columns(
        (numeric, numeric),
        ("the dataframe",) * 2,
        (primary_prefix, reference_prefix),
        id=id,
        group=group,
    )
    known = known_outcomes((chosen.primary, chosen.reference), outcomes)
    table = f"(SELECT *, row_number() OVER () AS {NUMBER} FROM {_VIEW})"
    groups: tuple[Any, ...] = ()
    if group is not None:
        found = database.rows(f"SELECT DISTINCT {named(group)} FROM {_VIEW}")
        groups = tuple(
            sorted((r[0] for r in found), key=lambda v: (str(type(v)), str(v)))
        )
    n_items = int(database.rows(f"SELECT count(*) FROM {_VIEW}")[0][0])
    if n_items == 0:
        raise PredictionFileError.of(_NAME, "it has no rows.", "pass some")
    source = table if chosen.id is None else _VIEW
    yield FilePair(database, source, chosen, known, groups, n_items)
