"""The result for one rung, and which rung to stand on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trueup.core.moments import POINT
from trueup.evaluate import _render
from trueup.evaluate._resampling import Estimate
from trueup.evaluate._rungs import CAPS


@dataclass(frozen=True, slots=True)
class RungCheck:
    """The reference's calibration error at one rung of the ladder.

    Attributes
    ----------
    rung
        Name of the rung, as ``trust`` of :func:`trueup.fit` takes it.
    caps
        Whether the caps of ``answer-confidence`` are included.
    error
        Error over the cells, with an interval for the true error over these cells. The
        value itself is biased upwards; the interval allows for that.
    by_chance
        The error that a reference calibrated at this rung would show on average on so
        many items: what the value has to be compared with.
    debiased
        The error less its estimated bias; not enough where there are many moments.
    p_value
        How often a reference calibrated at this rung would show such an error.
    n_cells, n_moments
        Over how many cells and moments the error is summed.
    """

    rung: str
    caps: bool
    error: Estimate
    by_chance: float
    debiased: float
    p_value: float
    n_cells: int
    n_moments: int

    @property
    def reference_error(self) -> float:
        """The ``reference_error`` to fit with: the upper limit of the true error."""
        return self.error.upper

    @property
    def title(self) -> str:
        """The rung in words."""
        return CAPS if self.caps else self.rung

    @property
    def budget(self) -> str:
        """The ``reference_error`` to fit with, rounded up."""
        return f"{math.ceil(self.reference_error * 1000) / 1000:.3f}"


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """Which rung to stand on, and the sentence that says so."""

    rungs: tuple[RungCheck, ...]
    level: float
    tolerable: float
    n_items: int
    states_answers: bool
    """Whether the reference reports answers, so that ``fit`` assumes caps."""

    @property
    def best(self) -> RungCheck:
        """Climb until a rung is neither believable nor nearly so.

        Caps are a side step: only a reference whose answers carry them by default is
        recommended with them, and failing them does not stop the climb.
        """
        best = self.rungs[0]
        for one in self.rungs:
            if one.caps:
                if self.states_answers and self._accepts(one):
                    best = one
            elif self._accepts(one):
                best = one
            else:
                break
        return best

    def sentence(self) -> str:
        """The recommendation in words."""
        best = self.best
        if best.rung == POINT:
            verdict = "contradict" if self._refutes(best) else "do not contradict"
            return (
                f"These {self.n_items:,} labels {verdict} it; fit with {self._with()}."
            )
        if not self._accepts(best):
            return (
                f"These {self.n_items:,} labels contradict every rung, even "
                f"{best.title!r} ({_p(best)}), and by more than {self.tolerable:g}. If "
                f"at all, fit with trust={best.rung!r} and {self._with()}."
            )
        caps = f", caps={best.caps}" if self._caps_matter(best) else ""
        believed = (
            f"not exactly right ({_p(best)}), but nearly"
            if self._refutes(best)
            else f"not contradicted by these {self.n_items:,} labels ({_p(best)})"
        )
        above = self.rungs[self.rungs.index(best) + 1 :]
        refused = [one for one in above if self._refutes(one)]
        return (
            f"Stand on trust={best.rung!r}{caps} with {self._with()}; {believed}."
            + "".join(map(_refusal, refused))
        )

    def _with(self) -> str:
        n_cells = self.best.n_cells
        cells = "1 cell" if n_cells == 1 else f"{n_cells:,} cells"
        return (
            f"reference_error={self.best.budget}, the upper limit of its "
            f"{self.level:.0%} interval over {cells}"
        )

    def _caps_matter(self, one: RungCheck) -> bool:
        has_caps = any(other.caps for other in self.rungs)
        return self.states_answers and has_caps and one.rung == "answer-confidence"

    def _refutes(self, one: RungCheck) -> bool:
        return one.p_value < 1 - self.level

    def _accepts(self, one: RungCheck) -> bool:
        return not self._refutes(one) or one.reference_error <= self.tolerable


def _p(one: RungCheck) -> str:
    return f"p-value {_render.p_value(one.p_value)}"


def _refusal(one: RungCheck) -> str:
    least = f", true error at least {one.error.lower:.3f}"
    shown = least if one.error.lower >= 0.001 else ""
    return f" {one.title!r} is contradicted ({_p(one)}{shown})."
