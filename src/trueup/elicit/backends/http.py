"""OpenAI-style servers over HTTP: vLLM, llama.cpp, SGLang, Ollama, OpenAI, others.

What a server is and can do is found out at the start (:mod:`.probe`); how it wants to
be asked is in :mod:`.dialects`. The key travels in a header and nowhere else: it is no
part of a request's record, and is taken out of whatever a server says.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from trueup.elicit import problems
from trueup.elicit.backends import dialects, probe
from trueup.elicit.backends.base import Reply, Request, Retrying, SendError
from trueup.elicit.backends.dialects import Facts, Kind
from trueup.elicit.prompts import Prompt, Style
from trueup.errors import ElicitationError, InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    import httpx

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that another attempt may turn into a reply."""
HOPELESS = frozenset({401, 403, 404, 405})
"""Statuses that every request of this run would get."""
CONNECT_SECONDS = 10.0


LOGGERS = ("connection", "http11", "http2", "proxy", "socks")
"""Of httpcore; at the level of debugging they show headers, also those of replies."""


class _WithoutKey(logging.Filter):
    """Takes the key out of what other packages log."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if self._key in text:
            record.msg, record.args = text.replace(self._key, "[key]"), ()
        return True


class HttpBackend:
    """A model behind an OpenAI-style address.

    Parameters
    ----------
    endpoint
        Address of the server, with or without ``/v1``.
    model
        The server's name of the model.
    api_key
        Sent as a bearer token; never stored or shown.
    kind
        ``llama.cpp``, ``vllm``, ``sglang``, ``ollama``, ``openai``, ``openai-like``; by
        default found out.
    timeout
        Seconds for one attempt, from sending to the last byte.
    thinking
        Whether models that can think before they speak may do so.
    transport
        Replaces the network, for tests.

    Examples
    --------
    >>> from trueup.elicit import HttpBackend
    >>> HttpBackend("http://localhost:8000/v1", "my-model").root
    'http://localhost:8000'
    """

    def __init__(
        self,
        endpoint: str,
        model: str,
        *,
        api_key: str | None = None,
        kind: Kind | None = None,
        timeout: float = 120.0,
        thinking: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.root = root_of(endpoint)
        self.model = model
        self.n_slots: int | None = None
        self.facts = Facts(kind or "openai-like")
        self._asked_kind = kind
        self._timeout = timeout
        self._thinking = thinking
        self._api_key = _checked_key(api_key)
        self._filter = _WithoutKey(self._api_key) if self._api_key else None
        self._httpx = _httpx()
        self._client = self._httpx.AsyncClient(
            transport=transport,
            timeout=self._httpx.Timeout(timeout, connect=CONNECT_SECONDS),
            # The limit on requests at once is the runner's.
            limits=self._httpx.Limits(max_connections=None),
            headers={"Authorization": f"Bearer {self._api_key}"} if api_key else {},
        )

    async def prepare(
        self, style: Style, letters: Sequence[str], retrying: Retrying
    ) -> Sequence[str]:
        """Probe the server; see :mod:`.probe`."""
        if self._filter is not None:
            for name in LOGGERS:
                logging.getLogger(f"httpcore.{name}").addFilter(self._filter)
        self.facts, said = await probe.find_out(
            probe.Probing(self.root, self.model, letters, retrying),
            self._asked_kind,
            style,
        )
        return said

    def generate_request(self, prompt: Prompt, max_tokens: int) -> Request:
        return self._request(
            dialects.chat_body(
                self.facts,
                self.model,
                prompt,
                max_tokens=max_tokens,
                thinking=self._thinking,
            )
        )

    def render_request(self, prompt: Prompt) -> Request | None:
        if self.facts.ending != "render" or prompt.text:
            return None
        asked = dialects.render_body(self.facts, prompt, thinking=self._thinking)
        return self._request(asked)

    def rendered(self, reply: Reply, prompt: Prompt) -> Prompt:
        text = reply.get("prompt")
        if not isinstance(text, str):
            message = "the server's answer to /apply-template holds no prompt"
            raise SendError(message, "skip")
        return Prompt(text=text + prompt.prefill)

    def read_request(
        self, prompt: Prompt, letters: Sequence[str], depth: int
    ) -> Request | None:
        tops = self.facts.tops
        if depth >= len(tops):
            return None
        return self._request(
            dialects.read_body(
                self.facts,
                self.model,
                prompt,
                letters,
                tops[depth],
                thinking=self._thinking,
            )
        )

    def token_letters(self, letters: Sequence[str]) -> Mapping[int, str]:
        ids = self.facts.ids
        return {number: letter for letter in letters for number in ids.get(letter, ())}

    def _request(self, asked: dialects.Asked) -> Request:
        route, body = asked
        return Request(self.root + route, body)

    async def send(self, request: Request) -> Reply:
        """POST the body, or GET the address where there is none."""
        httpx = self._httpx
        try:
            async with asyncio.timeout(self._timeout):
                if request.body:
                    reply = await self._client.post(
                        request.where, json=dict(request.body)
                    )
                else:
                    reply = await self._client.get(request.where)
        except (TimeoutError, httpx.TimeoutException) as error:
            message = f"no reply from {request.where} within {self._timeout:g} seconds"
            raise SendError(message, "retry") from error
        except httpx.TransportError as error:
            words = self._without_key(str(error)) or type(error).__name__
            message = f"{request.where} cannot be reached: {words}"
            raise SendError(message, "retry") from None
        return self._content(request, reply)

    def _content(self, request: Request, reply: httpx.Response) -> Reply:
        if reply.status_code >= 300:
            raise self._refusal(request, reply)
        try:
            content = reply.json()
        except ValueError:
            words = self._without_key(reply.text[-80:])
            message = (
                f"{request.where} sent JSON that breaks off or is none: …{words!r}"
            )
            raise SendError(message, "retry") from None
        if not isinstance(content, dict):
            message = f"{request.where} sent {type(content).__name__}, not an object"
            raise SendError(message, "skip")
        return content if not self._api_key else self._scrubbed(content)

    def _refusal(self, request: Request, reply: httpx.Response) -> SendError:
        status = reply.status_code
        words = " ".join(self._without_key(_words(reply)).split())[:300]
        message = f"{request.where} answered {status} {reply.reason_phrase}: {words}"
        if status in PASSING:
            return SendError(message, "retry", _retry_after(reply.headers))
        return SendError(message, "stop" if status in HOPELESS else "skip")

    def _without_key(self, text: str) -> str:
        return text.replace(self._api_key, "[key]") if self._api_key else text

    def _scrubbed(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return self._without_key(value)
        if isinstance(value, list):
            return [] if self._spells_key(value) else list(map(self._scrubbed, value))
        if isinstance(value, dict):
            return {self._without_key(k): self._scrubbed(v) for k, v in value.items()}
        return value

    def _spells_key(self, values: list[Any]) -> bool:
        """Whether the bytes of a token are those of the key."""
        key = (self._api_key or "").encode()
        if len(values) < len(key) or not all(isinstance(v, int) for v in values):
            return False
        return key in bytes(v % 256 for v in values)

    async def close(self) -> None:
        await self._client.aclose()
        if self._filter is not None:
            for name in LOGGERS:
                logging.getLogger(f"httpcore.{name}").removeFilter(self._filter)


def root_of(endpoint: str) -> str:
    """The address without ``/v1`` at its end.

    Examples
    --------
    >>> root_of("http://localhost:8000/v1/")
    'http://localhost:8000'
    """
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        # The address may hold a password in a place nobody expects: do not repeat it.
        raise InvalidInputError(problems.endpoint())
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInputError(problems.endpoint_secrets(parts.hostname or ""))
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _checked_key(api_key: str | None) -> str | None:
    if not api_key:
        return None
    # A line end in a header would be refused by httpx, which shows the header.
    if not api_key.isprintable() or not api_key.isascii() or " " in api_key:
        raise ElicitationError(problems.key())
    return api_key


def _httpx() -> Any:  # noqa: ANN401 - a module
    try:
        return import_module("httpx")
    except ImportError as error:
        raise MissingExtraError.of("httpx", "elicit") from error


def _words(reply: httpx.Response) -> str:
    """What a server says about its refusal, of any shape."""
    try:
        content = reply.json()
    except ValueError:
        return reply.text
    error = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(error, dict):
        return str(error.get("message", error))
    return str(error)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, given as a number or a date."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        return max(
            email.utils.parsedate_to_datetime(value).timestamp() - time.time(), 0
        )
    except (ValueError, TypeError):
        return None
