"""The front door: fit, load."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from trueup import _validate
from trueup._frames import named_column
from trueup.core.assertions import check_assertions
from trueup.core.cells import Auto, Cells, get_cells
from trueup.core.losses import LogLoss, ProperLoss, get_loss
from trueup.core.pairing import paired_reports
from trueup.core.reports import Distributions, Reports
from trueup.errors import DoubtfulInputWarning, InvalidInputError, UnknownNameError
from trueup.maps import _schema
from trueup.maps._documents import read_json
from trueup.maps.adaptive import fit_adaptive
from trueup.maps.report_map import ReportMap, floored
from trueup.maps.request import Request
from trueup.maps.tabular import fit_table
from trueup.solve.positive import zero_under_log_loss


def fit(
    primary: object,
    reference: object,
    *,
    loss: str | ProperLoss | None = None,
    trust: str | None = None,
    caps: bool | None = None,
    groups: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    reference_error: float = 0.0,
    cells: str | Cells = "auto",
    outcomes: Iterable[Any] | None = None,
    floor: float | None = None,
    assume: str | Iterable[str] = (),
    family: str | None = None,
    blocks: Iterable[Any] | None = None,
    fallback: str = "map",
    rng: np.random.Generator | None = None,
) -> ReportMap:
    """Fit the map that moves the primary the least into agreement with the reference.

    No labels are needed. The map's certificate says by how much its loss is lower than
    the primary's for *every* truth under which the reference is as good as it is
    trusted to be.

    Parameters
    ----------
    primary, reference
        The strong predictor to improve and the weaker one to trust, on the same items:
        (n, K) arrays, 1-D arrays of P(outcome 1), :class:`AnswerConfidence`,
        :class:`PointReport` or dataframes (pandas, polars, pyarrow, DuckDB) with the
        columns of prediction files, in any combination. Two dataframes that name
        their items are paired by ``item_id``, in the order of the primary; ``groups``,
        ``blocks`` and ``sample_weight`` may then name columns of the primary.
    loss
        ``brier`` (summed over outcomes), ``log``, ``spherical``, ``confidence``,
        ``zero-one``, ``squared``, ``pinball`` or ``expectile``, or a
        :class:`GeneratorLoss` of your own; the canonical loss of what the primary
        reports when left out.
    trust
        How far the reference is trusted: ``mean``, ``confidence``,
        ``answer-confidence`` or ``distribution``. By default ``distribution`` for two
        outcomes and ``answer-confidence`` for more; a point reference is trusted for
        what it reports.
    caps
        At ``answer-confidence``: whether the reference's answer is the most likely
        outcome. True by default for a reference that reports answers.
    groups
        One context value an item; the reference is then trusted inside each group.
        Restricts the truth, never the map: applying needs no group.
    sample_weight
        How many items each row stands for.
    reference_error
        Budget for the reference's calibration error, in the units of its rung.
    cells
        ``"auto"``: the items are a sample; adaptive cells, a map that applies to any
        report, and a certificate that survives sampling. ``"exact"``: the items are
        the whole population, every distinct report is its own cell. :class:`Step`: the
        paper's grid.
    outcomes
        Names of the K outcomes.
    floor
        Under log loss, replace every primary report r by (1 - K floor) r + floor.
    assume
        With ``"auto"``: facts asserted beyond calibration, ``"informative"`` (the
        reference's answer is not evidence against itself given the primary's report),
        ``"informative-by-confidence"`` (the same at every level of its confidence) or
        ``"stronger"`` (the primary is right at least as often as the reference).
    family
        With ``"auto"``: ``"temperature"`` for a map with one parameter, the
        temperature nearest one that satisfies what is asserted.
    blocks
        With ``"auto"``: one value an item; dependent items share it and stay together.
    fallback
        With ``"auto"``, where nothing is guaranteed: ``"map"`` still offers the map,
        marked as unsupported; ``"identity"`` leaves the primary alone.
    rng
        With ``"auto"``: how items are split in halves; the same split when left out.

    Returns
    -------
    ReportMap
        Applies to new reports without the reference, and carries its certificate.

    Examples
    --------
    >>> import numpy as np
    >>> m = fit(np.array([.1, .7]), np.array([.5, .5]), cells="exact")
    >>> m.apply(np.array([.1, .7])).round(6)
    array([[0.8, 0.2],
           [0.2, 0.8]])
    >>> round(m.certificate.guaranteed_improvement, 6)
    0.02
    """
    groups = named_column(primary, groups, "groups")
    blocks = named_column(primary, blocks, "blocks")
    sample_weight = named_column(primary, sample_weight, "sample_weight")
    named = None if outcomes is None else tuple(outcomes)
    first, second = paired_reports(primary, reference, named)
    grid = get_cells(cells)
    request = Request(
        loss=loss,
        trust=trust,
        caps=caps,
        groups=groups,
        sample_weight=sample_weight,
        reference_error=_validate.non_negative(reference_error, "reference_error"),
        floor=_checked_floor(floor, first),
        n_normalised=_n_normalised(first) + _n_normalised(second),
        assume=check_assertions(assume, first, second),
        family=_checked_family(family, first, assume),
        keep_unsupported=_checked_fallback(fallback),
        blocks=blocks,
        rng=rng,
    )
    merged, coarse = grid.merge(first), grid.merge(second)
    merged = floored(merged, request.floor)
    if isinstance(get_loss(loss, first.about), LogLoss) and (merged.keys() == 0).any():
        raise zero_under_log_loss(merged.keys(), "primary")
    fitting = fit_adaptive if isinstance(grid, Auto) else fit_table
    fitted = fitting(merged, coarse, request, grid)
    _warn_about_doubtful(first, second)
    return fitted


def load(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 - the kind that was saved
    """Load a map that was saved: ours, or a baseline of ``trueup.evaluate``.

    The loaded map applies bit for bit as the saved one did.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> fitted = fit([0.1, 0.7], [0.5, 0.5], cells="exact")
    >>> with TemporaryDirectory() as folder:
    ...     fitted.save(Path(folder, "map.json"))
    ...     again = load(Path(folder, "map.json"))
    >>> bool((again.apply([0.1, 0.7]) == fitted.apply([0.1, 0.7])).all())
    True
    """
    content = read_json(path)
    if isinstance(content, dict) and content.get("kind") == "trueup.baseline_map":
        from trueup.evaluate.baselines import _schema as baselines  # noqa: PLC0415

        return baselines.from_json(content, os.fspath(path))
    return _schema.from_json(content, os.fspath(path))


def _checked_family(
    family: str | None, primary: Reports, assume: str | Iterable[str]
) -> str | None:
    if family is None:
        return None
    if family != "temperature":
        raise UnknownNameError.of("family", family, ("temperature",))
    if not isinstance(primary, Distributions) or not assume:
        message = (
            "family='temperature' scales distributions until what is asserted holds.\n"
            "hint: pass distributions and assume='informative'."
        )
        raise InvalidInputError(message)
    return family


def _checked_fallback(fallback: str) -> bool:
    if fallback not in ("map", "identity"):
        raise UnknownNameError.of("fallback", fallback, ("identity", "map"))
    return fallback == "map"


def _checked_floor(floor: float | None, primary: Reports) -> float | None:
    if floor is None:
        return None
    number = _validate.non_negative(floor, "floor")
    if not isinstance(primary, Distributions):
        message = (
            f"floor applies to distributions, but the primary reports "
            f"{primary.about.title}.\nhint: leave floor out."
        )
        raise InvalidInputError(message)
    if not 0 < number < 1 / primary.n_outcomes:
        message = (
            f"floor must lie strictly between 0 and 1/{primary.n_outcomes}, "
            f"got {floor!r}.\nhint: 1e-4 is usual."
        )
        raise InvalidInputError(message)
    return number


def _n_normalised(reports: Reports) -> int:
    return reports.n_normalised if isinstance(reports, Distributions) else 0


def _warn_about_doubtful(primary: Reports, reference: Reports) -> None:
    if np.array_equal(primary.keys(), reference.keys()):
        message = (
            "primary and reference make the same report on every item, so nothing can "
            "be gained: is the same predictor passed twice?"
        )
        warnings.warn(message, DoubtfulInputWarning, stacklevel=3)
    if len(primary) == 1:
        message = (
            "fitted on one item: its pair of reports is taken as the whole population."
        )
        warnings.warn(message, DoubtfulInputWarning, stacklevel=3)
