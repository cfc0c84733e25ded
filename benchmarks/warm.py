"""What earlier solves are worth: a guarantee curve of 20 points against cold solves.

    python benchmarks/warm.py

The errors go from zero to the break-even of the map for no error. A cold solve is that
of one point in the middle, certificate included; times are processor time.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from solvers import LOSSES, problem_of

from trueup.audit._curve import CurvePoints
from trueup.audit.optimum import at_error, certified_optimum
from trueup.solve.worst_case import break_even

N_POINTS = 20
CASES = (
    ("confidence", 5_700),
    ("brier", 5_700),
    ("log", 5_700),
    ("confidence", 100_000),
    ("brier", 100_000),
)
NO_BREAK_EVEN = 0.03
"""Where a map with certain reports has none under log loss."""


def timed(call, times=3):
    """Result and the median of seconds."""
    spent = []
    for _ in range(times):
        start = time.process_time()
        made = call()
        spent.append(time.process_time() - start)
    return made, statistics.median(spent)


def curve_of(problem, loss, errors):
    points = CurvePoints(problem, loss, errors)
    points.find()
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables only")
    quick = parser.parse_args().quick
    print(f"a curve of {N_POINTS} points in cold solves (target: below 4)")
    for name, n_items in CASES:
        if quick and n_items > 10_000:
            continue
        _, problem = problem_of(name, n_items)
        loss = LOSSES[name]
        first = certified_optimum(problem, loss)
        primary = loss.vectors(problem.atoms)
        end = break_even(problem, primary, first.deployed) or NO_BREAK_EVEN
        middle = at_error(problem, end / 2)
        _, without = timed(lambda p=problem, loss=loss: certified_optimum(p, loss))
        _, cold = timed(lambda p=middle, loss=loss: certified_optimum(p, loss))
        errors = np.linspace(0, end, N_POINTS)
        points, spent = timed(
            lambda p=problem, loss=loss, errors=errors: curve_of(p, loss, errors), 1
        )
        print(
            f"  {name:<12}{n_items:>9,} items: {spent / cold:5.1f} cold solves of "
            f"{cold:.3f} s ({spent / without:.1f} of the {without:.3f} s without an "
            f"error), {len(points.solved)} solved",
            flush=True,
        )


if __name__ == "__main__":
    main()
