"""Two outcomes: the projection as a flow with convex costs, solved exactly.

With two outcomes a row (reference cell b, primary cell j) has one number, the mass y of
outcome 1 on it, at most its own mass w. The moment of b fixes the sum of its y, and the
objective depends on the sums over the primary cells only:

    min  sum_j F_j(sum_b y_bj)    s.t.  sum_j y_bj = t_b,   0 <= y_bj <= w_bj

a flow from reference to primary cells. Divide and conquer solves it in finitely many
steps (:mod:`trueup.solve._levels`) and gives both sides slopes: ``lambda_b`` and
``mu_j``, equal inside a piece, with full rows where ``lambda_b > mu_j`` and empty ones
where it is below. So optimality is visible, and only rounding separates the bounds.

*A cell that trusts answers* (rungs ``mean`` and ``confidence``) has rows that count
outcome 1 and rows that count outcome 0. Each cell then stands in the graph twice, for
each outcome, and a row of either kind is two arcs. Exchanging the outcomes maps the
doubled problem onto itself, so the mean of a solution and its image is a solution, and
that is one of the original.

*An error budget* limits every ``lambda`` to some [-L, L]. A solution without a budget
becomes one by clamping the slopes of both sides: a primary cell above L takes less,
every row it gives up belongs to a cell above L as well, and nothing else changes. The
error this spends falls as L grows, so L is the root of one equation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from trueup._arrays import group_sums
from trueup._validate import Floats, Ints
from trueup.core.losses import (
    BrierLoss,
    ConfidenceLoss,
    HeldAnswerLoss,
    LogLoss,
    OwnAnswerLoss,
    ProperLoss,
    Solved,
    SphericalLoss,
)
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.solve.conic import Iterate, Start
from trueup.solve.network import Network, make_network, moment_sizes, starts
from trueup.solve.problem import ProjectionProblem
from trueup.solve.progress import Progress, Watch
from trueup.solve.rounding import gap_wanted, round_to_witness, upper_bound

KNOWN = (
    BrierLoss,
    LogLoss,
    SphericalLoss,
    ConfidenceLoss,
    HeldAnswerLoss,
    OwnAnswerLoss,
)
"""Losses whose reports move by a formula."""
_SIGMA = 1.0
_STEEPEST = {"brier": 4.0, "spherical": 2.0, "confidence": 4.0}
_FAR = 37.0
"""Slope of log loss at which the last digit of a probability is gone."""


def applies(problem: ProjectionProblem, loss: ProperLoss) -> bool:
    """Whether a projection is one that this engine solves."""
    if problem.n_outcomes != 2 or problem.moments.form != "single":
        return False
    if not isinstance(loss, KNOWN):
        return False
    if isinstance(loss, LogLoss) and (loss.vectors(problem.atoms) == np.inf).any():
        return False
    size = moment_sizes(problem)
    if size is None:
        return False
    # One limit on all multipliers is one on all slopes only if these are alike.
    return problem.reference_error == 0 or bool(np.ptp(size) <= 1e-12 * size.max())


def solve(
    problem: ProjectionProblem, loss: ProperLoss, *, watch: Watch | None = None
) -> Iterate:
    """Project exactly."""
    network = make_network(problem)
    reports = _Reports(problem, loss, is_doubled=network.is_doubled)
    found = _solve_network(problem, network, reports)
    if problem.reference_error > 0:
        found = _within_budget(problem, found, reports)
    iterate, upper = _iterate(problem, loss, found, reports)
    if watch is None:
        return iterate
    try:
        watch(Progress(1, iterate.lower, upper))
    except KeyboardInterrupt:
        return replace(iterate, is_interrupted=True)
    return iterate


class _Reports:
    """Primary reports in the order of their cells, and how each moves."""

    def __init__(
        self, problem: ProjectionProblem, loss: ProperLoss, *, is_doubled: bool
    ) -> None:
        from trueup.solve._levels import MIRRORED, Tilts  # noqa: PLC0415

        self.order = np.argsort(problem.cell_of_atom, kind="stable")
        kind, base = _movement(problem.atoms, loss)
        kind, base = kind[self.order], base[self.order]
        weight = problem.atom_weight[self.order]
        cell = problem.cell_of_atom[self.order]
        steepest = _STEEPEST.get(loss.name, _FAR + float(np.abs(base).max()))
        total = group_sums(cell, weight, problem.n_cells)
        start = starts(cell, problem.n_cells)
        self.single = Tilts(start, kind, base, weight, total, -steepest)
        self.tilts = self.single
        if is_doubled:
            self.tilts = Tilts(
                np.append(start, start[-1] + start[1:]),
                np.append(kind, np.array(MIRRORED)[kind]),
                np.append(base, -base),
                np.append(weight, weight),
                np.append(total, total),
                -steepest,
            )

    def rates(self, slopes: Floats) -> Floats:
        """(atoms,) probability of outcome 1, in the order of the problem."""
        from trueup.solve._levels import tilted_rates  # noqa: PLC0415

        rates = np.empty(len(self.order))
        rates[self.order] = tilted_rates(self.single, slopes)
        return rates


def _movement(reports: Reports, loss: ProperLoss) -> tuple[Ints, Floats]:
    """(atoms,) how each report moves, and the slope of the generator at it."""
    from trueup.solve import _levels  # noqa: PLC0415

    if isinstance(reports, Distributions):
        p = reports.probabilities
        if isinstance(loss, BrierLoss):
            number, base = _levels.BRIER, 2 * (p[:, 1] - p[:, 0])
        elif isinstance(loss, LogLoss):
            number, base = _levels.LOG, np.log(p[:, 1]) - np.log(p[:, 0])
        else:
            unit = -loss.vectors(reports)
            number, base = _levels.SPHERICAL, unit[:, 1] - unit[:, 0]
        return np.full(len(p), number), base
    stated = cast("AnswerConfidence", reports)
    base = 2 * stated.confidence * np.where(stated.answer == 1, 1.0, -1.0)
    if isinstance(loss, OwnAnswerLoss):
        loss = loss.held_by(reports)
    if isinstance(loss, HeldAnswerLoss):
        held = np.array([_levels.HELD_FIRST, _levels.HELD_SECOND])
        return held[loss.answers], base
    return np.full(len(stated), _levels.CONFIDENCE), base


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Slopes of both sides, and where outcome 1 is."""

    primary: Floats
    """(primary cells,) mu, outcome 1 less outcome 0."""
    reference: Floats
    """(reference cells,) lambda times the size of the moment."""
    rates: Floats
    """(rows,) probability of outcome 1."""
    size: Floats
    n_pieces: int


def _solve_network(
    problem: ProjectionProblem, network: Network, reports: _Reports
) -> _Found:
    from trueup.solve._levels import Levels, find_levels  # noqa: PLC0415

    graph, flow, order = network.graph()
    n_sinks = len(reports.tilts.total)
    levels = Levels(
        np.zeros(len(network.supply)),
        np.zeros(n_sinks),
        np.zeros(n_sinks),
        reports.tilts.total.copy(),
        np.zeros(n_sinks),
    )
    n_pieces = find_levels(graph, flow, reports.tilts, levels, network.supply.copy())
    sent = np.empty_like(flow.on)
    sent[order] = flow.on
    weight, n_rows = problem.linked.weight, len(problem.linked.weight)
    if not network.is_doubled:
        sign = np.ones(len(network.supply))
        sign[network.source] = network.sign
        slopes = levels.sink, levels.source * sign
        return _Found(*slopes, sent / weight, network.size, n_pieces)
    share = (1 + (sent[:n_rows] - sent[n_rows:]) / weight) / 2
    return _Found(
        _halved(levels.sink),
        _halved(levels.source),
        np.where(network.sign > 0, share, 1 - share),
        network.size,
        n_pieces,
    )


def _halved(slopes: Floats) -> Floats:
    """Mean of the slopes and those of the exchanged outcomes."""
    one, other = slopes.reshape(2, -1)
    return np.asarray((one - other) / 2)


def _within_budget(
    problem: ProjectionProblem, found: _Found, reports: _Reports
) -> _Found:
    """Clamp the slopes of both sides so far that the error allowed is spent."""
    cell, weight = problem.cell_of_atom, problem.atom_weight
    allowed = problem.reference_error / float(found.size.max())

    def mass(slopes: Floats) -> Floats:
        return group_sums(cell, weight * reports.rates(slopes), problem.n_cells)

    before = mass(found.primary)

    def spent(limit: float) -> float:
        clamped = np.clip(found.primary, -limit, limit)
        return float(np.abs(before - mass(clamped)).sum())

    low, high = 0.0, float(np.abs(found.primary).max())
    if spent(0.0) <= allowed:
        high = 0.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if spent(middle) > allowed else (low, middle)
    clamped = np.clip(found.primary, -high, high)
    after, owner = mass(clamped), problem.linked.owner
    total = reports.single.total
    with np.errstate(invalid="ignore", divide="ignore"):
        less = np.where(found.primary > high, after / before, 1.0)[owner]
        more = (total - after) / (total - before)
    more = np.where(found.primary < -high, more, 1.0)[owner]
    return replace(
        found,
        primary=clamped,
        reference=np.clip(found.reference, -high, high),
        rates=1 - (1 - found.rates * less) * more,
    )


def _iterate(
    problem: ProjectionProblem, loss: ProperLoss, found: _Found, reports: _Reports
) -> tuple[Iterate, float]:
    """The result, with both bounds, and the upper one."""
    moments, error = problem.moments, problem.reference_error
    level = found.reference / found.size
    if error == 0:  # where outcomes are ruled out any multiplier will do
        level[moments.cell_of_node[~moments.allowed.all(axis=1)]] = 0.0
    multipliers = level[moments.cell_of_row]
    slopes = np.column_stack([-found.primary, found.primary]) / 2
    second = reports.rates(found.primary)
    h = np.column_stack([1 - second, second])
    rates = np.column_stack([1 - found.rates, found.rates])
    witness = round_to_witness(problem, rates, h)
    upper = upper_bound(problem, loss, witness)
    tilt = slopes[problem.cell_of_atom]
    lower = _dual_value(problem, multipliers, slopes) + float(
        problem.atom_weight
        @ (loss.divergence(h, problem.atoms) - (tilt * h).sum(axis=1))
    )
    status = f"two outcomes: exact, {found.n_pieces} pieces"
    start = Start(
        slopes,
        multipliers,
        witness.outcome_rates,
        witness.distributions,
        np.zeros_like(multipliers),
        _SIGMA,
    )
    return (
        Iterate(
            Solved(tilt, problem.possible),
            witness.distributions,
            witness.outcome_rates,
            multipliers,
            status,
            found.n_pieces,
            witness=witness,
            lower=lower,
            reached=upper - lower <= gap_wanted(upper, loss.vectors(problem.atoms)),
            start=start,
        ),
        upper,
    )


def _dual_value(
    problem: ProjectionProblem, multipliers: Floats, slopes: Floats
) -> float:
    """What the moments and the rows contribute to the lower bound."""
    rows, moments = problem.linked, problem.moments
    cost = slopes[rows.owner] - moments.pull(multipliers)[rows.node]
    worst = np.where(problem.allowed[rows.node], cost, np.inf).min(axis=1)
    price = problem.reference_error * np.abs(multipliers).max(initial=0.0)
    return float(multipliers @ moments.target + rows.weight @ worst - price)
