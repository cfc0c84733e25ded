"""Time ``trueup.fit`` on synthetic predictors, and check what it proves.

The truth is a softmax of three Gaussian scores. The reference knows one of them and is
calibrated; the primary knows two and is far too sure. Run with ``make bench``.
"""

from __future__ import annotations

import argparse
import platform
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import trueup

Floats = NDArray[np.float64]

N_OUTCOMES = 4
N_DRAWS = 300
"""Monte Carlo draws behind each reference report."""

SETTINGS: dict[str, dict[str, Any]] = {
    "confidence": {"cells": trueup.Step(0.01)},
    "brier": {"cells": trueup.Step(0.1), "trust": "distribution"},
    "log": {"cells": trueup.Step(0.1), "trust": "distribution", "floor": 1e-3},
}


def softmax(scores: Floats) -> Floats:
    """Distributions from scores."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def predictors(n_items: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Reports of an overconfident primary and of a calibrated reference."""
    known, more = rng.normal(size=(2, n_items, N_OUTCOMES))
    unknown = rng.normal(scale=np.sqrt(2), size=(N_DRAWS, 1, N_OUTCOMES))
    parts = np.array_split(known, max(1, n_items // 500))
    reference = [softmax(part + unknown).mean(axis=0) for part in parts]
    return softmax(3.5 * (known + more)), np.concatenate(reference)


def bench(n_items: int, loss: str) -> str:
    """Time one fit; a fast wrong answer is an error, not a result."""
    primary, reference = predictors(n_items, np.random.default_rng(20260127))
    reports: tuple[object, object] = primary, reference
    if loss == "confidence":
        read = trueup.AnswerConfidence.from_distributions
        reports = read(primary), read(reference)
    start = time.perf_counter()
    fitted = trueup.fit(*reports, loss=loss, **SETTINGS[loss])
    seconds = time.perf_counter() - start
    proof, size = fitted.certificate, fitted.fitted_on
    if proof.gap > proof.tolerance:
        message = f"{loss}, {n_items:,} items: gap {proof.gap:.1e} is too wide"
        raise SystemExit(message)
    return (
        f"{loss:<12}{n_items:>9,}{size.n_pairs:>9,}{size.n_primary:>9,}"
        f"{seconds:>10.2f}{proof.gap:>11.1e}"
    )


def main() -> None:
    """Print one line a fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 10_000])
    sizes = parser.parse_args().items
    trueup.fit([0.1, 0.7], [0.5, 0.5])  # load the solver before the clock starts
    print(f"Python {platform.python_version()}, {platform.machine()}")
    print("loss            items    pairs  reports   seconds        gap")
    for loss in SETTINGS:
        for n_items in sizes:
            print(bench(n_items, loss), flush=True)


if __name__ == "__main__":
    main()
