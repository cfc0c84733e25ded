"""What the paper does not measure: its mode on items it was not fitted on.

    python experiments/paper_study/measure.py DIR [--quick] [--only held_out]

DIR holds ``mmlu10k/logits.parquet``. Writes ``held_out.csv`` (real pairs: sample size,
step, held-out gain) and ``small_cells.csv`` (worlds with a known truth: items in a
reference cell, guarantee, true gain) beside this file. Labels score only.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np

import trueup
from trueup.reproduce import paper_map, read_study
from trueup.reproduce.sample import Sample
from trueup.reproduce.scoring import Said, gain

HERE = Path(__file__).parent
PAIRS = ("Llama-2-7b", "DeepSeek-LLM-7b", "Yi-6B")
SIZES = (100, 300, 1000, 3000, 4985)
STEPS = (0.01, 0.05, 0.2)
N_DRAWS = 5
WORLDS = {"calibrated": 1.0, "overconfident": 2.5}
"""Power to which the primary's distributions are raised."""
WORLD_SIZES = (400, 1600)
WORLD_CELLS = ("exact", 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
N_WORLDS = 12


def adaptive(primary, reference):
    """The same assumption as the paper's mode, on adaptive cells."""
    return trueup.fit(
        primary,
        reference,
        loss="confidence",
        trust="answer-confidence",
        caps=True,
        cells="auto",
    )


def held_out(folder, quick):
    """Fit on some items of a half, score on the other half."""
    study = read_study(HERE.parent / "mmlu10k" / "study.toml", root=folder)
    for name in PAIRS:
        spec = next(one for one in study.pairs if one.model == name)
        sample = Sample.read(spec)
        for draw in range(1 if quick else N_DRAWS):
            order = np.random.default_rng([7, draw]).permutation(len(sample))
            half = len(order) // 2
            test = order[half:]
            for size in SIZES[: 3 if quick else None]:
                part = order[: min(size, half)]
                yield from one_fit(name, draw, sample, part, test)
        print(f"held out: {name} done", flush=True)


def one_fit(name, draw, sample, part, test):
    """Every step, and adaptive cells, on the same items."""
    primary, reference = sample.primary.take(part), sample.reference.take(part)
    maps = {f"{step:g}": paper_map(primary, reference, step) for step in STEPS}
    maps["adaptive"] = adaptive(primary, reference)
    for kind, fitted in maps.items():
        row = {
            "pair": name,
            "draw": draw,
            "n_items": len(part),
            "cells": kind,
            "guaranteed": fitted.certificate.guaranteed_improvement,
        }
        for where, items in (("fitted_gain", part), ("held_out_gain", test)):
            before = sample.primary.take(items)
            after = fitted.apply(before)
            labels = sample.labels[items]
            row[where] = gain(Said.of(before), Said.of(after), labels).value
        yield row


def softmax(z):
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def world(rng, n_items, power, n_outcomes=4):
    """Reports of both, and the true distribution given the primary's.

    The truth is softmax(a + b1 + b2). The reference sees a, the primary a and b1; both
    know the posterior exactly, because b1 and b2 take few values. The primary then
    raises its own to a power.
    """
    b1 = 1.2 * rng.normal(size=(16, n_outcomes))
    b2 = 0.6 * rng.normal(size=(5, n_outcomes))
    a = rng.normal(size=(n_items, n_outcomes))
    seen = rng.integers(0, len(b1), size=n_items)
    given = softmax(a[:, None] + b1[seen][:, None] + b2[None]).mean(axis=1)
    every = softmax(a[:, None, None] + b1[None, :, None] + b2[None, None])
    reference = every.mean(axis=(1, 2))
    stated = softmax(power * np.log(given))
    return stated, reference, given


def true_gain(before, after, truth):
    """Expected fall in confidence loss under the truth."""

    def losses(said):
        right = truth[np.arange(len(truth)), said.answer]
        return said.confidence**2 - 2 * said.confidence * right

    return float((losses(before) - losses(after)).mean())


def small_cells(quick):
    """The paper's mode with cells of every size, where the truth is known."""
    as_answers = trueup.AnswerConfidence.from_distributions
    for kind, power in WORLDS.items():
        for n_items in WORLD_SIZES:
            for draw in range(2 if quick else N_WORLDS):
                rng = np.random.default_rng([11, draw, n_items])
                stated, trusted, truth = world(rng, n_items, power)
                primary, reference = as_answers(stated), as_answers(trusted)
                for cells in (*WORLD_CELLS, "adaptive"):
                    yield one_world(kind, draw, cells, primary, reference, truth)
            print(f"small cells: {kind}, {n_items} items done", flush=True)


def one_world(kind, draw, cells, primary, reference, truth):  # noqa: PLR0917
    if cells == "adaptive":
        fitted = adaptive(primary, reference)
        n_cells = max(fitted.certificate.n_cells, 1)
    else:
        grid = "exact" if cells == "exact" else trueup.Step(cells)
        fitted = trueup.fit(
            primary,
            reference,
            loss="confidence",
            trust="answer-confidence",
            caps=True,
            cells=grid,
        )
        n_cells = fitted.fitted_on.n_reference
    return {
        "world": kind,
        "draw": draw,
        "n_items": len(primary),
        "cells": cells,
        "n_cells": n_cells,
        "guaranteed": fitted.certificate.guaranteed_improvement,
        "true_gain": true_gain(primary, fitted.apply(primary), truth),
    }


def write(path, rows):
    found = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        for row in found:
            shown = {
                key: f"{value:.6f}"
                if isinstance(value, float) and key != "cells"
                else value
                for key, value in row.items()
            }
            writer.writerow(shown)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="a few minutes less")
    parser.add_argument("--only", choices=["held_out", "small_cells"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", trueup.TrueupWarning)
    if options.only != "held_out":
        write(HERE / "small_cells.csv", small_cells(options.quick))
    if options.only != "small_cells":
        write(HERE / "held_out.csv", held_out(options.folder, options.quick))


if __name__ == "__main__":
    main()
