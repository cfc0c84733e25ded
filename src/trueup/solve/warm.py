"""Beginning a projection where a similar one ended.

Slopes are carried over by primary report, outcome rates by pair of reports, and the
multipliers row by row where both tables have the same cells. Whatever is new begins as
it would have without; a bad start costs time only.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueup._arrays import distinct_rows
from trueup._validate import Floats, Ints
from trueup.core.joint import JointTable
from trueup.core.reports import Reports
from trueup.solve.conic import Start
from trueup.solve.problem import ProjectionProblem


def carried(
    start: Start,
    old: tuple[JointTable, ProjectionProblem],
    new: tuple[JointTable, ProjectionProblem],
) -> Start | None:
    """The start of an earlier projection for another problem; None if unrelated."""
    old_joint, old_problem = old
    joint, problem = new
    same = old_problem.trust == problem.trust
    start = replace(start, is_near=same)
    if old_joint is joint and _same_cells(old_problem, problem):
        return start if same else start.for_another()
    if type(old_joint.primary) is not type(joint.primary):
        return None
    if old_joint.n_outcomes != joint.n_outcomes:
        return None
    atom = _places(old_joint.primary, joint.primary)
    known = atom >= 0
    n_moments = problem.moments.n_rows
    multipliers, slack = np.zeros(n_moments), np.zeros(n_moments)
    if _same_cells(old_problem, problem):
        multipliers, slack = start.multipliers, start.slack
    rates = problem.moments.anchors[problem.linked.node].copy()
    row = _rows(old, new, atom)
    rates[row >= 0] = start.rates[row[row >= 0]]
    uniform = np.full((len(atom), joint.n_outcomes), 1 / joint.n_outcomes)
    return replace(
        start.for_another(),
        slopes=np.where(known[:, None], start.slopes[atom], 0.0),
        multipliers=multipliers,
        rates=rates,
        distributions=np.where(known[:, None], start.distributions[atom], uniform),
        slack=slack,
    )


def _same_cells(old: ProjectionProblem, new: ProjectionProblem) -> bool:
    """Whether moment rows and nodes mean the same in both problems."""
    return (
        old.trust.rung == new.trust.rung
        and old.trust.caps == new.trust.caps
        and np.array_equal(old.moments.cell_of_row, new.moments.cell_of_row)
        and np.array_equal(old.moments.slot_of_row, new.moments.slot_of_row)
        and np.array_equal(old.moments.cell_of_node, new.moments.cell_of_node)
    )


def _places(old: Reports, new: Reports) -> Ints:
    """(new,) where each report stands among the old ones, or -1."""
    keys = np.concatenate([old.keys(), new.keys()])
    first, inverse = distinct_rows(keys)
    found = first[inverse[len(old) :]]
    return np.where(found < len(old), found, -1)


def _rows(
    old: tuple[JointTable, ProjectionProblem],
    new: tuple[JointTable, ProjectionProblem],
    atom: Ints,
) -> Ints:
    """(new rows,) the old row of the same reference and primary report, or -1."""
    if old[1].trust.rung != new[1].trust.rung or old[0].groups or new[0].groups:
        return np.full(len(new[1].linked.weight), -1)
    report = _places(old[0].reference, new[0].reference)
    before = _pair_keys(old, np.arange(len(old[0].primary)), None)
    after = _pair_keys(new, atom, report)
    first, inverse = distinct_rows(np.concatenate([before, after]))
    found = first[inverse[len(before) :]]
    lost = (after < 0).any(axis=1)
    return np.where((found < len(before)) & ~lost, found, -1)


def _pair_keys(
    given: tuple[JointTable, ProjectionProblem], atom: Ints, report: Ints | None
) -> Floats:
    """(rows, 2) reference and primary report of each row, in the old numbers."""
    joint, problem = given
    of_node = np.zeros(len(problem.moments.anchors), dtype=np.int64)
    of_node[problem.moments.node_of_pair] = joint.reference_index
    named = of_node if report is None else report[of_node]
    rows = problem.linked
    return np.column_stack([named[rows.node], atom[rows.owner]]).astype(np.float64)
