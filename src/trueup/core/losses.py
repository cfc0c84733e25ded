"""All losses by name, and the choice of one for a property."""

from __future__ import annotations

from collections.abc import Callable

from trueup.core.answer_losses import (
    ConfidenceLoss,
    HeldAnswerLoss,
    HeldModeLoss,
    OwnAnswerLoss,
    ZeroOneLoss,
)
from trueup.core.distribution_losses import BrierLoss, LogLoss, SphericalLoss
from trueup.core.generator_loss import GeneratorLoss
from trueup.core.loss import Deployment, ProperLoss, Solved
from trueup.core.point_losses import ExpectileLoss, PinballLoss, SquaredLoss
from trueup.core.properties import Property
from trueup.errors import InvalidInputError, UnknownNameError, UnsuitableLossError

__all__ = [
    "LOSSES",
    "BrierLoss",
    "ConfidenceLoss",
    "Deployment",
    "ExpectileLoss",
    "GeneratorLoss",
    "HeldAnswerLoss",
    "HeldModeLoss",
    "LogLoss",
    "OwnAnswerLoss",
    "PinballLoss",
    "ProperLoss",
    "Solved",
    "SphericalLoss",
    "SquaredLoss",
    "ZeroOneLoss",
    "get_loss",
]

_FACTORIES: dict[str, Callable[[Property], ProperLoss]] = {
    "brier": lambda _: BrierLoss(),
    "log": lambda _: LogLoss(),
    "spherical": lambda _: SphericalLoss(),
    "confidence": lambda _: ConfidenceLoss(),
    "zero-one": lambda _: ZeroOneLoss(),
    "squared": SquaredLoss,
    "pinball": PinballLoss,
    "expectile": ExpectileLoss,
}
LOSSES = tuple(_FACTORIES)


def get_loss(name: str | ProperLoss | None, about: Property) -> ProperLoss:
    """The named loss for a property, its canonical one, or the user's own."""
    if isinstance(name, ProperLoss):
        if isinstance(name, GeneratorLoss) and about.name != "distribution":
            raise UnsuitableLossError.of(name.name, about.title, about.losses)
        if isinstance(name, GeneratorLoss) and name.name in _FACTORIES:
            message = (
                f"a loss of your own is called {name.name!r}, as a built-in one.\n"
                "hint: give GeneratorLoss another name=."
            )
            raise InvalidInputError(message)
        return name
    chosen = about.losses[0] if name is None else name
    if chosen not in _FACTORIES:
        raise UnknownNameError.of("loss", chosen, LOSSES)
    if chosen not in about.losses:
        raise UnsuitableLossError.of(chosen, about.title, about.losses)
    return _FACTORIES[chosen](about)
