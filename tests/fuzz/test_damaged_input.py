"""A few hundred damaged files per reader; benchmarks/fuzz.py runs many thousands."""

from __future__ import annotations

import importlib.util

import pytest

from contract.project import ROOT

COUNT = 300


@pytest.fixture(scope="module")
def fuzz():
    path = ROOT / "benchmarks" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.fuzz


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow", "map"])
def test_damaged_input_never_ends_in_a_traceback(fuzz, kind):
    outcomes, failures = fuzz(kind, COUNT, seed=7)

    assert failures == []
    assert sum(outcomes.values()) == COUNT
    assert 0 < outcomes["accepted"] < COUNT
