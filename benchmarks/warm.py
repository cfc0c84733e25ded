"""What a start is worth: a guarantee curve against cold solves, and the first call.

    python benchmarks/warm.py

The curve has 20 points of ``reference_error`` between 0 and the break-even; each begins
where the last ended. The first call is that of a fresh process, beyond its imports.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

import trueup
from trueup.testing import shared_error_predictors

N_POINTS = 20
FIRST_CALL = """
import time
import numpy as np, trueup
from trueup.testing import shared_error_predictors
pair = shared_error_predictors(1000, 4, rng=1)
trueup.fit, trueup.JointTable  # what a user has imported
start = time.perf_counter()
trueup.fit(pair.primary, pair.reference, trust="answer-confidence")
first = time.perf_counter() - start
start = time.perf_counter()
trueup.fit(pair.primary, pair.reference, trust="answer-confidence")
print(first, time.perf_counter() - start)
"""


def timed(call):
    """Result and seconds."""
    start = time.perf_counter()
    made = call()
    return made, time.perf_counter() - start


def table_of(n_items, n_outcomes, *, answers):
    """The paper's grid for answers, a coarse one for distributions."""
    pair = shared_error_predictors(n_items, n_outcomes, rng=20260127)
    if answers:
        read, step = trueup.AnswerConfidence.from_distributions, trueup.Step(0.01)
        sides = [step.merge(read(one)) for one in (pair.primary, pair.reference)]
        return trueup.JointTable.from_reports(*sides)
    rounded = [
        np.maximum((10 * one).round(), 0.1) for one in (pair.primary, pair.reference)
    ]
    sides = [one / one.sum(axis=1, keepdims=True) for one in rounded]
    return trueup.JointTable.from_counts(*sides)


def curve(joint, options):
    """Seconds of a cold solve and of the whole curve."""
    first, cold = timed(lambda: trueup.project(joint, **options))
    end = first.deployed.certificate.break_even_reference_error
    spent, last, values = 0.0, first, []
    for error in np.linspace(0, end, N_POINTS + 1)[1:]:
        last, seconds = timed(
            lambda error=error, last=last: trueup.project(
                joint, reference_error=error, start=last, **options
            )
        )
        spent += seconds
        values.append(last.deployed.certificate.guaranteed_improvement)
    assert all(np.diff(values) <= 1e-6)
    return cold, spent


def main():
    print(f"a curve of {N_POINTS} points in cold solves (target: below 4)")
    for name, n_items, answers, options in (
        ("brier, distribution", 5_700, False, {"trust": "distribution"}),
        ("brier, answer-confidence", 5_700, False, {"trust": "answer-confidence"}),
        ("confidence loss", 5_700, True, {}),
        ("brier, distribution", 100_000, False, {"trust": "distribution"}),
    ):
        joint = table_of(n_items, 4, answers=answers)
        trueup.project(table_of(200, 4, answers=answers), **options)  # compiled
        cold, spent = curve(joint, options)
        print(
            f"  {name:<26}{n_items:>9,} items {len(joint.counts):>8,} pairs: "
            f"{spent / cold:5.1f} (a cold solve {cold:.2f} s)",
            flush=True,
        )
    command = [sys.executable, "-c", FIRST_CALL]
    subprocess.run(command, check=True, capture_output=True)  # fills the cache
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    first, second = map(float, done.stdout.split())
    print(f"first call of a fresh process {first:.2f} s, second {second:.2f} s")


if __name__ == "__main__":
    main()
