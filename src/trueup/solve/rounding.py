"""From an engine's approximate rates to rates that are exactly admissible.

The value of the objective at any admissible point is an upper bound on the optimum;
with the certified lower bound it proves how good a map is. So feasibility must be
exact here, not "within tolerance".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Bools, Floats, Ints
from trueup.core.losses import ProperLoss
from trueup.core.moments import MomentRows
from trueup.core.simplex import normalise_rows
from trueup.solve.problem import ProjectionProblem


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """Admissible outcome rates, and the distributions they give each atom."""

    outcome_rates: Floats
    """(linked rows, K)."""
    distributions: Floats
    """(atoms, K) h, compatible with the reference by these rates."""


def round_to_witness(
    problem: ProjectionProblem, rates: Floats, distributions: Floats
) -> Witness:
    """Move approximate rates the little it takes to satisfy every row."""
    exact = _exact_rates(problem, rates)
    linked, cell_of_atom = problem.linked, problem.cell_of_atom
    mass = group_sums(linked.owner, linked.weight[:, None] * exact, problem.n_cells)
    means = mass / mass.sum(axis=1, keepdims=True)
    h = fit_to_means(
        normalise_rows(distributions), problem.atom_weight, cell_of_atom, means
    )
    return Witness(exact, h)


def upper_bound(
    problem: ProjectionProblem, loss: ProperLoss, witness: Witness
) -> float:
    """Objective at a witness: at least the optimum."""
    divergence = loss.divergence(witness.distributions, problem.atoms)
    return float(problem.atom_weight @ divergence)


def gap_wanted(upper: float, primary: Floats) -> float:
    """Gap asked for: absolute in units of the loss's range, relative to the optimum."""
    spread = float(primary.max() - primary.min())
    return max(1e-8 * max(1.0, spread), 1e-6 * upper)


def _exact_rates(problem: ProjectionProblem, rates: Floats) -> Floats:
    rows, moments = problem.linked, problem.moments
    allowed = problem.allowed[rows.node]
    clean = normalise_rows(np.where(allowed, np.maximum(rates, 1e-300), 0.0))
    error_free = _without_error(problem, clean)
    if problem.reference_error == 0:
        return error_free
    # Mixing with error-free rates shrinks every violation, so it buys back the
    # little by which the engine overspent the budget.
    spent = float(moments.violations(problem.node_mass(rows, clean)).sum())
    if spent <= problem.reference_error:
        return clean
    share = min(1.0, (spent - problem.reference_error) / spent * (1 + 1e-9))
    return (1 - share) * clean + share * error_free


def _without_error(problem: ProjectionProblem, rates: Floats) -> Floats:
    """Rates that satisfy the moment rows exactly."""
    rows, moments = problem.linked, problem.moments
    mass = problem.node_mass(rows, rates)
    node_weight = mass.sum(axis=1)
    means = mass / node_weight[:, None]
    if moments.shiftable:  # the whole distribution of a node is given
        means = moments.anchors
    else:
        means = _meet_equality(moments, means, node_weight)
        means = _meet_inequalities(moments, means, node_weight)
    return fit_to_means(rates, rows.weight, rows.node, means)


def _meet_equality(moments: MomentRows, means: Floats, node_weight: Floats) -> Floats:
    """Mix every node of a cell with its highest or lowest outcome until it balances.

    A cell has at most one equality; mixing towards the outcome with the largest
    (smallest) coefficient raises (lowers) its moment linearly.
    """
    rows = np.flatnonzero(moments.equality)
    if not rows.size:
        return means
    n_nodes, n_outcomes = means.shape
    coefficients = np.zeros((n_nodes, n_outcomes))
    first = moments.equality[moments.row]
    coefficients[moments.node[first], moments.outcome[first]] = moments.coefficient[
        first
    ]
    residual = moments.residuals(node_weight[:, None] * means)
    excess = np.zeros(moments.n_cells)
    excess[moments.cell_of_row[rows]] = residual[rows]
    too_high = excess[moments.cell_of_node] > 0
    vertex = np.where(
        too_high, coefficients.argmin(axis=1), coefficients.argmax(axis=1)
    )
    corner = np.zeros_like(means)
    corner[np.arange(n_nodes), vertex] = 1
    reach = moments.residuals(node_weight[:, None] * corner)
    other_side = np.zeros_like(excess)
    other_side[moments.cell_of_row[rows]] = reach[rows]
    span = excess - other_side
    share = np.divide(excess, span, out=np.zeros_like(span), where=span != 0)
    mix = np.clip(share, 0, 1)[moments.cell_of_node][:, None]
    return (1 - mix) * means + mix * corner


def _meet_inequalities(
    moments: MomentRows, means: Floats, node_weight: Floats
) -> Floats:
    """Mix a cell with its anchor, which keeps equalities and has slack to give."""
    rows = np.flatnonzero(~moments.equality)
    if not rows.size:
        return means
    violation = moments.residuals(node_weight[:, None] * means)[rows]
    anchored = moments.residuals(node_weight[:, None] * moments.anchors)[rows]
    room = np.maximum(violation - np.minimum(anchored, 0), 1e-300)
    needed = np.where(violation > 0, np.minimum(violation / room, 1), 0)
    share = np.zeros(moments.n_cells)
    np.maximum.at(share, moments.cell_of_row[rows], needed)
    mix = share[moments.cell_of_node][:, None]
    return (1 - mix) * means + mix * moments.anchors


def fit_to_means(rows: Floats, weight: Floats, group: Ints, means: Floats) -> Floats:
    """Change simplex rows the least so that each group has exactly the given mean.

    METHOD section 5: scale down the outcomes a group has too much of, then give every
    row the same distribution of what is missing, in proportion to what it lost.
    """
    n_groups = len(means)
    mass = group_sums(group, weight, n_groups)
    now = group_sums(group, weight[:, None] * rows, n_groups) / mass[:, None]
    ratio = np.divide(means, now, out=np.ones_like(means), where=now > 0)
    keep = np.minimum(ratio, 1)
    missing = np.maximum(means - keep * now, 0)
    total = missing.sum(axis=1, keepdims=True)
    fill = np.divide(missing, total, out=np.zeros_like(missing), where=total > 0)
    kept = rows * keep[group]
    lost = np.maximum(1 - kept.sum(axis=1, keepdims=True), 0)
    moved = kept + lost * fill[group]
    alone: Bools = np.bincount(group, minlength=n_groups)[group] == 1
    return np.where(alone[:, None], means[group], moved)
