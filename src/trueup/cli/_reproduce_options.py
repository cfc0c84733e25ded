"""Options of ``trueup reproduce``, grouped by what they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

_POSITIVE = click.IntRange(min=1)
_SERVERS = ["llama.cpp", "vllm", "sglang", "ollama", "openai", "openai-like"]

_OPTIONS = (
    click.option(
        "--predictions",
        metavar="DIR",
        help="Prediction files DIR/<set>/<model>.base.<suffix> and .instruct.<suffix>; "
        ".instruct-calibration.<suffix> fits supervised baselines.",
    ),
    click.option(
        "--config",
        metavar="FILE",
        help="A TOML file with [[pair]] tables (files under --predictions, or beside "
        "it), or [[model]] and [[set]] tables to ask.",
    ),
    click.option(
        "--base", metavar="MODEL", help="The base model to ask: the reference."
    ),
    click.option(
        "--instruct", metavar="MODEL", help="The instruct model to ask: the primary."
    ),
    click.option("--name", metavar="NAME", help="How tables call the two."),
    click.option(
        "--endpoint",
        metavar="URL",
        help="Server of both models. Without --base and --instruct it is asked for "
        "every model that the paper names.",
    ),
    click.option("--base-endpoint", metavar="URL", help="Server of the base model."),
    click.option(
        "--instruct-endpoint", metavar="URL", help="Server of the instruct model."
    ),
    click.option(
        "--questions",
        metavar="SET=SOURCE",
        multiple=True,
        help="A set to ask about: a file or a published set, as trueup elicit reads "
        "them.  [default: mmlu-redux and commonsense-qa, as published]",
    ),
    click.option(
        "--calibration",
        metavar="SET=SOURCE",
        multiple=True,
        help="Another labelled split of a set, for supervised baselines.",
    ),
    click.option(
        "-o",
        "--output",
        metavar="DIR",
        default="reproduction",
        show_default=True,
        help="Folder for tables, results and what models said.",
    ),
    click.option(
        "--dry-run",
        is_flag=True,
        help="List what would be asked and run, with requests and tokens; do nothing.",
    ),
    click.option(
        "--only", metavar="MODEL", multiple=True, help="Only models of this name."
    ),
    click.option(
        "--drop-unpaired",
        is_flag=True,
        help="Leave out items that only one of two models has, and say how many.",
    ),
    click.option("--limit", type=_POSITIVE, help="Ask only the first so many."),
    click.option(
        "--corrected",
        is_flag=True,
        help="MMLU-Redux: use correct_answer; no label where no option is right.",
    ),
    click.option(
        "--max-tokens",
        type=_POSITIVE,
        default=512,
        show_default=True,
        help="Most tokens of the reasoning.",
    ),
    click.option(
        "--concurrency",
        type=_POSITIVE,
        default=8,
        show_default=True,
        help="Most items asked about at once.",
    ),
    click.option(
        "--backend",
        type=click.Choice(["auto", "http", "embedded", "transformers"]),
        default="auto",
        show_default=True,
        help="transformers: load models by their published names, here.",
    ),
    click.option(
        "--server", type=click.Choice(_SERVERS), help="Kind of server, if known."
    ),
    click.option(
        "--api-key-env", metavar="NAME", help="Environment variable with the API key."
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
    click.option("--context", type=_POSITIVE, default=4096, help="embedded."),
    click.option("--threads", type=_POSITIVE, default=1, help="embedded."),
    click.option("--device", default="cpu", show_default=True, help="transformers."),
    click.option("--dtype", default="auto", show_default=True, help="transformers."),
)


def reproduce_options(function: Function) -> Function:
    """All of them, in this order in the help."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
