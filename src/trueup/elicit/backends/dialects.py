"""How each kind of server wants to be asked; pure functions of what was found.

What differs is written down here once: routes, names of fields, limits and traps.
llama.cpp was checked by running it; vLLM, SGLang, Ollama and OpenAI from their
documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from trueup.elicit.prompts import Prompt

Kind: TypeAlias = Literal[
    "llama.cpp", "vllm", "sglang", "ollama", "openai", "openai-like"
]
KINDS: tuple[Kind, ...] = (
    "llama.cpp",
    "vllm",
    "sglang",
    "ollama",
    "openai",
    "openai-like",
)
Ending: TypeAlias = Literal["render", "continue", "turn"]
"""How the answer after the reasoning is read: from the rendered template as a raw
completion, by continuing the assistant's message, or as a further turn."""

Asked: TypeAlias = tuple[str, dict[str, Any]]
"""Route and body."""

THINKS = frozenset({"llama.cpp", "vllm", "sglang"})
"""Servers that pass `chat_template_kwargs` on to the template."""

CANDIDATES: Mapping[Kind, tuple[int, ...]] = {
    # No cap: list few first, the whole vocabulary where an option is not there.
    "llama.cpp": (50, 1_000_000),
    "vllm": (100, 20, 5),
    "sglang": (100, 20),
    "ollama": (20, 5),
    "openai": (20, 5),
    "openai-like": (100, 20, 5),
}
"""Numbers of tokens to list, tried in turn: servers refuse more than their cap."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server is and can do, as found at the start."""

    kind: Kind
    completes: bool = True
    """Whether it completes raw text."""
    tops: tuple[int, ...] = (20,)
    """Numbers of tokens it lists; the later, the more."""
    ending: Ending = "turn"
    ids: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Tokens that spell a letter, where the server lists tokens by id."""


def read_body(
    facts: Facts,
    model: str,
    prompt: Prompt,
    letters: Sequence[str],
    top: int,
    *,
    thinking: bool = False,
) -> Asked:
    """Ask for the most probable next tokens."""
    wanted = [number for letter in letters for number in facts.ids.get(letter, ())]
    if facts.kind != "vllm" or not wanted:
        named: dict[str, Any] = {}
    else:
        # vLLM leaves its cap aside where tokens are named, but wants a number as well.
        named = {"logprob_token_ids": wanted, "return_tokens_as_token_ids": True}
        top = len(wanted)
    if not prompt.text:
        route, chat = chat_body(facts, model, prompt, max_tokens=1, thinking=thinking)
        # llama.cpp and OpenAI refuse top_logprobs without logprobs.
        return route, chat | {"logprobs": True, "top_logprobs": top} | named
    if facts.kind == "sglang":
        return _sglang_read(prompt, top, wanted)
    if facts.kind == "ollama":
        return _ollama_read(model, prompt, top)
    body: dict[str, Any] = {
        "model": model,
        "prompt": prompt.text,
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": top,
    }
    if facts.kind == "llama.cpp":
        # A cached start is computed in other pieces: results would depend on what was
        # asked before, and so on when a run was killed.
        body["cache_prompt"] = False
    return "/v1/completions", body | named


def _sglang_read(prompt: Prompt, top: int, wanted: Sequence[int]) -> Asked:
    body: dict[str, Any] = {
        "text": prompt.text,
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "return_text_in_logprobs": True,
        "top_logprobs_num": top,
    }
    return "/generate", body | ({"token_ids_logprob": list(wanted)} if wanted else {})


def _ollama_read(model: str, prompt: Prompt, top: int) -> Asked:
    return "/api/generate", {
        "model": model,
        "prompt": prompt.text,
        "raw": True,  # without it the chat template is applied
        "stream": False,
        "logprobs": True,
        "top_logprobs": top,
        "options": {"num_predict": 1, "temperature": 0, "repeat_penalty": 1},
    }


def chat_body(
    facts: Facts, model: str, prompt: Prompt, *, max_tokens: int, thinking: bool = False
) -> Asked:
    """Let the model write after messages, or continue the start of its own."""
    messages = _messages(facts, prompt)
    if facts.kind == "ollama":
        # Ollama continues a last message of the assistant without being asked to.
        options = {"num_predict": max_tokens, "temperature": 0, "repeat_penalty": 1}
        return "/api/chat", {
            "model": model,
            "messages": messages,
            "stream": False,
            "think": thinking,
            "options": options,
        }
    # OpenAI's newer models refuse max_tokens.
    limit = "max_completion_tokens" if facts.kind == "openai" else "max_tokens"
    body: dict[str, Any] = {
        "model": model,
        "messages": messages,
        limit: max_tokens,
        "temperature": 0,
    }
    if facts.kind in THINKS:
        body["chat_template_kwargs"] = {"enable_thinking": thinking}
    if facts.kind == "llama.cpp":
        body["cache_prompt"] = False
    if prompt.prefill and facts.ending != "turn":
        # Both are needed: either alone closes the message or is refused.
        body |= {"add_generation_prompt": False, "continue_final_message": True}
    return "/v1/chat/completions", body


def _messages(facts: Facts, prompt: Prompt) -> list[dict[str, str]]:
    said = list(prompt.messages)
    if prompt.prefill and facts.ending == "turn":
        said += [("assistant", prompt.reasoning), ("user", prompt.turn)]
    elif prompt.prefill:
        said.append(("assistant", prompt.prefill))
    return [{"role": role, "content": text} for role, text in said]


def render_body(facts: Facts, prompt: Prompt, *, thinking: bool = False) -> Asked:
    """Turn messages into text with the model's own template (llama.cpp)."""
    messages = [{"role": role, "content": text} for role, text in prompt.messages]
    template = {"chat_template_kwargs": {"enable_thinking": thinking}}
    del facts
    return "/apply-template", {"messages": messages, **template}


def tokenise_body(facts: Facts, model: str, text: str) -> Asked | None:
    """Ask which tokens spell a text, where a server tells."""
    if facts.kind == "llama.cpp":
        return "/tokenize", {"content": text, "add_special": False}
    if facts.kind == "vllm":
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        return "/tokenize", body
    if facts.kind == "sglang":
        return "/tokenize", {"prompt": text, "add_special_tokens": False}
    return None


def kind_from_models(reply: Mapping[str, Any]) -> Kind | None:
    """The kind of a server, from whom it says its models are owned by."""
    listed = reply.get("data")
    entries = listed if isinstance(listed, list) else []
    owners = {e.get("owned_by") for e in entries if isinstance(e, Mapping)}
    known: dict[str, Kind] = {
        "llamacpp": "llama.cpp",
        "vllm": "vllm",
        "sglang": "sglang",
        "library": "ollama",
        "openai": "openai",
        "system": "openai",
        "openai-internal": "openai",
    }
    return next((kind for owner, kind in known.items() if owner in owners), None)


def model_names(reply: Mapping[str, Any]) -> list[str]:
    """Names of the models that a server lists."""
    listed = reply.get("data")
    entries = listed if isinstance(listed, list) else []
    return [str(e["id"]) for e in entries if isinstance(e, Mapping) and "id" in e]
