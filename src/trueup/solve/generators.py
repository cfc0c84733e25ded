"""Generators as cones: how each loss enters the conic model.

Each function adds ``sum_a w_a (G(h_a) + <l_a, h_a>)`` to a model. Adding a loss to
the generic engine means adding one function here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.core.losses import (
    BrierLoss,
    ConfidenceLoss,
    ExpectileLoss,
    HeldAnswerLoss,
    HeldModeLoss,
    LogLoss,
    OwnAnswerLoss,
    PinballLoss,
    ProperLoss,
    SphericalLoss,
    SquaredLoss,
    ZeroOneLoss,
)
from trueup.core.reports import Distributions, Reports
from trueup.solve.model import ConicModel


@dataclass(frozen=True, slots=True, eq=False)
class AtomVariables:
    """The atoms of a problem as variables of a model."""

    reports: Reports
    weight: Floats
    h: Ints
    """(atoms, K) variable numbers of the compatible distributions."""
    possible: Bools
    """(atoms, K) where h is not forced to zero; a cone needs room to move in."""


def add_generator(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    """Add the divergence of every atom to the objective."""
    _GENERATORS[type(loss)](model, loss, atoms)


def _linear(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    model.cost(atoms.h, atoms.weight[:, None] * loss.vectors(atoms.reports))


def _brier(model: ConicModel, _: ProperLoss, atoms: AtomVariables) -> None:
    # |h - r|^2 without the constant |r|^2 that l contains.
    stated = cast("Distributions", atoms.reports).probabilities
    model.square(atoms.h, atoms.weight[:, None])
    model.cost(atoms.h, -2 * atoms.weight[:, None] * stated)


def _log(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    """T >= h log h, as (-t, h, 1) in the exponential cone; -h log r is linear.

    (Writing h log(h / r) with r inside the cone stalls when a report is 1e-12.)
    """
    _linear(model, loss, atoms)
    h = atoms.h[atoms.possible]
    bound = model.variables(h.size)
    weight = np.broadcast_to(atoms.weight[:, None], atoms.h.shape)
    model.cost(bound, weight[atoms.possible])
    first = 3 * np.arange(h.size)
    limits = np.zeros(3 * h.size)
    limits[2::3] = 1
    ones = np.ones(h.size)
    model.constrain(
        "exponential",
        [(first, bound, ones), (first + 1, h, -ones)],
        limits,
        size=3,
    )


def _spherical(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    """T >= |h|, as (t, h) in the second-order cone."""
    _linear(model, loss, atoms)
    h = atoms.h
    n_atoms, n_outcomes = h.shape
    bound = model.variables(n_atoms)
    model.cost(bound, atoms.weight)
    size = 1 + n_outcomes
    first = size * np.arange(n_atoms)
    rest = first[:, None] + 1 + np.arange(n_outcomes)
    model.constrain(
        "second-order",
        [(first, bound, -np.ones(n_atoms)), (rest, h, -np.ones(h.shape))],
        np.zeros(size * n_atoms),
        size=size,
    )


def _largest(model: ConicModel, h: Ints) -> Ints:
    """(atoms,) variables at least as large as every entry of h."""
    n_atoms, n_outcomes = h.shape
    largest = model.variables(n_atoms)
    order = np.arange(h.size)
    ones = np.ones(h.size)
    model.constrain(
        "nonnegative",
        [(order, h.ravel(), ones), (order, np.repeat(largest, n_outcomes), -ones)],
        np.zeros(h.size),
    )
    return largest


def _confidence(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    _linear(model, loss, atoms)
    model.square(_largest(model, atoms.h), atoms.weight)


def _held_answer(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    _linear(model, loss, atoms)
    answers = cast("HeldAnswerLoss", loss).answers
    held = atoms.h[np.arange(len(atoms.h)), answers]
    model.square(held, atoms.weight)


def _own_answer(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    _held_answer(model, cast("OwnAnswerLoss", loss).held_by(atoms.reports), atoms)


def _held_mode(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    _linear(model, loss, atoms)
    answers = cast("HeldModeLoss", loss).answers
    model.cost(atoms.h[np.arange(len(atoms.h)), answers], atoms.weight)


def _zero_one(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    _linear(model, loss, atoms)
    model.cost(_largest(model, atoms.h), atoms.weight)


def _squared(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    """(m - r)^2 with m the mean of h."""
    _linear(model, loss, atoms)
    support = cast("SquaredLoss", loss).support
    h = atoms.h
    mean = model.variables(len(h))
    model.square(mean, atoms.weight)
    row = np.arange(len(h))
    model.constrain(
        "zero",
        [
            (np.repeat(row, h.shape[1]), h.ravel(), np.tile(support, len(h))),
            (row, mean, -np.ones(len(h))),
        ],
        np.zeros(len(h)),
    )


def _pinball(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    """G >= -<l(v, .), h> for every outcome v."""
    _linear(model, loss, atoms)
    pinball = cast("PinballLoss", loss)
    table = pinball.at(pinball.support)
    h = atoms.h
    n_atoms, n_outcomes = h.shape
    bound = model.variables(n_atoms)
    model.cost(bound, atoms.weight)
    row = np.arange(n_atoms * n_outcomes).reshape(n_atoms, n_outcomes)
    model.constrain(
        "nonnegative",
        [
            (row, np.repeat(bound[:, None], n_outcomes, axis=1), -np.ones(h.shape)),
            (
                np.repeat(row[:, :, None], n_outcomes, axis=2),
                np.repeat(h[:, None, :], n_outcomes, axis=1),
                np.broadcast_to(-table, (n_atoms, n_outcomes, n_outcomes)),
            ),
        ],
        np.zeros(row.size),
    )


def _expectile(model: ConicModel, loss: ProperLoss, atoms: AtomVariables) -> None:
    """G(p) = min over s with sum s = 0 of sum_y [ p_y phi*(s_y / p_y) - s_y v_y ].

    phi(u) = level u_+^2 + (1 - level) u_-^2 is the loss of a residual and phi* its
    conjugate. With s = up - down this needs t p >= up^2 / 4 level +
    down^2 / 4 (1 - level): (p + t, p - t, up / sqrt level, down / sqrt(1 - level)) in
    the second-order cone.
    """
    _linear(model, loss, atoms)
    expectile = cast("ExpectileLoss", loss)
    level = cast("float", expectile.about.level)
    atom, outcome = np.nonzero(atoms.possible)
    p, weight = atoms.h[atom, outcome], atoms.weight[atom]
    up, down, bound = (model.variables(p.size) for _ in range(3))
    model.cost(bound, weight)
    model.cost(up, -weight * expectile.support[outcome])
    model.cost(down, weight * expectile.support[outcome])
    ones = np.ones(p.size)
    model.constrain(
        "zero", [(atom, up, ones), (atom, down, -ones)], np.zeros(len(atoms.h))
    )
    halves = np.concatenate([up, down])
    order = np.arange(halves.size)
    limits = np.zeros(halves.size)
    model.constrain("nonnegative", [(order, halves, -np.ones(halves.size))], limits)
    first = 4 * np.arange(p.size)
    model.constrain(
        "second-order",
        [
            (first, p, -ones),
            (first, bound, -ones),
            (first + 1, p, -ones),
            (first + 1, bound, ones),
            (first + 2, up, -ones / np.sqrt(level)),
            (first + 3, down, -ones / np.sqrt(1 - level)),
        ],
        np.zeros(4 * p.size),
        size=4,
    )


_GENERATORS: dict[
    type[ProperLoss],
    Callable[[ConicModel, ProperLoss, AtomVariables], None],
] = {
    BrierLoss: _brier,
    LogLoss: _log,
    SphericalLoss: _spherical,
    ConfidenceLoss: _confidence,
    HeldAnswerLoss: _held_answer,
    OwnAnswerLoss: _own_answer,
    ZeroOneLoss: _zero_one,
    HeldModeLoss: _held_mode,
    SquaredLoss: _squared,
    PinballLoss: _pinball,
    ExpectileLoss: _expectile,
}
