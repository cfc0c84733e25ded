"""Have the counts of cells changed since the map was fitted? An alarm that may be
looked at after every batch.

Two explanations of what arrived are compared: that it comes from the same frequencies
as everything before, or from frequencies of its own since some batch. The ratio of
their predictions, batch by batch, is a bet against "nothing changed" that starts with
one unit of money: if nothing changed, it ever reaches 1 / rate with a probability of at
most ``rate``, however many batches are looked at (Ville's inequality; frequencies drawn
from the Dirichlet prior that both explanations use).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from trueup._validate import Floats

_PRIOR = 0.5
"""Weight of every cell before anything is seen (Jeffreys)."""
_NEARNESS = (30.0, 300.0, 3000.0)
"""A bet expects new frequencies near the old ones, worth so many items."""


@dataclass(slots=True, eq=False)
class Bet:
    """Frequencies of their own since one batch."""

    stake: float
    """Share of the money that was set on this bet."""
    weight: Floats
    """(cells,) what it expects: old frequencies and what came since."""
    log_ratio: float = 0.0


@dataclass(slots=True, eq=False)
class DriftAlarm:
    """Watches counts of cells, batch by batch."""

    rate: float
    """Probability of ever giving a false alarm, at most."""
    baseline: Floats
    """(cells,) counts of everything the map rests on, and of what came since."""
    n_batches: int = 0
    bets: list[Bet] = field(default_factory=list)

    @classmethod
    def start(cls, baseline: Floats, rate: float) -> Self:
        """Watch from here on."""
        return cls(rate, np.asarray(baseline, dtype=np.float64))

    @property
    def evidence(self) -> float:
        """Money that betting against "nothing changed" has made of one unit."""
        kept = 1.0 - sum(bet.stake for bet in self.bets)
        won = [np.exp(min(bet.log_ratio, 700.0)) * bet.stake for bet in self.bets]
        return float(kept + sum(won))

    @property
    def raised(self) -> bool:
        """Whether the counts contradict what the map was fitted on."""
        return self.evidence >= 1 / self.rate

    def add(self, counts: Floats) -> None:
        """Bet on a batch, then learn from it. Bets start at batches 1, 2, 4, 8, ..."""
        if self.n_batches & (self.n_batches - 1) == 0 or self.n_batches == 0:
            self._start_bets()
        seen = self.baseline + _PRIOR
        same = _log_prediction(seen, counts)
        for bet in self.bets:
            bet.log_ratio += _log_prediction(bet.weight, counts) - same
            bet.weight = bet.weight + counts
        self.baseline = self.baseline + counts
        self.n_batches += 1

    def _start_bets(self) -> None:
        k = len(self.bets) // len(_NEARNESS)
        stake = 1 / ((k + 1) * (k + 2))  # all stakes together stay below one
        seen = self.baseline + _PRIOR
        for nearness in _NEARNESS:
            weight = nearness * seen / seen.sum()
            self.bets.append(Bet(stake / len(_NEARNESS), weight))

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return {
            "rate": self.rate,
            "baseline": self.baseline.tolist(),
            "n_batches": self.n_batches,
            "bets": [[b.stake, b.weight.tolist(), b.log_ratio] for b in self.bets],
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Self:
        """The same alarm again."""
        baseline = np.array(saved["baseline"], dtype=np.float64)
        bets = [
            Bet(float(stake), np.array(weight, dtype=np.float64), float(ratio))
            for stake, weight, ratio in saved["bets"]
        ]
        return cls(float(saved["rate"]), baseline, int(saved["n_batches"]), bets)


@dataclass(slots=True, eq=False)
class DriftWatch:
    """Several alarms on different counts of the same items, as one.

    Each has its own money; their mean is one bet like any other.
    """

    rate: float
    alarms: list[DriftAlarm]

    @classmethod
    def start(cls, baselines: list[Floats], rate: float) -> Self:
        """Watch from here on."""
        return cls(rate, [DriftAlarm.start(one, rate) for one in baselines])

    @property
    def evidence(self) -> float:
        """Money that betting against "nothing changed" has made of one unit."""
        return float(np.mean([alarm.evidence for alarm in self.alarms]))

    @property
    def raised(self) -> bool:
        """Whether the counts contradict what the map was fitted on."""
        return self.evidence >= 1 / self.rate

    def add(self, counts: list[Floats]) -> None:
        """Look at a batch."""
        for alarm, own in zip(self.alarms, counts, strict=True):
            alarm.add(own)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return {"rate": self.rate, "alarms": [one.to_json() for one in self.alarms]}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Self:
        """The same watch again."""
        alarms = [DriftAlarm.from_json(one) for one in saved["alarms"]]
        return cls(float(saved["rate"]), alarms)


def _log_prediction(weight: Floats, counts: Floats) -> float:
    """Log probability of a batch's items in order under Dirichlet weights."""
    from scipy.special import gammaln

    total, n = weight.sum(), counts.sum()
    inside = gammaln(weight + counts) - gammaln(weight)
    return float(gammaln(total) - gammaln(total + n) + inside.sum())
