"""Settings shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

settings.register_profile(
    "trueup",
    deadline=None,
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile(
    "thorough", settings.get_profile("trueup"), max_examples=500, derandomize=False
)
settings.load_profile("trueup")


def pytest_configure():
    """Forget compiled loops that are older than the sources they call.

    Numba looks at the file of the function it compiled, not at those of the functions
    that were compiled into it.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    sources = Path(__file__).parents[1] / "src"
    loops = [p for p in sources.rglob("*.py") if "jit import" in p.read_text("utf-8")]
    newest = max(path.stat().st_mtime for path in loops)
    compiled = [*sources.rglob("*.nbi"), *sources.rglob("*.nbc")]
    if any(path.stat().st_mtime < newest for path in compiled):
        for path in compiled:
            path.unlink(missing_ok=True)
