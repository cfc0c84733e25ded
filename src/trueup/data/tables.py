"""Reports as a table in the prediction-file schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports

if TYPE_CHECKING:
    import pyarrow as pa


def predictions_table(
    reports: object,
    *,
    outcomes: Iterable[Any] | None = None,
    item_ids: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
    groups: Iterable[Any] | None = None,
    weights: Iterable[Any] | None = None,
    extra: pa.Table | None = None,
    prefix: str = "",
) -> pa.Table:
    """What a prediction file holds: ids, reports, labels, groups, weights, the rest.

    Parameters
    ----------
    reports
        Reports, or an (n, K) array with ``outcomes`` naming its columns.
    prefix
        Put before the names of prediction columns, e.g. ``"gpt__"``.

    Examples
    --------
    >>> made = predictions_table([[0.25, 0.75]], outcomes=["yes", "no"], item_ids=["a"])
    >>> made.to_pylist()
    [{'item_id': 'a', 'p_yes': 0.25, 'p_no': 0.75}]
    """
    import pyarrow as pa

    if not isinstance(reports, Reports):
        reports = Distributions.parse(reports, "reports", outcomes)
    columns: dict[str, Any] = {}
    if item_ids is not None:
        columns["item_id"] = list(item_ids)
    columns |= {prefix + name: values for name, values in _said(reports).items()}
    given = {"label": labels, "group": groups, "weight": weights}
    columns |= {name: list(v) for name, v in given.items() if v is not None}
    if extra is not None:
        for name in extra.column_names:
            columns.setdefault(name, extra.column(name))
    return pa.table(columns)


def _said(reports: Reports) -> dict[str, Any]:
    if isinstance(reports, Distributions):
        rows = np.asfortranarray(reports.probabilities)
        return {f"p_{name}": rows[:, k] for k, name in enumerate(reports.outcomes)}
    if isinstance(reports, AnswerConfidence):
        return {"answer": reports.labels(), "confidence": reports.confidence}
    points = cast("PointReport", reports)
    name = "answer" if points.answers() is not None else "value"
    return {name: points.labels()}
