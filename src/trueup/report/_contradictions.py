"""Where the two predictors contradict each other, as bets in plain words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup._arrays import distinct_rows
from trueup.audit.audit import audit
from trueup.audit.contracts import ArbitrageContract
from trueup.audit.result import Audit
from trueup.core.assertions import top_of
from trueup.core.cells import Cells, Exact, Step
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.errors import TrueupError
from trueup.report._material import Material, quiet
from trueup.report._words import number, one_line, percent
from trueup.report.summary import Contract, Contradictions

_MOST_DISTINCT = 120
"""Distinct reports of each side up to which none is rounded."""
_STEPS = (0.05, 0.1, 0.2)
_ITEMS_PER_CELL = 20
_MOST_CONTRACTS = 8


def contradictions(given: Material) -> tuple[Contradictions | None, tuple[str, ...]]:
    """The audit of the pair; or none, and why."""
    primary, reference, reading = _read(given)
    cells, rounding = _cells(primary, reference)
    rung, caps = _rung(given, reference)
    try:
        with quiet():
            found = audit(
                primary,
                reference,
                trust=rung,
                caps=caps,
                groups=given.groups,
                sample_weight=given.sample_weight,
                cells=cells,
                reference_error=given.trust.reference_error,
            )
            return _told(given, found, " ".join([*reading, rounding])), ()
    except TrueupError as error:
        reason = str(error).split("\nhint:", maxsplit=1)[0]
        return None, (f"contradictions: {reason}",)


def _read(given: Material) -> tuple[Reports, Reports, list[str]]:
    """Both predictors in a form whose contradictions can be put into words."""
    primary, reference = given.primary, given.reference
    if given.joint.n_outcomes == 2 or not isinstance(primary, Distributions):
        return primary, reference, []
    if not isinstance(reference, Distributions | AnswerConfidence):
        return primary, reference, []
    words = ["Distributions are read here as an answer and its confidence."]
    return top_of(primary), top_of(reference), words


def _rung(given: Material, reference: Reports) -> tuple[str | None, bool | None]:
    if given.trust.rung == "point":
        return None, None
    if given.trust.rung == "distribution" and not isinstance(reference, Distributions):
        # A calibrated distribution's answer is calibrated, and the most likely one.
        return "answer-confidence", True
    caps = given.trust.caps if given.trust.rung == "answer-confidence" else None
    return given.trust.rung, caps


def _cells(primary: Reports, reference: Reports) -> tuple[Cells, str]:
    """Cells that hold enough items each; the certificate's own are adaptive."""
    if max(_n_distinct(primary), _n_distinct(reference)) <= _MOST_DISTINCT:
        return Exact(), "Every distinct report counts as it is."
    for step in _STEPS:
        cells = Step(step)
        n_cells = _n_distinct(cells.merge(reference))
        if n_cells * _ITEMS_PER_CELL <= len(reference) or step == _STEPS[-1]:
            break
    return cells, (
        "The numbers of this section are those of coarser cells than the certificate's."
    )


def _n_distinct(reports: Reports) -> int:
    return len(distinct_rows(reports.keys())[0])


def _told(given: Material, found: Audit, read_as: str) -> Contradictions:
    contracts = found.arbitrage.contracts
    kept = [one for one in contracts if one.contribution > 1e-9][:_MOST_CONTRACTS]
    names = dict(zip(("primary", "reference"), given.names, strict=True))
    return Contradictions(
        verdict=found.verdict,
        explanation=found.explanation,
        break_even_reference_error=found.break_even_reference_error,
        profit=max(float(contracts.profit), 0.0),
        min_ece=found.min_ece,
        n_contracts=len(contracts),
        contracts=tuple(_contract(one, names[one.who]) for one in kept),
        read_as=read_as,
        notes=tuple(found.notes[1:]),
    )


def _contract(one: ArbitrageContract, name: str) -> Contract:
    terms = bet(one.payoffs, [one_line(label, 40) for label in one.outcomes])
    report = one_line(report_words(one), 120)
    return Contract(
        who=one.who,
        name=name,
        report=report,
        share=one.share,
        terms=terms,
        sentence=sentence_of(one, name),
        contribution=one.contribution,
    )


def sentence_of(one: ArbitrageContract, name: str) -> str:
    """A bet as one would offer it to the predictor of this name."""
    terms = bet(one.payoffs, [one_line(label, 40) for label in one.outcomes])
    report = one_line(report_words(one), 120)
    return (
        f"Whenever {name} says {report} ({percent(one.share, 1)} of the items), "
        f"sell it this bet: it {terms}."
    )


def report_words(one: ArbitrageContract) -> str:
    """The report that triggers a bet, as one would say it."""
    if isinstance(one.report, tuple) and isinstance(one.report[-1], float):
        if len(one.report) == 2 and not isinstance(one.report[0], float):
            within = "" if one.group is None else f" in group {one.group}"
            answer = one_line(one.report[0], 40)
            return f"“{answer}”, {percent(one.report[1])} sure{within}"
        if len(one.report) == 2:
            return f"{percent(one.report[1])} for “{one_line(one.outcomes[1], 40)}”"
    return one.text


def bet(payoffs: Sequence[float], outcomes: Sequence[str]) -> str:
    """What a predictor pays and receives, in words.

    >>> bet([0.0, -1.0, -1.0], ["A", "B", "C"])
    'pays 1 unless A happens'
    >>> bet([-0.25, 0.75], ["no", "yes"])
    'pays 0.25 if no happens and receives 0.75 if yes happens'
    """
    rounded = np.round(payoffs, 4)
    parts = []
    for amount in sorted(set(rounded.tolist())):
        if amount == 0:
            continue
        names = [
            name for name, paid in zip(outcomes, rounded, strict=True) if paid == amount
        ]
        verb = "pays" if amount < 0 else "receives"
        parts.append(f"{verb} {number(abs(amount), 3)} {_when(names, outcomes)}")
    return " and ".join(parts) if parts else "neither pays nor receives"


def _when(names: Sequence[str], outcomes: Sequence[str]) -> str:
    if len(names) == len(outcomes):
        return "whatever happens"
    if len(outcomes) > 2 and len(names) == len(outcomes) - 1:
        (other,) = set(outcomes) - set(names)
        return f"unless {other} happens"
    if len(names) == 1:
        return f"if {names[0]} happens"
    return f"if {', '.join(names[:-1])} or {names[-1]} happens"
