"""Reliability: stated against observed, with what calibration would show by chance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from trueup import _sketch, _validate
from trueup._arrays import group_sums
from trueup._render import html_table
from trueup._validate import Bools, Floats, Ints
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.errors import InvalidInputError, UnknownNameError
from trueup.evaluate import _binning, _render
from trueup.evaluate._inputs import (
    Labelled,
    read_labelled,
    read_labels,
    read_rng,
    read_whole_number,
)
from trueup.evaluate._resampling import cell_moments
from trueup.evaluate._simulation import exceedance, simulated_hits

BINNINGS = ("equal-mass", "equal-width")


@dataclass(frozen=True, slots=True, eq=False)
class ReliabilityCurve:
    """One row a bin that holds items: what was stated, and what happened.

    The *consistency band* is where the observed share of a bin would fall, with
    probability ``level``, if every item came true with its own stated probability
    (Bröcker and Smith 2007). It is about each bin by itself; ``p_value`` is about all
    of them together.

    Attributes
    ----------
    lower_edge, upper_edge
        (bins,) the bin is (lower, upper]; the first also holds its lower edge.
    n_items, share
        (bins,) items in the bin, and their share of the weight.
    stated, observed
        (bins,) mean stated probability, and share that came true.
    band_lower, band_upper
        (bins,) the consistency band.
    ece
        Sum over bins of share times the distance between observed and stated.
    p_value
        How often a calibrated predictor would show an ECE as large as this.

    Examples
    --------
    >>> import numpy as np
    >>> curve = reliability_curve(np.array([.1, .1, .9, .9]), [0, 0, 1, 1], outcome=1)
    >>> curve.stated, curve.observed
    (array([0.1, 0.9]), array([0., 1.]))
    """

    lower_edge: Floats
    upper_edge: Floats
    n_items: Ints
    share: Floats
    stated: Floats
    observed: Floats
    band_lower: Floats
    band_upper: Floats
    ece: float
    p_value: float
    level: float
    of: str
    """What the probabilities are about: the answer, or a named outcome."""

    @property
    def is_outside(self) -> Bools:
        """(bins,) whether the observed share lies outside the band."""
        return (self.observed < self.band_lower) | (self.observed > self.band_upper)

    def __len__(self) -> int:
        return len(self.share)

    def __repr__(self) -> str:
        return (
            f"ReliabilityCurve({self.of}, {_bins(len(self))}, "
            f"{int(self.n_items.sum()):,} items, ECE {_render.number(self.ece)}, "
            f"p-value {_render.p_value(self.p_value)}, "
            f"{_bins(int(self.is_outside.sum()))} outside the {self.level:.0%} band)"
        )

    def table(self) -> str:
        """The bins as text for a terminal."""
        return f"{self!r}\n{_render.text_table(_HEADER, self._rows(), left=0)}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        numbers = {name: getattr(self, name) for name in ("ece", "p_value", "level")}
        return {**arrays, **numbers, "of": self.of}

    def _repr_html_(self) -> str:
        shares = zip(self.stated, self.observed, self.share, strict=True)
        picture = _sketch.dots(
            [(float(x), float(y), float(share)) for x, y, share in shares],
            limits=(0.0, 1.0),
            labels=("stated", "came true"),
            summary="Stated against observed; on the diagonal they are equal.",
        )
        table = html_table(repr(self), _HEADER, self._rows())
        return _sketch.beside(table, picture)

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for b in range(len(self)):
            where = "outside" if self.is_outside[b] else ""
            rows.append(
                (
                    f"({self.lower_edge[b]:.4g}, {self.upper_edge[b]:.4g}]",
                    f"{self.n_items[b]:,}",
                    _render.number(self.stated[b]),
                    _render.number(self.observed[b]),
                    _render.interval(self.band_lower[b], self.band_upper[b]),
                    where,
                )
            )
        return rows


def _bins(count: int) -> str:
    return "1 bin" if count == 1 else f"{count} bins"


_HEADER = ("bin", "items", "stated", "observed", "band if calibrated", "")
_ARRAYS = (
    "lower_edge",
    "upper_edge",
    "n_items",
    "share",
    "stated",
    "observed",
    "band_lower",
    "band_upper",
)


def reliability_curve(
    predictions: object,
    labels: object,
    *,
    outcome: object | None = None,
    outcomes: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    n_bins: int = 10,
    binning: str = "equal-width",
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: np.random.Generator | None = None,
) -> ReliabilityCurve:
    """Compare stated with observed shares, bin by bin, with consistency bands.

    Parameters
    ----------
    predictions, labels, outcomes, sample_weight
        As in :func:`trueup.evaluate`; point reports have no such curve.
    outcome
        An outcome's name: the curve is of its stated probability, and needs
        distributions. When left out the curve is of the answer's confidence.
    n_bins, binning
        ``"equal-width"`` bins (a, b] with zero in the first, or ``"equal-mass"``. Bins
        without items are left out.
    level
        Of the band.
    n_resamples
        How many sets of labels are drawn from the predictions themselves.
    rng
        Source of these; ``numpy.random.default_rng(0)`` when left out.

    Examples
    --------
    Of four items stated with 0.8 only one comes true, which happens to a calibrated
    predictor in about 3 of 100 cases:

    >>> import numpy as np
    >>> curve = reliability_curve(np.full(4, .8), [1, 0, 0, 0])
    >>> curve.stated.round(2), curve.observed.round(2), curve.n_items
    (array([0.8]), array([0.25]), array([4]))
    >>> curve.p_value < .05
    True
    """
    chosen = _validate.unit_number(level, "level", inclusive=False)
    n_draws = read_whole_number(n_resamples, "n_resamples", at_least=10)
    n_wanted = read_whole_number(n_bins, "n_bins", at_least=1)
    sample = read_labelled(
        predictions,
        labels,
        name="predictions",
        outcomes=outcomes,
        sample_weight=sample_weight,
    )
    stated, hit, of = _stated(sample, outcome)
    inner = _inner_edges(stated, sample.weights, n_wanted, binning)
    binned = _Binned.of(stated, sample.weights, inner)
    shares = np.concatenate(
        [binned.rates(hits) for hits in simulated_hits(stated, n_draws, read_rng(rng))]
    )
    observed = binned.rates(hit[None, :])[0]
    tail = (1 - chosen) / 2
    band = np.quantile(shares, [tail, 1 - tail], axis=0)
    errors = np.abs(shares - binned.stated) @ binned.share
    ece = float(np.abs(observed - binned.stated) @ binned.share)
    return ReliabilityCurve(
        lower_edge=binned.lower_edge,
        upper_edge=binned.upper_edge,
        n_items=binned.n_items,
        share=binned.share,
        stated=binned.stated,
        observed=observed,
        band_lower=band[0],
        band_upper=band[1],
        ece=ece,
        p_value=exceedance(errors, ece),
        level=chosen,
        of=of,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Binned:
    """The bins that hold items; they depend on what was stated only."""

    index: Ints
    weights: Floats
    lower_edge: Floats
    upper_edge: Floats
    n_items: Ints
    share: Floats
    stated: Floats

    @classmethod
    def of(cls, stated: Floats, weights: Floats, inner: Floats) -> _Binned:
        edges = np.concatenate([[0.0], inner, [1.0]])
        place = np.searchsorted(inner, stated, side="left")
        kept, index = np.unique(place, return_inverse=True)
        mass = group_sums(index, weights, len(kept))
        return cls(
            index=index,
            weights=weights,
            lower_edge=edges[kept],
            upper_edge=edges[kept + 1],
            n_items=np.bincount(index),
            share=mass / mass.sum(),
            stated=group_sums(index, weights * stated, len(kept)) / mass,
        )

    def rates(self, hits: Floats) -> Floats:
        """(draws, bins) share of hits in each bin."""
        moments = cell_moments(self.index, self.weights)
        return hits @ moments / (self.share * self.weights.sum())


def _stated(sample: Labelled, outcome: object | None) -> tuple[Floats, Floats, str]:
    """(n,) stated probabilities, whether they came true, and what they are about."""
    reports = sample.reports
    if outcome is not None:
        return _stated_for(reports, sample.labels, outcome)
    answers = reports.answers()
    if isinstance(reports, AnswerConfidence):
        stated = reports.confidence
    elif isinstance(reports, Distributions):
        stated = reports.probabilities.max(axis=1)
    else:
        message = (
            f"a reliability curve is about probabilities, but the predictions report a "
            f"{reports.about.title}.\nhint: use trueup.evaluate for its calibration."
        )
        raise InvalidInputError(message)
    hit = (cast("Ints", answers) == sample.labels).astype(np.float64)
    return stated, hit, "confidence of the answer"


def _stated_for(
    reports: Reports, labels: Ints, outcome: object
) -> tuple[Floats, Floats, str]:
    if not isinstance(reports, Distributions):
        message = (
            f"outcome={outcome!r} needs a probability for every outcome, but the "
            f"predictions report {reports.about.title}.\nhint: leave outcome out."
        )
        raise InvalidInputError(message)
    column = int(read_labels([outcome], reports.outcomes)[0])
    hit = (labels == column).astype(np.float64)
    name = f"probability of {reports.outcomes[column]!r}"
    return reports.probabilities[:, column], hit, name


def _inner_edges(stated: Floats, weights: Floats, n_bins: int, binning: str) -> Floats:
    if binning == "equal-width":
        return _binning.width_edges(n_bins)
    if binning == "equal-mass":
        return _binning.mass_edges(stated, weights, n_bins)
    raise UnknownNameError.of("binning", binning, BINNINGS)
