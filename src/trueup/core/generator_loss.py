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
from trueup.core.simplex import normalise_rows
from trueup.errors import InvalidInputError

_STEPS = 100
_COMPLEMENTARY = 1e-14
"""Where interior points end: probabilities times their multipliers."""
_DIFFERENCE = 1e-5
_TINY = 1e-300


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
        # p log p is 0 at 0, but not as written; generators are continuous.
        inside = np.maximum(p, _TINY)
        return self._checked(self._generator(inside), (len(p),), "generator")

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
        """Minimise G(h) - <g(r) + tilt, h> by an interior point method, row by row."""
        wanted = self.gradient(stated) + solved.tilt
        n_rows, k = stated.shape
        h = 0.9 * stated + 0.1 / k
        z = np.full_like(h, 1e-2) / h
        for _ in range(_STEPS):
            slope = self.gradient(h) - wanted
            complementary = (h * z).mean(axis=1, keepdims=True)
            aim = np.maximum(0.1 * complementary, _COMPLEMENTARY)
            system = np.zeros((n_rows, k + 1, k + 1))
            system[:, :k, :k] = self.curvature(h)
            system[:, np.arange(k), np.arange(k)] += z / h
            system[:, :k, k] = system[:, k, :k] = 1.0
            right = np.zeros((n_rows, k + 1, 1))
            right[:, :k, 0] = aim / h - slope
            move = np.linalg.solve(system, right)[:, :k, 0]
            raised = (aim - z * move) / h  # what z becomes with a full step
            length = np.minimum(_room(h, move), _room(z, raised - z))
            h = normalise_rows(h + length * move)
            z = z + length * (raised - z)
            if complementary.max() <= 10 * _COMPLEMENTARY and length.min() > 0.9:
                break
        return h

    def mean(self, rows: list[Floats]) -> Floats:
        # The loss need not be convex in h, but it is in the gradient at h.
        slope = np.mean([self.gradient(row) for row in rows], axis=0)
        middle = cast("Floats", np.mean(rows, axis=0))
        nothing = np.ones_like(middle, dtype=bool)
        return self.tilted(middle, Solved(slope - self.gradient(middle), nothing))

    def curvature(self, p: Floats) -> Floats:
        """(n, K, K) second derivatives of the generator along the simplex.

        By differences of the gradient, nudging each probability in proportion to
        itself: generators may be steep near zero.
        """
        n_rows, k = p.shape
        slope = self.gradient(p)
        columns = np.empty((n_rows, k, k))
        for y in range(k):
            nudged = p.copy()
            nudged[:, y] *= 1 + _DIFFERENCE
            total = nudged.sum(axis=1, keepdims=True)
            # The move is (e_y - p) times this:
            size = _DIFFERENCE * p[:, y : y + 1] / total
            columns[:, :, y] = (self.gradient(nudged / total) - slope) / size
        flat = np.eye(k) - 1 / k
        columns = flat @ columns @ flat
        return cast("Floats", (columns + columns.transpose(0, 2, 1)) / 2)

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


def _room(values: Floats, move: Floats) -> Floats:
    """(n, 1) share of a move, at most one, that leaves every value positive."""
    falling = np.where(move < 0, -0.99 * values / np.minimum(move, -1e-300), 1.0)
    return np.minimum(falling.min(axis=1, keepdims=True), 1.0)
