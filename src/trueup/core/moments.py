"""Trust in the reference, written as linear moment rows.

A rung of the ladder, a group column and an error budget are data here, not code
paths: each only decides which rows exist and how they are pooled into cells.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from trueup._arrays import distinct_rows, equal_pairs, group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.core.identification import Identification, cap_impossible
from trueup.core.joint import JointTable
from trueup.core.properties import AnswerConfidenceProperty, Property
from trueup.core.reports import AnswerConfidence, Distributions, PointReport, Reports
from trueup.errors import (
    InvalidInputError,
    RelaxedAssumptionWarning,
    UnknownNameError,
)

RUNGS = ("mean", "confidence", "answer-confidence", "distribution")
POINT = "point"
"""The only rung of a point reference: its own property."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What is believed of the reference: a rung, caps, groups and an error budget."""

    rung: str
    """One of the ladder's rungs, or ``point``."""
    caps: bool
    n_groups: int
    reference_error: float
    title: str

    def sentence(self, population: str) -> str:
        """The assumption as a reader needs it."""
        within = f" within each of {self.n_groups:,} groups" if self.n_groups else ""
        budget = (
            f", up to an error of {self.reference_error:g} ({self.unit})"
            if self.reference_error
            else ""
        )
        return (
            f"Holds for every truth under which the reference is {self.title}"
            f"{within}{budget}; {population}."
        )

    @property
    def unit(self) -> str:
        """What the error budget is measured in."""
        return _UNITS.get(self.rung, "summed error of its defining moments")


_UNITS = {
    "mean": "absolute difference of mean confidence and accuracy",
    "confidence": "expected calibration error of its confidence",
    "answer-confidence": "class-wise expected calibration error",
    "distribution": "expected L1 distance of its distributions, for two outcomes "
    "the binary ECE",
}

_TITLES = {
    "mean": "right on average (mean confidence equals accuracy)",
    "confidence": "top-label calibrated (among its answers given with equal "
    "confidence, that share is right)",
    "answer-confidence": "calibrated for each answer (where it gives an answer with "
    "some confidence, that share is right)",
    "distribution": "calibrated as a whole distribution",
}
_CAPPED = ", its answer being the most likely outcome"


@dataclass(frozen=True, slots=True, eq=False)
class MomentRows:
    """Linear conditions on the outcome rates of *nodes*, pooled into cells.

    A node gathers the pairs on which every moment has the same coefficients (a cell,
    split by answer where the cell pools answers). Row m says that the sum over its
    entries e of ``coefficient[e] * mass of outcome[e] on node[e]`` equals ``target[m]``
    or is at most that.
    """

    node_of_pair: Ints
    cell_of_node: Ints
    equality: Bools
    target: Floats
    cell_of_row: Ints
    row: Ints
    node: Ints
    outcome: Ints
    coefficient: Floats
    anchors: Floats
    """(nodes, K) rates that satisfy every row, inequalities strictly where possible."""
    allowed: Bools
    """(nodes, K) outcomes an error-free reference leaves possible."""
    slot_of_row: Ints
    """Which of its property's moments a row is."""
    form: str
    """Shape of the moments of a cell; see :class:`Identification`."""

    @property
    def shiftable(self) -> bool:
        """The rows of a cell sum to zero, so a common shift of multipliers is free."""
        return self.form == "vector"

    @property
    def n_cells(self) -> int:
        """Number of moment cells."""
        return int(self.cell_of_node.max()) + 1

    @property
    def n_rows(self) -> int:
        """Number of moment rows."""
        return len(self.target)

    def pull(self, multipliers: Floats) -> Floats:
        """(nodes, K) the functions sum_m multiplier_m T_m."""
        n_nodes, n_outcomes = self.anchors.shape
        flat = group_sums(
            self.node * n_outcomes + self.outcome,
            multipliers[self.row] * self.coefficient,
            n_nodes * n_outcomes,
        )
        return flat.reshape(n_nodes, n_outcomes)

    def residuals(self, node_mass: Floats) -> Floats:
        """(rows,) moments of outcome masses on nodes, minus their targets."""
        moments = group_sums(
            self.row,
            self.coefficient * node_mass[self.node, self.outcome],
            self.n_rows,
        )
        return moments - self.target

    def centred(self, multipliers: Floats) -> Floats:
        """Multipliers shifted to mid-range in each cell, where a shift is free."""
        if not self.shiftable:
            return multipliers
        table = multipliers.reshape(self.n_cells, -1)
        middle = (table.min(axis=1) + table.max(axis=1)) / 2
        return (table - middle[:, None]).ravel()

    def violations(self, node_mass: Floats) -> Floats:
        """(rows,) how far each moment is from holding."""
        residuals = self.residuals(node_mass)
        return np.where(self.equality, np.abs(residuals), np.maximum(residuals, 0))


def choose_trust(
    joint: JointTable,
    trust: str | None,
    caps: bool | None,
    reference_error: float,
) -> Trust:
    """Fill in the defaults, and refuse what the reference cannot be trusted for."""
    n_groups = len(joint.groups)
    return trust_in(joint.reference, n_groups, trust, caps, reference_error)


def trust_in(
    reference: Reports,
    n_groups: int,
    trust: str | None,
    caps: bool | None,
    reference_error: float,
) -> Trust:
    """The same for reports of the reference; only their kind matters."""
    if isinstance(reference, PointReport):
        return _point_trust(reference, trust, caps, n_groups, reference_error)
    if trust is not None and trust not in RUNGS:
        raise UnknownNameError.of("trust", trust, RUNGS)
    is_vector = isinstance(reference, Distributions)
    default = "distribution" if is_vector and reference.n_outcomes == 2 else RUNGS[2]
    rung = trust or default
    if rung == "distribution" and not is_vector:
        message = (
            "a reference that reports an answer and a confidence cannot be trusted "
            "as a distribution: it states none.\n"
            "hint: use trust='answer-confidence', or pass its distributions."
        )
        raise InvalidInputError(message)
    if caps and rung != "answer-confidence":
        message = (
            f"caps do not follow from trust={rung!r}.\n"
            "hint: leave caps out, or use trust='answer-confidence'."
        )
        raise InvalidInputError(message)
    by_default = rung == "answer-confidence" and not is_vector
    capped = by_default if caps is None else caps
    title = _TITLES[rung] + (_CAPPED if capped else "")
    return Trust(rung, capped, n_groups, reference_error, title)


def _point_trust(
    reference: PointReport,
    trust: str | None,
    caps: bool | None,
    n_groups: int,
    reference_error: float,
) -> Trust:
    if trust is not None or caps is not None:
        message = (
            f"a reference that reports a {reference.about.title} is trusted for just "
            "that; it has no ladder.\nhint: leave trust and caps out."
        )
        raise InvalidInputError(message)
    title = f"calibrated for the {reference.about.title} it reports"
    return Trust(POINT, False, n_groups, reference_error, title)


def moment_rows(joint: JointTable, trust: Trust) -> MomentRows:
    """Write down what the trusted reference implies, every report its own cell."""
    reports, about = as_trusted(joint.reference, trust)
    warn_about_caps(reports, trust)
    cells = cells_of_pairs(joint, reports, trust)
    return pooled_rows(reports, about, joint.reference_index, cells, joint.weights)


def cells_of_pairs(joint: JointTable, reports: Reports, trust: Trust) -> Ints:
    """(pairs,) the cell of each pair where every report as trusted is its own."""
    cell_key = _cell_keys(reports, trust.rung)[joint.reference_index]
    return distinct_rows(np.column_stack([joint.group_index, cell_key]))[1]


def pooled_rows(
    reports: Reports,
    about: Property,
    report_of_pair: Ints,
    cell_of_pair: Ints,
    weights: Floats,
) -> MomentRows:
    """Moments of reports pooled into given cells, which number from zero.

    Pairs in one cell share a node where the property lets them: where all their
    moments have the same coefficients.
    """
    kind = about.merge_key(reports)[report_of_pair]
    first, node_of_pair = distinct_rows(np.column_stack([cell_of_pair, kind]))
    return _assemble(
        about.identify(reports),
        report_of_pair=report_of_pair,
        report_of_node=report_of_pair[first],
        node_of_pair=node_of_pair,
        cell_of_node=cell_of_pair[first],
        weights=weights,
    )


def as_trusted(reference: Reports, trust: Trust) -> tuple[Reports, Property]:
    """The reference's reports as the rung reads them."""
    if trust.rung in RUNGS[:3]:
        if isinstance(reference, Distributions):
            reference = AnswerConfidence._of(
                reference.answers(),
                reference.probabilities.max(axis=1),
                reference.outcomes,
            )
        return reference, AnswerConfidenceProperty(trust.caps)
    return reference, reference.about


def _cell_keys(reports: Reports, rung: str) -> Floats:
    """(reports, d) rows that are equal where the rung puts reports in one cell."""
    if rung == "mean":
        return np.zeros((len(reports), 1))
    if rung == "confidence":
        return reports.keys()[:, 1:]
    return reports.keys()


def warn_about_caps(reports: Reports, trust: Trust) -> None:
    """Say so where a confidence is too low for caps."""
    if not (trust.caps and isinstance(reports, AnswerConfidence)):
        return
    low = cap_impossible(reports.confidence, reports.n_outcomes)
    if low.any():
        warnings.warn(
            f"{int(low.sum()):,} of {len(reports):,} distinct reference reports have "
            f"a confidence below 1/{reports.n_outcomes}, the lowest "
            f"{reports.confidence.min():g}: such an answer cannot be the most likely "
            "one, so they are trusted without caps.",
            RelaxedAssumptionWarning,
            stacklevel=2,
        )


def _assemble(
    reading: Identification,
    *,
    report_of_pair: Ints,
    report_of_node: Ints,
    node_of_pair: Ints,
    cell_of_node: Ints,
    weights: Floats,
) -> MomentRows:
    """Pool the identification functions of reports into rows of cells."""
    n_slots, n_cells = len(reading.equality), int(cell_of_node.max()) + 1
    cell_of_pair = cell_of_node[node_of_pair]
    applies = np.zeros((n_cells, n_slots), dtype=bool)
    np.logical_or.at(applies, cell_of_node, reading.applies[report_of_node])
    if reading.form == "capped":
        # Pooled answers carry a cap only if every report of the cell carries caps.
        bare = ~reading.applies[report_of_pair, 1:].any(axis=1)
        applies[np.unique(cell_of_pair[bare]), 1:] = False
    row_of = np.full((n_cells, n_slots), -1)
    row_of[applies] = np.arange(int(applies.sum()))
    cell_of_row, slot_of_row = np.nonzero(applies)
    totals = group_sums(
        cell_of_pair, weights[:, None] * reading.targets[report_of_pair], n_cells
    )
    entry, node = equal_pairs(reading.report, report_of_node)
    row = row_of[cell_of_node[node], reading.slot[entry]]
    entry, node, row = entry[row >= 0], node[row >= 0], row[row >= 0]
    outcome, coefficient = reading.outcome[entry], reading.coefficient[entry]
    form = reading.form
    if form == "capped" and len(cell_of_node) > n_cells:
        form = "pooled caps"
        own = _own_caps(outcome, node, row, row_of, cell_of_node)
        row, node = np.append(row, own[0]), np.append(node, own[1])
        outcome = np.append(outcome, own[2])
        coefficient = np.append(coefficient, np.ones(len(own[0])))
    return MomentRows(
        node_of_pair=node_of_pair,
        cell_of_node=cell_of_node,
        equality=reading.equality[slot_of_row],
        target=totals[cell_of_row, slot_of_row],
        cell_of_row=cell_of_row,
        row=row,
        node=node,
        outcome=outcome,
        coefficient=coefficient,
        anchors=_anchors(reading, report_of_pair, node_of_pair, weights),
        allowed=_allowed(reading, report_of_pair, node_of_pair, cell_of_node),
        slot_of_row=slot_of_row,
        form=form,
    )


def _own_caps(
    outcome: Ints, node: Ints, row: Ints, row_of: Ints, cell_of_node: Ints
) -> tuple[Ints, Ints, Ints]:
    """Entries of a cap on reports that give the capped answer themselves.

    Where answers are pooled a cap is indexed by the outcome and counts all reports of
    the cell; for those that answer it the cap follows from their own equality.
    """
    first = np.unique(row_of[:, 0])
    is_equality = np.isin(row, first)
    nodes, answers = node[is_equality], outcome[is_equality]
    rows = row_of[cell_of_node[nodes], 1 + answers]
    exists = rows >= 0
    return rows[exists], nodes[exists], answers[exists]


def _anchors(
    reading: Identification, report_of_pair: Ints, node_of_pair: Ints, weights: Floats
) -> Floats:
    """Average anchor of the reports on each node, which satisfies pooled moments."""
    n_nodes = int(node_of_pair.max()) + 1
    weighted = weights[:, None] * reading.anchors[report_of_pair]
    sums = group_sums(node_of_pair, weighted, n_nodes)
    return sums / sums.sum(axis=1, keepdims=True)


def _allowed(
    reading: Identification,
    report_of_pair: Ints,
    node_of_pair: Ints,
    cell_of_node: Ints,
) -> Bools:
    """Zeros all reports of a node share, if the whole cell sits at the same extreme.

    Otherwise the pooled moment lies strictly inside its range and rules nothing out.
    """
    extreme, cell_of_pair = reading.extreme[report_of_pair], cell_of_node[node_of_pair]
    n_cells = int(cell_of_node.max()) + 1
    low = np.full(n_cells, np.iinfo(np.int64).max)
    high = np.full(n_cells, np.iinfo(np.int64).min)
    np.minimum.at(low, cell_of_pair, extreme)
    np.maximum.at(high, cell_of_pair, extreme)
    pure = ((low == high) & (low != 0))[cell_of_node]
    shared = np.zeros((len(cell_of_node), reading.allowed.shape[1]), dtype=bool)
    np.logical_or.at(shared, node_of_pair, reading.allowed[report_of_pair])
    return shared | ~pure[:, None]
