"""A map applied to tables batch by batch: the same columns in, better reports out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._validate import Floats
from trueup.core.pairing import parse_reports, with_outcomes
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.data.convert import reports_from
from trueup.data.labels import outcome_names
from trueup.data.schema import Columns, model_prefixes
from trueup.data.tables import predictions_table
from trueup.errors import PredictionFileError, UnseenReportWarning
from trueup.maps.rules import Tilts
from trueup.scale._arrow import in_arrow, in_numpy

if TYPE_CHECKING:
    import pyarrow as pa

    from trueup.maps.report_map import ReportMap

_MOVED = 1e-12
"""A report that moved by less than this is counted as unchanged."""


@dataclass(slots=True, eq=False)
class BatchApplier:
    """Applies one map to the predictions of a table, a batch at a time.

    Everything but the predictions is passed through as it is, in its order; the
    columns of other predictors that share the table stay behind.
    """

    fitted: ReportMap
    columns: Columns
    name: str
    n_rows: int = 0
    n_changed: int = 0
    n_nearest: int = 0
    n_unmatched: int = 0
    order: list[str] = field(default_factory=list)
    """Columns in the order of the map's outcomes, where the compiled map takes them."""

    def __post_init__(self) -> None:
        """Decide once which columns give which outcome."""
        if self.columns.kind == "probabilities" and self.fitted.compiled is not None:
            named = dict(
                zip(
                    outcome_names(self.columns.outcomes),
                    self.columns.outcomes.values(),
                    strict=True,
                )
            )
            if set(named) == set(self.fitted.outcomes):
                self.order = [named[outcome] for outcome in self.fitted.outcomes]

    def kept(self, names: list[str]) -> list[str]:
        """Columns that are passed through."""
        others = tuple(model_prefixes(names))
        said = set(self.columns.predictions)
        return [
            n for n in names if n not in said and not (others and n.startswith(others))
        ]

    def __call__(self, batch: pa.Table) -> pa.Table:
        """The batch with better reports in place of the old ones."""
        self._refuse_gaps(batch)
        made = self._fast(batch) if self.order else None
        if made is None:
            made = self._general(batch)
        self.n_rows += batch.num_rows
        return _in_place(batch, made, self.kept(batch.column_names), self.columns)

    def finish(self) -> None:
        """Warn once about reports that were not seen in fitting."""
        if self.n_nearest or self.n_unmatched:
            warnings.warn(
                f"{self.n_nearest + self.n_unmatched:,} of {self.n_rows:,} reports "
                "were not seen in fitting and use the nearest fitted report with the "
                "same "
                f"answer; {self.n_unmatched:,} have an answer never seen and stay as "
                "they are. The certificate does not cover them.",
                UnseenReportWarning,
                stacklevel=2,
            )

    def _refuse_gaps(self, batch: pa.Table) -> None:
        for column in self.columns.predictions:
            n_missing = batch.column(column).null_count
            if n_missing:
                raise PredictionFileError.of(
                    self.name,
                    f"column {column!r} has {n_missing:,} missing values among rows "
                    f"{self.n_rows:,} to {self.n_rows + batch.num_rows - 1:,}.",
                    "fill them in, or remove these items",
                )

    def _fast(self, batch: pa.Table) -> dict[str, Any] | None:
        """Columns of numbers through compiled loops; None if a row is refused."""
        import pyarrow as pa

        compiled = self.fitted.compiled
        columns = [batch.column(name) for name in self.order]
        if compiled is None or not all(pa.types.is_floating(c.type) for c in columns):
            return None
        kind = (
            np.float64 if any(c.type == pa.float64() for c in columns) else np.float32
        )
        rows = np.empty((len(columns), batch.num_rows), dtype=kind).T
        for k, column in enumerate(columns):
            _copy(column, rows[:, k])
        out: Floats = np.empty((len(columns), batch.num_rows)).T
        if compiled.apply(rows, out) is None:
            return None
        from trueup.scale._count_kernels import count_moved

        self.n_changed += int(count_moved(rows, out, _MOVED))
        names = [f"p_{outcome}" for outcome in self.fitted.outcomes]
        return {name: in_arrow(out[:, k]) for k, name in enumerate(names)}

    def _general(self, batch: pa.Table) -> dict[str, Any]:
        about = self.fitted.about
        known = None if about.name == "distribution" else tuple(self.fitted.outcomes)
        stated = about.name if about.name in ("mean", "quantile", "expectile") else None
        reports, _ = reports_from(
            batch,
            self.columns,
            self.name,
            outcomes=known if not self.columns.outcomes else None,
            stated=stated,
            level=getattr(about, "level", None),
        )
        if about.name == "answer-confidence" and isinstance(reports, Distributions):
            confidence = reports.probabilities.max(axis=1)
            reports = AnswerConfidence._of(
                reports.answers(), confidence, reports.outcomes
            )
        reports = with_outcomes(reports, self.fitted.outcomes, self.name, "the map")
        better = self._applied(reports)
        moved = np.abs(reports.keys() - better.keys()).max(axis=1) > _MOVED
        self.n_changed += int(moved.sum())
        table = predictions_table(better)
        return {name: table.column(name) for name in table.column_names}

    def _applied(self, reports: Reports) -> Reports:
        if isinstance(self.fitted.rule, Tilts):
            made = self.fitted.apply(reports)
        else:
            found = self.fitted.match(reports)
            self.n_nearest += found.n_nearest
            self.n_unmatched += found.n_unmatched
            with warnings.catch_warnings():  # told once at the end, for all batches
                warnings.simplefilter("ignore", UnseenReportWarning)
                made = self.fitted.apply(reports)
        return parse_reports(made, "the map", self.fitted.outcomes)


def _copy(column: pa.ChunkedArray, target: Floats) -> None:
    """Put a column of numbers without gaps into an array."""
    first = 0
    for chunk in column.chunks:
        target[first : first + len(chunk)] = in_numpy(chunk)
        first += len(chunk)


def _in_place(
    batch: pa.Table, made: dict[str, Any], kept: list[str], columns: Columns
) -> pa.Table:
    """New reports where the first old one stood, the rest in its order."""
    import pyarrow as pa

    first = min(batch.column_names.index(name) for name in columns.predictions)
    before = [name for name in batch.column_names[:first] if name in set(kept)]
    after = [name for name in batch.column_names[first:] if name in set(kept)]
    clash = sorted(set(made) & set(kept))
    if clash:
        message = (
            f"the new reports are written as {', '.join(clash)}, but the table has "
            "another column of that name.\nhint: rename that column."
        )
        raise PredictionFileError(message)
    arrays = {name: batch.column(name) for name in before}
    arrays |= made | {name: batch.column(name) for name in after}
    return pa.table(arrays)
