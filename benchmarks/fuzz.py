"""Damaged input never ends in a traceback: thousands of mutated files per reader.

Every file is read as the command line reads it (reader, columns, reports, ids, labels);
every map is loaded, shown and applied. Only a TrueupError may come out. Run:

    python benchmarks/fuzz.py --count 20000 --seed 0

The tests run a few hundred of each.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gzip
import io
import json
import random
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

import trueup
from trueup.cli._map_text import certificate_json, map_json, map_text
from trueup.cli._output import dumped
from trueup.data import read_predictions, text, write_table

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
TOKENS = [
    *(
        b"\0",
        b'"',
        b"'",
        b",",
        b";",
        b"\t",
        b"\n",
        b"\r\n",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
    ),
    *(b"nan", b"inf", b"-inf", b"1e999", b"-1", b"0x10", b"50%", b"0,5", b"NULL", b""),
    *(
        b"null",
        b"true",
        b"{}",
        b"[]",
        b"[[",
        b"{" * 50,
        b"__",
        b"p_",
        b"logit_",
        b"label",
    ),
    *(
        "😀".encode(),
        "\u202e".encode(),
        "\ud83d".encode("utf-8", "surrogatepass"),
        b"\x1b[31m",
    ),
    *(b"<script>", b"9" * 40, b"9223372036854775808", b"\x80", b"PAR1", b"ARROW1"),
]
VALUES = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**63,
        2**200,
        1.5,
        1e308,
        -0.0,
        "",
        "x",
        "inf",
        "nan",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        {"kind": "tilt"},
        "😀",
        [[0.5, 0.5]],
        float("nan"),
        [1e400],
    ),
]


NAMES = [
    *("item_id", "label", "group", "weight", "p_", "p_a", "logit_a", "answer", "value"),
    *(
        "confidence",
        "m__p_C",
        "__p_A",
        "m__",
        "",
        " ",
        "a,b\n",
        "😀",
        "<b>",
        "p_" + "x" * 300,
    ),
]
TYPES = [
    *(pa.string(), pa.large_string(), pa.binary(), pa.bool_(), pa.int8(), pa.uint64()),
    *(
        pa.float16(),
        pa.float32(),
        pa.decimal128(10, 3),
        pa.timestamp("us"),
        pa.date32(),
    ),
    *(pa.dictionary(pa.int8(), pa.string()), pa.null(), pa.list_(pa.float64())),
]


def tables() -> list[pa.Table]:
    """One small table of every kind of prediction."""
    ids = ["a", "b", "c", "d"]
    p = np.array([0.1, 0.4, 0.5, 1.0])
    return [
        pa.table({"item_id": ids, "p_yes": p, "p_no": 1 - p, "label": [0, 1, 0, 1]}),
        pa.table({"item_id": [1, 2, 3, 4], "logit_A": p, "logit_B": -p, "weight": p}),
        pa.table(
            {"logprob_A": np.log(p / 2), "logprob_B": np.log(p / 2), "group": ids}
        ),
        pa.table({"answer": ["x", "y", "x", "z"], "confidence": p, "item_id": ids}),
        pa.table({"value": [0, 1, 2, 3], "item_id": ids, "label": ids}),
        pa.table({"m__p_A": p, "m__p_B": 1 - p, "n__p_A": p, "n__p_B": 1 - p}),
        pa.table({"yes": p, "no": 1 - p, "question": ids}),
    ]


def seeds(kind: str) -> list[bytes]:
    """Valid files of one format."""
    if kind == "map":
        return [path.read_bytes() for path in sorted(GOLDEN.glob("map_format_*.json"))]
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for place, table in enumerate(tables()):
            path = Path(folder, f"{place}.{kind}")
            write_table(table, path)
            made.append(path.read_bytes())
    if kind == "arrow":
        made += [_stream(table) for table in tables()]
    if kind in ("csv", "jsonl"):
        made += [gzip.compress(one, mtime=0) for one in made[:2]]
    return made


def _stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def mutated(content: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """A file with a few bytes, chunks or tokens changed."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        place = rng.randrange(len(data) + 1)
        end = min(len(data), place + rng.choice([1, 1, 2, 4, 16, 200]))
        how = rng.choice([0, 0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 7])
        if how == 0 and data:
            data[place % len(data)] = rng.randrange(256)
        elif how == 1:
            del data[place:end]
        elif how == 2:
            data[place:place] = rng.choice(TOKENS)
        elif how == 3:
            data[place:end] = rng.choice(TOKENS)
        elif how == 4:
            data[place:place] = data[place:end] * rng.choice([1, 1, 30])
        elif how == 5:
            del data[place:]
        elif how == 6:
            other = rng.choice(others)
            data[place:] = other[rng.randrange(len(other) + 1) :]
        else:
            data[place:end] = rng.randbytes(end - place)
    return bytes(data)


def mutated_table(kind: str, rng: random.Random) -> bytes:
    """A well-formed file whose names, values or types are not what they should be."""
    table = rng.choice(tables())
    for _ in range(rng.choice([1, 1, 2])):
        place = rng.randrange(table.num_columns)
        names = table.column_names
        if rng.random() < 0.3:
            names[place] = str(rng.choice([*NAMES, rng.choice(names)]))
            table = table.rename_columns(names)
            continue
        with contextlib.suppress(pa.ArrowException, ValueError, TypeError):
            column = _odd_column(table.column(place), rng)
            table = table.set_column(place, names[place], column)
    return _written(table, kind)


def _odd_column(column: pa.ChunkedArray, rng: random.Random) -> pa.Array:
    """A column with some values replaced, or of another type."""
    if rng.random() < 0.5:
        return column.cast(rng.choice(TYPES), safe=False)
    values = column.to_pylist()
    values[rng.randrange(len(values))] = rng.choice(VALUES)
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def _written(table: pa.Table, kind: str) -> bytes:
    sink = io.BytesIO()
    try:
        if kind == "csv":
            return text.csv_bytes(table, ",")
        if kind == "jsonl":
            return text.jsonl_bytes(table)
        write = pq.write_table if kind == "parquet" else feather.write_feather
        write(table, sink)
    except (pa.ArrowException, ValueError, TypeError):  # the format has no such type
        return b""
    return sink.getvalue()


def mutated_json(content: bytes, rng: random.Random) -> bytes:
    """A map with some values replaced or removed, still JSON."""
    made = json.loads(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        node = made
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(node[key], dict | list) and rng.random() < 0.8:
                node = node[key]
                continue
            if rng.random() < 0.2:
                del node[key]
            else:
                node[key] = copy.deepcopy(rng.choice(VALUES))
            break
    return json.dumps(made).encode()


def read_file(path: Path) -> None:
    """Everything a command looks at in a prediction file."""
    try:
        read = read_predictions(path)
    except trueup.TrueupError as error:
        # Values need their outcomes, and one of several predictors its prefix.
        if "list every outcome" in str(error):
            read = read_predictions(path, outcomes=[0, 1, 2, 3])
        elif "predictors share" in str(error):
            read = read_predictions(path, prefix="m")
        else:
            raise
    for _ in (read.item_ids, read.labels, read.groups, read.weights, read.describe()):
        pass


def use_map(path: Path) -> None:
    """Load, show and apply a map."""
    fitted = trueup.load(path)
    map_text(fitted)
    dumped(map_json(fitted) | certificate_json(fitted.certificate))
    if fitted.about.name == "distribution":
        n_outcomes = len(fitted.outcomes)
        rows = np.vstack([np.full(n_outcomes, 1 / n_outcomes), np.eye(n_outcomes)])
        fitted.apply(rows)
    elif fitted.about.name == "answer-confidence":
        fitted.apply(
            trueup.AnswerConfidence(
                answer=fitted.outcomes[:2],
                confidence=[0.3, 0.9],
                outcomes=fitted.outcomes,
            )
        )


def fuzz(kind: str, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Outcomes by kind, and a traceback for whatever should not have come out."""
    rng = random.Random(f"{kind} {seed}")
    valid = seeds(kind)
    used = use_map if kind == "map" else read_file
    outcomes: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "map.json" if kind == "map" else f"predictions.{kind}")
        for _ in range(count):
            start = rng.choice(valid)
            smart = kind == "map" and rng.random() < 0.7
            content = mutated_json(start, rng) if smart else mutated(start, valid, rng)
            if kind != "map" and rng.random() < 0.5:
                content = mutated_table(kind, rng)
            path.write_bytes(content)
            try:
                used(path)
                outcomes["accepted"] += 1
            except trueup.TrueupError as error:
                outcomes[type(error).__name__] += 1
            except Exception:  # noqa: BLE001 - that is what is looked for
                outcomes["TRACEBACK"] += 1
                failures.append(f"{content[:300]!r}\n{traceback.format_exc()}")
    return outcomes, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="csv,jsonl,parquet,arrow,map")
    given = parser.parse_args()
    n_failures = 0
    for kind in given.kinds.split(","):
        start = time.perf_counter()
        outcomes, failures = fuzz(kind, given.count, given.seed)
        told = ", ".join(f"{name} {n:,}" for name, n in outcomes.most_common())
        seconds = time.perf_counter() - start
        print(f"{kind}: {given.count:,} inputs in {seconds:.0f} s: {told}", flush=True)
        for failure in failures[:3]:
            print(failure)
        n_failures += len(failures)
    raise SystemExit(n_failures > 0)


if __name__ == "__main__":
    main()
