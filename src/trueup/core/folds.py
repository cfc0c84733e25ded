"""Which half an item belongs to: a function of its id, the same on every engine.

Whole numbers are mixed by two multiplications and a square modulo a prime, in steps
that fit in 64 bits, so that databases without a common hash function agree. Text is
first made a number by the head of its MD5 digest, which every engine has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from trueup._validate import Ints
from trueup.errors import InvalidInputError

PRIME = (1 << 31) - 1
FIRST, SECOND = 48271, 69621
SAMPLE_SHARE = 64
"""The sketch of large data looks at one item in so many, at least."""


def mixed(number: Any) -> Any:  # noqa: ANN401 - arrays and column expressions alike
    """Whole numbers from 0 to PRIME - 1, spread evenly."""
    inside = (number % PRIME + PRIME) % PRIME
    once = (inside * FIRST + 11) % PRIME
    return (once * once % PRIME * SECOND + 7) % PRIME


def fold_of(mix: Any) -> Any:  # noqa: ANN401 - arrays and column expressions alike
    """Zero or one for each item."""
    return mix % 2


def number_of_text(text: str) -> int:
    """The head of a digest as a whole number."""
    digest = hashlib.md5(text.encode("utf-8"), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16)


def id_numbers(ids: Iterable[Any], name: str = "ids") -> Ints:
    """Ids as whole numbers."""
    values = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids))
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    items = values.tolist()
    if all(isinstance(item, str) for item in items):
        return np.array([number_of_text(item) for item in items], dtype=np.int64)
    if all(type(item) is int for item in items):
        return np.array(items, dtype=np.int64)
    bad = next(item for item in items if not isinstance(item, str))
    message = f"{name} must be whole numbers or text, got {bad!r}."
    raise InvalidInputError(message)
