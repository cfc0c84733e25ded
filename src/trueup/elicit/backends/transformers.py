"""Models of the transformers package, in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from trueup.elicit import problems
from trueup.elicit.backends.base import Reply, Request, Retrying, SendError
from trueup.elicit.backends.embedded import identity
from trueup.elicit.prompts import Prompt, Style
from trueup.errors import ElicitationError

TOKENS_LISTED = (50, 1_000_000)
"""Probable tokens kept of a forward pass, and all of them if an option is missing."""


class TransformersBackend:
    """A causal language model of the transformers package.

    Parameters
    ----------
    model
        Name on the hub, folder, or GGUF file.
    device
        Where to compute: ``cpu``, ``cuda``, ``mps``, ….
    dtype
        Precision of the weights: ``auto``, ``float32``, ``bfloat16``, ….
    thinking
        Whether models that can think before they speak may do so.

    Examples
    --------
    >>> from trueup.elicit import TransformersBackend
    >>> TransformersBackend("folder/of/a/model").model  # doctest: +SKIP
    'folder/of/a/model'
    """

    def __init__(
        self,
        model: str,
        *,
        device: str = "cpu",
        dtype: str = "auto",
        thinking: bool = False,
    ) -> None:
        try:
            self._torch = import_module("torch")
            package = import_module("transformers")
        except ImportError as error:
            raise problems.no_torch() from error
        path = Path(model)
        is_file = path.suffix == ".gguf"
        self.model = path.stem if is_file else model
        self.n_slots: int | None = 1
        # The precision changes the numbers; the same name may stand for other weights.
        source = identity(path) if is_file and path.is_file() else model
        self._where = f"transformers:{source}:{dtype}"
        self._thinking = thinking
        self._device = device
        self._lock = threading.Lock()
        place = path.parent if is_file else model
        file = {"gguf_file": path.name} if is_file else {}
        try:
            self._tokeniser = package.AutoTokenizer.from_pretrained(place, **file)
            self._network = package.AutoModelForCausalLM.from_pretrained(
                place, dtype=dtype, **file
            )
        except (OSError, ValueError, ImportError) as error:
            raise ElicitationError(problems.not_loaded(model, str(error))) from error
        self._network.to(device).eval()

    async def prepare(
        self, style: Style, letters: Sequence[str], retrying: Retrying
    ) -> Sequence[str]:
        del letters, retrying
        if style == "instruct" and not self._tokeniser.chat_template:
            raise SendError(problems.no_chat_template(self.model), "stop")
        return [f"transformers in this process, {self.model} on {self._device}"]

    def generate_request(self, prompt: Prompt, max_tokens: int) -> Request:
        body = {"messages": _messages(prompt), "max_tokens": max_tokens}
        return Request(self._where, {**body, "thinking": self._thinking})

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
        listed = {"logprobs": TOKENS_LISTED[depth]}
        if prompt.text:
            return Request(self._where, {"prompt": prompt.text, **listed})
        body = {"messages": _messages(prompt), "prefill": prompt.prefill, **listed}
        return Request(self._where, {**body, "thinking": self._thinking})

    def token_letters(self, letters: Sequence[str]) -> Mapping[int, str]:
        del letters
        return {}

    async def send(self, request: Request) -> Reply:
        return await asyncio.to_thread(self._computed, request.body)

    def _computed(self, body: Mapping[str, Any]) -> Reply:
        with self._lock, self._torch.inference_mode():
            tokens = self._tokens(body)
            longest = getattr(self._network.config, "max_position_embeddings", None)
            needed = tokens.shape[1] + body.get("max_tokens", 1)
            if longest is not None and needed > longest:
                message = f"{needed:,} tokens do not fit the model's {longest:,}"
                raise SendError(message, "skip")
            if "logprobs" in body:
                return self._next(tokens, body["logprobs"])
            return self._written(tokens, body["max_tokens"])

    def _tokens(self, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a tensor
        if "prompt" in body:
            found = self._tokeniser(body["prompt"], return_tensors="pt")
        else:
            text = self._tokeniser.apply_chat_template(
                body["messages"],
                tokenize=False,
                add_generation_prompt=True,
                enable_thinking=body["thinking"],
            )
            # The template has written the special tokens already.
            found = self._tokeniser(
                text + body.get("prefill", ""),
                return_tensors="pt",
                add_special_tokens=False,
            )
        return found["input_ids"].to(self._device)

    def _next(self, tokens: Any, n_listed: int) -> Reply:  # noqa: ANN401 - a tensor
        logits = self._network(tokens).logits[0, -1].double()
        logprobs = self._torch.log_softmax(logits, dim=-1)
        best = self._torch.topk(logprobs, min(n_listed, len(logprobs)))
        ids = best.indices.tolist()
        names = self._tokeniser.convert_ids_to_tokens(ids)
        listed = [
            {"id": number, "token": name or "", "logprob": value}
            for number, name, value in zip(
                ids, names, best.values.tolist(), strict=True
            )
        ]
        content = [{"token": listed[0]["token"], "top_logprobs": listed}]
        text = self._tokeniser.decode(ids[:1])
        choice = {"text": text, "finish_reason": "length"}
        return {"choices": [{**choice, "logprobs": {"content": content}}]}

    def _written(self, tokens: Any, max_tokens: int) -> Reply:  # noqa: ANN401
        made = self._network.generate(
            tokens,
            attention_mask=self._torch.ones_like(tokens),
            max_new_tokens=max_tokens,
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            repetition_penalty=1.0,
            pad_token_id=self._tokeniser.eos_token_id,
        )[0, tokens.shape[1] :]
        text = self._tokeniser.decode(made, skip_special_tokens=True)
        reason = "length" if len(made) >= max_tokens else "stop"
        return {"choices": [{"text": text, "finish_reason": reason}]}

    async def close(self) -> None:
        self._network = None


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    return [{"role": role, "content": said} for role, said in prompt.messages]
