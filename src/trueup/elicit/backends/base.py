"""What a backend is: requests, replies and failures.

A backend turns prompts into requests and requests into replies. Everything else (the
store, retries, limits, the budget, reading of replies) is the same for all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from trueup.elicit.prompts import Prompt, Style

Reply: TypeAlias = Mapping[str, Any]
"""JSON that came back, as it came."""

Retrying: TypeAlias = Callable[["Request"], Awaitable[Reply]]
"""Sends a request with retries and within the budget, past the store."""


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that decides about a reply; never a key or a password."""

    where: str
    """Address, or which weights in this process."""
    body: Mapping[str, Any]
    key: str = field(init=False, repr=False)
    """Hash of the two."""

    def __post_init__(self) -> None:
        text = json.dumps([self.where, self.body], sort_keys=True, ensure_ascii=True)
        object.__setattr__(self, "key", hashlib.sha256(text.encode()).hexdigest())


class SendError(Exception):
    """A request that brought no reply.

    Parameters
    ----------
    message
        What happened, without secrets.
    remedy
        ``retry``: may work later. ``skip``: this request never works, others may.
        ``stop``: no request of this run can work.
    retry_after
        Seconds the server asks to wait.
    """

    def __init__(
        self,
        message: str,
        remedy: Literal["retry", "skip", "stop"],
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.retry_after = retry_after


class Backend(Protocol):
    """A way to ask a language model."""

    model: str
    """Name that is written into the predictions."""
    n_slots: int | None
    """Requests it can work on at once, or None if any number."""

    async def prepare(
        self, style: Style, letters: Sequence[str], retrying: Retrying
    ) -> Sequence[str]:
        """Find out what the model's host can do; say it in words for a person."""
        ...

    def generate_request(self, prompt: Prompt, max_tokens: int) -> Request:
        """Let the model write, greedily."""
        ...

    def render_request(self, prompt: Prompt) -> Request | None:
        """Turn messages into text, or None if `read_request` takes messages."""
        ...

    def rendered(self, reply: Reply, prompt: Prompt) -> Prompt:
        """The text that a reply to `render_request` holds."""
        ...

    def read_request(
        self, prompt: Prompt, letters: Sequence[str], depth: int
    ) -> Request | None:
        """List probable next tokens; more at greater depth, None beyond the last."""
        ...

    def token_letters(self, letters: Sequence[str]) -> Mapping[int, str]:
        """Ids of tokens that spell a letter, where the host told them."""
        ...

    async def send(self, request: Request) -> Reply:
        """One attempt; a failure is a `SendError`."""
        ...

    async def close(self) -> None:
        """Let go of connections and memory."""
        ...
