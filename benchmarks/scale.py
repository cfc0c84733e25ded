"""Ten million items in Parquet: fitting, applying and updating, against bare engines.

Fitting and applying run as the command line does, each in a process of its own, and
take turns with what they are compared to: DuckDB's plain GROUP BY over the same columns
and DuckDB copying the same columns. Starting Python counts on both sides.

    python benchmarks/scale.py                    # ten million items, about 700 MB
    python benchmarks/scale.py --items 300000     # a quick look
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trueup

OUTCOMES = "abcd"
ROWS_A_STEP = 1_000_000
N_SIGNALS = 20_000
"""Distinct reports of the reference; every report of the primary is distinct."""
PRIMARY = [f"primary__p_{k}" for k in OUTCOMES]
REFERENCE = [f"reference__p_{k}" for k in OUTCOMES]

# A GROUP BY that is as bare as can be and still counts both predictors by cell: the
# answer and one of twenty bins of the confidence on either side, and sums of reports.
GROUP_BY = """
import duckdb, sys
con = duckdb.connect(config={{"memory_limit": "1GB"}})
rows = con.execute(\"\"\"
    SELECT {keys}, count(*), {sums} FROM read_parquet('{path}') GROUP BY ALL
\"\"\").fetchall()
"""
COPY = """
import duckdb
con = duckdb.connect(config={{"memory_limit": "1GB"}})
con.execute(\"\"\"
    COPY (SELECT item_id, {columns}, topic FROM read_parquet('{path}'))
    TO '{target}' (FORMAT parquet)
\"\"\")
"""


def softmax(scores):
    """Distributions from scores."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def predictors(n_items, signals, posterior, rng):
    """An overconfident primary and a calibrated reference that knows less."""
    which = rng.integers(0, len(signals), n_items)
    more = rng.normal(size=(n_items, len(OUTCOMES)))
    return softmax(3.5 * (signals[which] + more)), posterior[which]


def world(rng):
    """What the reference sees, and what it makes of it."""
    signals = rng.normal(size=(N_SIGNALS, len(OUTCOMES)))
    unknown = rng.normal(scale=np.sqrt(2), size=(200, 1, len(OUTCOMES)))
    parts = [softmax(part + unknown).mean(axis=0) for part in np.split(signals, 20)]
    return signals, np.concatenate(parts)


def write_pairs(path, n_items):
    """Both predictors, item by item, in row groups of about 120,000."""
    rng = np.random.default_rng(20261118)
    signals, posterior = world(rng)
    topics = pa.array([f"topic-{i}" for i in range(50)])
    writer = None
    for first in range(0, n_items, ROWS_A_STEP):
        n = min(ROWS_A_STEP, n_items - first)
        primary, reference = predictors(n, signals, posterior, rng)
        columns = {"item_id": np.arange(first, first + n)}
        columns |= {name: primary[:, k] for k, name in enumerate(PRIMARY)}
        columns |= {name: reference[:, k] for k, name in enumerate(REFERENCE)}
        columns["topic"] = topics.take(pa.array(rng.integers(0, 50, n)))
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=122_880)
    writer.close()


def group_by(path):
    """The program of the bare GROUP BY."""
    keys = []
    for names in (PRIMARY, REFERENCE):
        top = f"greatest({', '.join(names)})"
        keys += [f"list_position([{', '.join(names)}], {top})", f"floor(20 * {top})"]
    sums = ", ".join(f"sum({name})" for name in PRIMARY + REFERENCE)
    return GROUP_BY.format(keys=", ".join(keys), sums=sums, path=path)


def timed(arguments):
    """Seconds and peak megabytes of a process of our own."""
    # Packages load their bytecode, as installed ones do, whatever this shell forbids.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, *arguments],
        kept | {"NO_COLOR": "1"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0)
            for stream in (1, 2)
        ],
    )
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - start
    if status:
        message = f"{' '.join(arguments)[:200]} failed"
        raise SystemExit(message)
    return seconds, usage.ru_maxrss / 1024


def compared(ours, theirs, times):
    """Both in turn; medians and our peak memory."""
    found = [(timed(ours), timed(theirs)) for _ in range(times)]
    seconds = [statistics.median(run[side][0] for run in found) for side in (0, 1)]
    return *seconds, max(run[0][1] for run in found)


def files(folder, n_items, times):
    """Fit and apply through the command line."""
    path, fitted = folder / "pairs.parquet", folder / "map.json"
    start = time.perf_counter()
    # In a process of its own: a child's peak memory is at least its parent's.
    writer = multiprocessing.get_context("spawn").Process(
        target=write_pairs, args=(path, n_items)
    )
    writer.start()
    writer.join()
    told = path.stat().st_size / 1e6
    print(
        f"{n_items:,} items x {len(OUTCOMES)} outcomes, {told:,.0f} MB of Parquet, "
        f"written in {time.perf_counter() - start:.0f} s",
        flush=True,
    )
    prefixes = ["--primary-prefix", "primary", "--reference-prefix", "reference"]
    fit = ["-m", "trueup", "fit", str(path), *prefixes, "--large", "--force"]
    fit += ["--trust", "confidence", "-o", str(fitted)]
    timed(fit)  # compiles, once a machine
    ours, theirs, peak = compared(fit, ["-c", group_by(path)], times)
    line(
        "fit",
        ours,
        theirs,
        name="bare GROUP BY",
        target=3,
        more=f"peak {peak:,.0f} MB (<= 1,500)",
    )
    apply = ["-m", "trueup", "apply", str(fitted), str(path), "--prefix", "primary"]
    apply += ["-o", str(folder / "better.parquet"), "--force"]
    target = folder / "copy.parquet"
    copy = COPY.format(columns=", ".join(PRIMARY), path=path, target=target)
    ours, theirs, peak = compared(apply, ["-c", copy], times)
    line(
        "apply",
        ours,
        theirs,
        name="DuckDB's copy",
        target=2,
        more=f"peak {peak:,.0f} MB",
    )
    return trueup.load(fitted)


def line(what, ours, theirs, *, name, target, more=""):
    """One result."""
    print(
        f"{what:<18}{ours:8.2f} s   {name:<16}{theirs:8.2f} s   "
        f"{ours / theirs:5.2f}x (<= {target}x)  {more}",
        flush=True,
    )


def in_memory(fitted, n_items, times):
    """``apply`` on an array, against numpy's ``2 * rows + 1`` on the same one."""
    rng = np.random.default_rng(1)
    rows, _ = predictors(n_items, *world(rng), rng)
    fitted.apply(rows[:1000])
    ours, theirs = [], []
    for _ in range(times):
        start = time.perf_counter()
        fitted.apply(rows)
        middle = time.perf_counter()
        _ = 2.0 * rows + 1.0
        ours.append(middle - start)
        theirs.append(time.perf_counter() - middle)
    first, second = statistics.median(ours), statistics.median(theirs)
    rate = f"{n_items / first / 1e6:.1f} million rows a second"
    line("apply in memory", first, second, name="multiply-add", target=4, more=rate)


def online(n_batches, size):
    """Milliseconds an update takes, apart from and with a new map."""
    rng = np.random.default_rng(2)
    signals, posterior = world(rng)
    calibrator = trueup.OnlineCalibrator(trust="confidence", outcomes=list(OUTCOMES))
    plain, solved = [], []
    for batch in range(n_batches):
        primary, reference = predictors(size, signals, posterior, rng)
        ids = np.arange(batch * size, (batch + 1) * size)
        before = calibrator._state.n_tried
        start = time.perf_counter()
        calibrator.update(primary, reference, ids=ids)
        spent = (time.perf_counter() - start) * 1e3
        tried = calibrator._state.n_tried > before
        (solved if tried else plain).append(spent)
    slow = sorted(plain)[int(0.95 * len(plain))]
    print(
        f"online, {n_batches} batches of {size:,}: median "
        f"{statistics.median(plain):.1f} ms, 95 % below {slow:.1f} ms; {len(solved)} "
        f"more tried a new map, median {statistics.median(solved):.0f} ms",
        flush=True,
    )


def main():
    """Print one line a comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=10_000_000)
    parser.add_argument(
        "--times", type=int, default=3, help="repetitions; the median counts"
    )
    parser.add_argument("--folder", help="where files are made, and deleted afterwards")
    given = parser.parse_args()
    print(
        f"Python {platform.python_version()}, DuckDB {duckdb.__version__}, "
        f"{os.cpu_count()} cores",
        flush=True,
    )
    folder = Path(tempfile.mkdtemp(prefix="trueup-scale-", dir=given.folder))
    try:
        fitted = files(folder, given.items, given.times)
    finally:
        shutil.rmtree(folder)
    in_memory(fitted, min(given.items, 2_000_000), 25)
    online(100, 1000)


if __name__ == "__main__":
    main()
