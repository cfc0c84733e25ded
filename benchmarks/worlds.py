"""Worlds whose population is finite, so that every truth is known exactly.

Two structurally different generators. In both the reference reports the true posterior
given its signal, hence is calibrated at every rung; the primary reports a distorted
posterior given its own signal.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

SHARPNESS = {"calibrated": 1.0, "overconfident": 2.5, "underconfident": 0.5}
GENERATORS = ("softmax", "tree")
KINDS = tuple(
    product(
        GENERATORS, ("weak", "strong"), SHARPNESS, ("shared", "independent"), (2, 4, 10)
    )
)


@dataclass(frozen=True)
class World:
    """Every (reference signal, primary signal), its mass, and what is reported."""

    kind: tuple
    mass: np.ndarray
    truth: np.ndarray
    """(pairs, K) chance of each outcome."""
    primary: np.ndarray
    reference: np.ndarray

    def draw(self, rng, n_items):
        """Unlabelled items: pairs of reports."""
        chosen = rng.choice(len(self.mass), size=n_items, p=self.mass)
        return self.primary[chosen], self.reference[chosen]

    def improvement(self, better):
        """Exact fall in Brier loss when the primary reports ``better``."""
        old = expected_brier(self.primary, self.truth)
        return float(self.mass @ (old - expected_brier(better, self.truth)))


def expected_brier(rows, truth):
    return (rows**2).sum(axis=1) - 2 * (rows * truth).sum(axis=1)


def softmax(logits):
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def sharpened(rows, power):
    return softmax(power * np.log(np.maximum(rows, 1e-9)))


def means(code, mass, truth):
    """Mass of each signal and the posterior given it."""
    total = np.bincount(code, weights=mass)
    sums = np.zeros((len(total), truth.shape[1]))
    np.add.at(sums, code, mass[:, None] * truth)
    return total, sums / np.maximum(total, 1e-300)[:, None]


def make_world(kind, rng):
    """One world of a kind."""
    generator, strength, distortion, errors, n_outcomes = kind
    build = softmax_world if generator == "softmax" else tree_world
    mass, truth, seen, trusted = build(
        rng, n_outcomes, strong=strength == "strong", shared=errors == "shared"
    )
    view = means(seen, mass, truth)[1]
    power = SHARPNESS[distortion] ** rng.uniform(0.6, 1.4)
    bias = np.zeros(n_outcomes)
    if generator == "tree" and distortion != "calibrated":
        bias = rng.normal(scale=0.3, size=n_outcomes)  # fond of some answers
    reports = softmax(power * np.log(np.maximum(view, 1e-9)) + bias)
    reference = means(trusted, mass, truth)[1]
    return World(kind, mass, truth, reports[seen], reference[trusted])


def softmax_world(rng, n_outcomes, *, strong, shared):
    """Truth softmax(a + b1 + b2); the reference sees a, the primary (a, b1) or b."""
    sizes = (120, 20, 5) if shared else (120, 10, 10)
    spread = (1.0, 1.6, 0.6) if strong else (1.2, 0.5, 1.2)
    a, b1, b2 = (
        scale * rng.normal(size=(size, n_outcomes))
        for scale, size in zip(spread, sizes, strict=True)
    )
    logits = a[:, None, None] + b1[None, :, None] + b2[None, None]
    truth = softmax(logits).reshape(-1, n_outcomes)
    mass = np.full(len(truth), 1 / len(truth))
    ia, i1, i2 = (x.ravel() for x in np.indices(sizes))
    seen = ia * sizes[1] + i1 if shared else i1 * sizes[2] + i2
    return mass, truth, seen, ia


def tree_world(rng, n_outcomes, *, strong, shared):
    """Leaves scattered round their node by a Dirichlet; the reference sees the node.

    The primary sees the leaf, or only a kind of leaf that occurs under every node.
    """
    n_nodes, n_leaves = int(rng.integers(8, 60)), int(rng.integers(4, 25))
    centre = rng.dirichlet(np.full(n_outcomes, 2.0))
    nodes = rng.dirichlet(4 * n_outcomes**0.5 * centre + 0.05, size=n_nodes)
    kinds = rng.dirichlet(np.full(n_outcomes, 0.4 if strong else 3.0), size=n_leaves)
    pull = nodes[:, None] * (kinds[None] if strong else kinds[None] ** 0.5) + 1e-6
    pull /= pull.sum(axis=-1, keepdims=True)
    around = rng.gamma((4.0 if strong else 20.0) * pull + 0.02) + 1e-9
    truth = (around / around.sum(axis=-1, keepdims=True)).reshape(-1, n_outcomes)
    mass = rng.dirichlet(np.full(n_nodes, 3.0))[:, None] * rng.dirichlet(
        np.full(n_leaves, 3.0), size=n_nodes
    )
    node, leaf = (x.ravel() for x in np.indices((n_nodes, n_leaves)))
    seen = node * n_leaves + leaf if shared else leaf
    mass = mass.ravel() / mass.sum()
    return mass, truth, seen, node
