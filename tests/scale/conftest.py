"""Two predictors on synthetic items (METHOD section 10), in memory and as files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

OUTCOMES = ("a", "b", "c", "d")


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def predictors(n_items, *, n_outcomes=4, seed=0, sharpness=3.5):
    """An overconfident primary and a calibrated reference that knows less."""
    rng = np.random.default_rng(seed)
    signals = rng.normal(size=(200, n_outcomes))
    unknown = rng.normal(scale=np.sqrt(2), size=(400, 1, n_outcomes))
    posterior = softmax(signals + unknown).mean(axis=0)
    which = rng.integers(0, len(signals), n_items)
    more = rng.normal(size=(n_items, n_outcomes))
    return softmax(sharpness * (signals[which] + more)), posterior[which]


def pair_table(n_items, *, seed=0, n_outcomes=4, ids=None):
    primary, reference = predictors(n_items, seed=seed, n_outcomes=n_outcomes)
    names = [chr(ord("a") + k) for k in range(n_outcomes)]
    columns = {"item_id": np.arange(n_items) if ids is None else ids}
    columns |= {f"primary__p_{k}": primary[:, i] for i, k in enumerate(names)}
    columns |= {f"reference__p_{k}": reference[:, i] for i, k in enumerate(names)}
    columns["topic"] = [f"t{i % 3}" for i in range(n_items)]
    return pa.table(columns)


def rows_of(table, side, names=OUTCOMES):
    return np.column_stack([table[f"{side}__p_{k}"].to_numpy() for k in names])


@pytest.fixture(scope="session")
def pairs():
    return pair_table(6000)
