"""decompose(): where a fitted map's improvement came from, measured with labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup import _validate
from trueup._arrays import group_sums
from trueup._render import html_table
from trueup._validate import Bools, Floats, Ints
from trueup.core.joint import JointTable
from trueup.core.losses import Deployment, get_loss
from trueup.core.moments import POINT, choose_trust
from trueup.core.pairing import parse_reports, same_outcomes
from trueup.core.reports import Distributions, Reports
from trueup.errors import InvalidInputError
from trueup.evaluate import _render
from trueup.evaluate._inputs import (
    read_labels,
    read_rng,
    read_weights,
    read_whole_number,
)
from trueup.evaluate._resampling import Estimate, Mean, Resampled, resampled_counts
from trueup.maps.lookup import match
from trueup.maps.report_map import ReportMap, floored
from trueup.solve.problem import ProjectionProblem
from trueup.solve.worst_case import worst_case

TERMS = ("geometric_gain", "transfer", "compatibility_bonus", "miscalibration_risk")


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """The realised improvement of a map as a sum of four terms.

    Each is an :class:`Estimate`; the values add up to ``realised``.

    Attributes
    ----------
    realised
        Mean loss of the primary minus mean loss of the map, on the labelled items.
    geometric_gain
        The improvement if the map's own distributions were the truth: E D(h, r).
        Never negative.
    transfer
        What of that is not guaranteed on these items, because the map was fitted on
        others (or with an error budget): the worst case here minus the geometric
        gain. Zero, up to the certificate's gap, on the items of the fit.
    compatibility_bonus
        What the truth added above the worst case. Never negative.
    miscalibration_risk
        What the reference's own error cost (negative) or gave (positive): multipliers
        of the worst case times the measured calibration errors. Zero on average for a
        calibrated reference.

    Examples
    --------
    >>> import numpy as np
    >>> import trueup
    >>> p, q = np.array([.1, .7]), np.array([.5, .5])
    >>> m = trueup.fit(p, q, cells="exact")
    >>> parts = decompose(m, p, q, [0, 1], n_bootstrap=100)
    >>> round(parts.realised.value, 6), round(parts.miscalibration_risk.value, 6)
    (0.02, 0.0)
    """

    realised: Estimate
    geometric_gain: Estimate
    transfer: Estimate
    compatibility_bonus: Estimate
    miscalibration_risk: Estimate
    loss: str
    trust: str
    n_items: int
    level: float

    def __repr__(self) -> str:
        parts = [f"{name} {getattr(self, name).value:+.6f}" for name in TERMS]
        return (
            f"Decomposition({self.loss} loss, {self.n_items:,} items: realised "
            f"{self.realised.value:+.6f} = {', '.join(parts)})"
        )

    def table(self) -> str:
        """The terms as text for a terminal."""
        return f"{self._caption()}\n{_render.text_table(_HEADER, self._rows())}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        terms = {
            name: dict(getattr(self, name)._asdict()) for name in ("realised", *TERMS)
        }
        return {
            **terms,
            "loss": self.loss,
            "trust": self.trust,
            "n_items": self.n_items,
            "level": self.level,
        }

    def _repr_html_(self) -> str:
        return html_table(self._caption(), _HEADER, self._rows())

    def _caption(self) -> str:
        return (
            f"Improvement in {self.loss} loss on {self.n_items:,} labelled items, "
            f"reference trusted at {self.trust!r}; {self.level:.0%} intervals with the "
            "map held fixed"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for name in (*TERMS, "realised"):
            one = getattr(self, name)
            limits = _render.interval(one.lower, one.upper)
            value = f"{one.value:+.6f}"
            rows.append((name.replace("_", " "), value, limits, _MEANINGS[name]))
        return rows


_HEADER = ("term", "value", "interval", "meaning")
_MEANINGS = {
    "geometric_gain": "if the map's own distributions were the truth; >= 0",
    "transfer": "not guaranteed here because fitted elsewhere; 0 on the fitted items",
    "compatibility_bonus": "the truth was kinder than the worst case; >= 0",
    "miscalibration_risk": "the reference's own error; 0 on average if calibrated",
    "realised": "their sum: the fall in loss that the labels show",
}


def decompose(
    fitted: ReportMap,
    primary: object,
    reference: object,
    labels: object,
    *,
    groups: Iterable[Any] | None = None,
    sample_weight: object | None = None,
    n_bootstrap: int = 1000,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Decomposition:
    r"""Split the improvement that labels show into where it came from.

    With advantage :math:`A_n(y)` of the map over the primary on item n, and the
    multipliers :math:`\lambda` of the map's worst case on these items,

    .. math:: A_n(Y_n) = \min_y [A_n - \lambda_n](y) + \lambda t_n
              + \big( [A_n - \lambda_n](Y_n) - \min_y [A_n - \lambda_n](y) \big)
              + \big( \lambda_n(Y_n) - \lambda t_n \big).

    The first part averages to the worst case (geometric gain plus transfer), the
    second is the compatibility bonus, the third the miscalibration risk. Where an
    outcome happens that an error-free reference rules out, the second belongs to the
    risk too. These are the paper's three terms with the split that duality gives; its
    bound on the last one is false and is not shown.

    Parameters
    ----------
    fitted
        A map made by :func:`trueup.fit`. Rung and caps are those of its certificate.
    primary, reference, labels
        Both predictors and what happened, on the same items. On the items of the fit
        the transfer term is zero.
    groups
        The groups the reference was trusted in, if the map was fitted with any.
    sample_weight
        How much each item counts.
    n_bootstrap, level, rng
        Of the intervals, which hold the map and the multipliers fixed.

    Examples
    --------
    The reference says 0.5, the primary 0.1 and 0.7, the truth is 0.2 and 0.8:

    >>> import numpy as np
    >>> import trueup
    >>> p, q = np.repeat([.1, .7], 5), np.full(10, .5)
    >>> y = [1, 0, 0, 0, 0, 1, 1, 1, 1, 0]
    >>> parts = decompose(trueup.fit(p, q, cells="exact"), p, q, y, n_bootstrap=100)
    >>> round(parts.realised.value, 6), round(parts.geometric_gain.value, 6)
    (0.02, 0.02)
    """
    chosen = _validate.unit_number(level, "level", inclusive=False)
    n_draws = read_whole_number(n_bootstrap, "n_bootstrap", at_least=10)
    items = _Items.read(fitted, primary, reference, labels, sample_weight)
    terms = _terms(fitted, items, groups)
    means = {name: Mean(values, items.weights) for name, values in terms.items()}
    counts = resampled_counts(len(items.labels), n_draws, read_rng(rng))
    drawn = Resampled.of(means, counts, items.weights, chosen)
    return Decomposition(
        **{name: drawn.estimate(name) for name in terms},
        loss=fitted.loss,
        trust=fitted.certificate.trust,
        n_items=len(items.labels),
        level=chosen,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Items:
    """Both predictors as the map reads them, what is deployed, and what happened."""

    primary: Reports
    reference: Reports
    better: Reports
    distributions: Floats
    labels: Ints
    weights: Floats
    used: Ints

    @classmethod
    def read(
        cls,
        fitted: ReportMap,
        primary: object,
        reference: object,
        labels: object,
        sample_weight: object | None,
    ) -> _Items:
        known = Distributions(np.empty((0, len(fitted.outcomes))), fitted.outcomes)
        first = same_outcomes(
            parse_reports(primary, "primary", None), known, "primary", "the map"
        )
        second = same_outcomes(
            parse_reports(reference, "reference", None), known, "reference", "the map"
        )
        happened = read_labels(labels, known.outcomes)
        for name, size in (("reference", len(second)), ("labels", len(happened))):
            if size != len(first):
                raise InvalidInputError.lengths("primary", len(first), name, size)
        weights = read_weights(sample_weight, len(first), "primary")
        used = np.flatnonzero(weights > 0)
        second = second.take(used)
        second.about.check(second, "reference")
        kept = first.take(used)
        return cls(
            primary=floored(fitted.cells.merge(kept), fitted.floor),
            reference=fitted.cells.merge(second),
            better=parse_reports(fitted.apply(kept), "the map", known.outcomes),
            distributions=fitted.distributions(kept),
            labels=happened[used],
            weights=weights[used],
            used=used,
        )


def _terms(
    fitted: ReportMap, items: _Items, groups: Iterable[Any] | None
) -> dict[str, Floats]:
    """(n,) contributions of each item to each term."""
    loss = get_loss(fitted.loss, items.primary.about)
    advantage = loss.vectors(items.primary) - loss.vectors(items.better)
    rows = np.arange(len(items.labels))
    realised = advantage[rows, items.labels]
    _check_finite(realised)
    h = np.nan_to_num(items.distributions)  # reports that stay have none: no gain
    possible = np.where(h > 0, advantage, 0.0)  # zero times an infinite loss is zero
    geometric = (h * possible).sum(axis=1)
    worst = _worst_case(fitted, items, groups)
    bound, slack = worst.split(advantage, items.labels)
    risk = realised - bound - slack
    return {
        "realised": realised,
        "geometric_gain": geometric,
        "transfer": bound - geometric,
        "compatibility_bonus": slack,
        "miscalibration_risk": risk,
    }


@dataclass(frozen=True, slots=True, eq=False)
class _WorstCase:
    """The multipliers of the map's worst case, item by item."""

    pull: Floats
    """(n, K) lambda_n(y)."""
    target: Floats
    """(n,) lambda t_n."""
    allowed: Bools
    """(n, K) outcomes an error-free reference leaves possible."""

    def split(self, advantage: Floats, labels: Ints) -> tuple[Floats, Floats]:
        """(n,) the guaranteed part, and what the truth adds to it."""
        rows = np.arange(len(labels))
        reduced = np.where(self.allowed, advantage - self.pull, np.inf)
        least = reduced.min(axis=1)
        shown = reduced[rows, labels]
        slack = np.where(np.isfinite(shown), shown - least, 0.0)
        return least + self.target, slack


def _worst_case(
    fitted: ReportMap, items: _Items, groups: Iterable[Any] | None
) -> _WorstCase:
    """Find the map's worst case over truths for which the reference is right."""
    certificate = fitted.certificate
    kept = None if groups is None else np.asarray(groups, dtype=object)[items.used]
    joint = JointTable.from_reports(
        items.primary, items.reference, counts=items.weights, groups=kept
    )
    rung = None if certificate.trust == POINT else certificate.trust
    trust = choose_trust(joint, rung, certificate.caps if rung else None, 0.0)
    problem = ProjectionProblem.from_joint(joint, trust)
    places = _places(items, joint, kept)
    loss = get_loss(fitted.loss, joint.primary.about)
    deployed = loss.vectors(items.better.take(places.item_of_atom))
    bound, multipliers = worst_case(
        problem, loss.vectors(joint.primary), Deployment(deployed, None)
    )
    moments = problem.moments
    if not np.isfinite(bound.base):
        multipliers = np.zeros(moments.n_rows)
    signed = np.where(moments.equality, multipliers, np.minimum(multipliers, 0))
    node = moments.node_of_pair[places.pair_of_item]
    # A cell's targets are spread evenly over its mass: their sum is what matters.
    cell_of_pair = moments.cell_of_node[moments.node_of_pair]
    mass = group_sums(cell_of_pair, joint.weights, moments.n_cells)
    total = group_sums(moments.cell_of_row, signed * moments.target, moments.n_cells)
    return _WorstCase(
        pull=moments.pull(signed)[node],
        target=(total / mass)[moments.cell_of_node[node]],
        allowed=moments.allowed[node],
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where the items are in the joint table."""

    pair_of_item: Ints
    item_of_atom: Ints
    """(atoms,) one item that carries each distinct primary report."""


def _places(items: _Items, joint: JointTable, groups: Any) -> _Places:  # noqa: ANN401
    atom = match(items.primary, joint.primary).index
    other = match(items.reference, joint.reference).index
    code = {name: index for index, name in enumerate(joint.groups)}
    group = np.zeros(len(atom), np.int64)
    if groups is not None:
        group = np.array([code[name] for name in groups.tolist()])
    sizes = (len(joint.reference), max(len(code), 1), len(joint.primary))
    keys = np.ravel_multi_index(
        (joint.reference_index, joint.group_index, joint.primary_index), sizes
    )
    order = np.argsort(keys)
    wanted = np.ravel_multi_index((other, group, atom), sizes)
    item_of_atom = np.zeros(len(joint.primary), np.int64)
    item_of_atom[atom] = np.arange(len(atom))
    return _Places(order[np.searchsorted(keys[order], wanted)], item_of_atom)


def _check_finite(realised: Floats) -> None:
    bad = ~np.isfinite(realised)
    if bad.any():
        message = (
            f"the change in loss is infinite on {int(bad.sum()):,} of "
            f"{len(realised):,} items, the first at row {int(np.argmax(bad)):,}: "
            "probability zero was given to what happened.\n"
            "hint: fit with floor=1e-4, or use another loss."
        )
        raise InvalidInputError(message)
