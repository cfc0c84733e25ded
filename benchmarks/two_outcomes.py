"""Two outcomes: the exact engine against the general one on the same tables.

    python benchmarks/two_outcomes.py [--sizes 1221 5700] [--error .01]

Interleaved in one process after both were compiled; the least of three times counts.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import trueup
from trueup.core.losses import BrierLoss, ConfidenceLoss, LogLoss, SphericalLoss
from trueup.core.moments import choose_trust
from trueup.solve import native, two_outcomes
from trueup.solve.problem import ProjectionProblem
from trueup.solve.rounding import upper_bound
from trueup.testing import shared_error_predictors

LOSSES = (BrierLoss(), LogLoss(), SphericalLoss(), ConfidenceLoss())
SIZES = (1_221, 5_700, 100_000, 1_000_000)
RUNGS = ("mean", "confidence", "answer-confidence")
STEP, FLOOR = 0.01, 1e-3


def table(n_items, loss):
    """Reports on the paper's grid."""
    pair = shared_error_predictors(n_items, 2, rng=20260127)
    sides = pair.primary, pair.reference
    if loss.name == "confidence":
        read, grid = trueup.AnswerConfidence.from_distributions, trueup.Step(STEP)
        return trueup.JointTable.from_reports(*(grid.merge(read(x)) for x in sides))
    least = FLOOR if loss.name == "log" else 0.0
    primary, reference = ((x[:, 1] / STEP).round() * STEP for x in sides)
    return trueup.JointTable.from_counts(
        np.clip(primary, least, 1 - least), np.clip(reference, 0, 1)
    )


def timed(solve, problem, loss):
    """Least seconds of three, and the gap of the engine's own bounds."""
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        found = solve(problem, loss)
        best = min(best, time.perf_counter() - start)
    return best, upper_bound(problem, loss, found.witness) - found.lower


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--error", type=float, default=0.0, help="error budget")
    options = parser.parse_args()
    print(
        "loss           items rung                  rows  exact, ms       gap"
        "  general, ms       gap   times"
    )
    for n_items in options.sizes:
        for loss in LOSSES:
            joint = table(n_items, loss)
            for rung in RUNGS:
                caps = False if rung == "answer-confidence" else None
                belief = choose_trust(joint, rung, caps, options.error)
                problem = ProjectionProblem.from_joint(joint, belief)
                ours, gap = timed(two_outcomes.solve, problem, loss)
                other, rest = timed(native.solve, problem, loss)
                print(
                    f"{loss.name:<11}{n_items:>9,} {rung:<18}"
                    f"{len(problem.linked.weight):>7,}{1e3 * ours:>11.1f}{gap:>10.0e}"
                    f"{1e3 * other:>13.1f}{rest:>10.0e}{other / ours:>8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
