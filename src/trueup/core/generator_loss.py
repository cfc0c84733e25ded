"""A proper loss given by its generator: the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from trueup._validate import Floats
from trueup.core.distribution_losses import DistributionLoss
from trueup.core.loss import Deployment, Solved
from trueup.core.reports import Distributions, Reports
from trueup.core.simplex import project_rows
from trueup.errors import InvalidInputError

_STEPS = 2_000


class GeneratorLoss(DistributionLoss):
    """A proper loss on distributions, given by a convex function and its gradient.

    The loss of reporting r when y happens is ``-G(r) + <g(r), r> - g(r)_y`` with g the
    gradient of G, and the excess loss is the Bregman divergence of G. Any strictly
    convex, differentiable G will do; the gradient may be off by a constant in each row.

    Parameters
    ----------
    generator
        (n, K) distributions to (n,) values of G.
    gradient
        (n, K) distributions to (n, K) gradients.
    name
        How results call the loss.

    Examples
    --------
    Brier loss is the generator |p|^2:

    >>> import numpy as np
    >>> import trueup
    >>> own = trueup.GeneratorLoss(lambda p: (p**2).sum(axis=1), lambda p: 2 * p)
    >>> table = trueup.JointTable.from_counts([0.1, 0.7], [0.5, 0.5])
    >>> proof = trueup.project(table, loss=own).certificate
    >>> round(proof.guaranteed_improvement, 6), bool(proof.gap < 1e-7)
    (0.02, True)
    """

    name = "generator"

    def __init__(
        self,
        generator: Callable[[Floats], Floats],
        gradient: Callable[[Floats], Floats],
        *,
        name: str = "generator",
    ) -> None:
        self._generator, self._gradient = generator, gradient
        self.name = name  # type: ignore[misc]

    def generator(self, p: Floats) -> Floats:
        return self._checked(self._generator(p), (len(p),), "generator")

    def gradient(self, p: Floats) -> Floats:
        """(n, K) the gradient of the generator."""
        return self._checked(self._gradient(p), p.shape, "gradient")

    def vectors(self, reports: Reports) -> Floats:
        stated = cast("Distributions", reports).probabilities
        slope = self.gradient(stated)
        level = (slope * stated).sum(axis=1) - self.generator(stated)
        return level[:, None] - slope

    def divergence(self, p: Floats, reports: Reports) -> Floats:
        return np.maximum(super().divergence(p, reports), 0.0)

    def deploy(self, reports: Reports, solved: Solved) -> Deployment:
        if solved.distributions is None:
            return super().deploy(reports, solved)
        stated = cast("Distributions", reports)
        better = replace(stated, probabilities=solved.distributions, n_normalised=0)
        return Deployment(self.vectors(better), better)

    def tilted(self, stated: Floats, solved: Solved) -> Floats:
        """Minimise G(h) - <g(r) + tilt, h> by projected gradients, row by row."""
        wanted = self.gradient(stated) + solved.tilt
        h, pace = stated.copy(), np.ones((len(stated), 1))
        value = self.generator(h) - (wanted * h).sum(axis=1)
        for _ in range(_STEPS):
            slope = self.gradient(h) - wanted
            trial = project_rows(h - pace * slope)
            reached = self.generator(trial) - (wanted * trial).sum(axis=1)
            move = trial - h
            model = value + (slope * move).sum(axis=1)
            model += (move**2).sum(axis=1) / (2 * pace[:, 0])
            better = (reached <= model + 1e-15)[:, None]
            if np.abs(move).max() < 1e-12:
                break
            h = np.where(better, trial, h)
            value = np.where(better[:, 0], reached, value)
            pace = np.where(better, pace * 1.3, pace / 2)
        return h

    @staticmethod
    def _checked(values: object, shape: tuple[int, ...], what: str) -> Floats:
        array = np.asarray(values, dtype=np.float64)
        if array.shape != shape:
            message = (
                f"the {what} returned an array of shape {array.shape} for "
                f"distributions whose result has shape {shape}.\n"
                f"hint: a {what} takes (n, K) rows and works on all of them at once."
            )
            raise InvalidInputError(message)
        if not np.isfinite(array).all():
            row = int(np.argwhere(~np.isfinite(array))[0][0])
            message = (
                f"the {what} is not finite on row {row:,} of {shape[0]:,}.\n"
                "hint: keep reports away from zeros, or use a generator that is finite "
                "on the whole simplex."
            )
            raise InvalidInputError(message)
        return array
