"""The result in sentences: what can be said, and what cannot."""

from __future__ import annotations

import math

from trueup.report._material import Material
from trueup.report._words import capitalised, count, loss_title, number, percent
from trueup.report.summary import Changes, Contradictions, Guarantee, Labelled

_FEW_PER_CELL = 8


def headline(chosen: Guarantee) -> str:
    """One line: the guarantee, or that there is none."""
    if chosen.guaranteed_improvement <= 0:
        return "Nothing is guaranteed"
    fall = number(chosen.guaranteed_improvement)
    return f"{capitalised(loss_title(chosen.loss))} falls by at least {fall}"


def plain(
    given: Material, chosen: Guarantee, changed: Changes, measured: Labelled | None
) -> tuple[str, ...]:
    """The result for somebody who reads nothing else."""
    sentences = [_guaranteed(given, chosen), _changed(given, changed)]
    if measured is not None:
        sentences.append(measured.explanation)
    return tuple(sentences)


def _guaranteed(given: Material, chosen: Guarantee) -> str:
    primary, reference = given.names
    title = loss_title(chosen.loss)
    if chosen.guaranteed_improvement <= 0:
        reason = f" {capitalised(chosen.reason)}." if chosen.reason else ""
        return (
            f"Even if {chosen.belief}, these items do not prove that the map improves "
            f"{primary}.{reason} This is a normal result. It does not say that "
            f"{primary} is calibrated, only that {reference} cannot show otherwise."
        )
    sure = " (with 95 % confidence)" if given.is_sampled else ""
    until = chosen.guaranteed_until
    limit = (
        f" Some improvement stays guaranteed while {reference}’s calibration error is "
        f"below {number(until)}."
        if math.isfinite(until)
        else f" It holds however wrong {reference} is."
    )
    return (
        f"If {chosen.belief}, then replacing what {primary} says by what the map says "
        f"lowers its {title} by at least {number(chosen.guaranteed_improvement)} an "
        f"item{sure}, whatever the truth is.{limit}"
    )


def _changed(given: Material, changed: Changes) -> str:
    before, after = (
        _stated(changed, value) for value in (changed.mean_before, changed.mean_after)
    )
    what = changed.scale.title
    if changed.share_moved == 0:
        return f"The map leaves every report of {given.names[0]} as it is."
    answers = (
        f"; {percent(changed.answers_changed, 1)} of the answers change"
        if changed.answers_changed
        else "; no answer changes"
        if given.primary.answers() is not None
        else ""
    )
    return (
        f"Applied to the {count(len(given.primary))} items here, the map moves the "
        f"mean {what} from {before} to {after}{answers}."
    )


def _stated(changed: Changes, value: float) -> str:
    is_share = changed.scale.low == 0 and changed.scale.high == 1
    return percent(value, 1) if is_share else number(value, 4)


def not_concluded(
    given: Material,
    chosen: Guarantee,
    audited: Contradictions | None,
    measured: Labelled | None,
) -> tuple[str, ...]:
    """What the numbers on the page do not say."""
    primary, reference = given.names
    trust = (
        f"That {reference} deserves the trust. The guarantee rests on an assumption "
        "that nothing but labels can confirm. Higher rungs promise more because they "
        "assume more."
    )
    points = [trust]
    if chosen.guaranteed_improvement > 0:
        points.append(
            f"That the result is calibrated. The guarantee is about the fall of the "
            f"{loss_title(chosen.loss)}; errors that {reference} cannot see remain."
        )
        points.append(
            "That other losses fall too. A map is fitted for one loss and may do worse "
            "under another."
        )
    else:
        points.append(
            f"That {primary} is right. A guarantee of zero only means that "
            f"{reference}, trusted this far, on these items, proves no error."
        )
        if _is_offered(given):
            points.append(
                "That the map should be used. It is the best guess and is offered for "
                "that reason only: it may do harm."
            )
    if audited is not None and audited.verdict != "contradiction":
        points.append(
            "That the two agree because both are right. No contradiction was found at "
            "this resolution; an overconfident but well-informed predictor often "
            "passes."
        )
    points += _about_items(given, chosen)
    if measured is None:
        points.append(
            "How large the improvement really is. The guarantee is a worst case, not "
            "an estimate; some labels would tell."
        )
    return tuple(points)


def _is_offered(given: Material) -> bool:
    return bool((given.primary.keys() != given.better.keys()).any())


def _about_items(given: Material, chosen: Guarantee) -> list[str]:
    n_items = count(len(given.primary))
    points = []
    if given.is_sampled:
        points.append(
            f"Anything about items unlike these {n_items}. If tomorrow’s items differ, "
            "certify the map again on new unlabelled ones (recertify)."
        )
    else:
        points.append(
            f"Anything about other items: these {n_items} are taken as the whole "
            'population. On a sample the number is too high; cells="auto" allows '
            "for that."
        )
    if chosen.optimism > 0 and chosen.guaranteed_improvement > 0 and given.is_sampled:
        points.append(
            f"That the larger number {number(chosen.fitted)} holds, which the map "
            "shows on the items it was fitted on. On other items it is "
            f"{number(chosen.certified)}, and allowing for chance "
            f"{number(chosen.lower)}."
        )
    return points
