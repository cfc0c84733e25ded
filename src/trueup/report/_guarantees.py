"""The guarantee at every rung and under every loss, and as a curve over errors."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from trueup.audit.bounds import worst_case_improvement
from trueup.audit.guarantees import ladder
from trueup.core.losses import LogLoss, get_loss
from trueup.errors import TrueupError
from trueup.report._material import Material, Progress, quiet
from trueup.report._words import belief, loss_title, rung_title
from trueup.report.summary import Curve, Guarantee
from trueup.solve.certificate import Certificate

_POINTS = 26
_REFITS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.2)
"""Errors at which the map is fitted again, in units of its break-even."""
_NO_REACH = 0.05
"""How far a curve is drawn that is zero everywhere."""
_MOST_EXACT = 30_000
"""Pairs times outcomes up to which a table's exact worst case is computed."""


def chosen_guarantee(given: Material) -> Guarantee:
    """The guarantee of the map the report is about."""
    return _guarantee(given, given.fitted.certificate, is_chosen=True)


def all_guarantees(
    given: Material, chosen: Guarantee, progress: Progress
) -> tuple[tuple[Guarantee, ...], tuple[str, ...]]:
    """Every rung the reference has, under every loss that fits; and what was left out.

    Each is fitted with the options of the map the report is about.
    """
    wanted = list(_wanted(given))
    rows, left_out = [], []
    for place, (loss, rung, caps) in enumerate(wanted):
        progress(
            f"guarantee at rung {rung_title(rung, caps)}, {loss_title(loss)}",
            place / len(wanted),
        )
        if (loss, rung, caps) == (chosen.loss, chosen.rung, chosen.caps):
            rows.append(chosen)
            continue
        try:
            again = given.fit(
                loss=loss, rung=rung, caps=caps, error=given.trust.reference_error
            )
        except TrueupError as error:
            reason = str(error).split("\nhint:", maxsplit=1)[0]
            left_out.append(f"{loss_title(loss)} at {rung_title(rung, caps)}: {reason}")
            continue
        rows.append(_guarantee(given, again.certificate, is_chosen=False))
    return tuple(rows), (*_undefined(given), *left_out)


def _wanted(given: Material) -> Iterator[tuple[str, str, bool]]:
    own = given.fitted.loss
    about = given.primary.about
    others = [loss for loss in about.losses if loss != own]
    if _is_slow(given):
        others = []
    undefined = _has_zeros(given)
    for loss in (own, *others):
        if isinstance(get_loss(loss, about), LogLoss) and undefined:
            continue
        for rung, caps in ladder(given.joint, given.trust):
            yield loss, rung, caps


def _is_slow(given: Material) -> bool:
    """Whether fitting one loss more would take minutes: large tables, not cells."""
    return not given.is_sampled and not _is_small(given)


def _undefined(given: Material) -> list[str]:
    if _is_slow(given):
        size = f"{len(given.joint.counts):,} pairs of reports"
        return [f"other losses: slow with {size}; cells='auto' is not"]
    if "log" in given.primary.about.losses and _has_zeros(given):
        zeros = "the primary rules out outcomes by a probability of zero"
        return [f"log loss: infinite, because {zeros}"]
    return []


def _has_zeros(given: Material) -> bool:
    merged = given.fitted.cells.merge(given.primary)
    return given.fitted.floor is None and bool((merged.keys() == 0).any())


def _guarantee(given: Material, proof: Certificate, *, is_chosen: bool) -> Guarantee:
    return Guarantee(
        loss=proof.loss,
        rung=proof.trust,
        caps=proof.caps,
        title=rung_title(proof.trust, proof.caps),
        belief=belief(proof.trust, proof.caps, given.names[1]),
        guaranteed_improvement=proof.guaranteed_improvement,
        supported=proof.supported,
        reason=proof.reason,
        fitted=proof.fitted,
        certified=proof.certified,
        lower=proof.lower,
        optimism=proof.optimism,
        steepness=proof.steepness,
        break_even_reference_error=_break_even(given, proof, is_chosen=is_chosen),
        is_chosen=is_chosen,
    )


def _break_even(given: Material, proof: Certificate, *, is_chosen: bool) -> float:
    """Where the guarantee, its allowance for sampling included, reaches zero.

    With its multipliers fixed the bound falls along a line. For a table the exact
    break-even is a linear programme, worth its time for the one map that is shown.
    """
    if is_chosen and not given.is_sampled and _is_small(given):
        return proof.break_even_reference_error
    now = proof.lower if given.is_sampled else proof.guaranteed_improvement
    if proof.steepness <= 0:
        return math.inf if now > 0 else 0.0
    return max(0.0, proof.reference_error + now / proof.steepness)


def _is_small(given: Material) -> bool:
    return len(given.joint.counts) * given.joint.n_outcomes <= _MOST_EXACT


def curves(
    given: Material, rows: tuple[Guarantee, ...], progress: Progress
) -> tuple[Curve, ...]:
    """One curve a guarantee, and for the chosen one the best map for each error."""
    found = [_line(given, row) for row in rows]
    chosen = next((row for row in rows if row.is_chosen), None)
    if chosen is None:
        return tuple(found)
    if not given.is_sampled and _is_small(given):
        place = rows.index(chosen)
        found[place] = _exact(given, chosen)
    if 0 < chosen.break_even_reference_error < math.inf:
        found.append(_fitted_again(given, chosen, progress))
    return tuple(found)


def _errors(row: Guarantee, used: float) -> tuple[float, ...]:
    reach = row.break_even_reference_error
    reach = reach if 0 < reach < math.inf else _NO_REACH
    grid = np.linspace(0, 1.25 * max(reach, used), _POINTS)
    return tuple(sorted({*grid.tolist(), reach, used}))


def _line(given: Material, row: Guarantee) -> Curve:
    """The certificate's own line: valid at every error, whatever the map."""
    used = given.trust.reference_error
    now = row.lower if given.is_sampled else row.guaranteed_improvement
    errors = _errors(row, used)
    values = [max(0.0, now - row.steepness * (error - used)) for error in errors]
    return Curve(row.loss, row.title, "this map", errors, tuple(values))


def _exact(given: Material, row: Guarantee) -> Curve:
    """The exact worst case of a table's map at each error."""
    used = given.trust.reference_error
    reach = row.break_even_reference_error
    errors = tuple(sorted({*_errors(row, used)[::3], used, *_finite(reach)}))
    is_point = row.rung == "point"
    values = []
    merged = given.fitted.cells.merge(given.primary)
    with quiet():
        for error in errors:
            found = worst_case_improvement(
                given.fitted,
                merged,
                given.reference,
                loss=row.loss,
                trust=None if is_point else row.rung,
                caps=row.caps if row.rung == "answer-confidence" else None,
                groups=given.groups,
                sample_weight=given.sample_weight,
                cells=given.fitted.cells,
                reference_error=error,
            )
            values.append(max(0.0, float(found)))
    return Curve(row.loss, row.title, "this map", errors, tuple(values))


def _finite(number: float) -> list[float]:
    return [number] if math.isfinite(number) else []


def _fitted_again(given: Material, row: Guarantee, progress: Progress) -> Curve:
    errors = [step * row.break_even_reference_error for step in _REFITS]
    values = []
    for place, error in enumerate(errors):
        progress("guarantee for larger reference errors", place / len(errors))
        again = given.fit(loss=row.loss, rung=row.rung, caps=row.caps, error=error)
        values.append(again.certificate.guaranteed_improvement)
    return Curve(row.loss, row.title, "fitted again", tuple(errors), tuple(values))
