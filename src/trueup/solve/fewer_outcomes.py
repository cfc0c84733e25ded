"""Many outcomes: a projection with fewer of them that has the same optimum.

A primary cell whose report is an answer tells few outcomes apart: its own answer and
the answers that the reference gives in it. The others, its *block*, have the same loss
under every report of the cell and the same coefficient, zero, in every moment. So each
cell gets a numbering of its own: its answer, the answers met, and the block. All cells
together need K' columns, where K' is two more than the most answers that meet in a
cell, whatever K is.

*Why this changes nothing.* Let the block of a cell have m outcomes.

1. A truth of the real problem becomes one of the smaller problem by adding up what
   every row puts on the block. Moments do not see the difference, and the divergence
   does not grow: the generator is the square of the largest probability, where the
   block counts with 1/m of its mass, the mean of its outcomes, which is at most their
   largest.
2. A truth of the smaller problem becomes a real one by spreading what a row puts on the
   block evenly over its m outcomes. Moments do not see it, and the divergence is
   the same: all outcomes of the block now have 1/m of its mass.

So both problems have the same optimum, and every truth of one gives a truth of the
other that is at least as good. The bounds carry over too: outcomes of a block have the
same losses, before and after, and the same multipliers, so the minimum over them in
the certificate is the value of any one of them.

*Caps* (no outcome of a reference cell is likelier than its answer) do concern the
block. Those on answers met are kept; leaving the others out can only lower a lower
bound. A row of a capped cell spreads its block over the outcomes that no other row of
the cell has as its primary answer, as these are where caps bind. A truth that still
breaks some cap is mixed with the anchor of the reference cell, which keeps all of them,
until none is broken. The upper bound is that of the real truth so made, so bounds that
meet prove the optimum here as well; where they do not, the projection is solved
with all outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from trueup._arrays import distinct_rows, equal_pairs, group_sums
from trueup._validate import Bools, Floats, Ints, Label
from trueup.core.identification import cap_impossible
from trueup.core.joint import JointTable
from trueup.core.losses import Deployment, ProperLoss
from trueup.core.moments import (
    POINT,
    MomentRows,
    Trust,
    as_trusted,
    cells_of_pairs,
    pooled_rows,
    warn_about_caps,
)
from trueup.core.properties import AnswerConfidenceProperty
from trueup.core.reports import AnswerConfidence
from trueup.solve.own_outcomes import BlockConfidenceLoss, OwnOutcomes
from trueup.solve.problem import ProjectionProblem, Rows, merged_rows
from trueup.solve.rounding import Witness, upper_bound

_FEWEST = 12
"""Outcomes from which on it is worth while."""
_WORTH = 0.6
"""Largest share of the outcomes that a smaller problem may have."""


class TooFewOutcomes(Exception):  # noqa: N818 - not an error: try with more
    """The bounds of a smaller problem do not meet."""


@dataclass(frozen=True, slots=True, eq=False)
class FewerOutcomes:
    """The smaller problem, and the way back."""

    problem: ProjectionProblem
    own: OwnOutcomes
    outcomes: tuple[Label, ...]
    """The real outcomes."""
    capped: Bools
    """(reference cells,) whose caps are believed."""
    avoided: tuple[Ints, Ints]
    """Rows, and outcomes of their blocks on which they put nothing: where a primary
    answer of the same capped cell is, the cap may have no room for more."""

    @property
    def spread_over(self) -> Ints:
        """(rows,) outcomes over which a row spreads what it puts on the block."""
        owner = self.problem.linked.owner
        fewer = np.bincount(self.avoided[0], minlength=len(owner))
        return np.asarray(self.own.block_size[owner] - fewer)

    def on_each(self, rates: Floats) -> Floats:
        """(rows,) rate of each outcome over which a row spreads its block."""
        block = self.own.is_block[self.problem.linked.owner]
        return np.where(block, rates, 0.0).sum(axis=1) / self.spread_over

    def upper_bound(self, loss: ProperLoss, witness: Witness) -> float:
        """Objective of the real problem at a witness: at least the optimum."""
        problem, rows = self.problem, self.problem.linked
        if not isinstance(loss, BlockConfidenceLoss) or not len(self.avoided[0]):
            return upper_bound(problem, loss, witness)
        share = rows.weight / problem.atom_weight[rows.owner]
        each = share * self.on_each(witness.outcome_rates)
        likeliest = group_sums(rows.owner, each, problem.n_cells)
        h = witness.distributions
        known = np.where(self.own.is_block, 0.0, h).max(axis=1)
        largest = np.maximum(known, likeliest) ** 2
        linear = (loss.vectors(problem.atoms) * h).sum(axis=1)
        return float(problem.atom_weight @ (largest + linear))

    @property
    def columns(self) -> Bools:
        """(rows, K') what a row needs: both answers and the first column of the block.

        Another answer that the report meets is worth no more to a row than the block.
        """
        problem = self.problem
        rows, moments = problem.linked, problem.moments
        needs = self.own.is_block & (self.own.members > 0)
        needs[:, 0] = True
        wide = needs[rows.owner]
        equal = moments.equality[moments.row]
        wide[moments.node[equal], moments.outcome[equal]] = True
        return wide

    @property
    def loss(self) -> BlockConfidenceLoss:
        """The loss as columns have it."""
        return BlockConfidenceLoss(self.own.members)

    def admissible(self, witness: Witness) -> Witness:
        """A witness of the real problem: caps hold for all outcomes, spread out."""
        if not self.capped.any():
            return witness
        problem = self.problem
        rows, moments, rates = problem.linked, problem.moments, witness.outcome_rates
        mixed = _excess_share(self, rates)[moments.cell_of_node[rows.node]]
        if not mixed.any():
            return witness
        better = rates + mixed[:, None] * (moments.anchors[rows.node] - rates)
        mass = group_sums(rows.owner, rows.weight[:, None] * better, problem.n_cells)
        return Witness(better, mass / mass.sum(axis=1, keepdims=True))

    def widened(self, deployed: Deployment) -> Deployment:
        """What is deployed, over the real outcomes."""
        atoms = np.arange(len(deployed.losses))
        reports, weights = deployed.reports, deployed.weights
        if reports is not None:
            stated = cast("AnswerConfidence", reports)
            answer = self.own.outcome[atoms, stated.answer]
            reports = AnswerConfidence._of(answer, stated.confidence, self.outcomes)
        # Losses are not shared out: every outcome of the block has that of a column.
        losses = self.own.repeated(deployed.losses)
        if weights is not None:
            weights = self.own.widened(atoms, weights)
        return Deployment(losses, reports, weights, deployed.confidence)

    def witness(self, found: Witness) -> Witness:
        """The witness over the real outcomes."""
        rows, rates = self.problem.linked, found.outcome_rates
        wide = self.own.placed(rows.owner, rates, self.on_each(rates))
        wide[self.avoided] = 0.0
        n_atoms = len(found.distributions)
        mass = group_sums(rows.owner, rows.weight[:, None] * wide, n_atoms)
        return Witness(wide, mass / mass.sum(axis=1, keepdims=True))


def with_fewer_outcomes(joint: JointTable, trust: Trust) -> FewerOutcomes | None:
    """The smaller problem; None where there is none, or it is not much smaller."""
    primary, n_outcomes = joint.primary, joint.n_outcomes
    if not isinstance(primary, AnswerConfidence) or n_outcomes < _FEWEST:
        return None
    if trust.rung in (POINT, "distribution") or (trust.caps and trust.reference_error):
        return None
    reports, _ = as_trusted(joint.reference, trust)
    reference = cast("AnswerConfidence", reports)
    met, column = _answers_met(joint, primary, reference)
    n_columns = 2 + int(met.n_answers.max())
    if n_columns > _WORTH * n_outcomes:
        return None
    return _reduced(joint, trust, reference, met.numbered(n_columns), column)


@dataclass(frozen=True, slots=True, eq=False)
class _Met:
    """Answers of the reference that differ from a primary report's own."""

    own: Ints
    atom: Ints
    answer: Ints
    rank: Ints
    n_answers: Ints
    n_outcomes: int

    def numbered(self, n_columns: int) -> OwnOutcomes:
        outcome = np.full((len(self.own), n_columns), -1)
        outcome[:, 0] = self.own
        outcome[self.atom, self.rank] = self.answer
        return OwnOutcomes(outcome, self.n_outcomes)


def _answers_met(
    joint: JointTable, primary: AnswerConfidence, reference: AnswerConfidence
) -> tuple[_Met, Ints]:
    """The answers met by each primary report, and (pairs,) the column of each."""
    answer = reference.answer[joint.reference_index]
    keys = np.column_stack([joint.primary_index, answer]).astype(np.float64)
    first, place = distinct_rows(keys)
    atom, met = joint.primary_index[first], answer[first]
    differs = met != primary.answer[atom]
    counts = np.bincount(atom[differs], minlength=len(primary))
    begin = np.cumsum(counts) - counts
    rank = np.cumsum(differs) - 1 - begin[atom] + 1
    column = np.where(differs, rank, 0)
    found = _Met(
        own=primary.answer,
        atom=atom[differs],
        answer=met[differs],
        rank=rank[differs],
        n_answers=counts,
        n_outcomes=joint.n_outcomes,
    )
    return found, column[place]


def _reduced(
    joint: JointTable,
    trust: Trust,
    reference: AnswerConfidence,
    own: OwnOutcomes,
    column: Ints,
) -> FewerOutcomes:
    primary = cast("AnswerConfidence", joint.primary)
    n_atoms, n_columns = own.outcome.shape
    outcomes = tuple(range(n_columns))
    stated = reference.confidence[joint.reference_index]
    local = AnswerConfidence._of(column, stated, outcomes)
    cells, weights = cells_of_pairs(joint, reference, trust), joint.weights
    pairs = np.arange(len(weights))
    moments = pooled_rows(
        local, AnswerConfidenceProperty(caps=False), pairs, cells, weights
    )
    rows = merged_rows(moments.node_of_pair, joint.primary_index, weights)
    capped = np.zeros(moments.n_cells, dtype=bool)
    if trust.caps:
        warn_about_caps(reference, trust)
        capped[cells] = ~cap_impossible(stated, joint.n_outcomes)
    moments, rows = _row_by_row(moments, rows, own, capped)
    cell_of_atom = np.arange(n_atoms)
    problem = ProjectionProblem(
        atoms=AnswerConfidence._of(
            np.zeros(n_atoms, dtype=np.int64), primary.confidence, outcomes
        ),
        atom_weight=group_sums(rows.owner, rows.weight, n_atoms),
        cell_of_atom=cell_of_atom,
        pairs=rows,
        linked=rows,
        moments=moments,
        trust=trust,
    )
    avoided = _avoided(problem, own, capped)
    return FewerOutcomes(problem, own, primary.outcomes, capped, avoided)


def _primary_answers(
    problem: ProjectionProblem, own: OwnOutcomes, capped: Bools
) -> tuple[Ints, Ints]:
    """Capped reference cells and the primary answers in them, each pair once."""
    rows = problem.linked
    cell = problem.moments.cell_of_node[rows.node]
    keys = np.column_stack([cell, own.outcome[rows.owner, 0]])[capped[cell]]
    first, _ = distinct_rows(keys.astype(np.float64))
    return keys[first, 0], keys[first, 1]


def _avoided(
    problem: ProjectionProblem, own: OwnOutcomes, capped: Bools
) -> tuple[Ints, Ints]:
    """Rows of capped cells, and primary answers of other rows that they leave alone."""
    rows = problem.linked
    cell, answer = _primary_answers(problem, own, capped)
    entry, row = equal_pairs(cell, problem.moments.cell_of_node[rows.node])
    is_known = (own.outcome[rows.owner[row]] == answer[entry][:, None]).any(axis=1)
    return row[~is_known], answer[entry][~is_known]


def _is_avoided(fewer: FewerOutcomes) -> Bools:
    """(moment rows,) caps on primary answers, which other rows put nothing on."""
    moments, n_outcomes = fewer.problem.moments, fewer.own.n_outcomes
    cell, answer = _primary_answers(fewer.problem, fewer.own, fewer.capped)
    capped = moments.cell_of_row * n_outcomes + moments.slot_of_row - 1
    return np.isin(capped, cell * n_outcomes + answer) & ~moments.equality


def _row_by_row(
    moments: MomentRows, rows: Rows, own: OwnOutcomes, capped: Bools
) -> tuple[MomentRows, Rows]:
    """Every row a node of its own, and caps on the outcomes that rows tell apart."""
    n_rows, n_equal = len(rows.weight), moments.n_rows
    node = np.arange(n_rows)
    cell = moments.cell_of_node[rows.node]
    entry, at = equal_pairs(moments.node, rows.node)
    answered = np.full(n_rows, -1)
    answered[at] = moments.outcome[entry]
    is_capped = ~own.is_block[rows.owner] & capped[cell][:, None]
    is_capped[node, answered] = False
    row, column = np.nonzero(is_capped)
    outcome = own.outcome[rows.owner[row], column]
    keys = np.column_stack([cell[row], outcome]).astype(np.float64)
    first, cap = distinct_rows(keys)
    target = np.zeros(moments.n_cells)
    target[moments.cell_of_row] = moments.target
    cap_cell = cell[row[first]]
    wide = replace(
        moments,
        node_of_pair=node,
        cell_of_node=cell,
        equality=np.append(moments.equality, np.zeros(len(first), dtype=bool)),
        target=np.append(moments.target, target[cap_cell]),
        cell_of_row=np.append(moments.cell_of_row, cap_cell),
        slot_of_row=np.append(moments.slot_of_row, 1 + outcome[first]),
        row=np.append(moments.row[entry], n_equal + cap),
        node=np.append(at, row),
        outcome=np.append(moments.outcome[entry], column),
        coefficient=np.append(moments.coefficient[entry], np.ones(len(row))),
        anchors=_even_anchors(moments.anchors[rows.node], rows, own, answered),
        allowed=moments.allowed[rows.node],
        form="pooled caps" if capped.any() else moments.form,
    )
    return wide, Rows(node, rows.owner, rows.weight)


def _even_anchors(
    anchors: Floats, rows: Rows, own: OwnOutcomes, answered: Ints
) -> Floats:
    """The answer has its confidence and all real outcomes have the same of the rest."""
    node = np.arange(len(answered))
    stated = anchors[node, answered]
    each = (1 - stated) / (own.n_outcomes - 1)
    block = own.is_block[rows.owner]
    n_columns = np.maximum(block.sum(axis=1), 1)
    share = each * own.block_size[rows.owner] / n_columns
    even = np.where(block, share[:, None], each[:, None])
    even[node, answered] = stated
    return np.asarray(even)


def _excess_share(fewer: FewerOutcomes, rates: Floats) -> Floats:
    """(reference cells,) how much of its anchor a cell needs for all caps to hold."""
    problem, own = fewer.problem, fewer.own
    rows, moments = problem.linked, problem.moments
    cell = moments.cell_of_node[rows.node]
    n_cells = moments.n_cells
    each = rows.weight * fewer.on_each(rates)
    in_block = group_sums(cell, each, n_cells)
    mass = group_sums(cell, rows.weight, n_cells)
    limit = np.zeros(n_cells)
    first = moments.equality
    limit[moments.cell_of_row[first]] = moments.target[first]
    anchored = (mass - limit) / (own.n_outcomes - 1)
    # An outcome met in some rows of the cell is in the block of the others, but for
    # those that these avoid.
    told = rows.weight[moments.node] * rates[moments.node, moments.outcome]
    met = group_sums(moments.row, told, moments.n_rows)
    more = in_block[moments.cell_of_row] - group_sums(
        moments.row, each[moments.node], moments.n_rows
    )
    met += np.where(_is_avoided(fewer), 0.0, more)
    highest = in_block.copy()
    np.maximum.at(highest, moments.cell_of_row[~first], met[~first])
    over = np.where(fewer.capped, np.maximum(highest - limit, 0.0), 0.0)
    room = np.maximum(highest - anchored, 1e-300)
    return np.minimum(over / room, 1.0)
