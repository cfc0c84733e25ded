"""Slow, independent answers to the questions the package answers fast.

Everything here is written from the method's definitions alone, on item-level rows
of a finite table that is taken as the population, with generic solvers: HiGHS for
linear programs and CVXPY + Clarabel for the projection. Nothing is imported from
the package, so an error has to be made twice to go unnoticed.

Vocabulary: a *truth* is an (N, K) array of outcome rates, one distribution per row.
A truth is admissible if the reference's moments hold for it up to the budget
``reference_error``. An *atom* is a distinct primary report.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import OptimizeResult, linprog

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Kind = Literal[
    "distribution", "answer-confidence", "mean", "quantile", "expectile", "mode"
]
Trust = Literal["mean", "confidence", "answer-confidence", "distribution", "point"]
Loss = Literal[
    "brier",
    "log",
    "spherical",
    "confidence",
    "squared",
    "pinball",
    "expectile",
    "zero-one",
]

HIGHS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
TOLERANCES = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7)
"""Of Clarabel, tried in turn: at the tip of a cone the tightest cannot be met."""
ROUNDING = 1e-12
"""Differences below this are floating-point noise, not statements."""
DUST = 1e-10
"""Rates below this in a solver's truth are zeros it did not quite reach."""
SOLVED, INFEASIBLE = 0, 2
"""Status codes of scipy's linprog."""
REACHABLE = 1e-7
"""An outcome rate that no admissible truth lifts above this is taken to be zero."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class World:
    """A finite table of reports, what is believed of the reference, and a loss.

    Reports are (N, K) for distributions, (N, 2) columns (answer, confidence) for
    answer-confidence, (N,) otherwise (a value, or an outcome index for the mode).
    """

    n_outcomes: int
    weights: Floats
    primary_kind: Kind
    primary: Floats
    reference_kind: Kind
    reference: Floats
    trust: Trust
    loss: Loss
    values: Floats | None = None
    groups: Ints | None = None
    primary_level: float | None = None
    reference_level: float | None = None
    caps: bool = False
    reference_error: float = 0.0

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return self.weights.size

    @property
    def numbers(self) -> Floats:
        """Numeric outcome values; zeros where no property needs them."""
        return np.zeros(self.n_outcomes) if self.values is None else self.values


class Block(NamedTuple):
    """Moments of the same sense: T of shape (N, M, K) and t of shape (N, M)."""

    functions: Floats
    targets: Floats


class Rows(NamedTuple):
    """Linear rows on the flattened truth: coefficients @ truth ~ targets."""

    coefficients: Floats
    targets: Floats


class Moments(NamedTuple):
    """Rows that must hold with equality, and rows that bound from above."""

    equal: Rows
    upper: Rows


class Atoms(NamedTuple):
    """Distinct primary reports that have mass."""

    mass: Floats
    shares: Floats
    """(A, N): which part of the atom's mass each row is; rows sum to one."""
    first: Ints
    """A row that carries the atom's report."""
    member: npt.NDArray[np.bool_]
    """(A, N): the rows of the atom, those of weight zero too."""


class Face(NamedTuple):
    """The smallest face of the simplices that holds every admissible truth."""

    free: npt.NDArray[np.bool_]
    """Flattened rates that some admissible truth makes positive."""
    tight: npt.NDArray[np.bool_]
    """Inequalities that hold with equality in every admissible truth."""


def normalise(weights: npt.ArrayLike) -> Floats:
    """Scale non-negative weights to sum to one."""
    array = np.asarray(weights, dtype=float)
    return array / array.sum()


def as_answers(reports: Floats) -> Floats:
    """Read distributions as (argmax, max), ties to the lowest index."""
    return np.column_stack([reports.argmax(axis=1), reports.max(axis=1)])


# Losses and their generators


def pinball(reports: Floats, values: Floats, level: float) -> Floats:
    """Pinball loss of each report (rows) at each value (columns)."""
    gap = values[None, :] - reports[:, None]
    return np.maximum(level * gap, (level - 1) * gap)


def asymmetric(reports: Floats, values: Floats, level: float) -> Floats:
    """Weight of the expectile loss, the level above the report and 1 - it below."""
    return np.where(values[None, :] < reports[:, None], 1 - level, level)


def report_losses(world: World, reports: Floats) -> Floats:
    """Loss l(report_n, y) of any reports of the primary's kind, (N, K)."""
    identity, v = np.eye(world.n_outcomes), world.numbers
    level = world.primary_level or math.nan
    match world.loss:
        case "brier":
            return (reports**2).sum(axis=1, keepdims=True) - 2 * reports
        case "log":
            with np.errstate(divide="ignore"):
                return -np.log(reports)
        case "spherical":
            return -reports / np.linalg.norm(reports, axis=1, keepdims=True)
        case "confidence":
            c = reports[:, 1:]
            return c**2 - 2 * c * identity[reports[:, 0].astype(int)]
        case "zero-one":
            return -identity[reports.astype(int)]
        case "squared":
            return reports[:, None] ** 2 - 2 * reports[:, None] * v
        case "pinball":
            return pinball(reports, v, level)
        case "expectile":
            return asymmetric(reports, v, level) * (v - reports[:, None]) ** 2


def loss_vectors(world: World) -> Floats:
    """Loss l(r_n, y) of the primary's own reports, (N, K)."""
    return report_losses(world, world.primary)


def best_reports(world: World, rates: Floats) -> Floats:
    """Return, for each row's distribution, a report of least expected loss."""
    match world.primary_kind:
        case "distribution":
            return rates
        case "answer-confidence":
            return as_answers(rates)
        case "mode":
            return rates.argmax(axis=1).astype(float)
        case "mean":
            return rates @ world.numbers
        case "quantile" | "expectile":
            options = _candidates(world, rates)
            losses = np.stack([_expected(world, o, rates) for o in options.T], axis=1)
            return np.take_along_axis(options, losses.argmin(axis=1)[:, None], 1)[:, 0]


def _expected(world: World, reports: Floats, rates: Floats) -> Floats:
    return (report_losses(world, reports) * rates).sum(axis=1)


def _candidates(world: World, rates: Floats) -> Floats:
    """Return reports among which a best quantile or expectile must be, (N, C).

    A quantile may be taken at a support point. An expectile is a weighted mean
    with weight 1 - level on the values below it; there are K - 1 splits to try.
    """
    v, level = world.numbers, world.primary_level or math.nan
    if world.primary_kind == "quantile":
        return np.tile(v, (len(rates), 1))
    below = np.tril(np.ones((v.size, v.size)), -1)
    weighted = rates[:, None, :] * np.where(below, 1 - level, level)
    return (weighted @ v) / weighted.sum(axis=2)


def divergence(world: World, rates: Floats) -> Floats:
    """Excess loss D(rates_n, r_n) of the primary's report on each row."""
    best = report_losses(world, best_reports(world, rates))
    with np.errstate(invalid="ignore"):
        excess = rates * (loss_vectors(world) - best)
    return np.where(rates > 0, excess, 0.0).sum(axis=1)


# Moments: what calibration says


def property_moments(
    kind: Kind, reports: Floats, *, level: float | None, values: Floats
) -> tuple[Block, Block]:
    """Give the equality and the inequality moments of one property.

    A row whose T and t vanish (a cap on the answer itself) says nothing and is
    dropped when cells are formed.
    """
    identity, empty = np.eye(values.size), np.zeros((len(reports), 0, values.size))
    nothing = Block(empty, empty[:, :, 0])
    r, tau = reports[:, None], level or math.nan
    match kind:
        case "distribution":
            every = np.broadcast_to(identity, (len(reports), *identity.shape))
            return Block(every, reports), nothing
        case "answer-confidence":
            own, c = identity[reports[:, 0].astype(int)], reports[:, 1:]
            return Block(own[:, None], c), Block(_others(own), (1 - own) * c)
        case "mean":
            return Block(np.tile(values, (len(reports), 1, 1)), r), nothing
        case "expectile":
            slope = asymmetric(reports, values, tau) * (values - r)
            return Block(slope[:, None], 0 * r), nothing
        case "quantile":
            sides = np.stack([1.0 * (values < r), -1.0 * (values <= r)], axis=1)
            return nothing, Block(sides, np.tile([tau, -tau], (len(reports), 1)))
        case "mode":
            own = identity[reports.astype(int)]
            return nothing, Block(identity - own[:, None], 0 * own)


def _others(own: Floats) -> Floats:
    """Give the functions e_y for every outcome but the answer, (N, K, K)."""
    return np.eye(own.shape[1]) * (1 - own)[:, :, None]


def reference_blocks(world: World) -> tuple[Block, Block]:
    """Give the moments of the reference at the trusted rung, row by row."""
    k = world.n_outcomes
    if world.trust in ("distribution", "point"):
        equal, upper = property_moments(
            world.reference_kind,
            world.reference,
            level=world.reference_level,
            values=np.zeros(k) if world.values is None else world.values,
        )
        if world.trust == "distribution" and k == 2:
            # One moment, so that the budget is the binary calibration error.
            equal = Block(equal.functions[:, 1:], equal.targets[:, 1:])
        return equal, upper
    answers = _read(world)
    equal, upper = property_moments(
        "answer-confidence", answers, level=None, values=np.zeros(k)
    )
    # With two outcomes the cap follows from the equality and spends no budget.
    with_caps = world.caps and world.n_outcomes > 2
    capped = world.trust == "answer-confidence" and with_caps
    # A confidence below 1/K contradicts its caps: such cells carry none.
    kept = capped * (answers[:, 1] >= 1 / k - ROUNDING)
    return equal, Block(
        upper.functions * kept[:, None, None], upper.targets * kept[:, None]
    )


def _read(world: World) -> Floats:
    distribution = world.reference_kind == "distribution"
    return as_answers(world.reference) if distribution else world.reference


def _labels(keys: Floats) -> Ints:
    """Assign a number to each distinct row; adding zero unifies the two zeros."""
    _, inverse = np.unique(keys + 0.0, axis=0, return_inverse=True)
    return inverse.reshape(-1)


def reference_cells(world: World) -> Ints:
    """Assign rows to moment cells: reports as the rung reads them, by group."""
    match world.trust:
        case "mean":
            key = np.zeros((world.n_rows, 1))
        case "confidence":
            key = _read(world)[:, 1:]
        case "answer-confidence":
            key = _read(world)
        case "distribution" | "point":
            key = world.reference.reshape(world.n_rows, -1)
    groups = np.zeros(world.n_rows) if world.groups is None else world.groups
    return _labels(np.column_stack([key, groups]))


def _aggregate(shares: Floats, block: Block) -> Rows:
    """Sum T and t over the rows of each cell, weighted by shares (B, N)."""
    cells, rows = shares.shape
    moments, k = block.functions.shape[1:]
    summed = np.einsum("bn,nmk->bmnk", shares, block.functions)
    coefficients = summed.reshape(cells * moments, rows * k)
    used = coefficients.any(axis=1)
    return Rows(coefficients[used], (shares @ block.targets).reshape(-1)[used])


def reference_moments(world: World) -> Moments:
    """Give the mass-weighted moment rows whose residuals the budget limits."""
    cells = reference_cells(world)
    shares = (cells == np.arange(cells.max() + 1)[:, None]) * world.weights
    equal, upper = reference_blocks(world)
    return Moments(_aggregate(shares, equal), _aggregate(shares, upper))


def atoms_of(world: World) -> Atoms:
    """Group rows by primary report; atoms without mass enter no expectation."""
    labels = _labels(world.primary.reshape(world.n_rows, -1))
    mass = np.bincount(labels, weights=world.weights)
    present = np.flatnonzero(mass > 0)
    member = labels == present[:, None]
    return Atoms(
        mass[present],
        member * world.weights / mass[present, None],
        member.argmax(axis=1),
        member,
    )


def total_error(world: World, truth: Floats) -> float:
    """Give the reference's error under a truth, in the units of the budget."""
    equal, upper = reference_moments(world)
    off = np.abs(equal.coefficients @ truth.ravel() - equal.targets).sum()
    over = upper.coefficients @ truth.ravel() - upper.targets
    return float(off + np.maximum(over, 0).sum())


def is_admissible(world: World, truth: Floats, tolerance: float) -> bool:
    """Tell whether a truth is a table of distributions within the budget."""
    return bool(
        truth.min() >= -tolerance
        and np.abs(truth.sum(axis=1) - 1).max() <= tolerance
        and total_error(world, truth) <= world.reference_error + tolerance
    )


# Linear programs over the admissible truths


def _slack_form(world: World) -> Moments:
    """Write the moments with slacks whose sum is the error, and the simplex rows.

    Columns: the truth, two slacks per equality, one per inequality.
    """
    equal, upper = reference_moments(world)
    n, m = len(equal.targets), len(upper.targets)
    simplex = np.kron(np.eye(world.n_rows), np.ones(world.n_outcomes))
    return Moments(
        Rows(
            np.block(
                [
                    [equal.coefficients, -np.eye(n), np.eye(n), np.zeros((n, m))],
                    [simplex, np.zeros((world.n_rows, 2 * n + m))],
                ]
            ),
            np.append(equal.targets, np.ones(world.n_rows)),
        ),
        Rows(
            np.hstack([upper.coefficients, np.zeros((m, 2 * n)), -np.eye(m)]),
            upper.targets,
        ),
    )


def _stack(base: Rows, extra: Rows) -> Rows:
    """Append rows that speak about the truth only, not about the slacks."""
    slacks = base.coefficients.shape[1] - extra.coefficients.shape[1]
    padded = np.pad(extra.coefficients, ((0, 0), (0, slacks)))
    return Rows(
        np.vstack([base.coefficients, padded]),
        np.concatenate([base.targets, extra.targets]),
    )


def _minimise(
    world: World,
    cost: Floats | None,
    *,
    budget: float,
    extra: Moments | None = None,
    forbidden: npt.NDArray[np.bool_] | None = None,
) -> OptimizeResult:
    """Minimise cost . truth, or the error if there is no cost, within a budget."""
    equal, upper = _slack_form(world)
    size = world.n_rows * world.n_outcomes
    slacks = equal.coefficients.shape[1] - size
    if extra is not None:
        equal, upper = _stack(equal, extra.equal), _stack(upper, extra.upper)
    error = np.append(np.zeros(size), np.ones(slacks))
    if math.isfinite(budget):
        upper = _stack(upper, Rows(error[None, :], np.array([budget])))
    highest = np.ones(size) if forbidden is None else 1.0 - forbidden.ravel()
    ceiling = np.append(highest, np.full(slacks, budget))
    result = linprog(
        error if cost is None else np.append(cost.ravel(), np.zeros(slacks)),
        A_ub=upper.coefficients,
        b_ub=upper.targets,
        A_eq=equal.coefficients,
        b_eq=equal.targets,
        bounds=np.column_stack([np.zeros(size + slacks), ceiling]),
        method="highs-ds",
        options=HIGHS,
    )
    if result.status not in (SOLVED, INFEASIBLE):
        raise RuntimeError(result.message)
    return result


def _solved(result: OptimizeResult) -> OptimizeResult:
    if result.status != SOLVED:
        raise RuntimeError(result.message)
    return result


def _advantage(world: World, deployed: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Give w (l - L) with 0 for infinite L, and where L is infinite on real mass."""
    infinite = np.isposinf(deployed)
    finite = np.where(infinite, 0.0, deployed)
    gain = np.where(infinite, 0.0, loss_vectors(world) - finite)
    return gain * world.weights[:, None], infinite & (world.weights[:, None] > 0)


def worst_case(world: World, deployed: Floats) -> float:
    """Give the least improvement over the admissible truths of deployed losses L.

    An infinite L is harmless where every admissible truth has rate zero; if some
    truth reaches such an outcome the worst case is minus infinity.
    """
    budget = world.reference_error
    cost, forbidden = _advantage(world, deployed)
    if forbidden.any():
        reach = -_solved(_minimise(world, -1.0 * forbidden, budget=budget)).fun
        if reach > REACHABLE:
            return -math.inf
    result = _minimise(world, cost, budget=budget, forbidden=forbidden)
    return float(_solved(result).fun)


def break_even(world: World, deployed: Floats) -> float:
    """Give the smallest budget at which the worst case is no longer positive.

    With an infinite L it is zero, as an infimum: an arbitrarily small step from an
    admissible truth towards the infinite outcome costs an arbitrarily small budget.
    """
    cost, forbidden = _advantage(world, deployed)
    scale = np.abs(cost).max()
    if forbidden.any() or scale < ROUNDING:
        return 0.0
    if cost.min(axis=1).sum() > ROUNDING:
        return math.inf
    none = Rows(np.zeros((0, cost.size)), np.zeros(0))
    no_gain = Moments(none, Rows(cost.reshape(1, -1) / scale, np.zeros(1)))
    result = _minimise(world, None, budget=math.inf, extra=no_gain)
    return max(float(_solved(result).fun), 0.0)


def min_total_error(world: World) -> float:
    """Give the smallest budget at which some truth calibrates every primary report."""
    shares = atoms_of(world).shares
    equal, upper = property_moments(
        world.primary_kind,
        world.primary,
        level=world.primary_level,
        values=world.numbers,
    )
    levels = Moments(_aggregate(shares, equal), _aggregate(shares, upper))
    result = _minimise(world, None, budget=math.inf, extra=levels)
    return max(float(result.fun), 0.0) if result.status == SOLVED else math.inf


def random_truth(
    world: World, rng: np.random.Generator, kind: Literal["vertex", "mixture"]
) -> Floats:
    """Draw an admissible truth: a random vertex, or a mixture of four of them."""
    if kind == "mixture":
        vertices = [random_truth(world, rng, "vertex") for _ in range(4)]
        return np.tensordot(rng.dirichlet(np.ones(4)), np.stack(vertices), axes=1)
    shape = (world.n_rows, world.n_outcomes)
    result = _minimise(world, rng.normal(size=shape), budget=world.reference_error)
    return _clean(_solved(result).x[: shape[0] * shape[1]].reshape(shape))


def _clean(truth: Floats) -> Floats:
    """Remove the solver's dust, so that rates that should be zero are zero."""
    kept = np.where(truth > DUST, truth, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)


def improvement(world: World, deployed: Floats, truth: Floats) -> float:
    """Give E l - E L under one truth; outcomes of rate zero do not count."""
    mass = world.weights[:, None] * truth
    with np.errstate(invalid="ignore"):
        gains = mass * (loss_vectors(world) - deployed)
    return float(np.where(mass > 0, gains, 0.0).sum())


# The projection


def projection_optimum(world: World) -> float:
    """Give D*, the least mass-weighted divergence of an admissible truth."""
    return projection(world)[0]


def projection(world: World) -> tuple[float, Floats]:
    """Give D* and the rates h of a minimiser, one row per row of the world.

    Rows of atoms without mass keep the rates the solver happened to leave there.
    """
    atoms, k = atoms_of(world), world.n_outcomes
    face = _face(world)
    free = cp.Variable(int(face.free.sum()), nonneg=True)
    truth = sparse.eye_array(face.free.size, format="csc")[:, face.free] @ free
    averages = sparse.csr_array(sparse.kron(atoms.shares, np.eye(k)))
    alive = (averages @ face.free > 0).reshape(-1, k)
    h = cp.reshape(averages @ truth, alive.shape, order="C")
    distance, constraints = _divergence_expression(world, atoms, h, alive)
    problem = cp.Problem(
        cp.Minimize(atoms.mass @ distance),
        constraints + _admissible(world, truth, face.tight),
    )
    _solve(problem)
    # Small rates matter to the log loss: nothing but the sign is repaired.
    rates = np.maximum(truth.value.reshape(world.n_rows, k), 0.0)
    rates /= rates.sum(axis=1, keepdims=True)
    pooled = atoms.member.T @ (atoms.shares @ rates)
    massive = atoms.member.any(axis=0)[:, None]
    return max(float(problem.value), 0.0), np.where(massive, pooled, rates)


def _solve(problem: cp.Problem) -> None:
    """Solve as exactly as Clarabel can, and never accept "almost solved"."""
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    for tolerance in TOLERANCES:
        options = dict.fromkeys((*names, *(f"reduced_{n}" for n in names)), tolerance)
        with contextlib.suppress(cp.SolverError):
            problem.solve(solver=cp.CLARABEL, max_iter=500, **options)
        if problem.status == cp.OPTIMAL:
            return
    raise RuntimeError(problem.status)


def _face(world: World) -> Face:
    """Find which rates and which inequalities are not zero in every truth.

    Interior-point methods need an interior, and a reference that says 0 or 1 leaves
    none. Over the cone {(x, s, t): x / t admissible with slacks s / t}, maximising
    sum(min(., 1)) lifts everything that can be positive, by one linear program. With
    a budget every rate can be positive.
    """
    equal, upper = reference_moments(world)
    n, k = world.n_rows, world.n_outcomes
    size, m = n * k, len(upper.targets)
    if world.reference_error > 0:
        return Face(np.ones(size, dtype=bool), np.zeros(m, dtype=bool))
    simplex = Rows(np.kron(np.eye(n), np.ones(k)), np.ones(n))
    equal = _stack(equal, simplex)
    cone = np.block(
        [
            [equal.coefficients, np.zeros((len(equal.targets), m))],
            [upper.coefficients, np.eye(m)],
        ]
    )
    scale = -np.append(equal.targets, upper.targets)[:, None]
    lifted = np.eye(size + m)
    result = linprog(
        np.append(np.zeros(size + m + 1), -np.ones(size + m)),
        A_ub=np.hstack([-lifted, np.zeros((size + m, 1)), lifted]),
        b_ub=np.zeros(size + m),
        A_eq=np.hstack([cone, scale, np.zeros((len(cone), size + m))]),
        b_eq=np.zeros(len(cone)),
        bounds=[(0, None)] * (size + m) + [(1, 1 / REACHABLE)] + [(0, 1)] * (size + m),
        options=HIGHS,
    )
    positive = _solved(result).x[size + m + 1 :] > 1e-2
    return Face(positive[:size], ~positive[size:])


def _divergence_expression(
    world: World, atoms: Atoms, h: cp.Expression, alive: npt.NDArray[np.bool_]
) -> tuple[cp.Expression, list[cp.Constraint]]:
    """Write D(h_a, r_a) for every atom, with the constraints its epigraph needs."""
    reports = world.primary[atoms.first]
    match world.loss:
        case "brier":
            return cp.sum(cp.square(h - reports), axis=1), []
        case "log":
            entries, per_atom = _alive_entries(h, alive)
            return per_atom @ cp.rel_entr(entries, reports[alive]), []
        case "squared":
            return cp.square(h @ world.numbers - reports), []
    generator, constraints = _generator_expression(world, h, alive)
    losses = loss_vectors(world)[atoms.first]
    return generator + cp.sum(cp.multiply(losses, h), axis=1), constraints


def _generator_expression(
    world: World, h: cp.Expression, alive: npt.NDArray[np.bool_]
) -> tuple[cp.Expression, list[cp.Constraint]]:
    """Write G(h_a); the quadratic losses state their whole divergence instead."""
    v = world.numbers
    match world.loss:
        case "spherical":
            return cp.norm(h, 2, axis=1), []
        case "confidence":
            # h >= 0 by construction, so the epigraph may be squared.
            top = cp.Variable(h.shape[0])
            return cp.square(top), [h <= top[:, None]]
        case "zero-one":
            return cp.max(h, axis=1), []
        case "pinball":
            # The best report may be taken among the support points.
            at_support = pinball(v, v, world.primary_level or math.nan)
            return cp.max(-h @ at_support.T, axis=1), []
    return _expectile_generator(h, alive, v, world.primary_level or math.nan)


def _alive_entries(
    h: cp.Expression, alive: npt.NDArray[np.bool_]
) -> tuple[cp.Expression, sparse.csr_array]:
    """Give the entries of h that can be positive, and the matrix summing by atom."""
    flat = cp.reshape(h, (alive.size,), order="C")
    own = sparse.kron(sparse.eye(alive.shape[0]), np.ones((1, alive.shape[1])))
    return flat[np.flatnonzero(alive)], sparse.csr_array(own)[:, alive.ravel()]


def _expectile_generator(
    h: cp.Expression, alive: npt.NDArray[np.bool_], values: Floats, level: float
) -> tuple[cp.Expression, list[cp.Constraint]]:
    """Write G for the expectile loss as a minimum, by conjugating it.

    With phi(u) = level u_+^2 + (1 - level) u_-^2 the least expected loss is
    min_r sum_y p_y phi(v_y - r). Its dual over s with sum(s) = 0 gives
    G(p) = min_s sum_y [p_y phi*(s_y / p_y) - s_y v_y]. As phi*(s) is s_+^2 / 4 level
    + s_-^2 / 4 (1 - level), the perspective is a rotated cone: t_y p_y >= x^2 + z^2
    with s = 2 (sqrt(level) x - sqrt(1 - level) z), x and z >= 0. An atom with one
    possible outcome has G = 0 and no cone: there the solver would find no interior.
    """
    open_atoms = alive.sum(axis=1) > 1
    if not open_atoms.any():
        return cp.Constant(np.zeros(len(alive))), []
    alive = alive & open_atoms[:, None]
    p, per_atom = _alive_entries(h, alive)
    x, z, t = (cp.Variable(p.size, nonneg=True) for _ in range(3))
    cone = cp.SOC(t + p, cp.vstack([2 * x, 2 * z, t - p]), axis=0)
    s = 2 * (math.sqrt(level) * x - math.sqrt(1 - level) * z)
    at = np.broadcast_to(values, alive.shape)[alive]
    return per_atom @ (t - cp.multiply(at, s)), [
        cone,
        per_atom[open_atoms] @ s == 0,
    ]


def _admissible(
    world: World, truth: cp.Expression, tight: npt.NDArray[np.bool_]
) -> list[cp.Constraint]:
    """Write the budget, or the moments themselves where there is no budget."""
    equal, upper = reference_moments(world)
    simplex = sparse.kron(sparse.eye(world.n_rows), np.ones((1, world.n_outcomes)))
    off = equal.coefficients @ truth - equal.targets
    over = upper.coefficients @ truth - upper.targets
    sums = sparse.csr_array(simplex) @ truth == 1
    if world.reference_error > 0:
        errors = [cp.norm1(off)] * (off.size > 0)
        errors += [cp.sum(cp.pos(over))] * (over.size > 0)
        return [sums, sum(errors) <= world.reference_error]
    exact, loose = np.flatnonzero(tight), np.flatnonzero(~tight)
    rows = [off == 0, over[exact] == 0, over[loose] <= 0]
    return [sums, *(row for row in rows if row.size)]
