"""Our audits against the same linear programmes in CVXPY with HiGHS.

Arbitrage, MinECE, the break-even of the pair and the break-even of the best map, on
tables of predictors that share errors, four outcomes. The linear programmes are written
from their definitions and handed to HiGHS as they are; both times include building them
and leave out the table. Every solve runs in a process of its own, one after the other,
and is repeated while that takes less than a few seconds; the shortest time counts.

The gap is ours: between what our multipliers prove and what our rates attain, both
recomputed. Run ``python benchmarks/audit.py``, or with ``--quick`` on small tables.
"""

from __future__ import annotations

import argparse
import json
import platform
import time

import cvxpy as cp
import numpy as np
from children import measured
from scipy import sparse

import trueup
from trueup.audit.arbitrage import find_arbitrage
from trueup.audit.mutual import nearest_pair, pair_break_even
from trueup.audit.optimum import certified_optimum
from trueup.audit.pair import Pair
from trueup.core.losses import BrierLoss, ConfidenceLoss
from trueup.core.moments import choose_trust
from trueup.core.pairing import paired_reports
from trueup.core.reports import Distributions
from trueup.solve.worst_case import break_even_within
from trueup.testing import shared_error_predictors

TABLES = ("distribution", "answers", "answers with caps")
QUESTIONS = ("arbitrage", "MinECE", "break-even of the pair", "break-even of the map")
N_ITEMS, N_QUICK = 100_000, 5_700
REPEATS, LONG = 5, 5.0
"""Most repeats, and seconds after which none is begun."""


def pair_of(table, n_items):
    """Whole distributions in steps of .1, answers with confidences in steps of .02."""
    made = shared_error_predictors(n_items, 4, rng=20260127)
    if table == "distribution":
        reports, step = paired_reports(made.primary, made.reference, None), 0.1
        rung, caps = "distribution", None
    else:
        read = trueup.AnswerConfidence.from_distributions
        reports, step = (read(made.primary), read(made.reference)), 0.02
        rung, caps = "answer-confidence", table.endswith("caps")
    primary, reference = (trueup.Step(step).merge(one) for one in reports)
    joint = trueup.JointTable.from_reports(primary, reference)
    return Pair.from_joint(joint, choose_trust(joint, rung, caps, 0.0))


def best_map(pair):
    """Losses of the primary, and of its best map, on every primary report."""
    is_vector = isinstance(pair.joint.primary, Distributions)
    loss = BrierLoss() if is_vector else ConfidenceLoss()
    deployed = certified_optimum(pair.problem, loss).deployed
    return loss.vectors(pair.problem.atoms), deployed


def ours(pair, question, losses):
    """Value, certified gap and who found it."""
    if question == "arbitrage":
        found = find_arbitrage(pair)
        return found.value, found.gap, found.engine
    if question == "MinECE":
        found = nearest_pair(pair)
        return found.lower, found.gap, found.engine
    if question == "break-even of the pair":
        found = pair_break_even(pair)
        return found.lower, found.upper - found.lower, found.engine
    lower, upper = break_even_within(pair.problem, *losses)
    return lower, upper - lower, "cell by cell"


def moments_of(pair, side):
    """(moment rows, rows * K) the moments of one side as a matrix."""
    n_rows, k = pair.shape
    m = side.moments
    place = (side.node, np.arange(n_rows))
    nodes = sparse.csr_array((pair.rows.weight, place), (len(m.anchors), n_rows))
    picked = (m.coefficient, (m.row, m.node * k + m.outcome))
    table = sparse.csr_array(picked, (m.n_rows, m.anchors.size))
    return table @ sparse.kron(nodes, sparse.eye_array(k), format="csr")


def wrong(pair, side, rates):
    """Moments minus targets, equalities and inequalities."""
    m = side.moments
    off = moments_of(pair, side) @ cp.vec(rates, order="C") - m.target
    return off[np.flatnonzero(m.equality)], off[np.flatnonzero(~m.equality)]


def error(pair, side, rates):
    equal, upper = wrong(pair, side, rates)
    total = cp.norm1(equal) if equal.size else 0
    return total + cp.sum(cp.pos(upper)) if upper.size else total


def least_error(pair, question, losses):
    """The programmes over outcome rates."""
    rates = cp.Variable(pair.shape, nonneg=True)
    limits = [cp.sum(rates, axis=1) == 1]
    reference, primary = pair.sides
    if question == "MinECE":
        price = [0.5 if side.moments.shiftable else 1.0 for side in pair.sides]
        total = price[0] * error(pair, reference, rates)
        total += price[1] * error(pair, primary, rates)
        return cp.Problem(cp.Minimize(total), limits)
    if question == "break-even of the pair":
        equal, upper = wrong(pair, primary, rates)
        limits += [equal == 0] if equal.size else []
        limits += [upper <= 0] if upper.size else []
    else:
        gain = (losses[0] - losses[1].losses)[pair.rows.owner]
        weighted = pair.rows.weight[:, None] * gain
        limits.append(cp.sum(cp.multiply(weighted, rates)) <= 0)
    return cp.Problem(cp.Minimize(error(pair, reference, rates)), limits)


def payoffs_of(side, k):
    """(offers * K, moment rows) what a unit of each multiplier pays."""
    m, offers = side.moments, side.offers
    offer, outcome = np.divmod(np.arange(len(offers.node) * k), k)
    picked = (m.coefficient, (m.node * k + m.outcome, m.row))
    table = sparse.csr_array(picked, (m.anchors.size, m.n_rows))
    row_of = np.full((m.n_cells, len(side.reading.equality)), -1)
    row_of[m.cell_of_row, m.slot_of_row] = np.arange(m.n_rows)
    rows = row_of[m.cell_of_node[offers.node]]
    place, slot = np.nonzero(rows >= 0)
    stated = side.reading.targets[offers.report[place], slot]
    shape = (len(offers.node), m.n_rows)
    price = sparse.csr_array((stated, (place, rows[place, slot])), shape)
    return table[offers.node[offer] * k + outcome] - price[offer]


def best_trade(pair):
    """The programme over trades."""
    k, limits, parts = pair.shape[1], [], []
    for side in pair.sides:
        stakes = cp.Variable(side.moments.n_rows)
        paid = payoffs_of(side, k) @ stakes
        upper = np.flatnonzero(~side.moments.equality)
        limits += [paid <= 1, paid >= -1]
        limits += [stakes[upper] <= 0] if upper.size else []
        shape = (len(side.offers.node), k)
        parts.append(cp.reshape(paid, shape, order="C")[side.offers.of_pair])
    most = cp.max(parts[0] + parts[1], axis=1)
    return cp.Problem(cp.Maximize(-pair.joint.weights @ most), limits)


def by_cvxpy(pair, question, losses):
    if question == "arbitrage":
        programme = best_trade(pair)
    else:
        programme = least_error(pair, question, losses)
    programme.solve(solver=cp.HIGHS)
    return float(programme.value), None, "HiGHS"


def child(table, question, engine, n_items):
    """Answer once or a few times in this process and print what came out as JSON."""
    run = ours if engine == "ours" else by_cvxpy
    for warm_up, size in ((True, 2_000), (False, n_items)):
        pair = pair_of(table, size)
        losses = best_map(pair) if question.endswith("map") else None
        times = []
        while len(times) < (1 if warm_up else REPEATS) and sum(times) < LONG:
            start = time.perf_counter()
            value, gap, told = run(pair, question, losses)
            times.append(time.perf_counter() - start)
    found = {"seconds": min(times), "value": value, "gap": gap, "engine": told}
    print(json.dumps(found | {"pairs": pair.shape[0]}))


def line(table, question, own, other):
    """One line of the table."""
    head = f"{table:<18}{question:<24}"
    if isinstance(own, str):
        return f"{head}{own}"
    head += f"{own['pairs']:>7,}{own['seconds']:>9.3f}"
    tail = f"{own['gap']:>9.1e}  {own['engine']}"
    if isinstance(other, str):
        return f"{head}{other:>10}{'':>7}{own['value']:>13.9f}{'':>10}{tail}"
    ratio, apart = other["seconds"] / own["seconds"], own["value"] - other["value"]
    return (
        f"{head}{other['seconds']:>10.3f}{ratio:>7.1f}{own['value']:>13.9f}"
        f"{apart:>10.1e}{tail}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=N_ITEMS)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--questions", nargs="+", default=list(QUESTIONS))
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a process")
    parser.add_argument("--quick", action="store_true", help=f"{N_QUICK:,} items")
    parser.add_argument("--child", nargs=4)
    options = parser.parse_args()
    if options.child:
        child(*options.child[:3], int(options.child[3]))
        return
    n_items = N_QUICK if options.quick else options.items
    print(
        f"Python {platform.python_version()}, {platform.machine()}, {n_items:,} items"
    )
    print(
        f"{'table':<18}{'question':<24}{'pairs':>7}{'ours, s':>9}{'CVXPY, s':>10}"
        f"{'times':>7}{'value':>13}{'- CVXPY':>10}{'gap':>9}  engine"
    )
    for table in options.tables:
        for question in options.questions:
            own, other = (
                measured(__file__, (table, question, engine, n_items), options.limit)
                for engine in ("ours", "cvxpy")
            )
            print(line(table, question, own, other), flush=True)


if __name__ == "__main__":
    main()
