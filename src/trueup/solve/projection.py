"""project(): from a joint table to certified reports."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from trueup import _sketch, _validate
from trueup._render import html_table
from trueup._validate import Floats, Ints
from trueup.core.joint import JointTable
from trueup.core.losses import (
    Deployment,
    LogLoss,
    ProperLoss,
    get_loss,
)
from trueup.core.moments import Trust, choose_trust
from trueup.core.stated import stated
from trueup.errors import GapWarning
from trueup.solve import blocks, conic, lazily
from trueup.solve.certificate import Bound, Certificate, lower_bound
from trueup.solve.certified import CertifiedReports
from trueup.solve.fewer_outcomes import (
    FewerOutcomes,
    TooFewOutcomes,
    with_fewer_outcomes,
)
from trueup.solve.positive import check_positive
from trueup.solve.problem import ProjectionProblem
from trueup.solve.progress import Progress, Watch
from trueup.solve.rounding import (
    Witness,
    gap_wanted,
    round_to_witness,
    upper_bound,
)
from trueup.solve.warm import carried
from trueup.solve.worst_case import break_even, worst_case

POPULATION = "the joint table of {n_items:,} items is taken as the population"

_MOST_DOTS = 400
"""Of the picture that notebooks show."""

NOTHING_TO_GAIN = (
    "no contradiction was found: some truth fits both predictors as they are. "
    "This does not mean that the primary is calibrated"
)


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """The primary's reports moved into agreement with the reference.

    ``deployed`` is deterministic. ``randomised`` draws an answer, exists only for
    losses whose optimum needs a draw, and is then never worse.

    Examples
    --------
    The witness is a truth on every pair that both sides fit: here the outcome rates
    average to the reference's 0.5, and the new reports are these rates.

    >>> table = JointTable.from_counts([0.1, 0.7], [0.5, 0.5])
    >>> projection = project(table)
    >>> projection
    Projection(brier loss, 2 x 1 reports, guaranteed improvement 0.02, gap ...)
    >>> sorted(projection.outcome_rates[:, 1].round(6).tolist())
    [0.2, 0.8]
    """

    joint: JointTable
    loss: ProperLoss
    trust: Trust
    problem: ProjectionProblem
    deployed: CertifiedReports
    randomised: CertifiedReports | None

    @property
    def certificate(self) -> Certificate:
        """Certificate of the deterministic reports."""
        return self.deployed.certificate

    @property
    def outcome_rates(self) -> Floats:
        """(pairs, K) a truth that both the reference and the new reports fit."""
        return self.deployed.witness.outcome_rates

    def __repr__(self) -> str:
        table = self.joint
        return (
            f"Projection({self.loss.name} loss, {len(table.primary):,} x "
            f"{len(table.reference):,} reports, guaranteed improvement "
            f"{self.certificate.guaranteed_improvement:.6g}, "
            f"gap {self.certificate.gap:.1e})"
        )

    def _repr_html_(self) -> str:
        table, proof = self.joint, self.certificate
        rows = [
            ("loss", self.loss.name),
            ("guaranteed improvement", f"{proof.guaranteed_improvement:.6g}"),
            ("gap", f"{proof.gap:.1e}"),
            ("primary reports", f"{len(table.primary):,}"),
            ("reference reports", f"{len(table.reference):,}"),
        ]
        shown = html_table("Projection", ("", ""), rows, [proof.assumption])
        return _sketch.beside(shown, self._picture())

    def _picture(self) -> str:
        better = self.deployed.deployment.reports
        if better is None:
            return ""
        old, new = stated(self.joint.primary), stated(better)
        shares = self.joint.primary_shares
        largest = np.argsort(-shares, kind="stable")[:_MOST_DOTS]
        return _sketch.dots(
            np.column_stack([old.values, new.values, shares])[largest].tolist(),
            limits=(old.low, old.high),
            labels=(f"{old.title} before", f"{old.title} after"),
            summary=f"What the projection makes of {old.title}: old against new.",
        )


def project(
    joint: JointTable,
    *,
    loss: str | ProperLoss | None = None,
    trust: str | None = None,
    caps: bool | None = None,
    reference_error: float = 0.0,
    start: Projection | None = None,
    progress: Watch | None = None,
) -> Projection:
    r"""Move the primary's reports the least into agreement with the reference.

    Among all distributions that some admissible truth gives the primary's reports,
    find those nearest in expected divergence,

    .. math:: \min_h \sum_a w_a \, D(h_a, r_a).

    Deploying them lowers the expected loss by at least that minimum for *every*
    truth under which the reference is as good as it is trusted to be.

    Parameters
    ----------
    joint
        How often each pair of reports occurs.
    loss
        Name of a proper loss for the primary's property, or a
        :class:`~trueup.GeneratorLoss`; the property's canonical loss if None.
    trust
        Rung of the ladder: ``mean``, ``confidence``, ``answer-confidence`` or
        ``distribution``.
    caps
        At ``answer-confidence``, whether the reference's answer is the most likely one.
    reference_error
        Error budget of the reference, in the units of its rung.
    start
        An earlier projection to begin at: of nearly the same table, under another
        error budget, or on another rung. It changes the time, not the result.
    progress
        Called after every step with the iteration and the bounds certified so far.
        Interrupting from the keyboard ends the solve and returns the best certified
        reports, with a note on the certificate.

    Examples
    --------
    The reference always says 0.5. The primary says 0.1 on half of the items and 0.7 on
    the others, 0.4 on average, which no calibrated pair can do; both move up by 0.1:

    >>> table = JointTable.from_counts([0.1, 0.7], [0.5, 0.5])
    >>> table.primary.probabilities[:, 1]
    array([0.7, 0.1])
    >>> project(table).deployed.deployment.reports.probabilities[:, 1].round(6)
    array([0.8, 0.2])
    """
    chosen = get_loss(loss, joint.primary.about)
    error = _validate.non_negative(reference_error, "reference_error")
    belief = choose_trust(joint, trust, caps, error)
    if isinstance(chosen, LogLoss):
        check_positive(joint)
    fewer = with_fewer_outcomes(joint, belief)
    if fewer is not None:
        small = _Solver(fewer.problem, fewer.loss, joint, progress, fewer)
        try:
            return Projection(joint, chosen, belief, fewer.problem, *small.both(None))
        except TooFewOutcomes:
            pass
    problem = ProjectionProblem.from_joint(joint, belief)
    solve = _Solver(problem, chosen, joint, progress)
    found = solve.both(_begin(start, joint, problem))
    return Projection(joint, chosen, belief, problem, *found)


def _begin(
    start: Projection | None, joint: JointTable, problem: ProjectionProblem
) -> conic.Start | None:
    """Where an earlier projection ended, if its outcomes are those of this one."""
    if start is None:
        return None
    known = start.randomised or start.deployed
    if known.start is None or known.fewer is not None:
        return None
    return carried(known.start, (start.joint, start.problem), (joint, problem))


@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """One solve, with what it proves."""

    iterate: conic.Iterate
    witness: Witness
    upper: float
    deployed: Deployment
    multipliers: Floats
    bound: Bound
    lower: float
    tolerance: float

    @property
    def gap(self) -> float:
        return self.upper - self.lower


@dataclass(frozen=True, slots=True, eq=False)
class _Solver:
    """Solve, deploy, certify: the same three steps for every variant of the loss."""

    problem: ProjectionProblem
    loss: ProperLoss
    joint: JointTable
    watch: Watch | None = None
    fewer: FewerOutcomes | None = None
    """Given where the problem has fewer outcomes than the table."""

    def both(
        self, begin: conic.Start | None
    ) -> tuple[CertifiedReports, CertifiedReports | None]:
        """What is deployed, and the optimum that draws where there is one."""
        optimum = self(self.loss, begin)
        if not self.loss.draws:
            return optimum, None
        return self.without_draw(optimum), optimum

    def __call__(
        self,
        loss: ProperLoss,
        start: conic.Start | None = None,
        known: Floats | None = None,
    ) -> CertifiedReports:
        found = self._attempt(loss, start, known)
        missed = found.gap > found.tolerance and not found.iterate.is_interrupted
        if missed and self.fewer is not None:
            raise TooFewOutcomes
        begin = found.iterate.start
        if found.lower <= 0:
            found = self._unchanged(found)
        return CertifiedReports(
            self._certificate(found),
            found.multipliers,
            (found.deployed, found.witness),
            self.fewer,
            begin,
        )

    def _attempt(
        self, loss: ProperLoss, start: conic.Start | None, known: Floats | None
    ) -> _Attempt:
        problem, error = self.problem, self.problem.reference_error
        if self.fewer is None:
            iterate = lazily.solve(problem, loss, start=start, watch=self.watch)
        else:
            iterate = blocks.solve(self.fewer, loss, known)
        witness = iterate.witness or round_to_witness(
            problem, iterate.outcome_rates, iterate.distributions
        )
        if self.fewer is None:
            upper = upper_bound(problem, loss, witness)
        else:
            witness = self.fewer.admissible(witness)
            upper = self.fewer.upper_bound(loss, witness)
        primary = loss.vectors(problem.atoms)
        deployed = loss.deploy(problem.atoms, iterate.solved)
        if self.fewer is not None:
            deployed = self.fewer.own.spread(deployed)
        multipliers = iterate.multipliers
        bound = lower_bound(problem, primary, deployed, multipliers)
        tolerance = gap_wanted(upper, primary)
        if upper - bound.at(error) > tolerance and self.fewer is None:
            better, again = worst_case(problem, primary, deployed)
            if better.at(error) > bound.at(error):
                bound, multipliers = better, again
        lower = bound.at(error)
        if self.fewer is not None:
            iterate = self._told(iterate, lower, upper)
        return _Attempt(
            iterate, witness, upper, deployed, multipliers, bound, lower, tolerance
        )

    def _told(
        self, iterate: conic.Iterate, lower: float, upper: float
    ) -> conic.Iterate:
        """Tell who watches, after the only step there is."""
        if self.watch is None:
            return iterate
        try:
            self.watch(Progress(1, lower, upper))
        except KeyboardInterrupt:
            return replace(iterate, is_interrupted=True)
        return iterate

    def _unchanged(self, found: _Attempt) -> _Attempt:
        """Nothing is certified, so nothing is changed: exactly zero, not nearly."""
        deployed = self.loss.identity(self.problem.atoms)
        multipliers = np.zeros_like(found.multipliers)
        primary = self.loss.vectors(self.problem.atoms)
        bound = lower_bound(self.problem, primary, deployed, multipliers)
        return replace(
            found, deployed=deployed, multipliers=multipliers, bound=bound, lower=0.0
        )

    def without_draw(self, optimum: CertifiedReports) -> CertifiedReports:
        """Fix one answer per report and project again; keep the better of two ways.

        The answers drawn most often are usually best; the primary's own answers are
        never below zero.
        """
        own = cast("Ints", self.problem.atoms.answers())
        drawn = optimum.solved[0].weights
        if self.fewer is not None and drawn is not None:
            drawn = self.fewer.own.answerable(drawn)
        candidates = [own]
        if drawn is not None and not np.array_equal(drawn.argmax(axis=1), own):
            candidates.insert(0, drawn.argmax(axis=1))
        begin, known = optimum.start, optimum.multipliers
        solved = [self(self.loss.hold(one), begin, known) for one in candidates]
        return max(solved, key=lambda one: one.certificate.guaranteed_improvement)

    def _certificate(self, found: _Attempt) -> Certificate:
        problem, trust = self.problem, self.problem.trust
        notes = []
        if found.iterate.is_interrupted:
            notes.append(
                "interrupted: the best certified reports so far, with a gap of "
                f"{found.gap:.1e}"
            )
        elif found.gap > found.tolerance:
            notes.append(
                f"the gap {found.gap:.1e} exceeds the tolerance {found.tolerance:.1e}: "
                "the bound is true, but a better map may exist"
            )
            warnings.warn(notes[-1], GapWarning, stacklevel=4)
        free = self.loss.least_divergence(self.joint.primary)
        return Certificate(
            guaranteed_improvement=found.lower,
            upper_bound=found.upper,
            loss=self.loss.name,
            assumption=trust.sentence(POPULATION.format(n_items=self.joint.n_items)),
            trust=trust.rung,
            caps=trust.caps,
            n_groups=trust.n_groups,
            reference_error=trust.reference_error,
            reference_free_improvement=float(problem.atom_weight @ free),
            steepness=found.bound.steepness,
            tolerance=found.tolerance,
            engine=found.iterate.status,
            n_items=self.joint.n_items,
            notes=tuple(notes),
            supported=found.lower > 0,
            reason="" if found.lower > 0 else NOTHING_TO_GAIN,
            fitted=found.lower,
            certified=found.lower,
            lower=found.lower,
            n0=int(np.bincount(problem.moments.cell_of_node[problem.pairs.node]).min()),
            n_cells=problem.moments.n_cells,
            _compute_break_even=self._break_even(found.deployed),
        )

    def _break_even(self, deployed: Deployment) -> Callable[[], float]:
        primary = self.loss.vectors(self.problem.atoms)
        return lambda: break_even(self.problem, primary, deployed)
