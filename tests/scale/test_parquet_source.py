"""Parquet read directly and on all cores: the batches, totals and errors of one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scale.conftest import OUTCOMES, pair_table
from trueup.core.folds import mixed
from trueup.core.resolution import Resolution
from trueup.errors import PredictionFileError
from trueup.scale import fitting, passes
from trueup.scale._count_kernels import mixes_of
from trueup.scale.fitting import certify, count, fit_source, sketch_layout
from trueup.scale.pairs import open_pair
from trueup.solve._jit import entry

PREFIXES = {"primary_prefix": "primary", "reference_prefix": "reference"}
COARSE = Resolution(
    reference_bins=5, certify_bins=4, primary_bins=3, ranked_bins=4, micro_cells=100
)


def written(table, path, size=500):
    pq.write_table(table, path, row_group_size=size)
    return path


def answering(table):
    for side in ("primary", "reference"):
        names = [f"{side}__p_{k}" for k in OUTCOMES]
        rows = np.column_stack([table[name].to_numpy() for name in names])
        said = pa.array([OUTCOMES[k] for k in rows.argmax(axis=1)])
        table = table.drop_columns(names)
        table = table.append_column(f"{side}__answer", said)
        table = table.append_column(f"{side}__confidence", pa.array(rows.max(axis=1)))
    return table


def narrow(table):
    for name in [n for n in table.column_names if "__p_" in n]:
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(pa.float32()))
    return table


TABLES = {
    "ids": lambda table: table,
    "no ids": lambda table: table.drop_columns(["item_id"]),
    "float32": narrow,
    "answers": answering,
    "negative ids": lambda table: table.set_column(
        0, "item_id", pa.array(-(table["item_id"].to_numpy() ** 3))
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_direct_reading_gives_the_batches_of_duckdb(pairs, tmp_path, kind):
    table = TABLES[kind](pairs)
    (tmp_path / "part").mkdir()
    for index, (a, b) in enumerate(pairwise([0, 900, 2400, pairs.num_rows])):
        written(table.slice(a, b - a), tmp_path / f"part/{index}.parquet")
    with open_pair(tmp_path / "part", **PREFIXES, outcomes=OUTCOMES) as source:
        assert source.parquet is not None
        through = replace(source, parquet=None)
        direct = [_copied(batch) for batch in source.batches()]
        converted = [_copied(batch) for batch in through.batches()]

    for place in range(5):
        one, other = (
            np.concatenate([parts[place] for parts in both])
            for both in (direct, converted)
        )
        assert np.array_equal(one, other)


def _copied(batch):
    sides = (batch.primary, batch.reference)
    arrays = [a for side in sides for a in (side.rows, side.answers)]
    return [array.copy() for array in (*arrays, batch.numbers)]


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("item_id", lambda c: c.cast(pa.string())),
        ("primary__p_a", lambda c: c.cast(pa.decimal128(20, 17), safe=False)),
    ],
    ids=["text ids", "decimals"],
)
def test_other_types_are_converted_by_duckdb(pairs, tmp_path, column, change):
    place = pairs.column_names.index(column)
    table = pairs.set_column(place, column, change(pairs[column]))
    with open_pair(written(table, tmp_path / "x.parquet"), **PREFIXES) as source:
        assert source.parquet is None
        assert sum(len(batch) for batch in source.batches()) == pairs.num_rows


@entry
def _mixes(numbers, out):
    mixes_of(numbers, 0, len(numbers), out)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50))
def test_shifts_give_the_remainders_of_divisions(numbers):
    edge = [0, 1, -1, 2**31 - 1, 2**31 - 2, 2**31, -(2**31), 2**62, 2**63 - 1]
    values = np.array([*numbers, *edge, -(2**63)], dtype=np.int64)
    found = np.empty_like(values)
    _mixes(values, found)

    assert found.tolist() == [mixed(int(value)) for value in values]


def test_neither_threads_nor_reading_change_a_bit(pairs, tmp_path, monkeypatch):
    path = written(pairs, tmp_path / "pairs.parquet")
    found = []
    for n_threads in (1, 2, 5):
        for direct in (True, False):
            monkeypatch.setattr(passes, "n_cores", lambda n=n_threads: n)
            with open_pair(path, **PREFIXES) as source:
                one = source if direct else replace(source, parquet=None)
                wanted = fitting.Wanted.check(
                    one.outcomes, one.kinds, 0, trust="answer-confidence"
                )
                statistics = count(one, sketch_layout(one, wanted.frame, COARSE))
                tried = wanted.halves(statistics, COARSE)
                found.append((statistics, certify(one, tried, wanted)[1]))

    statistics, estimate = found[0]
    assert all(other.equals(statistics) for other, _ in found)
    assert all(other == estimate for _, other in found)


def _sorted(table):
    top = np.max([table[f"primary__p_{k}"].to_numpy() for k in OUTCOMES], axis=0)
    return table.take(pa.array(np.argsort(top, kind="stable")))


@pytest.mark.parametrize("order", ["as it comes", "sorted"])
def test_a_sample_takes_some_row_groups_unless_they_differ(
    tmp_path, monkeypatch, order
):
    table = pair_table(40_000)
    table = _sorted(table) if order == "sorted" else table
    monkeypatch.setattr(fitting, "SKETCHED", 4000)
    seen = []
    with open_pair(written(table, tmp_path / "x.parquet", 1000), **PREFIXES) as source:
        pieces, share = source.sample(10)
        seen = [piece.n_before for piece in pieces]
        layout = sketch_layout(source, "answer", COARSE)
        statistics = count(source, layout)

    if order == "sorted":
        assert (len(seen), share) == (40, 10)
    else:
        assert (len(seen), share) == (8, 2)
        assert np.ptp(np.diff(seen)) == 0
    assert statistics.total == 40_000
    sizes = np.bincount(statistics.keys[:, 2], statistics.n_items)
    assert sizes.min() > 0.6 * sizes.mean()  # near to equal mass, either way


def _with(table, column, row, value):
    values = table[column].to_pylist()
    values[row] = value
    return table.set_column(table.column_names.index(column), column, pa.array(values))


def test_of_several_faults_the_first_in_the_file_is_told(pairs, tmp_path, monkeypatch):
    table = _with(pairs, "primary__p_b", 1300, 1.5)
    table = _with(table, "reference__p_c", 4700, -0.5)
    path = written(table, tmp_path / "bad.parquet")
    monkeypatch.setattr(passes, "n_cores", lambda: 4)
    for _ in range(10):
        with (
            open_pair(path, **PREFIXES) as source,
            pytest.raises(PredictionFileError, match=r"rows 1,2\d\d and on.*1\.5"),
        ):
            fit_source(source, trust="confidence")


def test_a_fault_that_the_sample_missed_is_found(tmp_path, monkeypatch):
    """A row that sums to more than one, which no range of a column tells."""
    table = _with(pair_table(40_000), "primary__p_b", 39_990, 0.5)
    path = written(table, tmp_path / "bad.parquet", 1000)
    monkeypatch.setattr(fitting, "SKETCHED", 4000)
    for direct in (True, False):
        with open_pair(path, **PREFIXES) as source:
            one = source if direct else replace(source, parquet=None)
            with pytest.raises(
                PredictionFileError, match=r"rows 39,[79]\d\d and on.* sum"
            ):
                fit_source(one, trust="confidence")


def test_gaps_are_counted_and_named(pairs, tmp_path):
    path = written(
        _with(pairs, "reference__p_a", 3000, None), tmp_path / "gaps.parquet"
    )
    with (
        open_pair(path, **PREFIXES) as source,
        pytest.raises(PredictionFileError, match="'reference__p_a' has 1 in 6,000"),
    ):
        fit_source(source, trust="confidence")
