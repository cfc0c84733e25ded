"""summarise(): everything a report shows, gathered from a map and two predictors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trueup.core.assertions import ASSERTIONS
from trueup.maps._documents import this_version
from trueup.maps.report_map import ReportMap
from trueup.report import (
    _changes,
    _conclusions,
    _contradictions,
    _guarantees,
    _labelled,
)
from trueup.report._material import Material, Progress, part
from trueup.report._words import LOSS_MEANING, belief, loss_title, one_line
from trueup.report.summary import FORMAT, Assumption, ReportSummary


def summarise(
    fitted_map: ReportMap,
    primary: object,
    reference: object,
    *,
    labels: Iterable[Any] | None = None,
    names: tuple[str, str] = ("primary", "reference"),
    ids: Iterable[Any] | None = None,
    groups: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    blocks: Iterable[Any] | None = None,
    family: str | None = None,
    title: str | None = None,
    time_limit: float | None = 60.0,
    progress: Progress | None = None,
) -> ReportSummary:
    """Gather what a report says about a fitted map.

    The other rungs and losses are fitted on these items with the map's own options;
    with 10,000 items and six outcomes this takes seconds.

    Parameters
    ----------
    fitted_map
        What :func:`trueup.fit` or :func:`trueup.load` returned.
    primary, reference
        Both predictors on the items of the report, as :func:`trueup.fit` takes them;
        usually those the map was fitted on.
    labels
        What happened, where it is known: one an item, None where it is not. Used for
        the section on labels and for nothing else.
    names
        What to call the primary and the reference.
    ids
        Names of the items, for the list of the most-moved reports.
    groups, sample_weight, blocks, family
        As they were given to :func:`trueup.fit`: a map does not keep them.
    title
        Of the page.
    time_limit
        Seconds after which losses other than the map's own, and fits for larger
        reference errors, are left out; the page then says so. None for no limit.
    progress
        Called with what is being done and the share of all work behind it.

    Returns
    -------
    ReportSummary
        Plain values; see :func:`trueup.report.write_report`.

    Examples
    --------
    >>> import numpy as np
    >>> import trueup
    >>> primary, reference = np.array([.1, .7]), np.array([.5, .5])
    >>> fitted = trueup.fit(primary, reference, cells="exact")
    >>> summary = summarise(fitted, primary, reference, names=("tree", "logistic"))
    >>> print(summary.contradictions.contracts[0].sentence)
    Whenever tree says 10 % for “1” (50.0 % of the items), sell it this bet: it pays 1
    if 1 happens and receives 0.111 if 0 happens.
    """
    told = _silent if progress is None else progress
    given = Material.read(
        fitted_map,
        primary,
        reference,
        names=names,
        ids=ids,
        groups=groups,
        sample_weight=sample_weight,
        blocks=blocks,
        family=family,
        time_limit=time_limit,
    )
    happened = None if labels is None else list(labels)
    return _gathered(given, happened, title, told)


def _gathered(
    given: Material, labels: list[Any] | None, title: str | None, told: Progress
) -> ReportSummary:
    chosen = _guarantees.chosen_guarantee(given)
    own, left_out = _guarantees.own_guarantees(given, chosen, part(told, 0.0, 0.2))
    again = _guarantees.fitted_again(given, chosen, part(told, 0.2, 0.35))
    others, more = _guarantees.other_guarantees(given, chosen, part(told, 0.35, 0.65))
    rows = (*own, *others)
    told("what changes", 0.65)
    changed = _changes.changes(given)
    told("contradictions", 0.7)
    audited, why = _contradictions.contradictions(given)
    measured = None
    if labels is not None:
        measured = _labelled.labelled(given, labels, chosen, part(told, 0.75, 1.0))
    told("done", 1.0)
    return ReportSummary(
        format=FORMAT,
        created_by=this_version(),
        title=one_line(title or f"{given.names[0]} against {given.names[1]}", 200),
        headline=_conclusions.headline(chosen),
        plain=_conclusions.plain(given, chosen, changed, measured),
        primary=given.names[0],
        reference=given.names[1],
        n_items=len(given.primary),
        outcomes=given.outcomes,
        primary_reports=given.primary.about.title,
        reference_reports=given.reference.about.title,
        loss=chosen.loss,
        loss_title=f"{loss_title(chosen.loss)}: {LOSS_MEANING[chosen.loss]}",
        assumption=_assumption(given),
        guarantee=chosen,
        guarantees=rows,
        break_even_reference_error=_guarantees.certificate_break_even(given),
        curves=(*_guarantees.curves(given, rows), *again),
        left_out=(*left_out, *more, *why),
        changes=changed,
        contradictions=audited,
        labelled=measured,
        not_concluded=_conclusions.not_concluded(given, chosen, audited, measured),
    )


def _assumption(given: Material) -> Assumption:
    proof = given.fitted.certificate
    n_items = f"{proof.n_items:,}"
    population = (
        f"The {n_items} items are a sample of those the map will meet, drawn "
        "independently of each other; the guarantee holds with 95 % confidence."
        if given.is_sampled
        else f"The {n_items} items are taken as everything there is: nothing is said "
        "about other items."
    )
    return Assumption(
        sentence=proof.assumption,
        belief=belief(proof.trust, proof.caps, given.names[1]),
        rung=proof.trust,
        caps=proof.caps,
        n_groups=proof.n_groups,
        reference_error=proof.reference_error,
        unit=given.trust.unit,
        asserted=tuple(ASSERTIONS[name] for name in given.assume),
        is_sampled=given.is_sampled,
        population=population,
        notes=(*proof.notes, *given.warned, *_elsewhere(given)),
    )


def _elsewhere(given: Material) -> list[str]:
    """Say so where the items of the page are not those of the fit."""
    fitted, shown = given.fitted.fitted_on.n_items, len(given.primary)
    used = int((given.shares > 0).sum())
    if fitted == used:
        return []
    note = (
        f"the map was fitted on {fitted:,} items and its guarantee is about those; the "
        f"other rungs and all sections below are about the {shown:,} items given here"
    )
    return [note]


def _silent(what: str, share: float) -> None:
    del what, share
