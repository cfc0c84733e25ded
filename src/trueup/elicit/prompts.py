"""Prompts: named templates, their rendering, and the orders of the options.

The two built-in templates are those of the paper (Kong et al. 2026). A template file
replaces them; nothing of a prompt is written anywhere else.
"""

from __future__ import annotations

import hashlib
import json
import random
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from string import Formatter, ascii_uppercase
from typing import Literal, TypeAlias, cast, get_args

from trueup.elicit import problems
from trueup.elicit.questions import Question
from trueup.errors import InvalidInputError, UnknownNameError

Style: TypeAlias = Literal["base", "instruct"]
OrderKind: TypeAlias = Literal["given", "cyclic", "shuffled"]

PLACES = frozenset({"about", "subject", "question", "options"})
"""What a template may ask for; the answer of an instruct template also `reasoning`."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: a text to complete, or messages with the start of the reply."""

    text: str = ""
    messages: tuple[tuple[str, str], ...] = ()
    """Pairs of a role and what it says."""
    prefill: str = ""
    """Start of the assistant's message, which the model continues."""
    turn: str = ""
    """Asked as a further user message where a server cannot continue a message."""
    reasoning: str = ""
    """What the assistant said before `turn`."""


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with places for a question.

    Parameters
    ----------
    name
        Written into records of what was asked.
    style
        ``base`` is one completion of `user`; ``instruct`` lets the model reason on the
        messages `system` and `user`, and then continues `answer`.
    user, system, answer
        Texts with places in braces: ``{question}``, ``{options}`` (one line each),
        ``{subject}``, ``{about}`` (“ about …”, or nothing without a subject), and in
        `answer` also ``{reasoning}``.

    Examples
    --------
    >>> from trueup.elicit import Question, get_template
    >>> question = Question("q1", "2 + 2?", ("3", "4"), subject="arithmetic")
    >>> print(get_template("paper-base").render(question).text)
    The following is a multiple-choice question about arithmetic.
    <BLANKLINE>
    Question: 2 + 2?
    A. 3
    B. 4
    <BLANKLINE>
    Answer:
    """

    name: str
    style: Style
    user: str
    system: str = ""
    answer: str = ""

    def __post_init__(self) -> None:
        if self.style not in get_args(Style):
            raise UnknownNameError.of("style", self.style, get_args(Style))
        _check_places(self.name, self.user, PLACES)
        _check_places(self.name, self.system, PLACES)
        _check_places(self.name, self.answer, PLACES | {"reasoning"})
        read = self.user if self.style == "base" else self.answer
        # " A" is one token for most models; after a space it would be another one.
        if not read or read != read.rstrip():
            raise InvalidInputError(problems.template_end(self.name, read))

    @property
    def digest(self) -> str:
        """Hash of everything the template says."""
        return _digest(asdict(self))

    def render(self, question: Question, order: Sequence[int] = ()) -> Prompt:
        """The first prompt, with options in a given order."""
        values = _values(question, order or range(len(question.choices)))
        user = self.user.format_map(values)
        if self.style == "base":
            return Prompt(text=user)
        system = self.system.format_map(values)
        said = (("system", system),) if system else ()
        return Prompt(messages=(*said, ("user", user)))

    def render_answer(self, prompt: Prompt, question: Question, said: str) -> Prompt:
        """The second prompt of an instruct template, after the reasoning."""
        values = _values(question, range(len(question.choices)))
        before, _, after = self.answer.partition("{reasoning}")
        start = before.format_map(values) + said + after.format_map(values)
        return Prompt(
            messages=prompt.messages,
            prefill=start,
            turn=after.format_map(values).lstrip(". \n"),
            reasoning=said,
        )


def _values(question: Question, order: Sequence[int]) -> dict[str, str]:
    # MMLU's names of subjects have underscores between words.
    subject = (question.subject or "").replace("_", " ")
    lines = [
        f"{letter}. {question.choices[k]}"
        for letter, k in zip(ascii_uppercase, order, strict=False)
    ]
    return {
        "about": f" about {subject}" if subject else "",
        "subject": subject,
        "question": question.text,
        "options": "\n".join(lines),
    }


def _check_places(name: str, text: str, known: frozenset[str]) -> None:
    try:
        asked = {
            place for _, place, _, _ in Formatter().parse(text) if place is not None
        }
    except ValueError as error:
        raise InvalidInputError(problems.template_braces(name, str(error))) from error
    if not asked <= known:
        raise UnknownNameError.of("place in a template", min(asked - known), known)


_INTRODUCTION = "The following is a multiple-choice question{about}."
_QUESTION = "Question: {question}\n{options}"

TEMPLATES = {
    "paper-base": Template(
        name="paper-base",
        style="base",
        user=f"{_INTRODUCTION}\n\n{_QUESTION}\n\nAnswer:",
    ),
    "paper-instruct": Template(
        name="paper-instruct",
        style="instruct",
        system=_INTRODUCTION,
        user=_QUESTION,
        answer="{reasoning}. So the final answer is (answer with an option letter):",
    ),
}
"""The prompts of the paper."""


def get_template(name: str) -> Template:
    """A built-in template by its name, or one from a ``.toml`` or ``.json`` file.

    Examples
    --------
    >>> from trueup.elicit import get_template
    >>> get_template("paper-instruct").answer
    '{reasoning}. So the final answer is (answer with an option letter):'
    """
    if name in TEMPLATES:
        return TEMPLATES[name]
    path = Path(name)
    if path.suffix not in {".toml", ".json"}:
        known = [*TEMPLATES, "a .toml or .json file"]
        raise UnknownNameError.of("template", name, known)
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidInputError(problems.template_file(name, str(error))) from error
    known = [field.name for field in fields(Template)]
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise UnknownNameError.of("field of a template", unknown[0], known)
    missing = sorted({"style", "user"} - set(content))
    if missing:
        raise InvalidInputError(problems.template_field(name, missing[0]))
    return Template(**{"name": path.stem, **cast("dict[str, str]", content)})  # type: ignore[arg-type]


def prompt_hash(template: Template, prompt: Prompt) -> str:
    """Short name of what was asked: the template and its first prompt."""
    return _digest([template.digest, asdict(prompt)])[:16]


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def option_orders(
    question: Question,
    kind: OrderKind = "given",
    n_orders: int | None = None,
    seed: int = 0,
) -> list[tuple[int, ...]]:
    """Orders in which the options are shown; each entry is an option's index.

    ``cyclic`` shows every option at every position once (or at the first `n_orders`
    shifts); ``shuffled`` draws `n_orders` orders for this item from `seed`.

    Examples
    --------
    >>> from trueup.elicit import Question
    >>> option_orders(Question("q", "?", ("x", "y", "z")), "cyclic")
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    given = tuple(range(len(question.choices)))
    if kind not in get_args(OrderKind):
        raise UnknownNameError.of("order of options", kind, get_args(OrderKind))
    if n_orders is not None and n_orders < 1:
        raise InvalidInputError(problems.number_of_orders(n_orders))
    if kind == "given":
        return [given]
    if kind == "cyclic":
        shifts = range(min(n_orders or len(given), len(given)))
        return [given[shift:] + given[:shift] for shift in shifts]
    # Seeded by the id, so that an item keeps its orders whatever else is in the file.
    rng = random.Random(f"{seed}:{question.id}")  # noqa: S311 - not for secrets
    return [tuple(rng.sample(given, len(given))) for _ in range(n_orders or 1)]
