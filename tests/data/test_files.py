"""Files of every format read the same, and are written in one step or not at all."""

from __future__ import annotations

import gzip
import io
import re

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from trueup.data import read_table, write_table
from trueup.errors import ExistingFileError, FileAccessError, PredictionFileError

ROWS = [
    {"item_id": "007", "p_yes": 0.25, "p_no": 0.75, "n": 1},
    {"item_id": "1.10", "p_yes": 0.5, "p_no": 0.5, "n": 2},
]
SUFFIXES = (
    ".csv",
    ".tsv",
    ".csv.gz",
    ".jsonl",
    ".jsonl.gz",
    ".parquet",
    ".arrow",
    ".feather",
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_again(tmp_path, suffix):
    path = tmp_path / f"predictions{suffix}"
    write_table(pa.Table.from_pylist(ROWS), path)

    assert read_table(path, keep_text=("item_id",)).to_pylist() == ROWS


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_hostile_names_and_values_survive(tmp_path, suffix):
    hostile = 'a,"b"\n<script>\t\N{GRINNING FACE}\'; drop'
    table = pa.table({hostile: [hostile, "x"], "p_a,b": [0.1, 0.2]})
    path = tmp_path / f"t{suffix}"
    write_table(table, path)

    assert read_table(path).to_pylist() == table.to_pylist()


def test_json_lines_hold_only_json(tmp_path):
    path = tmp_path / "t.jsonl"
    write_table(pa.table({"a": [1.5, float("nan")]}), path)

    assert path.read_text(encoding="utf-8") == '{"a": 1.5}\n{"a": null}\n'
    with pytest.raises(PredictionFileError, match="column 'a' holds infinity"):
        write_table(pa.table({"a": [float("inf")]}), tmp_path / "inf.jsonl")
    assert not (tmp_path / "inf.jsonl").exists()


def test_arrow_streams_are_read(tmp_path):
    sink = io.BytesIO()
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    path = tmp_path / "stream.bin"
    path.write_bytes(sink.getvalue())

    assert read_table(path).to_pylist() == ROWS


def test_content_wins_over_a_wrong_suffix(tmp_path):
    path = tmp_path / "really_parquet.csv"
    pyarrow.parquet.write_table(pa.Table.from_pylist(ROWS), path)

    assert read_table(path).to_pylist() == ROWS


@pytest.mark.parametrize(
    "text",
    [
        "item_id,p_yes,p_no\n007,0.25,0.75\n",
        "item_id;p_yes;p_no\n007;0.25;0.75\n",
        "item_id\tp_yes\tp_no\n007\t0.25\t0.75\n",
        "item_id|p_yes|p_no\r\n007|0.25|0.75\r\n",
        "\n\nitem_id, p_yes, p_no\n007, 0.25, 0.75",
        '"item_id","p_yes","p_no"\n"007","0.25","0.75"\n',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_dialects_of_csv(tmp_path, text, encoding):
    path = tmp_path / "p.csv"
    path.write_bytes(text.encode(encoding))

    assert read_table(path).to_pylist() == [
        {"item_id": "007", "p_yes": 0.25, "p_no": 0.75}
    ]


def test_json_arrays_are_read_like_lines(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('[{"a": 1, "b": 0.5},\n {"a": 2}]', encoding="utf-8")

    assert read_table(path).to_pylist() == [{"a": 1, "b": 0.5}, {"a": 2, "b": None}]


def test_text_of_a_csv_becomes_a_number_only_if_all_of_it_does(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a,b,c,d\n1,1,01,1.5\n2,x,2,nan\n", encoding="utf-8")
    read = read_table(path)

    assert [str(kind) for kind in read.schema.types] == [
        "int64",
        "string",
        "string",
        "double",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "the file is empty"),
        ("a.csv", b"\n \n", "the file is empty"),
        ("a.csv", b"item_id,p_a,p_b\n", "3 columns and no rows"),
        ("a.csv", b"a,b\n1,2,3\n", "do not fit the 2 columns"),
        ("a.csv", b"a,a\n1,2\n", "two columns are named 'a'"),
        ("a.csv", b"a,,c\n1,2,3\n", "column 2 of 3 has no name"),
        ("a.csv", b"p_a\xff,b\n1,2\n", "not UTF-8 text (byte 3)"),
        ("a.csv", b"a\0,b\n1,2\n", "holds zero bytes"),
        (
            "a.csv.gz",
            gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9],
            "compressed file is damaged",
        ),
        ("a.jsonl", b'{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ("a.jsonl", b'{"a": 1}\n[1]\n', "line 2 is not an object but [1]"),
        ("a.jsonl", b'{"a": 1, "a": 2}\n', "the name 'a' occurs twice"),
        ("a.jsonl", b'{"a": 1}\n{"a": "x"}\n', "'a' holds a number at first but \"x\""),
        ("a.jsonl", b"[" * 100_000, "line 1 is not JSON"),
        ("a.parquet", b"PAR1 and then nothing PAR1", "not a readable Parquet file"),
        ("a.arrow", b"ARROW1\0\0nothing", "not a readable Arrow file"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(PredictionFileError, match=re.escape(message)) as caught:
        read_table(path)

    assert str(path) in str(caught.value)
    assert "\nhint: " in str(caught.value)


def test_paths_that_are_no_files(tmp_path):
    (tmp_path / "predictions.csv").touch()

    with pytest.raises(FileAccessError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(FileAccessError, match=r"predictions\.csv exists"):
        read_table(tmp_path / "prediction.csv")
    with pytest.raises(FileAccessError, match="cannot be read"):
        read_table("a\0b.csv")


def test_nothing_is_overwritten_unless_asked(tmp_path):
    path, table = tmp_path / "t.csv", pa.table({"a": [1]})
    path.write_text("precious", encoding="utf-8")

    with pytest.raises(ExistingFileError, match="left as it is"):
        write_table(table, path)

    assert path.read_text(encoding="utf-8") == "precious"
    write_table(table, path, force=True)
    assert path.read_text(encoding="utf-8") == "a\n1\n"


def test_nothing_is_left_behind_when_writing_fails(tmp_path, monkeypatch):
    def explode(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyarrow.parquet, "write_table", explode)

    with pytest.raises(OSError, match="No space left"):
        write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["t", "t.xlsx", "t.parquet.gz", ".gz"])
def test_a_format_nobody_writes_is_refused(tmp_path, name):
    with pytest.raises(FileAccessError, match="cannot tell from the name"):
        write_table(pa.table({"a": [1]}), tmp_path / name)

    assert list(tmp_path.iterdir()) == []
