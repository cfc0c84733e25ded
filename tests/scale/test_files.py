"""The command line on files: folders, formats, faults, kills, and applying in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import trueup
from scale.conftest import OUTCOMES, pair_table, rows_of
from trueup.errors import PredictionFileError
from trueup.scale.fitting import fit_source
from trueup.scale.pairs import open_pair
from trueup.scale.stream import apply_parquet

PREFIXES = ["--primary-prefix", "primary", "--reference-prefix", "reference"]
NEW = [f"p_{k}" for k in OUTCOMES]


def trueup_command(*arguments):
    return [sys.executable, "-m", "trueup", *map(str, arguments)]


def run(*arguments):
    done = subprocess.run(
        trueup_command(*arguments), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def side(table, name):
    kept = [c for c in table.column_names if not c.startswith(other(name))]
    plain = [c.removeprefix(f"{name}__") for c in kept]
    return table.select(kept).rename_columns(plain)


def other(name):
    return "reference__" if name == "primary" else "primary__"


def rule_of(path):
    saved = json.loads(path.read_text())
    return saved["rule"], saved["certificate"]


def test_folders_formats_and_joined_files_make_the_same_map(pairs, tmp_path):
    shards = tmp_path / "shards"
    shards.mkdir()
    for index in range(3):
        part = pairs.slice(2000 * index, 2000)
        pq.write_table(part, shards / f"{index}.parquet", row_group_size=700)
    pa.csv.write_csv(pairs, tmp_path / "pairs.csv")
    duckdb.from_arrow(pairs).write_csv(str(tmp_path / "pairs.csv"))
    for name in ("primary", "reference"):
        shuffled = pairs.take(pa.array(np.random.default_rng(1).permutation(6000)))
        pq.write_table(side(shuffled, name), tmp_path / f"{name}.parquet")
    sources = {
        "folder": [shards, *PREFIXES],
        "pattern": [shards / "*.parquet", *PREFIXES],
        "csv": [tmp_path / "pairs.csv", *PREFIXES, "--large"],
        "joined": [tmp_path / "primary.parquet", tmp_path / "reference.parquet"],
    }
    sources["joined"] += ["--large", "--id", "item_id"]
    found = []
    for name, given in sources.items():
        target = tmp_path / f"{name}.json"
        run("fit", *given, "--trust", "confidence", "-o", target)
        found.append(rule_of(target))

    assert all(one == found[0] for one in found)


def test_a_map_from_counts(tmp_path):
    rng = np.random.default_rng(5)
    reference = rng.choice([0.2, 0.3, 0.4], size=4000)
    table = pa.table({"r": reference})
    counts = duckdb.from_arrow(table).query(
        "items",
        "select 3 * r - 0.5 as new__p_yes, 1.5 - 3 * r as new__p_no, r as old__p_yes, "
        "1 - r as old__p_no, count(*) as count from items group by all",
    )
    counts.write_parquet(str(tmp_path / "counts.parquet"))
    prefixes = ["--primary-prefix", "new", "--reference-prefix", "old"]
    run(
        "fit", "--counts", tmp_path / "counts.parquet", *prefixes,
        "-o", tmp_path / "map.json",
    )  # fmt: skip

    fitted = trueup.load(tmp_path / "map.json")
    assert fitted.certificate.n_items == 4000
    assert fitted.certificate.supported


def _damage(path, group):
    """Write over the pages of one row group."""
    chunk = pq.ParquetFile(path).metadata.row_group(group).column(1)
    start = min(o for o in (chunk.dictionary_page_offset, chunk.data_page_offset) if o)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 4000)


def test_a_damaged_row_group_is_named_with_its_file(pairs, tmp_path):
    for name in ("good.parquet", "worse.parquet"):
        pq.write_table(pairs, tmp_path / name, row_group_size=1000)
    with open_pair(
        tmp_path / "good.parquet",
        primary_prefix="primary",
        reference_prefix="reference",
    ) as source:
        fitted = fit_source(source, trust="confidence")
    _damage(tmp_path / "worse.parquet", 3)
    said = r"worse\.parquet: row group 3 of this Parquet file cannot be read"
    with (
        open_pair(
            tmp_path, primary_prefix="primary", reference_prefix="reference"
        ) as source,
        pytest.raises(PredictionFileError, match=said),
    ):
        fit_source(source, trust="confidence")
    target = tmp_path / "better.parquet"
    with pytest.raises(PredictionFileError, match=said):
        apply_parquet(fitted, tmp_path / "worse.parquet", target, prefix="primary")
    assert {p.name for p in tmp_path.iterdir()} == {"good.parquet", "worse.parquet"}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "pairs.parquet"
    table = pair_table(200_000)
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(5):
            writer.write_table(table, row_group_size=50_000)
    return path


@pytest.mark.parametrize(
    ("command", "stage"),
    [
        ("fit", "finding cells"),
        ("fit", "counting"),
        ("fit", "certifying"),
        ("apply", "applying"),
    ],
)
def test_a_killed_command_leaves_what_was_there(large, tmp_path, command, stage):
    fitted = large.parent / "map.json"
    fit = ["fit", large, *PREFIXES, "--large", "--trust", "confidence", "--force"]
    if not fitted.exists():
        run(*fit, "-o", fitted)
    apply = ["apply", fitted, large, "--prefix", "primary", "--force"]
    target = tmp_path / "target.parquet"
    target.write_text("before")
    process = subprocess.Popen(
        trueup_command(*(fit if command == "fit" else apply), "-o", target),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    for line in process.stderr:
        if stage in line:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.communicate()

    assert process.returncode == -signal.SIGKILL
    assert target.read_text() == "before"
    others = [path.name for path in tmp_path.iterdir() if path != target]
    # What was being written is beside the target, under a name that says so.
    assert len(others) == (command == "apply")
    assert all(name.startswith(".target.parquet.") for name in others)


def test_applying_keeps_order_columns_and_values(pairs, tmp_path):
    with open_pair(
        _written(pairs, tmp_path / "in.parquet"),
        primary_prefix="primary",
        reference_prefix="reference",
    ) as source:
        fitted = fit_source(source, trust="answer-confidence")
    extra = pa.array([{"deep": [i, None]} for i in range(6000)])
    table = pairs.append_column("notes", extra)
    told = []
    done = apply_parquet(
        fitted,
        _written(table, tmp_path / "more.parquet"),
        tmp_path / "better.parquet",
        prefix="primary",
        progress=lambda n, total: told.append((n, total)),
    )
    better = pq.read_table(tmp_path / "better.parquet")
    new = fitted.apply(rows_of(pairs, "primary"))

    assert better.column_names == ["item_id", *NEW, "topic", "notes"]
    assert np.array_equal(np.column_stack([better[k].to_numpy() for k in NEW]), new)
    for name in ("item_id", "topic", "notes"):
        assert better[name].equals(table[name])
    moved = np.abs(new - rows_of(pairs, "primary")).max(axis=1) > 1e-12
    assert (done.n_items, done.n_changed) == (6000, int(moved.sum()))
    assert told[-1] == (6000, 6000)


def _written(table, path):
    pq.write_table(table, path, row_group_size=1700)
    return path


@pytest.mark.parametrize("value", [None, float("nan"), -0.5])
def test_applying_refuses_gaps_and_bad_rows_and_writes_nothing(pairs, tmp_path, value):
    with open_pair(
        _written(pairs, tmp_path / "in.parquet"),
        primary_prefix="primary",
        reference_prefix="reference",
    ) as source:
        fitted = fit_source(source, trust="confidence")
    values = pairs["primary__p_a"].to_pylist()
    values[5000] = value
    bad = pairs.set_column(1, "primary__p_a", pa.array(values))
    target = tmp_path / "better.parquet"
    with pytest.raises(trueup.TrueupError):
        apply_parquet(
            fitted, _written(bad, tmp_path / "bad.parquet"), target, prefix="primary"
        )
    assert {p.name for p in tmp_path.iterdir()} == {"in.parquet", "bad.parquet"}
