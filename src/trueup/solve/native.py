"""Our own engine: the interior-point method where it is faster, else the proximal one.

Both stop on a certified gap, can be watched and interrupted anywhere, and where the
first does not get there the second goes on from where it ended.
"""

from __future__ import annotations

from trueup.core.losses import ProperLoss
from trueup.solve.conic import Iterate, Start
from trueup.solve.problem import ProjectionProblem
from trueup.solve.progress import Watch


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
) -> Iterate:
    """Project; ``reached`` says whether the gap asked for was reached.

    Interrupting from the keyboard ends the solve with the best that is proved.
    """
    from trueup.solve.interior import InteriorRun, plan_for  # noqa: PLC0415
    from trueup.solve.layout import lay_out  # noqa: PLC0415
    from trueup.solve.proximal import ProximalRun  # noqa: PLC0415

    layout = lay_out(problem, loss)
    # An interior point is no better for a start near the solution.
    plan = plan_for(problem, layout) if start is None else None
    before = ""
    if plan is not None:
        inside = InteriorRun(problem, loss, layout, plan)
        inside.go(watch)
        found = inside.iterate()
        if inside.reached or inside.is_interrupted:
            return found
        start, before = found.start, f", after {found.status}"
    run = ProximalRun(problem, loss, layout, start, before)
    run.go(watch)
    return run.iterate()
