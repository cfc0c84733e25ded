"""Many outcomes: K = 100 on CIFAR-100, and K = 100 and 1,000 on made-up answers.

    python benchmarks/many_outcomes.py [--limit 120] [--items 5000] [--fits]

Real predictions are read from ../shared/data/cifar100 and skipped where absent. The
reference is LeNet-5 and the primary a DenseNet; both as answers with a confidence on
the paper's grid of .01. Every solve runs in a process of its own that loads nothing but
the answers, so that peak memory is its own. ``exact`` is ``trueup.project``;
``fit`` is ``trueup.fit`` with its default cells; ``cvxpy`` the optimum that may draw
answers by CVXPY and Clarabel, with all outcomes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from children import forget_peak, measured, resident

import trueup
from trueup.core.moments import choose_trust
from trueup.solve.problem import ProjectionProblem
from trueup.testing import shared_error_predictors

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "cifar100"
RUNGS = {
    "mean": {"trust": "mean"},
    "confidence": {"trust": "confidence"},
    "answer-confidence": {"trust": "answer-confidence", "caps": False},
    "with caps": {"trust": "answer-confidence", "caps": True},
}


def real_answers():
    """Answers of two networks on CIFAR-100, or None."""
    if not (DATA / "data.parquet").exists():
        return None
    import pyarrow.parquet as pq  # noqa: PLC0415 - not in a child, whose memory counts

    table = pq.read_table(DATA / "data.parquet")
    sides = []
    for model in ("densenet_bc_100", "lenet_5"):
        columns = [table[f"{model}__p_{k}"].to_numpy() for k in range(100)]
        rows = np.column_stack(columns).astype(float)
        sides.append(rows / rows.sum(axis=1, keepdims=True))
    return sides


def made_up_answers(n_items, n_outcomes):
    """Answers of predictors that share errors."""
    pair = shared_error_predictors(n_items, n_outcomes, rng=20260127)
    return [pair.primary, pair.reference]


def save(path, sides):
    """Answers and confidences only: what a child reads."""
    read = [trueup.AnswerConfidence.from_distributions(one) for one in sides]
    grid = trueup.Step(0.01)
    merged = [grid.merge(one) for one in read]
    np.savez(
        path,
        n_outcomes=read[0].n_outcomes,
        **{f"answer{i}": one.answer for i, one in enumerate(merged)},
        **{f"confidence{i}": one.confidence for i, one in enumerate(merged)},
    )


def load(path):
    """The two sides of a saved table."""
    saved = np.load(path)
    outcomes = range(int(saved["n_outcomes"]))
    return [
        trueup.AnswerConfidence(
            answer=saved[f"answer{i}"],
            confidence=saved[f"confidence{i}"],
            outcomes=outcomes,
        )
        for i in (0, 1)
    ]


def child(path, rung, engine):
    """Solve once in this process and print what came out as JSON."""
    warnings.simplefilter("ignore")
    sides, options = load(path), RUNGS[rung]
    small = [one.take(np.arange(20)) for one in sides]
    warm = trueup.JointTable.from_reports(*small)
    trueup.project(warm, **options)  # load everything before the clock starts
    joint = trueup.JointTable.from_reports(*sides)
    before = forget_peak()
    start = time.perf_counter()
    gap = float("nan")
    if engine == "exact":
        gap = trueup.project(joint, **options).certificate.gap
    elif engine == "fit":
        trueup.fit(*sides, **options)
    else:
        from solvers import by_cvxpy  # noqa: PLC0415 - the same

        belief = choose_trust(joint, options["trust"], options.get("caps"), 0.0)
        problem = ProjectionProblem.from_joint(joint, belief)
        by_cvxpy(problem, "confidence", "CLARABEL")
    seconds = time.perf_counter() - start
    memory = resident("VmHWM") - before
    found = {"seconds": seconds, "memory": memory, "gap": gap}
    print(json.dumps(found | {"pairs": len(joint.counts)}))


def tell(name, rung, engine, found):
    """One line of the table."""
    head = f"{name:<22}{rung:<19}{engine:<7}"
    if isinstance(found, str):
        print(f"{head}{found:>12}", flush=True)
        return
    gap = "" if np.isnan(found["gap"]) else f"{found['gap']:.1e}"
    print(
        f"{head}{found['pairs']:>8,}{found['seconds']:>10.2f}"
        f"{found['memory']:>9.0f}{gap:>10}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a solve")
    parser.add_argument("--items", type=int, default=5_000, help="of made-up tables")
    parser.add_argument("--fits", action="store_true", help="default cells as well")
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    print("table                 rung               engine    pairs   seconds      MiB")
    with tempfile.TemporaryDirectory() as folder:
        tables = {}
        real = real_answers()
        if real is None:
            print("CIFAR-100 is not there: skipped")
        else:
            tables["CIFAR-100, K = 100"] = real
        for k in (100, 1_000):
            tables[f"made up, K = {k:,}"] = made_up_answers(options.items, k)
        for number, (name, sides) in enumerate(tables.items()):
            path = Path(folder) / f"{number}.npz"
            save(path, sides)
            engines = ["exact", *(["fit"] if options.fits else [])]
            if "CIFAR" in name:
                engines.append("cvxpy")
            for rung in RUNGS:
                for engine in engines:
                    tell(
                        name,
                        rung,
                        engine,
                        measured(__file__, (path, rung, engine), options.limit),
                    )


if __name__ == "__main__":
    main()
