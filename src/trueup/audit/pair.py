"""A pair of predictors as two sets of moment rows over the same items.

The projection trusts one side and moves the other; an audit treats both alike. Each
side is what its predictor claims, written as moments, and what could be traded on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from trueup._arrays import distinct_rows, group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.core.joint import JointTable
from trueup.core.moments import POINT, MomentRows, Trust, as_trusted
from trueup.core.properties import Identification, cap_impossible
from trueup.core.reports import AnswerConfidence, Reports
from trueup.solve.problem import ProjectionProblem, Rows

PRIMARY, REFERENCE = "primary", "reference"


@dataclass(frozen=True, slots=True, eq=False)
class Offers:
    """The contracts one predictor can be offered: one a report (and group)."""

    report: Ints
    """(offers,) which of the predictor's distinct reports."""
    node: Ints
    group: Ints
    share: Floats
    """(offers,) share of items on which the report is made."""
    of_pair: Ints
    """(pairs of the joint table,) the offer in force."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """What one predictor claims."""

    who: str
    reports: Reports
    """Its distinct reports, as its rung reads them."""
    reading: Identification
    moments: MomentRows
    node: Ints
    """(rows of the pair,) the node of this side that a row lies on."""
    offers: Offers

    def dense(self, multipliers: Floats) -> Floats:
        """(cells, slots) multipliers; zero where a cell lacks the moment."""
        table = np.zeros((self.moments.n_cells, len(self.reading.equality)))
        table[self.moments.cell_of_row, self.moments.slot_of_row] = multipliers
        return table

    def payoffs(self, multipliers: Floats) -> Floats:
        """(offers, K) sum_m multiplier_m (T_m - t_m) of each report."""
        offers = self.offers
        cell = self.moments.cell_of_node[offers.node]
        stated = self.reading.targets[offers.report]
        price = (self.dense(multipliers)[cell] * stated).sum(axis=1)
        return self.moments.pull(multipliers)[offers.node] - price[:, None]

    def signed(self, multipliers: Floats) -> Floats:
        """Multipliers with the sign that inequalities need."""
        return np.where(
            self.moments.equality, multipliers, np.minimum(multipliers, 0.0)
        )

    @property
    def cell_share(self) -> Floats:
        """(cells,) share of items in each cell."""
        cells = self.moments.cell_of_node[self.offers.node]
        return group_sums(cells, self.offers.share, self.moments.n_cells)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Both predictors over the same rows."""

    joint: JointTable
    problem: ProjectionProblem
    """The projection of the primary; its pairs are the rows of everything here."""
    reference: Side
    primary: Side
    impossible: Bools
    """(primary reports,) claims that no distribution at all satisfies."""

    @classmethod
    def from_joint(cls, joint: JointTable, trust: Trust) -> Self:
        """Write down what both predictors claim."""
        problem = ProjectionProblem.from_joint(joint, trust)
        reports, about = as_trusted(joint.reference, trust)
        reference = _side(
            REFERENCE,
            reports,
            about.identify(reports),
            problem.moments,
            joint.reference_index,
            joint,
            problem.pairs.node,
        )
        impossible = impossible_reports(joint.primary)
        reading = _claims(joint.primary, impossible)
        primary = _side(
            PRIMARY,
            joint.primary,
            reading,
            _own_rows(reading, joint),
            joint.primary_index,
            replace(joint, group_index=np.zeros_like(joint.group_index)),
            problem.pairs.owner,
        )
        return cls(joint, problem, reference, primary, impossible)

    @property
    def rows(self) -> Rows:
        """The rows on which the truth is free."""
        return self.problem.pairs

    @property
    def row_of_pair(self) -> Ints:
        """(pairs of the joint table,) the row each pair was merged into."""
        nodes = self.problem.moments.node_of_pair
        keys = np.column_stack([nodes, self.joint.primary_index])
        return distinct_rows(keys.astype(np.float64))[1]

    @property
    def sides(self) -> tuple[Side, Side]:
        """Reference first, as in every formula."""
        return self.reference, self.primary

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outcomes."""
        return len(self.rows.weight), self.joint.n_outcomes

    def errors(self, rates: Floats) -> tuple[Floats, Floats]:
        """How far each moment row of the two sides is from holding."""
        mass = self.rows.weight[:, None] * rates
        reference, primary = (
            side.moments.violations(
                group_sums(side.node, mass, len(side.moments.anchors))
            )
            for side in self.sides
        )
        return reference, primary

    def mirrored(self) -> ProjectionProblem:
        """The projection with the sides exchanged: the primary is right, no budget."""
        rows, moments = self.rows, self.problem.moments
        mirrored = Rows(node=rows.owner, owner=rows.node, weight=rows.weight)
        n_nodes = len(moments.anchors)
        return ProjectionProblem(
            atoms=self.joint.reference,
            atom_weight=group_sums(rows.node, rows.weight, n_nodes),
            cell_of_atom=np.arange(n_nodes),
            pairs=mirrored,
            linked=mirrored,
            moments=self.primary.moments,
            trust=Trust(POINT, False, 0, 0.0, "right"),
        )


def impossible_reports(primary: Reports) -> Bools:
    """Answers whose confidence is below 1/K: the most likely outcome has more."""
    if isinstance(primary, AnswerConfidence):
        return cap_impossible(primary.confidence, primary.n_outcomes)
    return np.zeros(len(primary), dtype=bool)


def _claims(primary: Reports, impossible: Bools) -> Identification:
    """Everything the primary states, also where it contradicts itself.

    Where caps are *trusted* they are dropped from confidences below 1/K, because
    nothing would satisfy them. Here that very contradiction is what is looked for.
    """
    reading = primary.about.identify(primary)
    if not impossible.any() or not isinstance(primary, AnswerConfidence):
        return reading
    n_reports, n_outcomes = len(primary), primary.n_outcomes
    report, outcome = np.nonzero(
        impossible[:, None] & (np.arange(n_outcomes) != primary.answer[:, None])
    )
    applies = np.zeros((n_reports, 1 + n_outcomes), dtype=bool)
    applies[:, : reading.applies.shape[1]] = reading.applies
    applies[report, 1 + outcome] = True
    return replace(
        reading,
        equality=np.append(True, np.zeros(n_outcomes, dtype=bool)),
        targets=np.repeat(primary.confidence[:, None], 1 + n_outcomes, axis=1),
        applies=applies,
        report=np.append(reading.report, report),
        slot=np.append(reading.slot, 1 + outcome),
        outcome=np.append(reading.outcome, outcome),
        coefficient=np.append(reading.coefficient, np.ones(len(report))),
        form="capped",
    )


def _own_rows(reading: Identification, joint: JointTable) -> MomentRows:
    """Moment rows of reports that are each a cell of their own."""
    n_reports = len(reading.targets)
    cell, slot = np.nonzero(reading.applies)
    row_of = np.full(reading.applies.shape, -1)
    row_of[cell, slot] = np.arange(len(cell))
    return MomentRows(
        node_of_pair=joint.primary_index,
        cell_of_node=np.arange(n_reports),
        equality=reading.equality[slot],
        target=joint.primary_shares[cell] * reading.targets[cell, slot],
        cell_of_row=cell,
        row=row_of[reading.report, reading.slot],
        node=reading.report,
        outcome=reading.outcome,
        coefficient=reading.coefficient,
        anchors=reading.anchors,
        allowed=reading.allowed,
        slot_of_row=slot,
        form=reading.form,
    )


def _side(
    who: str,
    reports: Reports,
    reading: Identification,
    moments: MomentRows,
    report_of_pair: Ints,
    joint: JointTable,
    node: Ints,
) -> Side:
    """Join a predictor's reading with its moment rows."""
    # Distributions read as answers may coincide: offers are made to what is read.
    first_report, read = distinct_rows(reports.keys())
    keys = np.column_stack([moments.node_of_pair, read[report_of_pair]])
    first, of_pair = distinct_rows(keys.astype(np.float64))
    offers = Offers(
        report=first_report[read[report_of_pair[first]]],
        node=moments.node_of_pair[first],
        group=joint.group_index[first],
        share=group_sums(of_pair, joint.weights, len(first)),
        of_pair=of_pair,
    )
    return Side(who, reports, reading, moments, node, offers)
