"""What a solve tells while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a projection stands: what is proved so far."""

    iteration: int
    lower: float
    """Certified: the optimum is at least this."""
    upper: float
    """Attained by an admissible truth: the optimum is at most this."""

    @property
    def gap(self) -> float:
        """How far the two are apart."""
        return self.upper - self.lower


Watch: TypeAlias = Callable[[Progress], object]
