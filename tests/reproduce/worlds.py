"""Pairs of prediction files with a known truth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evaluate.labelled import draw_labels, softmax
from trueup.data import write_table

LETTERS = "ABCD"


def pair_of_models(n_items=400, seed=0):
    """A calibrated reference, an exaggerating primary that knows more, and labels."""
    rng = np.random.default_rng(seed)
    shared = 1.2 * rng.normal(size=(n_items, 4))
    truth = softmax(shared + rng.normal(size=(n_items, 4)))
    labels = draw_labels(truth, rng)
    odds = truth**3
    return softmax(shared), odds / odds.sum(axis=1, keepdims=True), labels


def table(rows, labels, start=0):
    ids = [f"q{start + k}" for k in range(len(rows))]
    stated = {f"p_{letter}": rows[:, k] for k, letter in enumerate(LETTERS)}
    happened = [None if k < 0 else LETTERS[k] for k in labels]
    return pa.table({"item_id": ids, **stated, "label": happened})


def write_pair(folder, model="Qwen3-8B", name="commonsense-qa", *, split=False, **kw):
    """The files of one pair, by the documented names."""
    base, instruct, labels = pair_of_models(**kw)
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    write_table(table(base, labels), target / f"{model}.base.parquet")
    write_table(table(instruct, labels), target / f"{model}.instruct.csv")
    if split:
        _, other, happened = pair_of_models(seed=99)
        path = target / f"{model}.instruct-calibration.jsonl"
        write_table(table(other, happened, 10_000), path)
    return base, instruct, labels
