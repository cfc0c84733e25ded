"""check_reference(): how far the reference can be trusted, from a few labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from trueup import _validate
from trueup._render import html_table
from trueup.core.moments import RUNGS
from trueup.core.reports import AnswerConfidence, PointReport
from trueup.errors import InvalidInputError, UnknownNameError
from trueup.evaluate import _render
from trueup.evaluate._inputs import (
    Labelled,
    read_codes,
    read_labelled,
    read_rng,
    read_whole_number,
)
from trueup.evaluate._resampling import Estimate, debiased_norm
from trueup.evaluate._rung_advice import Advice, RungCheck
from trueup.evaluate._rung_tests import (
    Chance,
    cap_p_value,
    confidences,
    hits_by_chance,
    labels_by_chance,
    measured,
)
from trueup.evaluate._rungs import CAPS, Ladder, RungMoments, point_moments

MOST_BINS, ITEMS_PER_BIN, ITEMS_PER_ANSWER = 10, 50, 20


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceCheck:
    """How well the reference is calibrated at each rung, and where to stand.

    ``check["confidence"]`` is the :class:`RungCheck` of a rung.

    Attributes
    ----------
    rungs
        The rungs, the least demanding first.
    absent
        Rungs this reference does not have, and why.
    recommended
        The most demanding rung that, like all rungs below it, is not contradicted by
        these labels or has a tolerable error; the first rung if there is none.
    recommendation
        The same as a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> check = check_reference(np.full(100, .9), [1] * 60 + [0] * 40)
    >>> check.recommendation[:48]
    "These 100 labels contradict every rung, even 'me"
    >>> round(check["mean"].error.value, 4)
    0.3
    """

    rungs: tuple[RungCheck, ...]
    absent: Mapping[str, str]
    recommended: RungCheck
    recommendation: str
    n_items: int
    n_groups: int
    level: float
    n_resamples: int

    def __getitem__(self, name: str) -> RungCheck:
        for one in self.rungs:
            if one.title == name:
                return one
        if name in self.absent:
            message = f"rung {name!r} is absent: {self.absent[name]}."
            raise InvalidInputError(message)
        raise UnknownNameError.of("rung", name, [one.title for one in self.rungs])

    def __iter__(self) -> Iterator[RungCheck]:
        return iter(self.rungs)

    def __len__(self) -> int:
        return len(self.rungs)

    def __repr__(self) -> str:
        one = self.recommended
        return (
            f"ReferenceCheck({self.n_items:,} items: stand on {one.title!r} with "
            f"reference_error={one.budget}, p-value {_render.p_value(one.p_value)})"
        )

    def table(self) -> str:
        """The rungs as text for a terminal, and the recommendation."""
        lines = [self._caption(), _render.text_table(_HEADER, self._rows())]
        return "\n".join([*lines, *self._remarks()])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "n_items": self.n_items,
            "n_groups": self.n_groups,
            "level": self.level,
            "n_resamples": self.n_resamples,
            "rungs": [_plain(one) for one in self.rungs],
            "absent": dict(self.absent),
            "recommended": self.recommended.title,
            "recommendation": self.recommendation,
        }

    def _repr_html_(self) -> str:
        return html_table(self._caption(), _HEADER, self._rows(), self._remarks())

    def _caption(self) -> str:
        groups = f" in {self.n_groups:,} groups" if self.n_groups else ""
        return (
            f"Calibration of the reference on {self.n_items:,} labelled items{groups}; "
            f"{self.level:.0%} intervals for the true error over the cells"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                one.title,
                f"{one.n_cells:,}",
                f"{one.n_moments:,}",
                _render.number(one.error.value),
                _render.number(one.by_chance),
                _render.number(one.debiased),
                _render.interval(one.error.lower, one.error.upper),
                _render.p_value(one.p_value),
                "contradicted" if one.p_value < 1 - self.level else "",
            )
            for one in self.rungs
        ]

    def _remarks(self) -> list[str]:
        absent = [f"absent: {name}: {why}" for name, why in self.absent.items()]
        return [*absent, self.recommendation]


_HEADER = (
    "rung",
    "cells",
    "moments",
    "error",
    "by chance",
    "debiased",
    "interval",
    "p-value",
    "",
)
_NO_DISTRIBUTION = "the reference reports an answer and a confidence, no distribution"


def check_reference(
    reference: object,
    labels: object,
    *,
    outcomes: Iterable[Any] | None = None,
    groups: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    n_bins: int | None = None,
    min_items: int = ITEMS_PER_ANSWER,
    level: float = 0.95,
    tolerable_error: float = 0.05,
    n_resamples: int = 1000,
    rng: np.random.Generator | None = None,
) -> ReferenceCheck:
    """Measure with labels how far the reference can be trusted, rung by rung.

    Fitting needs no labels, but rests on the reference. With a small labelled sample
    this says which rung of the ladder the labels contradict, and which
    ``reference_error`` a rung can be fitted with.

    Parameters
    ----------
    reference, labels, outcomes
        The reference's reports and what happened, as in :func:`trueup.evaluate`.
    groups
        One context value an item: calibration is then checked inside each group.
    sample_weight
        How much each item counts.
    n_bins
        Equal-mass bins of the confidence, common to all answers and groups; by default
        one for every 50 items, at most 10. Equal confidences are never separated.
    min_items
        In each bin, answers with fewer items than this are pooled.
    level
        Of the intervals; a rung is contradicted if its p-value is below 1 - level.
    tolerable_error
        A contradicted rung is still recommended if its error, with its budget, is at
        most this: with many labels every real reference is contradicted a little.
    n_resamples
        Number of simulated samples behind each interval and p-value.
    rng
        Their source; ``numpy.random.default_rng(0)`` when left out.

    Returns
    -------
    ReferenceCheck
        Error, interval and p-value for each rung, and a recommendation.

    Notes
    -----
    *Cells.* ``mean``: one; ``confidence``: the bins; ``answer-confidence``: bins split
    by answer; ``distribution``: the same cells with all K moments (one for two
    outcomes). All are split by group. A fit with finer cells assumes more than was
    checked here: an error over finer cells can only be larger.

    *Test.* The error of labels simulated from the reference's own reports: for rungs
    about the answer only whether it is right, with the stated confidence; for
    ``distribution`` the outcome itself. Given the reports the test is exact whatever
    the number of cells. ``mean`` believes less than that (only the averages agree), so
    its p-value is the larger of this one and one from normal noise; caps add exact
    binomial tails with Bonferroni's correction; point reports, which no labels can be
    simulated from, are tested with normal noise. Items are taken to be independent.

    *Interval.* For the true error over the same cells. The measured error is biased
    upwards on small samples, the more so the more moments it sums; both limits allow
    for that and hold for calibrated references too.

    Examples
    --------
    A reference that says 0.7 and is right in 70 of 100 cases:

    >>> import numpy as np
    >>> check = check_reference(np.full(100, .7), [1] * 70 + [0] * 30)
    >>> check.recommended.rung, round(check.recommended.error.value, 4)
    ('distribution', 0.0)
    >>> 0.05 < check.recommended.reference_error < 0.15
    True
    """
    chosen = _validate.unit_number(level, "level", inclusive=False)
    tolerable = _validate.non_negative(tolerable_error, "tolerable_error")
    n_draws = read_whole_number(n_resamples, "n_resamples", at_least=100)
    sample = read_labelled(
        reference,
        labels,
        name="reference",
        outcomes=outcomes,
        sample_weight=sample_weight,
    )
    codes = read_codes(groups, sample.n_given, "groups")
    group = None if codes is None else codes[sample.used]
    if n_bins is None:
        bins = min(MOST_BINS, max(1, len(sample) // ITEMS_PER_BIN))
    else:
        bins = read_whole_number(n_bins, "n_bins", at_least=1)
    checker = _Checker(sample, chosen, n_draws, read_rng(rng))
    if isinstance(sample.reports, PointReport):
        rungs = [checker.point(point_moments(sample, group, bins))]
    else:
        rare = read_whole_number(min_items, "min_items", at_least=1)
        rungs = checker.ladder(Ladder.of(sample, group, bins, rare))
    absent = {}
    if isinstance(sample.reports, AnswerConfidence):
        absent[RUNGS[3]] = _NO_DISTRIBUTION
    states_answers = isinstance(sample.reports, AnswerConfidence)
    advice = Advice(tuple(rungs), chosen, tolerable, len(sample), states_answers)
    return ReferenceCheck(
        rungs=tuple(rungs),
        absent=MappingProxyType(absent),
        recommended=advice.best,
        recommendation=advice.sentence(),
        n_items=len(sample),
        n_groups=0 if group is None else len(np.unique(group)),
        level=chosen,
        n_resamples=n_draws,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Checker:
    """Measures and tests one rung after another."""

    sample: Labelled
    level: float
    n_draws: int
    rng: np.random.Generator

    def ladder(self, ladder: Ladder) -> list[RungCheck]:
        checked: list[RungCheck] = []
        known: dict[str, Chance] = {}
        for moments in ladder.rungs():
            error, noise = measured(moments, self.level, self.n_draws, self.rng)
            known[moments.rung] = self._chance(moments, noise, known)
            checked.append(self._check(moments, error, known[moments.rung]))
        return checked

    def point(self, moments: RungMoments) -> RungCheck:
        return self._check(
            moments, *measured(moments, self.level, self.n_draws, self.rng)
        )

    def _chance(
        self, moments: RungMoments, noise: Chance, known: Mapping[str, Chance]
    ) -> Chance:
        if moments.rung == CAPS:
            plain = known[RUNGS[2]].p_value
            both = min(1.0, 2 * min(plain, cap_p_value(moments)))
            return noise._replace(p_value=both)
        reports = self.sample.reports
        if moments.rung == RUNGS[3]:
            return labels_by_chance(moments, reports, self.n_draws, self.rng)
        chances = confidences(reports)
        shown = hits_by_chance(moments, chances, self.n_draws, self.rng)
        if moments.rung == RUNGS[0]:
            return shown._replace(p_value=max(shown.p_value, noise.p_value))
        return shown

    def _check(
        self, moments: RungMoments, error: Estimate, chance: Chance
    ) -> RungCheck:
        norm = moments.norm(self.level)
        if chance.p_value >= (1 - self.level) / 2:
            # The exact test finds nothing, so the approximate limit must not either.
            error = error._replace(lower=0.0)
        if moments.rung in RUNGS:
            # A share cannot be off by more than one, nor a distribution by two in L1.
            whole = len(moments.cell_of_column) > moments.n_cells
            error = error._replace(upper=min(error.upper, 2.0 if whole else 1.0))
        bias_free = debiased_norm(norm.deviation, moments.noise_scale, norm.equality)
        return RungCheck(
            rung=RUNGS[2] if moments.rung == CAPS else moments.rung,
            caps=moments.rung == CAPS,
            error=error,
            by_chance=chance.error,
            debiased=min(bias_free, error.value),
            p_value=chance.p_value,
            n_cells=moments.n_cells,
            n_moments=len(norm.deviation),
        )


def _plain(one: RungCheck) -> dict[str, Any]:
    return {
        "rung": one.rung,
        "caps": one.caps,
        "error": dict(one.error._asdict()),
        "by_chance": one.by_chance,
        "debiased": one.debiased,
        "p_value": one.p_value,
        "n_cells": one.n_cells,
        "n_moments": one.n_moments,
        "reference_error": one.reference_error,
    }
