"""Label-free accuracy bounds: our exact cell programmes against HiGHS.

    python benchmarks/bounds.py

Both ends of the accuracy interval at the scale of the paper (5,700 items, four
outcomes, reports rounded to .01), the same linear programme for both, interleaved.
Asserts that they agree to 1e-9; prints seconds and the ratio.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import trueup
from trueup.audit.bounds import Items

N_ITEMS, N_OUTCOMES, STEP, REPEATS = 5_700, 4, trueup.Step(0.01), 5
RUNGS = (
    ("mean", None),
    ("confidence", None),
    ("answer-confidence", False),
    ("answer-confidence", True),
    ("distribution", None),
)


def predictors(rng):
    """An overconfident primary and a weaker reference that share their errors."""
    shape = (N_ITEMS, N_OUTCOMES)
    common, own = rng.normal(size=shape), rng.normal(size=shape)
    strong, weak = np.exp(3.5 * (common + own)), np.exp(0.9 * common)
    return (
        strong / strong.sum(axis=1, keepdims=True),
        weak / weak.sum(axis=1, keepdims=True),
    )


def through_highs(believed, values):
    """Both ends by one sparse linear programme each."""
    moments, rows = believed.moments, believed.rows
    n, k = len(rows.weight), values.shape[1]
    simplex = sparse.kron(sparse.eye(n), np.ones((1, k)))
    node_mass = sparse.coo_matrix(
        (
            np.repeat(rows.weight, k),
            (np.add.outer(rows.node * k, np.arange(k)).ravel(), np.arange(n * k)),
        ),
        shape=(moments.anchors.size, n * k),
    )
    coefficients = sparse.coo_matrix(
        (moments.coefficient, (moments.row, moments.node * k + moments.outcome)),
        shape=(moments.n_rows, moments.anchors.size),
    )
    matrix = sparse.csr_matrix(coefficients @ node_mass)
    equal = moments.equality
    cost = (rows.weight[:, None] * values[believed.item][rows.owner]).ravel()
    ends = []
    for sign in (1, -1):
        result = linprog(
            sign * cost,
            A_eq=sparse.vstack([simplex, matrix[equal]]),
            b_eq=np.concatenate([np.ones(n), moments.target[equal]]),
            A_ub=matrix[~equal] if (~equal).any() else None,
            b_ub=moments.target[~equal] if (~equal).any() else None,
            method="highs",
        )
        ends.append(sign * result.fun)
    return ends


def fastest(function, *arguments):
    """Best of several runs, so that a busy machine hurts both sides alike."""
    best, result = np.inf, None
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best, result


def main():
    strong, weak = predictors(np.random.default_rng(20260127))
    primary = trueup.AnswerConfidence.from_distributions(strong)
    reference = trueup.AnswerConfidence.from_distributions(weak)
    values = np.eye(N_OUTCOMES)[primary.answer]
    print(f"{'rung':<28}{'interval':<18}{'ours':>10}{'HiGHS':>10}{'ratio':>8}")
    for trust, caps in RUNGS:
        used = weak if trust == "distribution" else reference
        items = Items.read(primary, used, None, STEP)
        believed = items.believe(
            primary.answer[:, None].astype(float),
            trust=trust,
            caps=caps,
            groups=None,
            sample_weight=None,
            reference_error=0.0,
        )
        believed.range_of(values, "accuracy")  # compile before the clock starts
        ours, found = fastest(believed.range_of, values, "accuracy")
        theirs, (low, high) = fastest(through_highs, believed, values)
        assert abs(found.lower - low) < 1e-9
        assert abs(found.upper - high) < 1e-9
        name = trust + (" with caps" if caps else "")
        interval = f"[{found.lower:.4f}, {found.upper:.4f}]"
        print(
            f"{name:<28}{interval:<18}{ours:9.4f}s{theirs:9.3f}s{theirs / ours:7.0f}x"
        )


if __name__ == "__main__":
    main()
