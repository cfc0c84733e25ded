"""Settings shared by all tests."""

from __future__ import annotations

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
