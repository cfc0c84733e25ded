"""Question files: the project's schema, published formats, and what is refused."""

from __future__ import annotations

import gzip
import json
import sys
import types

import pytest

from evaluate.labelled import DATA
from trueup.elicit import Question, read_questions
from trueup.elicit.formats import ERROR_TYPES, corrected_answer, error_type_of
from trueup.errors import MissingExtraError, QuestionFileError, UnknownNameError

ROWS = [
    {"id": "a", "question": "One?", "choices": ["x", "y"], "answer": "B"},
    {"id": "b", "question": "Two?", "choices": ["1", "2", "3"], "answer": 0},
    {"id": 3, "question": "{Three}?", "choices": ["p", "q"], "subject": "s"},
]


def _written(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return path


def test_the_own_schema_is_read_as_documented(tmp_path):
    read = read_questions(_written(tmp_path / "q.jsonl", ROWS))

    assert read == [
        Question("a", "One?", ("x", "y"), None, 1),
        Question("b", "Two?", ("1", "2", "3"), None, 0),
        Question("3", "{Three}?", ("p", "q"), "s", None),
    ]
    assert [q.label for q in read] == ["B", "A", None]


@pytest.mark.parametrize(
    "text",
    [
        'id,question,choices,answer\na,One?,"[""x"", ""y""]",B\n',
        "id,question,A,B,C,answer\na,One?,x,y,,b\n",
        "\ufeffid,question,A,B,answer\r\na,One?,x,y,1\r\n",
    ],
)
def test_csv_takes_a_list_or_a_column_for_each_option(tmp_path, text):
    (tmp_path / "q.csv").write_text(text, encoding="utf-8", newline="")

    assert read_questions(tmp_path / "q.csv") == [
        Question("a", "One?", ("x", "y"), None, 1)
    ]


def test_compressed_and_parquet_files_are_read(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    plain = read_questions(_written(tmp_path / "q.jsonl", ROWS[:1]))
    packed = gzip.compress((tmp_path / "q.jsonl").read_bytes())
    (tmp_path / "q.jsonl.gz").write_bytes(packed)
    parquet.write_table(pa.Table.from_pylist(ROWS[:1]), tmp_path / "q.parquet")

    assert read_questions(tmp_path / "q.jsonl.gz") == plain
    assert read_questions(tmp_path / "q.parquet") == plain


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "a", "question": "?", "choices": ["x"]}, "1 options"),
        ({"id": "a", "question": "?", "choices": ["x"] * 27}, "27 options"),
        ({"id": "a", "question": "?", "choices": ["x", "y"], "answer": "C"}, "'C'"),
        (
            {"id": "a", "question": "?", "choices": ["x", "y"], "answer": 2},
            "names none",
        ),
        ({"id": "a", "question": "?", "choices": ["x", "y"], "answer": True}, "True"),
        ({"id": "a", "question": "?", "choices": "x, y"}, "not a list"),
        ({"id": "a", "question": "", "choices": ["x", "y"]}, "no 'question'"),
        ({"id": "", "question": "?", "choices": ["x", "y"]}, "no 'id'"),
        ({"id": "a", "question": "?", "choices": {"x": 1}}, "no 'choices'"),
        ({"id": "a", "question": "?", "A": "x", "C": "y"}, "between two others"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(tmp_path, row, said):
    with pytest.raises(QuestionFileError, match=said) as caught:
        read_questions(_written(tmp_path / "q.jsonl", [ROWS[0] | {"id": "z"}, row]))

    assert "q.jsonl, row 2" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("q.jsonl", "{", "line 1: this is not JSON"),
        ("q.jsonl", "[1]", "instead of an object"),
        ("q.jsonl", "", "no questions"),
        ("q.csv", "", "no questions"),
        ("q.csv", "id,question,A,B\na,?\n", "2 fields instead of 4"),
        ("q.txt", "", "suffix"),
        ("q.parquet", "no", "not Parquet"),
        ("q.jsonl.gz", "no", "cannot be read"),
        ("q.jsonl", '{"who": 1}', "no known format"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, name, content, said):
    (tmp_path / name).write_text(content, encoding="utf-8")

    with pytest.raises(QuestionFileError, match=said):
        read_questions(tmp_path / name)


def test_an_id_names_one_item(tmp_path):
    with pytest.raises(QuestionFileError, match="the first is 'a'"):
        read_questions(_written(tmp_path / "q.jsonl", [ROWS[0], ROWS[0]]))


def test_absent_files_and_unknown_formats_are_refused(tmp_path):
    with pytest.raises(QuestionFileError, match="no file"):
        read_questions(tmp_path / "none.jsonl")
    with pytest.raises(UnknownNameError, match="mmlu-redux"):
        read_questions(tmp_path / "none.jsonl", layout="mmlu-redax")
    path = _written(tmp_path / "q.jsonl", ROWS)
    with pytest.raises(QuestionFileError, match="no corrected answers"):
        read_questions(path, corrected=True)


def test_mmlu_files_without_header_get_their_subject_from_the_name(tmp_path):
    for subject in ("anatomy", "world_religions"):
        (tmp_path / f"{subject}_test.csv").write_text(
            '"Where, and when?",1,2,3,4,C\nWho?,a,b,c,d,A\n', encoding="utf-8"
        )

    read = read_questions(tmp_path)

    assert [q.id for q in read[:2]] == ["anatomy/1", "anatomy/2"]
    assert read[0] == Question(
        "anatomy/1", "Where, and when?", ("1", "2", "3", "4"), "anatomy", 2
    )
    assert read[3].subject == "world_religions"


def test_commonsense_qa_is_read_in_both_published_shapes(tmp_path):
    options = [{"label": "A", "text": "x"}, {"label": "B", "text": "y"}]
    original = {
        "id": "1",
        "answerKey": "B",
        "question": {"stem": "Why?", "choices": options},
    }
    columns = {"label": ["A", "B"], "text": ["x", "y"]}
    later = {"id": "1", "question": "Why?", "choices": columns, "answerKey": "B"}
    expected = [Question("1", "Why?", ("x", "y"), "common sense", 1)]

    assert read_questions(_written(tmp_path / "a.jsonl", [original])) == expected
    assert read_questions(_written(tmp_path / "b.jsonl", [later])) == expected
    without = later | {"answerKey": ""}
    assert read_questions(_written(tmp_path / "c.jsonl", [without]))[0].answer is None


def test_error_types_have_one_spelling():
    assert error_type_of("  Bad_Options  clarity ", "here") == "bad_options_clarity"
    with pytest.raises(QuestionFileError, match="unknown error type 'good'"):
        error_type_of("good", "here")


@pytest.mark.parametrize(
    ("kind", "correct", "expected"),
    [
        ("ok", "", 0),
        ("ok", "3", 0),
        ("wrong_groundtruth", "2", 2),
        ("wrong_groundtruth", "C", 2),
        ("wrong_groundtruth", "67.50%", None),
        ("wrong_groundtruth", "6", None),
        ("multiple_correct_answers", "1, 3", None),
        ("no_correct_answer", None, None),
        ("bad_question_clarity", "", None),
    ],
)
def test_a_corrected_answer_names_one_option_or_none(kind, correct, expected):
    question = Question("q", "?", ("w", "x", "y", "z"), answer=0)

    assert corrected_answer(question, kind, correct) == expected


def test_all_of_mmlu_redux_is_read():
    path = DATA / "questions" / "mmlu_redux_2.csv.gz"
    if not path.exists():
        pytest.skip("the shared questions are not here")
    plain, corrected = read_questions(path), read_questions(path, corrected=True)

    assert len(plain) == len(corrected) == 5700
    assert {q.error_type for q in plain} == set(ERROR_TYPES)
    assert all(q.answer is not None for q in plain)
    # Counted in the file: 370 have an error, 126 of which name one other option.
    assert sum(q.error_type != "ok" for q in plain) == 370
    assert sum(q.answer is None for q in corrected) == 244
    assert all(
        a.answer == b.answer
        for a, b in zip(plain, corrected, strict=True)
        if a.error_type == "ok"
    )


def test_all_of_commonsense_qa_is_read():
    path = DATA / "questions" / "commonsense_qa_dev.jsonl"
    if not path.exists():
        pytest.skip("the shared questions are not here")
    read = read_questions(path)

    assert len(read) == 1221
    assert {len(q.choices) for q in read} == {5}


def test_published_sets_come_through_datasets_where_it_is_installed(monkeypatch):
    asked = []

    def load_dataset(name, config, split):
        asked.append((name, config, split))
        return [{"question": "?", "choices": ["x", "y"], "answer": 1, "subject": "s"}]

    fake = types.ModuleType("datasets")
    fake.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", fake)

    read = read_questions("datasets:mmlu")

    assert asked == [("cais/mmlu", "all", "test")]
    assert read == [Question("s/1", "?", ("x", "y"), "s", 1)]
    with pytest.raises(UnknownNameError, match="published set"):
        read_questions("datasets:mnist")


def test_without_datasets_the_command_to_install_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)

    with pytest.raises(MissingExtraError, match="pip install datasets"):
        read_questions("datasets:mmlu")
