"""Have the counts of cells changed since the map was fitted? An alarm that may be
looked at after every batch.

If nothing changed, the items of a block are a random draw from all items so far, so
given the counts of all, those of the block follow a multivariate hypergeometric
distribution, whatever the frequencies of the cells are. The distance of the block from
all so far has a rank among draws from that distribution which is exactly uniform, and
ranks of successive blocks are independent. Money is bet on small ranks: if nothing
changed, one unit ever becomes 1 / rate with a probability of at most ``rate``, however
often one looks (Ville's inequality).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from trueup._validate import Floats, Ints

BLOCKS = (250, 2_000, 16_000)
"""Items that make a block: large changes show in few items, small ones in many."""
_DRAWS = 199
_POWERS = (0.1, 0.3, 0.6)
"""A bet of power k pays k p**(k - 1) for a rank of p: its mean is one."""
_MOST_EXACT = 100_000_000
"""Numpy draws without replacement from so few; beyond, replacement is no matter."""


@dataclass(slots=True, eq=False)
class BlockBet:
    """Bets that blocks of some size differ from all that came before."""

    size: int
    """Items that make a block, at least."""
    seen: Ints
    """(cells,) counts of everything so far, but for the open block."""
    seed: int
    """Tells the random draws of several bets apart."""
    open: Ints
    """(cells,) counts of the open block."""
    n_blocks: int = 0
    money: Floats = field(default_factory=lambda: np.zeros(len(_POWERS)))
    """What each power's bets are worth."""

    @classmethod
    def start(cls, baseline: Ints, size: int, seed: int) -> Self:
        """Bet from here on."""
        return cls(size, baseline, seed, np.zeros_like(baseline))

    @property
    def evidence(self) -> float:
        """What one unit of money has become: bets, and what is not set on any yet."""
        return float(1 / np.sqrt(self.n_blocks + 1) + self.money.sum())

    def add(self, counts: Ints) -> None:
        """Look at a batch; once there are enough items they are a block."""
        self.open = self.open + counts
        if self.open.sum() < self.size:
            return
        seen = self.seen + self.open
        rank = self._rank(seen)
        self.n_blocks += 1
        # New bets start with every block: what changed may have done so just now.
        stake = 1 / np.sqrt(self.n_blocks) - 1 / np.sqrt(self.n_blocks + 1)
        power = np.array(_POWERS)
        self.money = (self.money + stake / len(power)) * power * rank ** (power - 1)
        self.seen, self.open = seen, np.zeros_like(seen)

    def _rank(self, seen: Ints) -> float:
        """Where the block's distance stands among draws, in (0, 1]; ties by lot."""
        rng = np.random.default_rng([self.seed, self.size, self.n_blocks])
        total, n_items = int(seen.sum()), int(self.open.sum())
        if total <= _MOST_EXACT:
            drawn = rng.multivariate_hypergeometric(
                seen, n_items, size=_DRAWS, method="marginals"
            )
        else:
            drawn = rng.multinomial(n_items, seen / total, size=_DRAWS)
        held = seen > 0
        expected = n_items * (seen[held] / total)
        own = _distance(self.open[held], expected)
        others = _distance(drawn[:, held], expected)
        farther, ties = int((others > own).sum()), int((others == own).sum())
        return float((farther + (1 - rng.random()) * (ties + 1)) / (_DRAWS + 1))

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return {
            "size": self.size,
            "seen": self.seen.tolist(),
            "seed": self.seed,
            "open": self.open.tolist(),
            "n_blocks": self.n_blocks,
            "money": self.money.tolist(),
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Self:
        """The same bets again."""
        return cls(
            int(saved["size"]),
            np.array(saved["seen"], dtype=np.int64),
            int(saved["seed"]),
            np.array(saved["open"], dtype=np.int64),
            int(saved["n_blocks"]),
            np.array(saved["money"], dtype=np.float64),
        )


@dataclass(slots=True, eq=False)
class DriftWatch:
    """Bets on several counts of the same items and on blocks of several sizes.

    Each has its own money; their mean is one bet like any other.
    """

    rate: float
    """Probability of ever giving a false alarm, at most."""
    bets: list[list[BlockBet]]
    """For each kind of count, bets on blocks of several sizes."""
    most: float = 1.0
    """The most evidence so far."""

    @classmethod
    def start(cls, baselines: list[Floats], rate: float) -> Self:
        """Watch from here on; counts are of whole items."""
        return cls(
            rate,
            [
                [BlockBet.start(np.asarray(one, np.int64), size, i) for size in BLOCKS]
                for i, one in enumerate(baselines)
            ],
        )

    @property
    def evidence(self) -> float:
        """What betting against "nothing changed" has made of one unit of money."""
        return float(np.mean([bet.evidence for kind in self.bets for bet in kind]))

    @property
    def raised(self) -> bool:
        """Whether the counts have contradicted what the map was fitted on."""
        return self.most >= 1 / self.rate

    def add(self, counts: list[Floats]) -> None:
        """Look at a batch."""
        for kind, own in zip(self.bets, counts, strict=True):
            for bet in kind:
                bet.add(np.asarray(own, np.int64))
        self.most = max(self.most, self.evidence)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        bets = [[bet.to_json() for bet in kind] for kind in self.bets]
        return {"rate": self.rate, "bets": bets, "most": self.most}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Self:
        """The same watch again."""
        bets = [[BlockBet.from_json(bet) for bet in kind] for kind in saved["bets"]]
        return cls(float(saved["rate"]), bets, float(saved["most"]))


def _distance(counts: Ints, expected: Floats) -> Any:  # noqa: ANN401 - number or array
    """How far counts are from what was expected."""
    return ((counts - expected) ** 2 / expected).sum(axis=-1)
