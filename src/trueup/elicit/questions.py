"""Questions with options: what a question file holds, and reading one.

The project's own schema is JSON Lines or CSV with ``id``, ``question``, ``choices``
and, where known, ``subject`` and ``answer``; :mod:`trueup.elicit.formats` reads the
published formats of MMLU, MMLU-Redux 2.0 and CommonsenseQA.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from trueup.elicit import problems
from trueup.errors import QuestionFileError

FEWEST_OPTIONS, MOST_OPTIONS = 2, len(ascii_uppercase)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its options.

    Parameters
    ----------
    id
        Names the item; the same in the files of both models.
    text
        What is asked.
    choices
        Two to 26 options; the first is answered with the letter A.
    subject
        What the question is about; becomes the group of the item.
    answer
        Index of the right option, if known.
    error_type
        What is wrong with the question itself, where its publisher says so.

    Examples
    --------
    >>> from trueup.elicit import Question
    >>> Question("q1", "Which is a fruit?", ("stone", "pear"), answer=1).letters
    ('A', 'B')
    """

    id: str
    text: str
    choices: tuple[str, ...]
    subject: str | None = None
    answer: int | None = None
    error_type: str | None = None

    def __post_init__(self) -> None:
        if not FEWEST_OPTIONS <= len(self.choices) <= MOST_OPTIONS:
            raise problems.number_of_options(self.id, len(self.choices))
        if self.answer is not None and not 0 <= self.answer < len(self.choices):
            raise problems.answer_range(self.id, self.answer, len(self.choices))

    @property
    def letters(self) -> tuple[str, ...]:
        """The letter of each option."""
        return tuple(ascii_uppercase[: len(self.choices)])

    @property
    def label(self) -> str | None:
        """The letter of the right option, if known."""
        return None if self.answer is None else ascii_uppercase[self.answer]


def own_question(row: Mapping[str, Any], place: str) -> Question:
    """One row of the project's own schema."""
    for name in ("id", "question"):
        if text_of(row.get(name)) is None:
            raise problems.no_field(place, name, row)
    choices = listed_choices(row, place)
    return checked(
        place,
        id=str(row["id"]).strip(),
        text=str(row["question"]),
        choices=choices,
        subject=text_of(row.get("subject")),
        answer=index_of(row.get("answer"), len(choices), place),
    )


def checked(place: str, **fields: Any) -> Question:  # noqa: ANN401 - of Question
    """A question; what is wrong with it is said with its place in the file."""
    try:
        return Question(**fields)
    except QuestionFileError as error:
        raise problems.at(place, error) from None


def listed_choices(row: Mapping[str, Any], place: str) -> tuple[str, ...]:
    """Options from a list, from a list written as text, or from columns A, B and on."""
    value = row.get("choices")
    if isinstance(value, str) and value.strip():
        value = _list_from_text(value, place)
    if value is None or value == "":
        found = [text_of(row.get(letter)) for letter in ascii_uppercase]
        present = [choice for choice in found if choice is not None]
        # A gap (A and C without B) would shift the letters.
        if found[: len(present)] != present:
            raise problems.gap(place)
        value = present
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise problems.no_field(place, "choices", row)
    return tuple(str(choice) for choice in value)


def _list_from_text(value: str, place: str) -> list[str]:
    import ast

    try:
        return list(json.loads(value))
    except (ValueError, TypeError):
        pass
    try:
        return list(ast.literal_eval(value))
    except (ValueError, TypeError, SyntaxError) as error:
        raise problems.not_a_list(place, value) from error


def text_of(value: object) -> str | None:
    """A text, or None if there is nothing in it."""
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124
        return None
    text = str(value).strip()
    return text or None


def index_of(value: object, n_options: int, place: str) -> int | None:
    """An answer given as a letter, or as an index from zero; None if not given."""
    text = text_of(value)
    if text is None:
        return None
    if isinstance(value, bool):
        raise problems.at(place, f"the answer is {value!r}")
    if isinstance(value, float) and value.is_integer():
        text = str(int(value))
    if text.upper() in ascii_uppercase[:n_options] and len(text) == 1:
        return ascii_uppercase.index(text.upper())
    if text.isdecimal() and int(text) < n_options:
        return int(text)
    raise problems.unreadable_answer(place, value, n_options)


def check_ids(questions: Sequence[Question], source: str) -> None:
    """Refuse ids that name two items."""
    twice = [name for name, n in Counter(q.id for q in questions).items() if n > 1]
    if twice:
        raise problems.twice(source, twice[0], len(twice))


def option_counts(questions: Sequence[Question]) -> dict[int, int]:
    """How many questions there are of each number of options."""
    return dict(sorted(Counter(len(q.choices) for q in questions).items()))
