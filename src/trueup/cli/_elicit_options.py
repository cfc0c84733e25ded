"""Options of ``trueup elicit``, grouped by what they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

_SERVERS = ["llama.cpp", "vllm", "sglang", "ollama", "openai", "openai-like"]
_FORMATS = ["auto", "trueup", "mmlu", "mmlu-redux", "commonsense-qa"]
_POSITIVE = click.IntRange(min=1)

_OPTIONS = (
    click.option(
        "--model",
        metavar="MODEL",
        help="The server's name of the model; 'embedded' or PATH.gguf for llama.cpp in "
        "this process.",
    ),
    click.option(
        "--endpoint", metavar="URL", help="Address of an OpenAI-style server."
    ),
    click.option(
        "--style",
        type=click.Choice(["base", "instruct"]),
        help="base: next token after the question. instruct: reason, then answer.  "
        "[default: base]",
    ),
    click.option("-o", "--output", metavar="FILE", help="Write predictions here."),
    click.option("--force", is_flag=True, help="Overwrite a file that exists."),
    click.option(
        "--show-prompt",
        metavar="ID",
        help="Print the prompt of this item and send nothing.",
    ),
    click.option(
        "--format",
        "layout",
        type=click.Choice(_FORMATS),
        default="auto",
        show_default=True,
        help="Format of QUESTIONS.",
    ),
    click.option(
        "--corrected",
        is_flag=True,
        help="MMLU-Redux: use correct_answer; no label where no option is right.",
    ),
    click.option("--limit", type=_POSITIVE, help="Ask only the first so many."),
    click.option(
        "--template",
        metavar="NAME",
        help="paper-base, paper-instruct, or a .toml or .json file.",
    ),
    click.option(
        "--max-tokens",
        type=_POSITIVE,
        default=512,
        show_default=True,
        help="Most tokens of the reasoning.",
    ),
    click.option(
        "--order",
        type=click.Choice(["given", "cyclic", "shuffled"]),
        default="given",
        show_default=True,
        help="Orders of the options; probabilities are averaged over them.",
    ),
    click.option("--orders", type=_POSITIVE, help="How many orders."),
    click.option(
        "--seed", type=int, default=0, show_default=True, help="Of shuffling."
    ),
    click.option(
        "--pad-options",
        is_flag=True,
        help="Allow different numbers of options; absent ones get probability zero.",
    ),
    click.option(
        "--concurrency",
        type=_POSITIVE,
        default=8,
        show_default=True,
        help="Most items asked about at once.",
    ),
    click.option(
        "--max-requests",
        type=click.IntRange(min=0),
        help="Send at most so many requests, with probes and retries.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=120.0,
        show_default=True,
        help="Seconds for one attempt.",
    ),
    click.option(
        "--attempts",
        type=_POSITIVE,
        default=6,
        show_default=True,
        help="How often a request is tried.",
    ),
    click.option(
        "--require-all",
        is_flag=True,
        help="Write nothing if an item could not be read.",
    ),
    click.option(
        "--api-key-env",
        metavar="NAME",
        help="Environment variable with the API key.  [default: OPENAI_API_KEY, for "
        "api.openai.com only]",
    ),
    click.option(
        "--server",
        type=click.Choice(_SERVERS),
        help="Kind of server, if not found out.",
    ),
    click.option(
        "--backend",
        type=click.Choice(["auto", "http", "embedded", "transformers"]),
        default="auto",
        show_default=True,
    ),
    click.option(
        "--thinking/--no-thinking",
        default=False,
        show_default=True,
        help="Whether a model that can think before it speaks may do so.",
    ),
    click.option(
        "--context",
        type=_POSITIVE,
        default=4096,
        show_default=True,
        help="embedded: tokens of prompt and reply together.",
    ),
    click.option(
        "--threads",
        type=_POSITIVE,
        default=1,
        show_default=True,
        help="embedded: threads of the arithmetic.",
    ),
    click.option("--device", default="cpu", show_default=True, help="transformers."),
    click.option("--dtype", default="auto", show_default=True, help="transformers."),
    click.option("--store", metavar="FILE", help="Instead of OUTPUT.requests.jsonl."),
)


def elicit_options(function: Function) -> Function:
    """All of them, in this order in the help."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
