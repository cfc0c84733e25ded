"""What the user asked of a fit, checked once and handed on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueup import _validate
from trueup.core.losses import ProperLoss
from trueup.errors import InvalidInputError
from trueup.solve.certificate import Certificate


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Options of :func:`trueup.fit` that both kinds of map share."""

    loss: str | ProperLoss | None
    trust: str | None
    caps: bool | None
    groups: Iterable[Any] | None
    sample_weight: object | None
    reference_error: float
    floor: float | None
    n_normalised: int
    assume: tuple[str, ...]
    family: str | None
    keep_unsupported: bool
    blocks: Iterable[Any] | None
    rng: np.random.Generator | None

    def refuse_for(self, cells: str) -> None:
        """Say so where an option has no meaning without adaptive cells."""
        given = {
            "assume": bool(self.assume),
            "family": self.family is not None,
            "blocks": self.blocks is not None,
            "fallback": not self.keep_unsupported,
            "rng": self.rng is not None,
        }
        for name, is_given in given.items():
            if is_given:
                message = (
                    f"{name} needs adaptive cells, but cells={cells!r}.\n"
                    f"hint: use cells='auto', or leave {name} out."
                )
                raise InvalidInputError(message)

    def annotated(self, certificate: Certificate) -> Certificate:
        """The certificate with what was done to the input before fitting."""
        notes = []
        if self.n_normalised:
            notes.append(
                f"{self.n_normalised:,} rows did not quite sum to one (within "
                f"{_validate.ROW_SUM_TOLERANCE:g}) and were divided by their sum"
            )
        if self.floor is not None:
            notes.append(
                f"the improvement is over the primary with floor {self.floor:g}, "
                "that is (1 - K floor) r + floor, not over the primary as given"
            )
        return replace(certificate, notes=certificate.notes + tuple(notes))
