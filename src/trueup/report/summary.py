"""ReportSummary: everything a report shows, as plain values.

Nothing here computes; nothing outside :mod:`trueup.report.gather` and its helpers
knows our result classes. HTML, Markdown and JSON are renderings of the same summary.
The JSON form is described in ``docs/reference/report-json.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

FORMAT = 1
"""Number of the JSON form; it grows when a reader would have to change."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What was assumed of the reference, and of the items."""

    sentence: str
    """The certificate's own sentence."""
    belief: str
    """What is believed of the reference, in plain words."""
    rung: str
    caps: bool
    n_groups: int
    reference_error: float
    unit: str
    """What the reference error is measured in."""
    asserted: tuple[str, ...]
    """Facts asserted beyond calibration, in words."""
    is_sampled: bool
    """Whether the items are a sample, and the guarantee allows for that."""
    population: str
    """The same in words."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is guaranteed under one loss at one rung."""

    loss: str
    rung: str
    caps: bool
    title: str
    """The rung, and whether caps are trusted."""
    belief: str
    guaranteed_improvement: float
    supported: bool
    reason: str
    """Why nothing is guaranteed, where nothing is."""
    fitted: float
    certified: float
    lower: float
    optimism: float
    """How much better the bound looks on the items the map was fitted on."""
    steepness: float
    """Fall of the guarantee per unit of reference error."""
    guaranteed_until: float
    """Reference error at which the guarantee, chance allowed for, is used up."""
    is_chosen: bool
    """Whether this is the map the report is about."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Guaranteed improvement against the reference's error."""

    loss: str
    title: str
    """The rung."""
    kind: str
    """``this map``, or ``fitted again``: the best map for each error."""
    errors: tuple[float, ...]
    guaranteed_improvement: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """What a predictor's reports are plotted by."""

    title: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Move:
    """Old against new, for the items whose old report fell in one bin."""

    answer: str
    """The primary's answer; empty for all answers together."""
    before: float
    after: float
    after_low: float
    """A tenth of the items end below this."""
    after_high: float
    n_items: int
    share: float


@dataclass(frozen=True, slots=True)
class Band:
    """How many items are stated in one band, before and after."""

    lower: float
    upper: float
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class JointCell:
    """How often the primary reports this while the reference reports that."""

    primary: str
    reference: str
    share: float
    n_items: int
    agree: float
    """Share of these items on which both give the same answer."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A report that moves far."""

    item: str
    """The item's id or row; empty for a report made on several items."""
    before: str
    after: str
    reference: str
    """What the reference says there; empty where it says several things."""
    distance: float
    n_items: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What applying the map changes."""

    scale: Scale
    mean_before: float
    mean_after: float
    answers_changed: float
    """Share of items whose answer is another one afterwards."""
    share_moved: float
    """Share of items that move at all (by more than 0.001)."""
    mean_distance: float
    distance: str
    """How distance is measured."""
    answers: tuple[str, ...]
    moves: tuple[Move, ...]
    bands: tuple[Band, ...]
    joint: tuple[JointCell, ...]
    joint_titles: tuple[str, str]
    """What the primary's and the reference's bands are of."""
    joint_bands: tuple[tuple[str, ...], tuple[str, ...]]
    """The bands of both, in order."""
    answer_joint: tuple[JointCell, ...]
    """The same by answer; empty where there are none or too many."""
    agreement: float
    """Share of items on which both give the same answer; nan without answers."""
    most_moved: tuple[Moved, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """One bet of an arbitrage."""

    who: str
    name: str
    report: str
    share: float
    terms: str
    sentence: str
    contribution: float


@dataclass(frozen=True, slots=True)
class Contradictions:
    """Where the two predictors contradict each other."""

    verdict: str
    explanation: str
    break_even_reference_error: float
    """Of the pair: below it some map is guaranteed to improve."""
    profit: float
    """Sure profit an item of all contracts together."""
    min_ece: float
    n_contracts: int
    contracts: tuple[Contract, ...]
    read_as: str
    """How reports were read and rounded for this section."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one predictor, with its interval."""

    name: str
    title: str
    better: str
    value: float
    lower: float
    upper: float
    change: float
    """Minus the primary's; nan for the primary itself."""
    change_lower: float
    change_upper: float


@dataclass(frozen=True, slots=True)
class Score:
    """One predictor, measured with labels."""

    name: str
    kind: str
    """``primary``, ``map``, ``reference``, ``label-free`` or ``supervised``."""
    note: str
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Stated against observed in one bin."""

    stated: float
    observed: float
    band_lower: float
    band_upper: float
    n_items: int
    is_outside: bool


@dataclass(frozen=True, slots=True)
class Reliability:
    """The reliability diagram of one predictor."""

    name: str
    kind: str
    of: str
    ece: float
    p_value: float
    level: float
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True, slots=True)
class ReferenceRung:
    """How well the reference is calibrated at one rung, by the labels."""

    title: str
    error: float
    lower: float
    upper: float
    p_value: float
    is_contradicted: bool


@dataclass(frozen=True, slots=True)
class Labelled:
    """What the labels say; none of it was used to fit."""

    n_items: int
    level: float
    loss: str
    guaranteed: float
    improvement: float
    """By how much the loss fell; with its interval below."""
    improvement_lower: float
    improvement_upper: float
    verdict: str
    """``held``, ``contradicted``, ``open`` or ``nothing guaranteed``."""
    assumption_refuted: bool
    """Whether the labels put the reference's error above the break-even."""
    explanation: str
    scores: tuple[Score, ...]
    reliability: tuple[Reliability, ...]
    reference: tuple[ReferenceRung, ...]
    recommendation: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """Everything a report shows; made by :func:`trueup.report.summarise`.

    Examples
    --------
    >>> import trueup
    >>> from trueup.report import summarise
    >>> fitted = trueup.fit([0.1, 0.7], [0.5, 0.5], cells="exact")
    >>> summary = summarise(fitted, [0.1, 0.7], [0.5, 0.5])
    >>> summary.guarantee.supported, summary.contradictions.verdict
    (True, 'contradiction')
    """

    format: int
    created_by: str
    title: str
    headline: str
    """One line: what is guaranteed, or that nothing is."""
    plain: tuple[str, ...]
    """The result in a few sentences for somebody who reads nothing else."""
    primary: str
    reference: str
    n_items: int
    outcomes: tuple[str, ...]
    primary_reports: str
    reference_reports: str
    loss: str
    loss_title: str
    assumption: Assumption
    guarantee: Guarantee
    guarantees: tuple[Guarantee, ...]
    break_even_reference_error: float
    """Of the map's certificate: where its bound, not allowing for chance, is zero."""
    curves: tuple[Curve, ...]
    left_out: tuple[str, ...]
    """Losses and rungs that could not be computed, and why."""
    changes: Changes
    contradictions: Contradictions | None
    labelled: Labelled | None
    not_concluded: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values; infinities are text, no number is null."""
        return {"kind": "trueup.report", **_plain(self)}


def _plain(value: Any) -> Any:  # noqa: ANN401 - any part of a summary
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
