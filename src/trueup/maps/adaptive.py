"""Fitting and certifying maps on adaptive cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from trueup import _validate
from trueup._validate import Ints
from trueup.core.assertions import ASSERTIONS, check_rung, warn_without_skill
from trueup.core.cells import Cells
from trueup.core.joint import JointTable
from trueup.core.losses import GeneratorLoss, ProperLoss
from trueup.core.moments import Trust, choose_trust
from trueup.core.pairing import paired_reports
from trueup.core.reports import Reports
from trueup.core.resolution import Resolution, two_folds
from trueup.errors import InvalidInputError
from trueup.maps.report_map import FittedOn, ReportMap, floored
from trueup.maps.request import Request
from trueup.maps.rules import Tilts, adaptive_loss
from trueup.solve.certificate import Certificate
from trueup.solve.crossfit import (
    FEWEST_ITEMS,
    CrossFit,
    Estimate,
    cross_fit,
    recertified,
)
from trueup.solve.sample import Sample

SAMPLE = (
    "estimated on {n_items:,} items that are a sample of those the map will meet, with "
    "95 % confidence"
)


def fit_adaptive(
    primary: Reports, reference: Reports, request: Request, cells: Cells
) -> ReportMap:
    """Cross-fit a map; offered, marked, even where nothing is guaranteed."""
    weights = _validate.sample_weights(request.sample_weight, len(primary))
    codes, names = _validate.group_codes(request.groups, len(primary))
    used = np.flatnonzero(weights > 0)
    sample = Sample(primary, reference, codes, len(names), weights).take(used)
    joint = JointTable.from_reports(sample.primary, sample.reference)
    trust = choose_trust(joint, request.trust, request.caps, request.reference_error)
    trust = replace(trust, n_groups=len(names))
    check_rung(request.assume, trust.rung)
    loss = adaptive_loss(request.loss, primary.about)
    blocks = block_codes(request.blocks, len(primary))
    blocks = None if blocks is None else blocks[used]
    if request.assume:
        warn_without_skill(sample.reference, sample.weights)
    fitted = _cross_fit(sample, loss, trust, request, blocks)
    estimate = None if fitted is None else fitted.estimate
    certificate = described(
        estimate, fitted, loss, trust, n_items=len(sample), assume=request.assume
    )
    keep = certificate.supported or request.keep_unsupported
    return ReportMap(
        rule=Tilts(
            outcomes=primary.outcomes,
            about=primary.about,
            loss=loss.name,
            trust=trust,
            assume=request.assume,
            groups=names,
            halves=fitted if keep else None,
            own_loss=loss if isinstance(loss, GeneratorLoss) else None,
        ),
        loss=loss.name,
        cells=cells,
        floor=request.floor,
        certificate=request.annotated(certificate),
        fitted_on=FittedOn.of(joint, len(sample), len(names), request.n_normalised),
    )


def recertify(
    fitted: ReportMap,
    primary: object,
    reference: object,
    *,
    groups: Iterable[Any] | None,
    sample_weight: object | None,
    blocks: Iterable[Any] | None,
) -> Certificate:
    """Certify a fitted map on new items."""
    rule = fitted.rule
    if not isinstance(rule, Tilts):
        message = (
            "only maps on adaptive cells keep what is needed to certify them again.\n"
            "hint: use trueup.worst_case_improvement for this map."
        )
        raise InvalidInputError(message)
    if rule.groups and groups is None:
        message = (
            "the reference was trusted within groups, so recertify needs groups too.\n"
            "hint: pass groups=, one value an item."
        )
        raise InvalidInputError(message)
    first, second = paired_reports(primary, reference, rule.outcomes)
    first = floored(first, fitted.floor)
    weights = _validate.sample_weights(sample_weight, len(first))
    codes = rule.group_codes(groups, len(first))
    sample = Sample(first, second, codes, len(rule.groups), weights)
    numbered = block_codes(blocks, len(first))
    loss = rule.deployed_loss()
    estimate = None
    if rule.halves is not None:
        estimate = recertified(rule.halves, sample, loss, rule.trust, numbered)
    return described(
        estimate,
        None if rule.halves is None else replace(rule.halves, find_break_even=None),
        loss,
        rule.trust,
        n_items=len(first),
        assume=rule.assume,
    )


def block_codes(blocks: Iterable[Any] | None, n_items: int) -> Ints | None:
    """Numbers of the blocks, or None."""
    if blocks is None:
        return None
    codes, _ = _validate.group_codes(blocks, n_items, "blocks")
    return codes


def _cross_fit(
    sample: Sample,
    loss: ProperLoss,
    trust: Trust,
    request: Request,
    blocks: Ints | None,
) -> CrossFit | None:
    n_units = len(sample) if blocks is None else len(np.unique(blocks))
    if n_units < FEWEST_ITEMS or loss.name == "zero-one":
        return None
    fold = two_folds(n_units, request.rng)
    if blocks is not None:
        fold = fold[np.unique(blocks, return_inverse=True)[1].ravel()]
    return cross_fit(
        sample,
        loss,
        trust,
        assume=request.assume,
        family=request.family,
        fold=fold,
        blocks=blocks,
        resolution=Resolution(),
    )


def described(
    estimate: Estimate | None,
    fitted: CrossFit | None,
    loss: ProperLoss,
    trust: Trust,
    *,
    n_items: int,
    assume: tuple[str, ...],
) -> Certificate:
    """A certificate in words and numbers."""
    found = estimate or Estimate(0.0, 0.0, 0.0, 0.0, n_items)
    supported = found.lower > 0
    halves = () if fitted is None else fitted.halves
    return Certificate(
        guaranteed_improvement=found.lower if supported else 0.0,
        upper_bound=max(found.fitted, found.lower, 0.0),
        loss=loss.name,
        assumption=_sentence(trust, assume, n_items),
        trust=trust.rung,
        caps=trust.caps,
        n_groups=trust.n_groups,
        reference_error=trust.reference_error,
        reference_free_improvement=0.0,
        steepness=found.steepness,
        tolerance=0.0,
        engine="cross-fitted on two halves",
        n_items=n_items,
        supported=supported,
        reason="" if supported else _reason(estimate, loss, n_items),
        fitted=found.fitted,
        certified=found.certified,
        lower=found.lower,
        n0=min((half.n0 for half in halves), default=0),
        n_cells=max((half.n_cells for half in halves), default=0),
        _compute_break_even=_break_even(found, fitted, trust),
    )


def _break_even(
    found: Estimate, fitted: CrossFit | None, trust: Trust
) -> Callable[[], float]:
    """Reference error at which the certified bound reaches zero.

    Multipliers chosen for this question tell more than those that certify the map at
    its own budget; a map that was loaded has only the latter.
    """

    def compute() -> float:
        at_zero = found.certified + trust.reference_error * found.steepness
        if at_zero <= 0:
            return 0.0
        quick = at_zero / found.steepness if found.steepness > 0 else float("inf")
        if fitted is None or fitted.find_break_even is None:
            return quick
        return max(quick, fitted.find_break_even())

    return compute


def _sentence(trust: Trust, assume: tuple[str, ...], n_items: int) -> str:
    sentence = trust.sentence(SAMPLE.format(n_items=n_items))
    if not assume:
        return sentence
    asserted = "; and ".join(f"{ASSERTIONS[name]} ({name!r})" for name in assume)
    return f"{sentence} Also asserted: {asserted}."


def _reason(estimate: Estimate | None, loss: ProperLoss, n_items: int) -> str:
    if loss.name == "zero-one":
        return "on adaptive cells the primary's answers are kept, which gains nothing"
    if estimate is None:
        return (
            f"{n_items:,} items are too few to fit on one half and certify on the "
            "other; use cells='exact' if these items are the whole population"
        )
    if estimate.certified > 0:
        return (
            f"no guarantee at this sample size: certified {estimate.certified:.4g}, "
            f"but the lower limit for {n_items:,} items is {estimate.lower:.4g}"
        )
    return (
        f"no guarantee: on items it was not fitted on the bound is "
        f"{estimate.certified:.4g}"
    )
