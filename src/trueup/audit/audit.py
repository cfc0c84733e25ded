"""The front door of audits: read both predictors, count their pairs of reports."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from trueup import _validate
from trueup.audit._items import population_cells
from trueup.audit.pair import Pair
from trueup.audit.result import Audit
from trueup.core.cells import Cells
from trueup.core.joint import JointTable
from trueup.core.losses import LogLoss, get_loss
from trueup.core.moments import choose_trust
from trueup.core.pairing import paired_reports
from trueup.errors import DoubtfulInputWarning
from trueup.solve.positive import zero_under_log_loss


def audit(
    primary: object,
    reference: object,
    *,
    loss: str | None = None,
    trust: str | None = None,
    caps: bool | None = None,
    groups: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    cells: str | Cells = "exact",
    reference_error: float = 0.0,
    outcomes: Iterable[Any] | None = None,
) -> Audit:
    """Audit a pair of predictors without labels.

    Does the primary contradict the reference, how could one earn from it, who would
    have to move, and how much is guaranteed at which assumption? Everything is
    computed when it is first looked at.

    Parameters
    ----------
    primary, reference, loss, trust, caps, groups, sample_weight, outcomes
        As in :func:`trueup.fit`. The loss matters for guarantees only.
    cells
        ``"exact"`` (every distinct report is its own cell) or :class:`Step`.
    reference_error
        Error that the reference is allowed, in the units of its rung.

    Returns
    -------
    Audit

    Examples
    --------
    The reference always says 0.5; the primary says 0.1 on half of the items and 0.7
    on the others, 0.4 on average. Both cannot be right:

    >>> import numpy as np
    >>> a = audit(np.array([.1, .7]), np.array([.5, .5]))
    >>> a.verdict
    'contradiction'
    >>> print(f"{a.break_even_reference_error:.4f} {a.min_ece:.4f}")
    0.1000 0.1000
    >>> print(f"{a.arbitrage.value:.4f}")
    0.1111
    """
    named = None if outcomes is None else tuple(outcomes)
    first, second = paired_reports(primary, reference, named)
    if np.array_equal(first.keys(), second.keys()):
        message = (
            "primary and reference make the same report on every item, so they "
            "cannot contradict each other: is the same predictor passed twice?"
        )
        warnings.warn(message, DoubtfulInputWarning, stacklevel=2)
    grid = population_cells(cells, "an audit")
    first, second = grid.merge(first), grid.merge(second)
    chosen = get_loss(loss, first.about)
    if isinstance(chosen, LogLoss) and (first.keys() == 0).any():
        raise zero_under_log_loss(first.keys(), "primary")
    joint = JointTable.from_reports(first, second, counts=sample_weight, groups=groups)
    error = _validate.non_negative(reference_error, "reference_error")
    belief = choose_trust(joint, trust, caps, error)
    return Audit(joint, chosen, belief, grid, Pair.from_joint(joint, belief))
