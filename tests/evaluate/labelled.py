"""Labelled worlds for the tests: random ones, calibrated ones, and real data."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from trueup import AnswerConfidence

LETTERS = ("A", "B", "C", "D", "E", "F")
DATA = Path(
    os.environ.get("TRUEUP_DATA", Path(__file__).parents[3] / "shared" / "data")
)
"""Folder of public predictions, beside the checkout unless the variable names it."""


def softmax(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def draw_labels(distributions, rng):
    """One outcome an item, drawn from its distribution."""
    shots = rng.random(len(distributions))[:, None]
    labels = (shots > distributions.cumsum(axis=1)).sum(axis=1)
    return np.minimum(labels, distributions.shape[1] - 1)


def random_world(rng, n_items=200, n_outcomes=4, sharpness=1.0):
    """Distributions, their calibrated truth sharpened or flattened, and labels."""
    stated = softmax(1.5 * rng.normal(size=(n_items, n_outcomes)))
    truth = stated**sharpness
    truth /= truth.sum(axis=1, keepdims=True)
    return stated, truth, draw_labels(truth, rng)


def mmlu(model, n_items=None):
    """(probabilities, labels) of one model in the shared data; skips without it."""
    path = DATA / "mmlu10k" / "logits.parquet"
    if not path.exists():
        pytest.skip("the shared predictions are not here")
    from pyarrow import parquet

    columns = [f"{model}__logit_{letter}" for letter in LETTERS]
    table = parquet.read_table(path, columns=["label", *columns])
    logits = np.column_stack([table[name].to_numpy() for name in columns])
    labels = table["label"].to_numpy()
    return softmax(logits.astype(float))[:n_items], labels[:n_items]


CONFIDENCES = [0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.999, 1.0]
"""Bin edges, certainties and 1/K: where binning and logarithms go wrong."""


@st.composite
def answer_worlds(draw, max_items=12):
    """Answers with confidences on a grid of nasty values, labels and weights."""
    n_items = draw(st.integers(1, max_items))
    n_outcomes = draw(st.integers(2, 4))
    index = st.integers(0, n_outcomes - 1)
    items = st.lists(
        st.tuples(index, index, st.sampled_from(CONFIDENCES), st.integers(1, 4)),
        min_size=n_items,
        max_size=n_items,
    )
    answer, label, confidence, weight = map(list, zip(*draw(items), strict=True))
    reports = AnswerConfidence(
        answer=answer, confidence=confidence, outcomes=range(n_outcomes)
    )
    return reports, np.array(label), np.array(weight, dtype=float)


@st.composite
def distribution_worlds(draw, max_items=12):
    """Distributions on a coarse grid (zeros, ties), labels and weights."""
    n_items = draw(st.integers(1, max_items))
    n_outcomes = draw(st.integers(2, 4))
    parts = st.lists(
        st.integers(0, 4), min_size=n_outcomes, max_size=n_outcomes
    ).filter(any)
    rows = draw(st.lists(parts, min_size=n_items, max_size=n_items))
    stated = np.array(rows, dtype=float)
    stated /= stated.sum(axis=1, keepdims=True)
    numbers = st.lists(
        st.integers(0, n_outcomes - 1), min_size=n_items, max_size=n_items
    )
    weights = st.lists(st.integers(1, 4), min_size=n_items, max_size=n_items)
    return stated, np.array(draw(numbers)), np.array(draw(weights), dtype=float)
