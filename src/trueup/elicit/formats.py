"""Published question formats, and reading any question file.

======================  ===========================================================
format                  recognised by
======================  ===========================================================
``trueup``              fields ``id``, ``question``, ``choices`` (or ``A``, ``B``, …)
``mmlu``                six columns without a header, or fields ``question``,
                        ``choices``, ``answer`` without an ``id``
``mmlu-redux``          fields ``error_type`` and ``correct_answer``
``commonsense-qa``      ``answerKey``, or ``question`` with a ``stem``
======================  ===========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from trueup.elicit import problems
from trueup.elicit.questions import (
    Question,
    check_ids,
    checked,
    index_of,
    listed_choices,
    own_question,
    text_of,
)
from trueup.elicit.tables import Row, dataset_rows, file_rows
from trueup.errors import QuestionFileError, UnknownNameError

ERROR_TYPES = (
    "ok",
    "bad_question_clarity",
    "bad_options_clarity",
    "no_correct_answer",
    "multiple_correct_answers",
    "wrong_groundtruth",
    "expert",
)
"""What MMLU-Redux says about a question, in one spelling each."""

DATASETS = {
    "mmlu": ("cais/mmlu", "all", "test"),
    "mmlu-redux": ("edinburgh-dawg/mmlu-redux-2.0", None, "test"),
    "commonsense-qa": ("tau/commonsense_qa", None, "validation"),
}
"""Where ``datasets`` finds the published sets: name, configuration, split."""

Reader: TypeAlias = Callable[[Row, bool], Question]


def read_questions(
    source: str | PathLike[str], *, layout: str = "auto", corrected: bool = False
) -> list[Question]:
    """Read the questions of a file, a folder of MMLU files, or a published set.

    Parameters
    ----------
    source
        A ``.jsonl``, ``.json``, ``.csv`` or ``.parquet`` file (``.gz`` is unpacked), a
        folder with MMLU's ``<subject>_test.csv`` files, or ``datasets:mmlu``,
        ``datasets:mmlu-redux``, ``datasets:commonsense-qa`` to load a published set
        through the ``datasets`` package.
    layout
        ``trueup``, ``mmlu``, ``mmlu-redux``, ``commonsense-qa``, or ``auto``.
    corrected
        For MMLU-Redux: take ``correct_answer`` where it names one option; questions
        with an error and no such answer get no label. By default all questions keep
        their original answer.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from trueup.elicit import read_questions
    >>> row = {"id": "q1", "question": "2 + 2?", "choices": ["3", "4"], "answer": "B"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "questions.jsonl"
    ...     _ = path.write_text(json.dumps(row))
    ...     read_questions(path)[0].label
    'B'
    """
    name = fspath(source)
    if layout != "auto" and layout not in READERS:
        raise UnknownNameError.of("question format", layout, ["auto", *READERS])
    rows = list(_rows(name))
    if not rows:
        raise problems.empty(name)
    chosen = recognised(rows[0]) if layout == "auto" else layout
    if corrected and chosen != "mmlu-redux":
        raise problems.not_corrected(name, chosen)
    reader = READERS[chosen]
    questions = [reader(row, corrected) for row in rows]
    check_ids(questions, name)
    return questions


def _rows(name: str) -> Iterable[Row]:
    if name.startswith("datasets:"):
        wanted = name.removeprefix("datasets:")
        if wanted not in DATASETS:
            raise UnknownNameError.of("published set", wanted, DATASETS)
        return dataset_rows(*DATASETS[wanted])
    path = Path(name)
    if path.is_dir():
        files = sorted(path.glob("*_test.csv")) or sorted(path.glob("*.csv"))
        if not files:
            raise problems.empty(name)
        return (row for file in files for row in file_rows(file))
    return file_rows(path)


def recognised(row: Row) -> str:
    """The format of a file, from its first row."""
    fields = row.fields
    question = fields.get("question")
    if "answerKey" in fields or (isinstance(question, Mapping) and "stem" in question):
        return "commonsense-qa"
    if "error_type" in fields and "correct_answer" in fields:
        return "mmlu-redux"
    if "id" in fields:
        return "trueup"
    if {"question", "choices", "answer"} <= set(fields) or "A" in fields:
        return "mmlu"
    raise problems.unrecognised(row.place, sorted(map(str, fields)))


def _own(row: Row, corrected: bool) -> Question:  # noqa: ARG001 - one signature
    return own_question(row.fields, row.place)


def _mmlu(row: Row, corrected: bool) -> Question:  # noqa: ARG001 - one signature
    fields = row.fields
    choices = listed_choices(fields, row.place)
    subject = text_of(fields.get("subject")) or row.stem
    if text_of(fields.get("question")) is None:
        raise problems.no_field(row.place, "question", fields)
    return checked(
        row.place,
        id=text_of(fields.get("id")) or f"{subject}/{row.number}",
        text=str(fields["question"]),
        choices=choices,
        subject=subject,
        answer=index_of(fields.get("answer"), len(choices), row.place),
    )


def _mmlu_redux(row: Row, corrected: bool) -> Question:
    plain = _mmlu(row, corrected=False)
    error_type = error_type_of(row.fields.get("error_type"), row.place)
    answer = plain.answer
    if corrected:
        answer = corrected_answer(plain, error_type, row.fields.get("correct_answer"))
    return Question(
        plain.id, plain.text, plain.choices, plain.subject, answer, error_type
    )


def error_type_of(value: object, place: str) -> str:
    """One spelling for each of MMLU-Redux's error types, which come in 27.

    Examples
    --------
    >>> error_type_of("Wrong Groundtruth ", "row 1")
    'wrong_groundtruth'
    """
    name = "_".join(str(value).lower().replace("_", " ").split())
    if name not in ERROR_TYPES:
        raise problems.unknown_error_type(place, value, ERROR_TYPES)
    return name


def corrected_answer(
    question: Question, error_type: str, correct_answer: object
) -> int | None:
    """The answer after correction, or None if no single option is right.

    Examples
    --------
    >>> question = Question("q", "2 + 2?", ("3", "4"), answer=0)
    >>> corrected_answer(question, "wrong_groundtruth", "B")
    1
    >>> corrected_answer(question, "ok", None)
    0
    >>> print(corrected_answer(question, "multiple_correct_answers", "A,B"))
    None
    """
    if error_type == "ok":
        return question.answer
    try:
        return index_of(correct_answer, len(question.choices), question.id)
    except QuestionFileError:
        # Free text, several options, or an option that is not there.
        return None


def _commonsense_qa(row: Row, corrected: bool) -> Question:  # noqa: ARG001
    fields = row.fields
    asked = fields.get("question")
    original = asked if isinstance(asked, Mapping) else None
    stem = original.get("stem") if original else asked
    choices = (original or fields).get("choices")
    labels, texts = _labelled(choices, row)
    if text_of(stem) is None:
        raise problems.no_field(row.place, "stem", fields)
    key = text_of(fields.get("answerKey"))
    if key is not None and key not in labels:
        raise problems.unreadable_answer(row.place, key, len(labels))
    return checked(
        row.place,
        id=text_of(fields.get("id")) or str(row.number),
        text=str(stem),
        choices=texts,
        subject="common sense",
        answer=None if key is None else labels.index(key),
    )


def _labelled(choices: Any, row: Row) -> tuple[list[str], tuple[str, ...]]:  # noqa: ANN401
    """Labels and texts, from a list of pairs or a pair of lists."""
    if isinstance(choices, Mapping):
        labels, texts = choices.get("label"), choices.get("text")
    elif isinstance(choices, Sequence) and not isinstance(choices, str):
        labels = [c.get("label") for c in choices if isinstance(c, Mapping)]
        texts = [c.get("text") for c in choices if isinstance(c, Mapping)]
    else:
        labels = texts = None
    if not labels or not texts or len(labels) != len(texts):
        raise problems.no_field(row.place, "choices", row.fields)
    return [str(label) for label in labels], tuple(str(text) for text in texts)


READERS: dict[str, Reader] = {
    "trueup": _own,
    "mmlu": _mmlu,
    "mmlu-redux": _mmlu_redux,
    "commonsense-qa": _commonsense_qa,
}
