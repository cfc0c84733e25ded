"""Our projection engine against Clarabel and CVXPY on the same tables, interleaved.

Every solve runs in a process of its own, so that peak memory is its own; times leave
out starting it, and are processor time, which a busy machine disturbs least (no engine
here uses two cores). Fast solves are repeated and the median counts. All engines get
the same projection (for confidence loss the optimum that may draw answers). The gap is
certified by us for every engine: its answer is rounded to an admissible truth (upper
bound), and the lower bound is the one our engine proves. Run with ``make bench``.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import replace

import cvxpy as cp
import numpy as np
from children import forget_peak, measured, resident
from scipy import sparse

import trueup
from trueup.core.losses import BrierLoss, ConfidenceLoss, LogLoss
from trueup.core.moments import choose_trust
from trueup.core.pairing import paired_reports
from trueup.solve import lazily, native
from trueup.solve.problem import ProjectionProblem
from trueup.solve.rounding import round_to_witness, upper_bound
from trueup.testing import shared_error_predictors

LOSSES = {"confidence": ConfidenceLoss(), "brier": BrierLoss(), "log": LogLoss()}
SIZES = {1_221: 5, 5_700: 4, 100_000: 4, 1_000_000: 4}
"""Items, and how many outcomes go with them."""
ENGINES = ("native", "clarabel", "cvxpy-clarabel", "cvxpy-osqp", "cvxpy-scs")
FLOOR = 1e-3
REPEATED = 1.0
"""Seconds a solve is repeated for, at most five times."""
FIRST_CALL = """
import time, numpy, numba, scipy.linalg, trueup
import trueup.solve.interior, trueup.solve.proximal, trueup.solve.exact
from trueup.testing import shared_error_predictors
pair = shared_error_predictors(1000, 4, rng=1)
start = time.process_time()
trueup.fit(pair.primary, pair.reference, trust="answer-confidence")
middle = time.process_time()
trueup.fit(pair.primary, pair.reference, trust="answer-confidence")
print(middle - start, time.process_time() - middle)
"""


def problem_of(loss, n_items):
    """The paper's grid of .01 for answers, .1 for whole distributions."""
    k = SIZES.get(n_items, 4)
    pair = shared_error_predictors(n_items, k, rng=20260127)
    if loss == "confidence":
        read = trueup.AnswerConfidence.from_distributions
        reports, step = (read(pair.primary), read(pair.reference)), trueup.Step(0.01)
        trust = None
    else:
        reports = paired_reports(pair.primary, pair.reference, None)
        step, trust = trueup.Step(0.1), "distribution"
    primary, reference = (step.merge(one) for one in reports)
    if loss == "log":
        raised = (1 - k * FLOOR) * primary.probabilities + FLOOR
        primary = replace(primary, probabilities=raised)
    joint = trueup.JointTable.from_reports(primary, reference)
    belief = choose_trust(joint, trust, None, 0.0)
    return joint, ProjectionProblem.from_joint(joint, belief)


def by_cvxpy(problem, loss, solver):
    """The same projection written in CVXPY; returns outcome rates."""
    k, rows, m = problem.n_outcomes, problem.linked, problem.moments
    n_rows, n_atoms = len(rows.weight), len(problem.atoms)
    weight, order = problem.atom_weight, np.arange(n_rows)
    rates = cp.Variable((n_rows, k), nonneg=True)
    share = rows.weight / weight[rows.owner]
    h = sparse.csr_array((share, (rows.owner, order)), (n_atoms, n_rows)) @ rates
    nodes = sparse.csr_array(
        (rows.weight, (rows.node, order)), (len(m.anchors), n_rows)
    )
    picked = (m.coefficient, (m.row, m.node * k + m.outcome))
    table = sparse.csr_array(picked, (m.n_rows, m.anchors.size))
    moments = table @ cp.vec(nodes @ rates, order="C")
    limits = [cp.sum(rates, axis=1) == 1]
    if m.equality.any():
        limits.append(moments[np.flatnonzero(m.equality)] == m.target[m.equality])
    if not m.equality.all():
        limits.append(moments[np.flatnonzero(~m.equality)] <= m.target[~m.equality])
    if loss == "brier":
        each = cp.sum(cp.square(h - problem.atoms.probabilities), axis=1)
    elif loss == "log":
        stated = np.log(problem.atoms.probabilities)
        each = cp.sum(-cp.entr(h) - cp.multiply(h, stated), axis=1)
    else:
        own = cp.sum(cp.multiply(h, np.eye(k)[problem.atoms.answer]), axis=1)
        c = problem.atoms.confidence
        each = cp.square(cp.max(h, axis=1)) - 2 * cp.multiply(c, own)
    programme = cp.Problem(cp.Minimize(cp.sum(cp.multiply(weight, each))), limits)
    programme.solve(solver=solver)
    return rates.value


def run(problem, loss, engine):
    """Outcome rates, and the lower bound our own engine proves."""
    chosen = LOSSES[loss]
    if engine == "native":
        found = native.solve(problem, chosen)
        return found.outcome_rates, found.lower
    if engine == "clarabel":
        begin = lazily.all_but_caps(problem.moments)
        return lazily.solve_from(problem, chosen, begin)[0].outcome_rates, None
    return by_cvxpy(problem, loss, engine.removeprefix("cvxpy-").upper()), None


def child(loss, n_items, engine):
    """Solve in this process and print what came out as JSON."""
    _, problem = problem_of(loss, n_items)
    chosen = LOSSES[loss]
    # Load everything before the clock starts.
    run(problem_of(loss, 50)[1], loss, engine)
    before = forget_peak()
    spent, begin = [], time.perf_counter()
    while not spent or (
        len(spent) < 5 and time.perf_counter() - begin + spent[-1] < REPEATED
    ):
        start = time.process_time()
        rates, lower = run(problem, loss, engine)
        spent.append(time.process_time() - start)
    peak = resident("VmHWM")
    cells = np.zeros((problem.n_cells, problem.n_outcomes))
    np.add.at(cells, problem.linked.owner, problem.linked.weight[:, None] * rates)
    h = cells / cells.sum(axis=1, keepdims=True)
    witness = round_to_witness(problem, rates, h[problem.cell_of_atom])
    upper = upper_bound(problem, chosen, witness)
    result = {
        "seconds": statistics.median(spent),
        "memory": peak - before,
        "upper": upper,
        "lower": lower,
        "pairs": len(problem.linked.weight),
    }
    print(json.dumps(result))


def line(loss, n_items, engine, *, found, ours, baseline):
    """One line of the table."""
    head = f"{loss:<11}{n_items:>10,} {engine:<15}"
    if isinstance(found, str):
        return f"{head}{found:>12}"
    gap = found["upper"] - (ours["lower"] if isinstance(ours, dict) else np.nan)
    ratio = memory = ""
    if isinstance(baseline, dict):
        ratio = f"{baseline['seconds'] / found['seconds']:.1f}"
        memory = f"{found['memory'] / max(baseline['memory'], 1e-9):.2f}"
    return (
        f"{head}{found['pairs']:>9,}{found['seconds']:>10.3f}{found['memory']:>9.1f}"
        f"{gap:>10.1e}{ratio:>9}{memory:>9}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--losses", nargs="+", default=list(LOSSES))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a solve")
    parser.add_argument("--quick", action="store_true", help="small tables only")
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], int(options.child[1]), options.child[2])
        return
    sizes = [n for n in options.sizes if n < 10_000] if options.quick else options.sizes
    print(f"Python {platform.python_version()}, {platform.machine()}")
    print(
        "loss            items engine             pairs   seconds      MiB       gap"
        "    times   memory\n(times and memory: CVXPY + Clarabel divided by this, and "
        "this divided by that)"
    )
    for n_items in sizes:
        for loss in options.losses:
            found = {
                engine: measured(__file__, (loss, n_items, engine), options.limit)
                for engine in options.engines
            }
            for engine in options.engines:
                base = found.get("cvxpy-clarabel")
                told = line(
                    loss,
                    n_items,
                    engine,
                    found=found[engine],
                    ours=found.get("native"),
                    baseline=base,
                )
                print(told, flush=True)
    first_call()


def first_call():
    """The first call of a fresh process beyond its imports, with a filled cache."""
    command = [sys.executable, "-c", FIRST_CALL]
    subprocess.run(command, check=True, capture_output=True)
    runs = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for _ in range(5)
    ]
    first = statistics.median(float(run.split()[0]) for run in runs)
    second = statistics.median(float(run.split()[1]) for run in runs)
    print(f"first call of a fresh process {first:.2f} s, the next {second:.2f} s")


if __name__ == "__main__":
    main()
