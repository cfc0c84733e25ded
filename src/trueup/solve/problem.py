"""The projection problem: sparse pairs, atoms linked to cells, and moment rows.

    min  sum_a w_a D(h_a, r_a)
    s.t. sum_{a in j} w_a h_a = sum_{p in j} w_p K_p      (link, one a primary cell j)
         moment rows on K, K_p and h_a in the simplex

Nothing here knows which rung, group column, budget or loss made the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from trueup._arrays import distinct_rows, group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.core.joint import JointTable
from trueup.core.moments import MomentRows, Trust, moment_rows
from trueup.core.reports import Reports

ASSERTED = "asserted"
"""Form of moments with rows that span the cells of the reference."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Places where the truth is free: each has a node, an owner and a mass."""

    node: Ints
    owner: Ints
    """Primary cell (linked rows) or atom (pairs) the row belongs to."""
    weight: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ProjectionProblem:
    """Data of one projection, without the loss."""

    atoms: Reports
    """Distinct primary reports."""
    atom_weight: Floats
    cell_of_atom: Ints
    """Primary cell each atom is linked to; atoms that stand alone have their own."""
    pairs: Rows
    """(node, atom) pairs: the finest level, at which certificates are computed."""
    linked: Rows
    """The pairs merged by (node, primary cell): the level that is solved."""
    moments: MomentRows
    trust: Trust

    @classmethod
    def from_joint(cls, joint: JointTable, trust: Trust) -> Self:
        """Every distinct primary report is an atom in a cell of its own."""
        moments = moment_rows(joint, trust)
        n_atoms = len(joint.primary)
        cell_of_atom = np.arange(n_atoms)
        pairs = merged_rows(moments.node_of_pair, joint.primary_index, joint.weights)
        return cls(
            atoms=joint.primary,
            atom_weight=group_sums(pairs.owner, pairs.weight, n_atoms),
            cell_of_atom=cell_of_atom,
            pairs=pairs,
            linked=merged_rows(pairs.node, cell_of_atom[pairs.owner], pairs.weight),
            moments=moments,
            trust=trust,
        )

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes K."""
        return self.atoms.n_outcomes

    @property
    def n_cells(self) -> int:
        """Number of primary cells."""
        return int(self.cell_of_atom.max()) + 1

    @property
    def reference_error(self) -> float:
        """The error budget."""
        return self.trust.reference_error

    @property
    def allowed(self) -> Bools:
        """(nodes, K) outcomes an admissible truth may put on a node."""
        if self.reference_error > 0:  # a budget may be spent anywhere
            return np.ones_like(self.moments.allowed)
        return self.moments.allowed

    @property
    def possible(self) -> Bools:
        """(atoms, K) outcomes that some admissible truth allows for an atom."""
        cells = np.zeros((self.n_cells, self.n_outcomes), dtype=bool)
        np.logical_or.at(cells, self.linked.owner, self.allowed[self.linked.node])
        return cells[self.cell_of_atom]

    def node_mass(self, rows: Rows, rates: Floats) -> Floats:
        """(nodes, K) mass of each outcome on each node under outcome rates of rows."""
        return group_sums(
            rows.node, rows.weight[:, None] * rates, len(self.moments.anchors)
        )


def merged_rows(node: Ints, owner: Ints, weight: Floats) -> Rows:
    """Add up rows with the same node and owner."""
    keys = np.column_stack([node, owner]).astype(np.float64)
    first, inverse = distinct_rows(keys)
    return Rows(node[first], owner[first], group_sums(inverse, weight, len(first)))
