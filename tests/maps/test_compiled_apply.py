"""The compiled map: the bits of the formula, for any layout, and the same errors."""

from __future__ import annotations

import numpy as np
import pytest

import trueup
from trueup.errors import InvalidReportError
from trueup.maps._compiled import edge_table
from trueup.maps._row_kernels import find_cells
from trueup.solve._jit import entry

N = 9000


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def pair(n_outcomes):
    rng = np.random.default_rng(n_outcomes)
    shared = rng.normal(size=(N, n_outcomes))
    primary = softmax(3 * (shared + rng.normal(size=shared.shape)))
    return primary, softmax(0.5 * shared)


SETTINGS = {
    "brier": {"trust": "answer-confidence"},
    "brier by rank": {"trust": "mean", "assume": "informative"},
    "log": {"trust": "answer-confidence", "loss": "log"},
    "log by rank": {"trust": "mean", "assume": "informative", "loss": "log"},
    "floor": {"trust": "confidence", "loss": "log", "floor": 1e-3},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("n_outcomes", [2, 3, 4, 5, 9])
def test_compiled_maps_give_the_bits_of_the_formula(n_outcomes, setting):
    primary, reference = pair(n_outcomes)
    fitted = trueup.fit(primary, reference, **setting)
    rows = primary.copy()
    rows[:50] = np.eye(n_outcomes)[np.arange(50) % n_outcomes]  # certain
    rows[50:100] = 1 / n_outcomes  # undecided
    if setting.get("loss") == "log":
        rows[:50] = primary[:50]
    rows[100:200] *= 1 + 1e-7  # divided by their sums
    formula = fitted.rule.apply(fitted._read(rows)).probabilities

    assert fitted.compiled is not None
    close = {"rtol": 1e-13, "atol": 1e-300} if "loss" in setting else {"rtol": 0}
    for given in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2]):
        np.testing.assert_allclose(fitted.apply(given), formula, **close)
    narrow = rows.astype(np.float32)
    wide = fitted.rule.apply(fitted._read(narrow)).probabilities
    np.testing.assert_allclose(fitted.apply(narrow), wide, **close)


@pytest.mark.parametrize("n_outcomes", [2, 3, 4, 6])
@pytest.mark.parametrize(
    ("value", "said"),
    [(np.nan, "8,765"), (-0.25, r"-0\.25"), (1.5, r"1\.5"), (0.2, "8,765")],
)
def test_bad_rows_are_refused_as_if_there_were_few(n_outcomes, value, said):
    primary, reference = pair(n_outcomes)
    fitted = trueup.fit(primary, reference, trust="confidence")
    rows = primary.copy()
    rows[8765, 1] = value if value != 0.2 else rows[8765, 1] + 0.2

    with pytest.raises(InvalidReportError, match=said) as many:
        fitted.apply(rows)
    with pytest.raises(InvalidReportError) as few:
        fitted._read(rows)
    assert str(many.value) == str(few.value)


@entry
def _cells(edges, which, score, cell):
    find_cells(edges, which, score, len(score), cell)


@pytest.mark.parametrize("n_edges", [0, 1, 2, 3, 7, 8, 100])
def test_halving_finds_what_searching_does(n_edges):
    rng = np.random.default_rng(n_edges)
    edges = [np.sort(rng.choice(np.arange(500) / 500, n_edges)), np.array([0.5])]
    table = edge_table(edges)
    score = np.concatenate([rng.random(800), np.repeat(edges[0], 3), [0.0, 0.5, 1.0]])
    which = rng.integers(0, 2, len(score))
    cell = np.empty(len(score), dtype=np.uint64)
    _cells(table, which, score, cell)

    found = [
        np.searchsorted(edges[w], s, "right") for w, s in zip(which, score, strict=True)
    ]
    assert np.array_equal(cell, which * table.shape[1] + found)
