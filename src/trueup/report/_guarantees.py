"""The guarantee at every rung and under every loss, and as a curve over errors."""

from __future__ import annotations

import math

import numpy as np

from trueup.audit.bounds import worst_case_improvement
from trueup.audit.guarantees import ladder
from trueup.errors import TrueupError
from trueup.report._material import Material, Progress, part, quiet
from trueup.report._words import belief, loss_title, rung_title
from trueup.report.summary import Curve, Guarantee
from trueup.solve.certificate import Certificate

_POINTS = 26
_REFITS = (0.3, 0.6, 0.9, 1.2)
"""Errors at which the map is fitted again, in units of its break-even."""
_NO_REACH = 0.05
"""How far a curve is drawn that is zero everywhere."""
_MOST_EXACT = 30_000
"""Pairs times outcomes up to which a table's exact worst case is computed."""


def chosen_guarantee(given: Material) -> Guarantee:
    """The guarantee of the map the report is about."""
    return _guarantee(given, given.fitted.certificate, is_chosen=True)


def certificate_break_even(given: Material) -> float:
    """The break-even on the map's certificate, unless that would take too long."""
    if not given.is_sampled and not _is_small(given):
        return chosen_guarantee(given).guaranteed_until
    return given.fitted.certificate.break_even_reference_error


def own_guarantees(
    given: Material, chosen: Guarantee, progress: Progress
) -> tuple[list[Guarantee], list[str]]:
    """Every rung the reference has, under the map's own loss; and what was left out.

    Each is fitted with the options of the map the report is about.
    """
    return _fitted(given, chosen, [chosen.loss], progress)


def other_guarantees(
    given: Material, chosen: Guarantee, progress: Progress
) -> tuple[list[Guarantee], list[str]]:
    """The same under every other loss that fits, as far as there is time."""
    about = given.primary.about
    others = [loss for loss in about.losses if loss != chosen.loss]
    if not others:
        return [], []
    if not given.is_sampled and not _is_small(given):
        size = f"{len(given.joint.counts):,} pairs of reports"
        return [], [f"other losses: slow with {size}; cells='auto' is not"]
    left_out = []
    if _has_zeros(given) and "log" in others:
        others.remove("log")
        zeros = "the primary rules out outcomes by a probability of zero"
        left_out.append(f"log loss: infinite, because {zeros}")
    rows, more = _fitted(given, chosen, others, progress)
    return rows, left_out + more


def _fitted(
    given: Material, chosen: Guarantee, losses: list[str], progress: Progress
) -> tuple[list[Guarantee], list[str]]:
    rows: list[Guarantee] = []
    left_out: list[str] = []
    for place, loss in enumerate(losses):
        ends = place / len(losses), (place + 1) / len(losses)
        found = _ladder_of(given, chosen, loss, part(progress, *ends))
        if found is None:
            left_out.append(f"{loss_title(loss)}: no time was left (time_limit)")
            continue
        rows += found[0]
        left_out += found[1]
    return rows, left_out


def _ladder_of(
    given: Material, chosen: Guarantee, loss: str, progress: Progress
) -> tuple[list[Guarantee], list[str]] | None:
    """One loss at every rung; None where it is optional and time ran out."""
    rungs = ladder(given.joint, given.trust)
    rows: list[Guarantee] = []
    left_out: list[str] = []
    for step, (rung, caps) in enumerate(rungs):
        title = rung_title(rung, caps)
        progress(f"guarantee at rung {title}, {loss_title(loss)}", step / len(rungs))
        if (loss, rung, caps) == (chosen.loss, chosen.rung, chosen.caps):
            rows.append(chosen)
            continue
        if loss != chosen.loss and given.is_late:
            return None
        try:
            rows.append(_again(given, loss, rung, caps))
        except TrueupError as error:
            reason = str(error).split("\nhint:", maxsplit=1)[0]
            left_out.append(f"{loss_title(loss)} at {title}: {reason}")
    return rows, left_out


def _again(given: Material, loss: str, rung: str, caps: bool) -> Guarantee:
    error = given.trust.reference_error
    again = given.fit(loss=loss, rung=rung, caps=caps, error=error)
    return _guarantee(given, again.certificate, is_chosen=False)


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
        guaranteed_until=_until(given, proof, is_chosen=is_chosen),
        is_chosen=is_chosen,
    )


def _until(given: Material, proof: Certificate, *, is_chosen: bool) -> float:
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


def curves(given: Material, rows: tuple[Guarantee, ...]) -> list[Curve]:
    """One curve a guarantee: of its map, fitted once."""
    return [
        _exact(given, row)
        if row.is_chosen and not given.is_sampled and _is_small(given)
        else _line(given, row)
        for row in rows
    ]


def _errors(row: Guarantee, used: float) -> tuple[float, ...]:
    reach = row.guaranteed_until
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
    reach = row.guaranteed_until
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


def fitted_again(given: Material, row: Guarantee, progress: Progress) -> list[Curve]:
    """The best map for each error, at the rung of the report; or nothing to show."""
    used, until = given.trust.reference_error, row.guaranteed_until
    if not 0 < until < math.inf:
        return []
    points = {used: row.guaranteed_improvement}
    for place, step in enumerate(_REFITS):
        progress("guarantee for larger reference errors", place / len(_REFITS))
        if given.is_late:
            break
        error = step * until
        again = given.fit(loss=row.loss, rung=row.rung, caps=row.caps, error=error)
        points[error] = again.certificate.guaranteed_improvement
    errors = tuple(sorted(points))
    values = tuple(points[error] for error in errors)
    return [Curve(row.loss, row.title, "fitted again", errors, values)]
