"""One item: from a question to its option probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from trueup.elicit import decode
from trueup.elicit.backends.base import Backend
from trueup.elicit.decode import Generated, Reading
from trueup.elicit.prompts import Prompt, Template, prompt_hash
from trueup.elicit.questions import Question
from trueup.elicit.sending import Sender

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ItemReport:
    """What a model said about one question; options in the order of the question.

    Examples
    --------
    >>> from trueup.elicit import ItemReport, Question
    >>> ItemReport(
    ...     question=Question("q1", "Which is a fruit?", ("stone", "pear")),
    ...     probabilities=(0.25, 0.75),
    ...     logprobs=(-2.3, -1.2),
    ...     censored=(False, False),
    ...     option_mass=0.4,
    ...     finish_reason="length",
    ...     raw_text=" B",
    ...     reasoning=None,
    ...     prompt_hash="0123456789abcdef",
    ... ).probabilities
    (0.25, 0.75)
    """

    question: Question
    probabilities: tuple[float, ...]
    logprobs: tuple[float, ...]
    censored: tuple[bool, ...]
    option_mass: float
    finish_reason: str
    raw_text: str
    reasoning: str | None
    prompt_hash: str
    n_orders: int = 1


@dataclass(frozen=True, slots=True)
class Unread:
    """An item without probabilities, and why.

    Examples
    --------
    >>> from trueup.elicit import Unread
    >>> Unread("q1", "the reply holds no log-probabilities", is_final=True).item_id
    'q1'
    """

    item_id: str
    reason: str
    is_final: bool
    """Whether asking again would bring the same; it is not asked again then."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """One order of the options."""

    order: Sequence[int]
    reading: Reading
    said: Generated
    raw_text: str


@dataclass(frozen=True, slots=True)
class Asking:
    """How items are asked."""

    backend: Backend
    sender: Sender
    template: Template
    max_tokens: int

    async def item(
        self, question: Question, orders: Sequence[Sequence[int]]
    ) -> ItemReport:
        """Ask in every order, and average what is said back in the given order."""
        # One after another: the limit on requests at once counts items.
        answers = [await self._answer(question, order) for order in orders]
        logprobs = [_in_given_order(a.reading.logprobs, a.order) for a in answers]
        parts = [_in_given_order(a.reading.probabilities, a.order) for a in answers]
        censored = [_in_given_order(a.reading.censored, a.order) for a in answers]
        asked = self.template.render(question, orders[0])
        has_reasoning = self.template.style == "instruct"
        return ItemReport(
            question=question,
            probabilities=tuple(_mean(values) for values in zip(*parts, strict=True)),
            logprobs=tuple(_log_mean(values) for values in zip(*logprobs, strict=True)),
            censored=tuple(any(cut) for cut in zip(*censored, strict=True)),
            option_mass=_mean([a.reading.option_mass for a in answers]),
            finish_reason=_joined([a.said.finish_reason for a in answers]),
            raw_text=_together([a.raw_text for a in answers]),
            reasoning=(
                _together([a.said.text or a.said.thinking for a in answers])
                if has_reasoning
                else None
            ),
            prompt_hash=prompt_hash(self.template, asked),
            n_orders=len(orders),
        )

    async def _answer(self, question: Question, order: Sequence[int]) -> _Answer:
        prompt = self.template.render(question, order)
        if self.template.style == "base":
            reading, said = await self._read(prompt, question.letters)
            return _Answer(order, reading, said, said.text)
        request = self.backend.generate_request(prompt, self.max_tokens)
        said = decode.generated(await self.sender.exchange(request))
        spoken = decode.visible_reasoning(said)
        second = self.template.render_answer(prompt, question, spoken)
        reading, last = await self._read(second, question.letters)
        # Some servers repeat the start that they were given.
        return _Answer(order, reading, said, last.text.removeprefix(second.prefill))

    async def _read(
        self, prompt: Prompt, letters: Sequence[str]
    ) -> tuple[Reading, Generated]:
        """Read the options, listing more tokens while one is not among them."""
        rendering = self.backend.render_request(prompt)
        if rendering is not None:
            reply = await self.sender.exchange(rendering)
            prompt = self.backend.rendered(reply, prompt)
        ids = self.backend.token_letters(letters)
        depth = 0
        request = self.backend.read_request(prompt, letters, depth)
        while request is not None:
            reply = await self.sender.exchange(request)
            depth += 1
            request = self.backend.read_request(prompt, letters, depth)
            tokens = decode.first_token(reply)
            try:
                reading = decode.read_options(tokens, letters, ids)
            except decode.UnreadableReplyError:
                if request is None:
                    raise
                continue
            if request is None or not any(reading.censored):
                return reading, decode.generated(reply)
        message = "the backend lists no tokens"
        raise decode.UnreadableReplyError(message)


def _in_given_order(shown: Sequence[T], order: Sequence[int]) -> list[T]:
    """What was read for the letters, moved back to the options they stood for."""
    given = dict(zip(order, shown, strict=True))
    return [given[k] for k in range(len(order))]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _log_mean(values: Sequence[float]) -> float:
    top = max(values)
    if not math.isfinite(top):
        return top
    return top + math.log(_mean([math.exp(value - top) for value in values]))


def _joined(texts: Sequence[str]) -> str:
    return ",".join(dict.fromkeys(texts))


def _together(texts: Sequence[str]) -> str:
    """One text as it is; those of several orders as a JSON list."""
    return texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False)
