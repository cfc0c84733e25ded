"""Audit: what two predictors reveal about each other, computed when looked at."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trueup import _validate
from trueup._render import json_number
from trueup._validate import Floats
from trueup.audit._render import Shown, Table, number, percent
from trueup.audit.arbitrage import Arbitrage, find_arbitrage
from trueup.audit.guarantees import (
    GuaranteeCurve,
    OtherLosses,
    RungGuarantee,
    Rungs,
    guarantee_curve,
    ladder,
    other_losses,
)
from trueup.audit.imperfect import (
    ImperfectBound,
    ReferenceMoments,
    imperfect_bound,
    reference_moments,
)
from trueup.audit.mutual import BreakEven, Nearest, nearest_pair, pair_break_even
from trueup.audit.optimum import Optimum, certified_optimum
from trueup.audit.pair import Pair
from trueup.audit.picture import Figure, make_figure
from trueup.core.cells import Cells, Step
from trueup.core.joint import JointTable
from trueup.core.losses import Deployment, ProperLoss
from trueup.core.moments import Trust, choose_trust
from trueup.core.pairing import parse_reports, same_outcomes
from trueup.errors import InvalidInputError, TrueupWarning
from trueup.solve.problem import ProjectionProblem
from trueup.solve.projection import POPULATION

NOT_CALIBRATED = (
    "This does not mean that the primary is calibrated: an overconfident but "
    "well-informed primary often passes."
)
_TOLERANCE = 1e-7
_POINTS = 7
"""Of the default curve, up to the break-even."""
_FEW_ITEMS = 8
"""In a cell: with fewer, chance is most of what is seen."""


@dataclass(frozen=True, eq=False)
class Audit(Shown):
    """What two predictors reveal about each other; made by :func:`trueup.audit`.

    Every part is computed when it is first looked at, and kept.

    Examples
    --------
    >>> import numpy as np
    >>> import trueup
    >>> a = trueup.audit(np.array([.4, .6]), np.array([.5, .5]))
    >>> a.verdict, a.is_mutually_calibrated
    ('none-found', True)
    >>> a.explanation
    'No contradiction found at this resolution: some truth fits both ...'
    >>> a.witness.round(6)
    array([[0.4, 0.6],
           [0.6, 0.4]])
    """

    joint: JointTable
    """How often each pair of reports occurs, after rounding to cells."""
    loss: ProperLoss
    trust: Trust
    cells: Cells
    _pair: Pair

    @property
    def tolerance(self) -> float:
        """Differences below this decide nothing."""
        largest = float(np.abs(self._problem.moments.coefficient).max(initial=1.0))
        return _TOLERANCE * max(1.0, largest)

    @cached_property
    def _break_even(self) -> BreakEven:
        return pair_break_even(self._pair)

    @property
    def break_even_reference_error(self) -> float:
        """Smallest reference error at which some truth makes the primary right.

        Certified: with any smaller error the two contradict each other, and some map
        is guaranteed to improve the primary. In the units of ``reference_error``;
        infinite if the primary contradicts itself.
        """
        return self._break_even.lower

    @property
    def verdict(self) -> str:
        """``contradiction``, ``none-found`` or, within tolerance, ``undecided``.

        A contradiction is conclusive: one of the two is not what it is taken for. No
        contradiction does not mean that the primary is calibrated: an overconfident
        but well-informed primary often passes.
        """
        allowed = self.trust.reference_error + self.tolerance
        if self._break_even.lower > allowed:
            return "contradiction"
        return "none-found" if self._break_even.upper <= allowed else "undecided"

    @property
    def is_mutually_calibrated(self) -> bool | None:
        """Whether some truth makes both right; None if undecided.

        True does not mean that the primary is calibrated, only that the two do not
        contradict each other; :attr:`witness` is the evidence.
        """
        return {"contradiction": False, "none-found": True}.get(self.verdict)

    @property
    def witness(self) -> Floats | None:
        """(pairs of the joint table, K) outcome rates that make both right.

        None unless :attr:`is_mutually_calibrated`. Every primary report holds
        exactly; the reference errs by no more than allowed, up to ``tolerance``.
        """
        rates = self._break_even.rates
        if not self.is_mutually_calibrated or rates is None:
            return None
        return rates[self._pair.row_of_pair]

    @property
    def explanation(self) -> str:
        """The verdict in words."""
        found, error = self._break_even, self.trust.reference_error
        if self._pair.impossible.any():
            return self._self_contradiction()
        if self.verdict == "contradiction":
            allowed = f"it is allowed {error:g}" if error else "it is allowed none"
            return (
                "Contradiction: for the primary to be right the reference has to err "
                f"by {number(found.lower)} or more, and {allowed} ({self.trust.unit})."
            )
        if self.verdict == "none-found":
            return (
                "No contradiction found at this resolution: some truth fits both "
                f"predictors. {NOT_CALIBRATED}"
            )
        return (
            "Undecided: the least reference error that fits the primary lies between "
            f"{found.lower:.6g} and {found.upper:.6g}, and {error:g} is allowed."
        )

    def _self_contradiction(self) -> str:
        impossible = self._pair.impossible
        share = float(self.joint.primary_shares[impossible].sum())
        return (
            f"Contradiction without any reference: {int(impossible.sum()):,} primary "
            f"reports, on {percent(share)} of the items, give their answer a "
            f"confidence below 1/{self.joint.n_outcomes}, which no distribution "
            "allows for its most likely outcome."
        )

    @cached_property
    def arbitrage(self) -> Arbitrage:
        """The best bets with both predictors, and their sure profit."""
        return find_arbitrage(self._pair)

    @cached_property
    def nearest(self) -> Nearest:
        """The nearest compatible pair of reports: who would have to move, how far."""
        return nearest_pair(self._pair)

    @property
    def min_ece(self) -> float:
        """Least calibration error of both predictors together, under any truth.

        A side that states distributions counts with its total variation (half the
        summed error; for two outcomes the error of P(outcome 1)), any other with the
        summed error of its moments. Certified from below.
        """
        return self.nearest.lower

    @cached_property
    def _optimum(self) -> Optimum:
        return certified_optimum(self._problem, self.loss)

    @property
    def guaranteed_improvement(self) -> float:
        """What the best map is guaranteed to gain, the draw where it draws answers."""
        return self._optimum.value

    def guarantee_curve(self, errors: Sequence[float] | None = None) -> GuaranteeCurve:
        """Guaranteed improvement against the reference's error.

        Parameters
        ----------
        errors
            Error budgets; by default from zero to a little beyond the break-even.
        """
        if errors is None:
            return self._default_curve
        given = _validate.floats(errors, "errors")
        if given.ndim != 1 or not np.isfinite(given).all() or (given < 0).any():
            message = f"errors must be finite numbers >= 0, got {errors!r}."
            raise InvalidInputError(message)
        found = self._break_even
        grid = np.unique(given)
        limits = (found.lower, found.upper)
        return guarantee_curve(self._problem, self.loss, grid, limits)

    @cached_property
    def _default_curve(self) -> GuaranteeCurve:
        reach = self._break_even.upper
        if not np.isfinite(reach):  # part of the gain survives any error
            reach = pair_break_even(self._pair.forgiven()).upper
        reach = reach if reach > self.tolerance else 0.1
        return self.guarantee_curve([*np.linspace(0, reach, _POINTS), 1.2 * reach])

    @cached_property
    def rungs(self) -> Rungs:
        """The guarantee at every rung this reference has, side by side."""
        rows = [self._rung(rung, caps) for rung, caps in ladder(self.joint, self.trust)]
        return Rungs(tuple(rows), self.loss.name)

    def _rung(self, rung: str, caps: bool) -> RungGuarantee:
        chosen = (rung, caps) == (self.trust.rung, self.trust.caps)
        belief, value = self.trust, 0.0
        if chosen:
            value = self.guaranteed_improvement
        else:
            error = self.trust.reference_error
            belief = choose_trust(self.joint, rung, caps, error)
            with _already_warned():
                problem = ProjectionProblem.from_joint(self.joint, belief)
            value = certified_optimum(problem, self.loss).value
        sentence = belief.sentence(self._population)
        return RungGuarantee(rung, caps, value, sentence, chosen)

    def other_losses(self, map: object | None = None) -> OtherLosses:  # noqa: A002
        """The worst case of one map under every loss that fits what it reports.

        Parameters
        ----------
        map
            A fitted map; by default the best map for the loss of the audit.
        """
        if map is None:
            deployed, own = self._optimum.deployed, self.loss.name
        else:
            deployed, own = self._applied(map), str(getattr(map, "loss", ""))
        known = {self.loss.name: self.guaranteed_improvement}
        return other_losses(self._problem, deployed, own, known, self._population)

    def _applied(self, fitted: object) -> Deployment:
        atoms = self._problem.atoms
        apply = getattr(fitted, "apply", None)
        if apply is None:
            message = (
                f"map must be a fitted map with a method apply, got {fitted!r}.\n"
                "hint: worst_case_improvement takes any reports."
            )
            raise InvalidInputError(message)
        better = parse_reports(apply(atoms), "map", None)
        better = same_outcomes(better, atoms, "map", "primary")
        return Deployment(self.loss.vectors(better), better)

    @cached_property
    def reference_moments(self) -> ReferenceMoments:
        """What the reference is trusted for, in the order of an error vector."""
        return reference_moments(self._pair)

    def imperfect_reference(
        self, errors: object, *, norm: str = "l1"
    ) -> ImperfectBound:
        """Improvement of the best map, at least, when the reference errs as assumed.

        For any map and any multipliers the improvement is at least the bound without
        error plus the sum, over the reference's moments, of share of items times
        multiplier times error (truth minus report).

        Parameters
        ----------
        errors
            One error a moment, in the order of :attr:`reference_moments`, or one
            number: the size of all errors in ``norm``.
        norm
            ``"l1"``: the sum of share times absolute error, as ``reference_error`` is
            measured; ``"l2"``: the root of the sum of share times squared error. Of
            moments that may only not be exceeded, the excess counts.
        """
        best = self._optimum
        return imperfect_bound(
            self._pair,
            self.loss,
            best.deployed,
            best.multipliers,
            errors=errors,
            norm=norm,
        )

    def figure(self) -> Figure:
        """The idea on the primary's two most frequent reports, as a picture."""
        return make_figure(self._problem, self._optimum.distributions)

    @property
    def assumption(self) -> str:
        """What the guarantees of this audit rest on."""
        return self.trust.sentence(self._population)

    @property
    def _problem(self) -> ProjectionProblem:
        return self._pair.problem

    @property
    def _population(self) -> str:
        return POPULATION.format(n_items=self.joint.n_items)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know to read the verdict rightly."""
        notes = [self.explanation]
        if isinstance(self.cells, Step):
            notes.append(
                f"Reports were rounded to steps of {self.cells.step:g}, which can by "
                "itself make a contradiction of about a step."
            )
        size = self.joint.n_items / self._problem.moments.n_cells
        if size < _FEW_ITEMS <= self.joint.n_items:
            notes.append(
                f"A cell of the reference holds {size:.1f} items on average. The table "
                "is taken as the population: with so few, chance alone makes "
                "contradictions."
            )
        return tuple(notes)

    def _table(self) -> Table:
        rows = [
            ("verdict", self.verdict),
            ("break-even reference error", number(self.break_even_reference_error)),
            ("reference error allowed", number(self.trust.reference_error)),
            ("arbitrage (sure profit an item)", number(self.arbitrage.value)),
            ("MinECE (error of both together)", number(self.min_ece)),
        ]
        caption = (
            f"Audit of {len(self.joint.primary):,} primary and "
            f"{len(self.joint.reference):,} reference reports on "
            f"{self.joint.n_items:,} items, reference {self.trust.title}"
        )
        return Table(caption, ("", ""), rows, self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Verdict, contracts and nearest pair as one JSON object."""
        return {
            "verdict": self.verdict,
            "is_mutually_calibrated": self.is_mutually_calibrated,
            "explanation": self.explanation,
            "notes": list(self.notes),
            "trust": self.trust.rung,
            "caps": self.trust.caps,
            "reference_error": self.trust.reference_error,
            "break_even_reference_error": json_number(self._break_even.lower),
            "break_even_attained": json_number(self._break_even.upper),
            "min_ece": self.min_ece,
            "arbitrage": self.arbitrage.to_dict(),
            "nearest": self.nearest.to_dict(),
            "n_items": self.joint.n_items,
        }

    def __repr__(self) -> str:
        remark = f" ({NOT_CALIBRATED[:-1]})" if self.verdict == "none-found" else ""
        return (
            f"Audit({self.verdict}{remark}, break-even reference error "
            f"{number(self.break_even_reference_error)}, {len(self.joint.primary):,} x "
            f"{len(self.joint.reference):,} reports, {self.joint.n_items:,} items, "
            f"trust {self.trust.rung!r})"
        )


@contextmanager
def _already_warned() -> Iterator[None]:
    """Other rungs of the same reference would repeat the warning of the first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        yield
