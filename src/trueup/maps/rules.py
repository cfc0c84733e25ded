"""Rules: how a map finds what replaces a report.

A ``Table`` lists the fitted reports; ``Tilts`` are formulas that apply to any report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup import _validate
from trueup._validate import Floats, Ints, Label
from trueup.core.losses import OwnAnswerLoss, ProperLoss, get_loss
from trueup.core.moments import Trust
from trueup.core.properties import Property
from trueup.core.reports import Reports
from trueup.solve.crossfit import CrossFit


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A map by enumeration: each fitted report and what replaces it."""

    fitted: Reports
    better: Reports
    distributions: Floats
    """(reports, K) the compatible distributions behind the new reports."""

    @property
    def outcomes(self) -> tuple[Label, ...]:
        """Names of the outcomes."""
        return self.fitted.outcomes

    @property
    def about(self) -> Property:
        """The property that is reported."""
        return self.fitted.about


@dataclass(frozen=True, slots=True, eq=False)
class Tilts:
    """A map by formula, the average of two cross-fitted halves."""

    outcomes: tuple[Label, ...]
    about: Property
    loss: str
    trust: Trust
    assume: tuple[str, ...]
    groups: tuple[Any, ...]
    """Names of the groups the reference was trusted in; only certifying needs them."""
    halves: CrossFit | None
    """None leaves every report as it is."""
    own_loss: ProperLoss | None = None
    """The user's own loss, which has no name that others know."""

    def apply(self, reports: Reports) -> Reports:
        """What replaces each report, seen in fitting or not."""
        if self.halves is None:
            return reports
        return self.halves.deploy(self.deployed_loss(), reports)

    def deployed_loss(self) -> ProperLoss:
        """The loss in the form that is deployed: answers are kept."""
        return adaptive_loss(self.own_loss or self.loss, self.about)

    def group_codes(self, groups: Iterable[Any] | None, n_items: int) -> Ints:
        """Numbers of known groups, -1 for a group never seen in fitting."""
        if not self.groups:
            return np.zeros(n_items, dtype=np.int64)
        codes, names = _validate.group_codes(groups, n_items)
        position = {name: index for index, name in enumerate(self.groups)}
        return np.array([position.get(name, -1) for name in names], dtype=np.int64)[
            codes
        ]


def adaptive_loss(name: str | ProperLoss | None, about: Property) -> ProperLoss:
    """The loss on adaptive cells: confidence loss keeps the primary's answers."""
    loss = get_loss(name, about)
    return OwnAnswerLoss() if loss.name == "confidence" else loss
