"""Which items were added already, by id."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from trueup.errors import InvalidInputError


@dataclass(slots=True, eq=False)
class SeenItems:
    """Every batch by a fingerprint of its ids, and the latest items one by one."""

    remember: int
    batches: dict[int, int] = field(default_factory=dict)
    """Fingerprint → number of the update, for every batch ever added."""
    latest: dict[int, None] = field(default_factory=dict)
    """Digests of the latest items, oldest first."""

    def check(self, ids: Iterable[Any], n_items: int) -> tuple[int, list[int]]:
        """Fingerprint and digests of a batch; an error if it was added before."""
        items = [_plain(item) for item in ids]
        if len(items) != n_items:
            raise InvalidInputError.lengths("primary", n_items, "ids", len(items))
        digests = [_digest(item) for item in items]
        if len(set(digests)) < len(digests):
            twice = items[next(i for i, d in enumerate(digests) if d in digests[:i])]
            message = (
                f"ids holds {twice!r} more than once in one batch.\n"
                "hint: every item counts once."
            )
            raise InvalidInputError(message)
        fingerprint = _digest(f"{len(digests)} {sum(digests)}")
        if fingerprint in self.batches:
            message = (
                f"this batch of {n_items:,} items was added already, as update "
                f"{self.batches[fingerprint]:,}.\nhint: each item may count once; "
                "leave the batch out."
            )
            raise InvalidInputError(message)
        again = [
            item
            for item, digest in zip(items, digests, strict=True)
            if digest in self.latest
        ]
        if again:
            message = (
                f"{len(again):,} of {n_items:,} items were added already; the first is "
                f"{again[0]!r}.\nhint: each item may count once; leave them out."
            )
            raise InvalidInputError(message)
        return fingerprint, digests

    def add(self, fingerprint: int, digests: list[int], update: int) -> None:
        """Remember a batch."""
        self.batches[fingerprint] = update
        self.latest |= dict.fromkeys(digests)
        for digest in list(self.latest)[: max(len(self.latest) - self.remember, 0)]:
            del self.latest[digest]

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return {
            "remember": self.remember,
            "batches": [[k, v] for k, v in self.batches.items()],
            "latest": list(self.latest),
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Self:
        """The same memory again."""
        batches = {int(k): int(v) for k, v in saved["batches"]}
        latest = dict.fromkeys(int(digest) for digest in saved["latest"])
        return cls(int(saved["remember"]), batches, latest)


def _plain(item: Any) -> Any:  # noqa: ANN401 - whatever names an item
    return item.item() if hasattr(item, "item") else item


def _digest(item: object) -> int:
    """A 64-bit number: a whole number and its text are the same id."""
    text = str(item).encode("utf-8")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
