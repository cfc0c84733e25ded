"""What a report is made from: both predictors, the map, and the new reports."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from trueup import _validate
from trueup._validate import Floats
from trueup.api import fit
from trueup.core.cells import Auto
from trueup.core.joint import JointTable
from trueup.core.moments import Trust, choose_trust
from trueup.core.pairing import paired_reports, parse_reports
from trueup.core.reports import Reports
from trueup.errors import InvalidInputError, TrueupWarning
from trueup.maps.report_map import ReportMap
from trueup.maps.rules import Tilts
from trueup.report._words import one_line

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of the work that is behind it."""


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Everything the sections of a report look at."""

    fitted: ReportMap
    primary: Reports
    reference: Reports
    better: Reports
    shares: Floats
    """(n,) share of each item."""
    names: tuple[str, str]
    ids: tuple[str, ...] | None
    groups: tuple[Any, ...] | None
    sample_weight: object | None
    blocks: tuple[Any, ...] | None
    family: str | None
    joint: JointTable
    trust: Trust
    warned: tuple[str, ...]
    deadline: float
    """On the clock of :func:`time.monotonic`: what is optional is left out then."""

    @classmethod
    def read(
        cls,
        fitted: ReportMap,
        primary: object,
        reference: object,
        *,
        names: tuple[str, str],
        ids: Iterable[Any] | None,
        groups: Iterable[Any] | None,
        sample_weight: object | None,
        blocks: Iterable[Any] | None,
        family: str | None,
        time_limit: float | None,
    ) -> Self:
        """Check the input and apply the map."""
        if not isinstance(fitted, ReportMap):
            message = (
                f"a report is about a fitted map, got {type(fitted).__name__}.\n"
                "hint: pass what trueup.fit or trueup.load returns."
            )
            raise InvalidInputError(message)
        first, second = paired_reports(primary, reference, fitted.outcomes)
        weights = _validate.sample_weights(sample_weight, len(first))
        with recorded() as warned:
            better = parse_reports(fitted.apply(first), "the map", fitted.outcomes)
        grouped = None if groups is None else tuple(groups)
        joint = JointTable.from_reports(
            first, second, counts=sample_weight, groups=grouped
        )
        proof = fitted.certificate
        is_point = proof.trust == "point"
        trust = choose_trust(
            joint,
            None if is_point else proof.trust,
            None if is_point else proof.caps,
            proof.reference_error,
        )
        return cls(
            fitted=fitted,
            primary=first,
            reference=second,
            better=better,
            shares=weights / weights.sum(),
            names=(_name(names[0], "primary"), _name(names[1], "reference")),
            ids=_checked_ids(ids, len(first)),
            groups=grouped,
            sample_weight=sample_weight,
            blocks=None if blocks is None else tuple(blocks),
            family=family,
            joint=joint,
            trust=trust,
            warned=tuple(dict.fromkeys(map(str, warned))),
            deadline=math.inf if time_limit is None else time.monotonic() + time_limit,
        )

    @property
    def is_sampled(self) -> bool:
        """Whether the certificate allows for sampling."""
        return isinstance(self.fitted.cells, Auto)

    @property
    def is_late(self) -> bool:
        """Whether the time for what is optional is used up."""
        return time.monotonic() >= self.deadline

    @property
    def assume(self) -> tuple[str, ...]:
        """Facts asserted beyond calibration."""
        rule = self.fitted.rule
        return rule.assume if isinstance(rule, Tilts) else ()

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Names of the outcomes, as they are shown."""
        return tuple(one_line(name, 60) for name in self.primary.outcomes)

    def fit(self, *, loss: str, rung: str, caps: bool, error: float) -> ReportMap:
        """Fit again with the same options but for the ones given."""
        is_point = rung == "point"
        with quiet():
            return fit(
                self.primary,
                self.reference,
                loss=loss,
                trust=None if is_point else rung,
                caps=caps if rung == "answer-confidence" else None,
                groups=self.groups,
                sample_weight=self.sample_weight,
                reference_error=error,
                cells=self.fitted.cells,
                floor=self.fitted.floor,
                assume=self.assume,
                family=self.family,
                blocks=self.blocks,
            )


@contextmanager
def quiet() -> Iterator[None]:
    """What was said when the map was fitted is not said again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        yield


@contextmanager
def recorded() -> Iterator[list[Warning]]:
    """Keep our warnings for the page instead of showing them."""
    kept: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrueupWarning)
        yield kept
    for one in caught:
        if isinstance(one.message, TrueupWarning):
            kept.append(one.message)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def part(progress: Progress, start: float, end: float) -> Progress:
    """Progress of a part of the work, as progress of the whole."""

    def told(what: str, share: float) -> None:
        progress(what, start + (end - start) * share)

    return told


def _name(name: object, fallback: str) -> str:
    return one_line(name) or fallback


def _checked_ids(ids: Iterable[Any] | None, n_items: int) -> tuple[str, ...] | None:
    if ids is None:
        return None
    shown = tuple(one_line(one, 60) for one in ids)
    if len(shown) != n_items:
        raise InvalidInputError.lengths("primary", n_items, "ids", len(shown))
    return shown
