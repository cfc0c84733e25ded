"""What commands print: one result on standard output, the rest on standard error."""

from __future__ import annotations

import json
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from trueup.errors import TrueupError

FORMAT = 1
"""Of the JSON objects; fields are added without a new number, never changed."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass
class Console:
    """Where one run of a command says things."""

    command: str
    as_json: bool
    quiet: bool
    warnings: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)

    def say(self, text: str) -> None:
        """Tell a person something that is not the result."""
        if not self.quiet:
            click.echo(one_line(text), err=True)

    def explain(self, lines: Iterable[str]) -> None:
        """Tell what was chosen, indented below what it is about."""
        for line in lines:
            self.say(f"  {line}")

    def explain_once(self, line: str) -> None:
        """Tell how to choose otherwise, the first time only."""
        if line not in self.told:
            self.told.add(line)
            self.say(f"  {line}")

    def result(self, text: str, content: dict[str, Any]) -> None:
        """Print the result: text for people, or one object."""
        if not self.as_json:
            click.echo(text)
            return
        click.echo(dumped(self._envelope() | content | {"warnings": self.warnings}))

    def error(self, error: Exception) -> dict[str, Any]:
        """A failure as one object."""
        text, _, hint = str(error).partition("\nhint: ")
        return self._envelope() | {
            "error": {
                "kind": type(error).__name__,
                "message": text,
                "hint": hint or None,
            },
            "warnings": self.warnings,
        }

    def _envelope(self) -> dict[str, Any]:
        from trueup.maps._documents import this_version

        return {
            "format": FORMAT,
            "command": self.command,
            "created_by": this_version(),
        }

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Say what takes time; on a terminal also how much it has taken so far."""
        if self.quiet:
            yield
            return
        start = time.monotonic()
        if not sys.stderr.isatty():
            yield
            self.say(f"{what}: {time.monotonic() - start:.1f} s")
            return
        done = threading.Event()
        ticker = threading.Thread(
            target=_tick, args=(what, start, done), daemon=True, name="progress"
        )
        ticker.start()
        try:
            yield
        finally:
            done.set()
            ticker.join()
        self.say(f"\r{what}: {time.monotonic() - start:.1f} s")

    def progress(self, what: str, share: float) -> None:
        """Say how far long work has come, on a terminal in place."""
        if self.quiet:
            return
        if sys.stderr.isatty():
            end = "\r\033[K" if share >= 1 else ""
            click.echo(f"\r\033[K{share:4.0%} {what}{end}", err=True, nl=False)
        elif what not in self.told:
            self.told.add(what)
            click.echo(f"{share:4.0%} {what}", err=True)

    @contextmanager
    def noticing(self) -> Iterator[None]:
        """Show warnings as they come, and keep them for the JSON object."""
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = self._warned
            yield

    def _warned(self, message: Warning | str, *_: object, **__: object) -> None:
        text = str(message)
        if text not in self.warnings:
            self.warnings.append(text)
            click.echo(f"warning: {one_line(text)}", err=True)


def _tick(what: str, start: float, done: threading.Event) -> None:
    while not done.wait(0.5):
        seconds = time.monotonic() - start
        click.echo(f"\r{what}: {seconds:.0f} s", err=True, nl=False)


def reporting(function: Function) -> Function:
    """Give a command ``--json``, ``--quiet`` and a console as its first argument."""
    from functools import update_wrapper

    @click.pass_context
    def run(ctx: click.Context, /, as_json: bool, quiet: bool, **given: Any) -> None:  # noqa: ANN401 - options
        console = Console(str(ctx.info_name), as_json, quiet)
        ctx.find_root().obj = console
        with console.noticing():
            function(console, **given)

    for option in (
        click.option("--quiet", "-q", is_flag=True, help="Say nothing but the result."),
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            help="Print one JSON object on standard output.",
        ),
    ):
        run = option(run)
    return update_wrapper(run, function)  # type: ignore[return-value]


def fail(ctx: click.Context, error: Exception) -> None:
    """Show an error as one message, never as a traceback."""
    text = str(error) if isinstance(error, TrueupError) else _system(error)
    click.echo(f"error: {text}", err=True)
    console = ctx.find_root().obj
    if isinstance(console, Console) and console.as_json:
        shown = error if isinstance(error, TrueupError) else TrueupError(text)
        click.echo(dumped(console.error(shown)))


def _system(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "the memory is not enough.\nhint: use fewer items or a larger machine."
    reason = getattr(error, "strerror", None) or str(error)
    name = getattr(error, "filename", None)
    return f"{name}: {reason}" if name else str(reason)


def dumped(content: dict[str, Any]) -> str:
    """One JSON object; infinities have become text before."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)


def one_line(text: str) -> str:
    """Text without control characters, which a hostile name may hold."""
    return "".join(
        mark if mark.isprintable() or mark in "\r\n" else repr(mark)[1:-1]
        for mark in text
    )


def wrapped(text: str, width: int = 88) -> str:
    """Long lines broken, tables left alone."""
    import textwrap

    lines = [
        [line]
        if len(line) <= width or "  " in line.strip()
        else textwrap.wrap(
            line, width, subsequent_indent="  " if line[:2] == "- " else ""
        )
        for line in text.splitlines()
    ]
    return one_line("\n".join(line for group in lines for line in group))


def aligned(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values in two columns; long values wrap below themselves."""
    import textwrap

    listed = list(rows)
    width = max(len(name) for name, _ in listed) + 2
    lines = []
    for name, value in listed:
        wrapped = textwrap.wrap(value, max(30, 88 - width)) or [""]
        lines.append(f"{name:<{width}}{wrapped[0]}".rstrip())
        lines.extend(" " * width + more for more in wrapped[1:])
    return one_line("\n".join(lines))


def number(value: float) -> str:
    """Four digits; what is only rounding is zero."""
    return f"{0.0 if abs(value) < 1e-10 else value:.4g}"
