"""Our own engine: the interior-point method where it is faster, else the proximal one.

Both stop on a certified gap, can be watched and interrupted anywhere, and where the
first does not get there the second goes on from where it ended.
"""

from __future__ import annotations

from trueup.core.losses import ProperLoss
from trueup.solve.conic import Iterate, Start
from trueup.solve.problem import ProjectionProblem
from trueup.solve.progress import Watch

_SMALL_CORE = 500


def knows(loss: ProperLoss) -> bool:
    """Whether the compiled loops know a loss."""
    from trueup.solve.layout import NATIVE  # noqa: PLC0415 - numba is heavy

    return isinstance(loss, NATIVE)


def solve(
    problem: ProjectionProblem,
    loss: ProperLoss,
    *,
    start: Start | None = None,
    watch: Watch | None = None,
    close: float = 0.0,
) -> Iterate:
    """Project; ``reached`` says whether the gap asked for was reached.

    A gap of ``close`` is small enough, even where more is usually asked for.
    Interrupting from the keyboard ends the solve with the best that is proved.
    """
    from trueup.solve.interior import InteriorRun, plan_for  # noqa: PLC0415
    from trueup.solve.layout import lay_out  # noqa: PLC0415
    from trueup.solve.proximal import ProximalRun  # noqa: PLC0415

    layout = lay_out(problem, loss)
    plan = plan_for(problem, layout)
    # An interior point gains nothing from a start, and is the faster one even so unless
    # its systems are large and the start is near.
    if start is not None and start.is_near and plan is not None:
        plan = plan if plan.n_core <= _SMALL_CORE else None
    before = ""
    if plan is not None:
        inside = InteriorRun(problem, loss, layout, plan, close)
        inside.go(watch)
        found = inside.iterate()
        if inside.reached or inside.is_interrupted:
            return found
        start, before = found.start, f", after {found.status}"
    run = ProximalRun(problem, loss, layout, start, before=before, close=close)
    run.go(watch)
    return run.iterate()
