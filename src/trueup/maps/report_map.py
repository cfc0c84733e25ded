"""ReportMap: what is kept after fitting. Needs neither reference nor labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, Self, cast

import numpy as np

from trueup._validate import Floats, Label
from trueup.core.cells import Cells
from trueup.core.joint import JointTable
from trueup.core.pairing import parse_reports, with_outcomes
from trueup.core.properties import Property
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.errors import InvalidInputError, UnseenReportWarning
from trueup.maps._compiled import FEW_ROWS, CompiledTilts, is_rows
from trueup.maps.lookup import Match, match
from trueup.maps.rules import Table, Tilts
from trueup.solve.certificate import Certificate


@dataclass(frozen=True, slots=True)
class FittedOn:
    """What a map was fitted on, in numbers."""

    n_items: int
    n_primary: int
    n_reference: int
    n_pairs: int
    n_groups: int
    n_normalised: int
    """Rows of both predictors that did not quite sum to one and were divided."""

    @classmethod
    def of(
        cls, joint: JointTable, n_items: int, n_groups: int, n_normalised: int
    ) -> Self:
        """Count what a table holds."""
        return cls(
            n_items=n_items,
            n_primary=len(joint.primary),
            n_reference=len(joint.reference),
            n_pairs=len(joint.counts),
            n_groups=n_groups,
            n_normalised=n_normalised,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Answers to be drawn for each fitted report."""

    weights: Floats
    """(reports, K)."""
    confidence: Floats | None
    distributions: Floats


@dataclass(frozen=True, eq=False)
class ReportMap:
    """A fitted map from the primary's reports to better ones, with its certificate.

    Made by :func:`trueup.fit`, applied with :meth:`apply`, kept with :meth:`save`.
    The certificate belongs to exactly this map.

    Examples
    --------
    >>> import trueup
    >>> fitted = trueup.fit([0.1, 0.7], [0.5, 0.5], cells="exact")
    >>> fitted
    ReportMap(brier loss, 2 reports, 2 outcomes, guaranteed improvement 0.02
    at rung 'distribution')
    >>> fitted.apply([0.7, 0.1]).round(6)
    array([[0.2, 0.8],
           [0.8, 0.2]])
    """

    rule: Table | Tilts
    loss: str
    cells: Cells
    floor: float | None
    certificate: Certificate
    fitted_on: FittedOn
    _draw: Draw | None = None
    _draw_certificate: Certificate | None = None

    @property
    def outcomes(self) -> tuple[Label, ...]:
        """Names of the outcomes, in the order of the columns of :meth:`apply`."""
        return self.rule.outcomes

    @property
    def about(self) -> Property:
        """The property that the primary reports and the map returns."""
        return self.rule.about

    @property
    def table(self) -> Table:
        """The fitted reports and their replacements, for maps that list them."""
        if isinstance(self.rule, Table):
            return self.rule
        message = (
            "a map on adaptive cells is a formula and lists no reports.\n"
            "hint: fit with cells='exact' or cells=trueup.Step(0.01) for a table."
        )
        raise InvalidInputError(message)

    @property
    def randomised(self) -> RandomisedMap | None:
        """The map that draws answers, where the optimum is one; None elsewhere."""
        if self._draw is None or self._draw_certificate is None:
            return None
        return RandomisedMap(self, self._draw, self._draw_certificate)

    def apply(self, primary: object) -> Any:  # noqa: ANN401 - the primary's own kind
        """Replace reports by better ones of the same kind.

        Distributions come back as an (n, K) array; ``AnswerConfidence`` and
        ``PointReport`` as themselves. Reports never seen in fitting take the place of
        the nearest fitted report with the same answer, and a warning says how many.
        """
        if isinstance(self.rule, Tilts):
            compiled = self._apply_compiled(primary)
            if compiled is not None:
                return compiled
            return _native(self.rule.apply(self._read(primary)))
        reports, found = self._locate(primary)
        better = self.rule.better.take(np.maximum(found.index, 0))
        return _native(_keep_unmatched(better, reports, found))

    def apply_frame(
        self,
        frame: object,
        *,
        prefix: str | None = None,
        id: str | None = None,  # noqa: A002 - what users call it
    ) -> Any:  # noqa: ANN401 - a dataframe of the same library
        """Replace the reports that a dataframe holds, and keep everything else.

        Spark dataframes stay lazy and distributed: up to six outcomes the map is
        written out as column expressions. Rows keep their order; the new columns are
        ``p_<outcome>``, or ``answer`` and ``confidence``.

        Parameters
        ----------
        frame
            A dataframe of Spark, DuckDB, polars, pandas or pyarrow.
        prefix
            Which predictor, where several share the table as ``<model>__p_<outcome>``.
        id
            Column that names items, where it is not ``item_id``.
        """
        # Dataframes lie above the mathematics, so the package is looked up by name.
        frames = import_module("trueup.scale.api")
        return frames.apply_frame(self, frame, prefix=prefix, id=id)

    def distributions(self, primary: object) -> Floats:
        """(n, K) compatible distributions behind the new reports.

        For a report whose answer was never fitted there is none: the row is NaN. A map
        on adaptive cells keeps distributions only where those are what it reports.
        """
        if isinstance(self.rule, Tilts) and self.about.name == "distribution":
            return cast("Floats", self.apply(primary))
        _, found = self._locate(primary)
        return _rows(self.table.distributions, found)

    def match(self, primary: object) -> Match:
        """How :meth:`apply` would find each report, without applying."""
        return match(self._read(primary), self.table.fitted)

    def recertify(
        self,
        primary: object,
        reference: object,
        *,
        groups: Iterable[Any] | None = None,
        sample_weight: object | None = None,
        blocks: Iterable[Any] | None = None,
    ) -> Certificate:
        """Certify this very map again on new unlabelled items of both predictors.

        Only maps on adaptive cells can: they keep the multipliers that certify them.
        Groups must be given if the reference was trusted inside groups.
        """
        from trueup.maps.adaptive import recertify  # noqa: PLC0415 - it imports this

        return recertify(
            self,
            primary,
            reference,
            groups=groups,
            sample_weight=sample_weight,
            blocks=blocks,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map as a readable JSON file, in one step or not at all."""
        from trueup.maps import _schema  # noqa: PLC0415 - it imports this module

        _schema.write(self, path)

    @cached_property
    def compiled(self) -> CompiledTilts | None:
        """The map in the form that is fast on many rows, where there is one."""
        if not isinstance(self.rule, Tilts):
            return None
        return CompiledTilts.of(self.rule, self.floor)

    def _apply_compiled(self, primary: object) -> Floats | None:
        """New rows, or None where the general way must read or refuse the input."""
        if not is_rows(primary, len(self.outcomes)) or self.compiled is None:
            return None
        rows = cast("Floats", primary)
        # Brier tilts have the same bits either way, so few rows need no compiled code.
        if self.loss == "brier" and len(rows) < FEW_ROWS:
            return None
        return self.compiled.apply(rows)

    def _read(self, primary: object) -> Reports:
        reports = parse_reports(primary, "primary", None)
        if _kind(reports.about) != _kind(self.about):
            message = (
                f"this map was fitted on {self.about.title} reports and cannot be "
                f"applied to {reports.about.title} reports."
            )
            raise InvalidInputError(message)
        known = with_outcomes(reports, self.outcomes, "primary", "the map")
        known.about.check(known, "primary")
        return floored(self.cells.merge(known), self.floor)

    def _locate(self, primary: object) -> tuple[Reports, Match]:
        reports = self._read(primary)
        found = match(reports, self.table.fitted)
        _warn_about_unseen(found, len(reports))
        return reports, found

    def __repr__(self) -> str:
        return (
            f"ReportMap({self.loss} loss, {self._size()}, "
            f"{len(self.outcomes)} outcomes, guaranteed improvement "
            f"{self.certificate.guaranteed_improvement:.6g} at rung "
            f"{self.certificate.trust!r})"
        )

    def _repr_html_(self) -> str:
        from trueup.maps._display import map_html  # noqa: PLC0415 - only notebooks

        return map_html(self)

    def _size(self) -> str:
        if isinstance(self.rule, Table):
            return f"{len(self.rule.fitted):,} reports"
        return "adaptive cells" if self.rule.halves is not None else "unchanged"


@dataclass(frozen=True, eq=False)
class RandomisedMap:
    """The map that draws an answer for each item; its expected loss is certified."""

    _parent: ReportMap
    _draw: Draw
    certificate: Certificate

    def weights(self, primary: object) -> Floats:
        """(n, K) probability with which each answer is drawn."""
        reports, found = self._parent._locate(primary)
        return self._weights(reports, found)

    def apply(self, primary: object, *, rng: np.random.Generator) -> Any:  # noqa: ANN401
        """Draw one answer an item, with the confidence that goes with it."""
        reports, found = self._parent._locate(primary)
        cumulative = self._weights(reports, found).cumsum(axis=1)
        shots = rng.random(len(reports))[:, None] * cumulative[:, -1:]
        answer = (shots >= cumulative).sum(axis=1)
        if not isinstance(reports, AnswerConfidence):
            value = answer.astype(np.float64)
            return PointReport._of(value, reports.outcomes, reports.about)
        confidence = self._confidence(reports, found)
        return AnswerConfidence._of(answer, confidence, reports.outcomes)

    def expected_losses(self, primary: object) -> Floats:
        """(n, K) expected loss of the drawn report under each outcome."""
        reports, found = self._parent._locate(primary)
        weights = self._weights(reports, found)
        if not isinstance(reports, AnswerConfidence):
            return -weights
        confidence = self._confidence(reports, found)[:, None]
        return confidence**2 - 2 * confidence * weights

    def _confidence(self, reports: AnswerConfidence, found: Match) -> Floats:
        fitted = cast("Floats", self._draw.confidence)[np.maximum(found.index, 0)]
        return np.where(found.index < 0, reports.confidence, fitted)

    def distributions(self, primary: object) -> Floats:
        """(n, K) compatible distributions behind the draw."""
        _, found = self._parent._locate(primary)
        return _rows(self._draw.distributions, found)

    def _weights(self, reports: Reports, found: Match) -> Floats:
        weights = self._draw.weights[np.maximum(found.index, 0)]
        lost = np.flatnonzero(found.index < 0)
        if lost.size:
            weights[lost] = 0
            weights[lost, cast("Any", reports.answers())[lost]] = 1
        return weights

    def __repr__(self) -> str:
        return (
            "RandomisedMap(guaranteed improvement "
            f"{self.certificate.guaranteed_improvement:.6g})"
        )


def floored(reports: Reports, floor: float | None) -> Reports:
    """Distributions moved away from zero: (1 - K floor) r + floor."""
    if floor is None or not isinstance(reports, Distributions):
        return reports
    mixed = (1 - reports.n_outcomes * floor) * reports.probabilities + floor
    return replace(reports, probabilities=mixed)


def _kind(about: Property) -> tuple[str, float | None]:
    return about.name, getattr(about, "level", None)


def _native(reports: Reports) -> Reports | Floats:
    return reports.probabilities if isinstance(reports, Distributions) else reports


def _rows(table: Floats, found: Match) -> Floats:
    return np.where(
        found.index[:, None] >= 0, table[np.maximum(found.index, 0)], np.nan
    )


def _keep_unmatched(better: Reports, reports: Reports, found: Match) -> Reports:
    """Leave alone what no fitted report answers to."""
    lost = found.index < 0
    if not lost.any():
        return better
    if isinstance(better, Distributions) and isinstance(reports, Distributions):
        kept = np.where(lost[:, None], reports.probabilities, better.probabilities)
        return replace(better, probabilities=kept)
    if isinstance(better, AnswerConfidence) and isinstance(reports, AnswerConfidence):
        return AnswerConfidence._of(
            np.where(lost, reports.answer, better.answer),
            np.where(lost, reports.confidence, better.confidence),
            better.outcomes,
        )
    old, new = cast("PointReport", reports), cast("PointReport", better)
    return PointReport._of(
        np.where(lost, old.value, new.value), new.outcomes, new.about
    )


def _warn_about_unseen(found: Match, n_rows: int) -> None:
    parts = []
    if found.n_nearest:
        parts.append(
            f"{found.n_nearest:,} of {n_rows:,} reports were not seen in fitting and "
            "use the nearest fitted report with the same answer"
        )
    if found.n_unmatched:
        parts.append(
            f"{found.n_unmatched:,} of {n_rows:,} have an answer never seen in fitting "
            "and stay as they are"
        )
    if parts:
        message = "; ".join(parts) + ". The certificate does not cover them."
        warnings.warn(message, UnseenReportWarning, stacklevel=4)
