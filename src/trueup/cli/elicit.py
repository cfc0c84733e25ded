"""``trueup elicit``: predictions from a language model."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from trueup.cli._elicit_options import elicit_options
from trueup.cli._output import Console, aligned, harmless, reporting
from trueup.cli._unread import list_unread
from trueup.errors import ElicitationError, InvalidInputError

if TYPE_CHECKING:
    from trueup.elicit.backends.base import Backend
    from trueup.elicit.output import Elicited
    from trueup.elicit.prompts import Template
    from trueup.elicit.questions import Question
    from trueup.elicit.runner import Progress


@click.command("elicit")
@click.argument("questions", metavar="QUESTIONS")
@elicit_options
@reporting
def command(console: Console, *, questions: str, **given: Any) -> None:  # noqa: ANN401
    """Ask a language model for the probabilities of the options of QUESTIONS.

    QUESTIONS is a file (see the page on question files), a folder of MMLU files, or
    datasets:mmlu, datasets:mmlu-redux, datasets:commonsense-qa. Everything that was
    answered is kept in OUTPUT.requests.jsonl: after a crash the same command goes on,
    and sends nothing again.

    \b
    Example:
      trueup elicit q.jsonl --model embedded --style base -o base.parquet
    """
    read = _questions(console, questions, given)
    template = _template(given)
    if given["show_prompt"] is not None:
        click.echo(_shown_prompt(read, template, given))
        return
    _elicit(console, read, template, given)


def _questions(console: Console, source: str, given: dict[str, Any]) -> list[Question]:
    from trueup.elicit import read_questions

    read = read_questions(source, layout=given["layout"], corrected=given["corrected"])
    known = sum(question.answer is not None for question in read)
    console.say(f"{source}: {len(read):,} questions, {known:,} with an answer")
    limit = given["limit"]
    if limit is not None and limit < len(read):
        console.say(f"  the first {limit:,} are asked")
        read = read[:limit]
    return read


def _template(given: dict[str, Any]) -> Template:
    from trueup.elicit import get_template

    name, style = given["template"], given["style"]
    template = get_template(name or f"paper-{style or 'base'}")
    if style is not None and template.style != style:
        message = (
            f"template {template.name!r} is for --style {template.style}.\n"
            "hint: leave one of the two out."
        )
        raise InvalidInputError(message)
    return template


def _shown_prompt(
    questions: Sequence[Question], template: Template, given: dict[str, Any]
) -> str:
    """What would be sent for one item."""
    from trueup.elicit.prompts import option_orders
    from trueup.errors import UnknownNameError

    by_id = {question.id: question for question in questions}
    name = given["show_prompt"]
    if name not in by_id:
        raise UnknownNameError.of("item", name, list(by_id)[:10])
    question = by_id[name]
    order = option_orders(question, given["order"], given["orders"], given["seed"])[0]
    prompt = template.render(question, order)
    if prompt.text:
        return prompt.text
    second = template.render_answer(prompt, question, "{reasoning}")
    said = [*prompt.messages, ("assistant, continued", second.prefill)]
    return "\n\n".join(f"[{role}]\n{text}" for role, text in said)


def _elicit(
    console: Console,
    questions: list[Question],
    template: Template,
    given: dict[str, Any],
) -> None:
    from trueup.data.files import check_target, write_table, written_format
    from trueup.elicit.output import store_path, unread_path

    output = given["output"]
    if output is None or given["model"] is None:
        message = "--model and --output are needed, or --show-prompt ID"
        raise click.UsageError(message)
    written_format(output)  # hours of asking should not end with a wrong suffix
    check_target(output, force=given["force"])
    store = given["store"] or store_path(output)
    found = _asked(console, questions, template, store, given)
    list_unread(console, found.unread, unread_path(output))
    if not found.reports or (found.unread and given["require_all"]):
        raise ElicitationError(_not_written(found, output, unread_path(output)))
    write_table(found.table(), output, force=given["force"])
    _result(console, found, output, store)


def _asked(
    console: Console,
    questions: list[Question],
    template: Template,
    store: str,
    given: dict[str, Any],
) -> Elicited:
    from trueup.elicit import Patience, elicit

    backend = _backend(console, given)
    console.say(f"{backend.model}, {_described(template, given)}")
    shown = _Shown(console)
    try:
        return elicit(
            questions,
            backend,
            store=store,
            template=template,
            max_tokens=given["max_tokens"],
            order=given["order"],
            n_orders=given["orders"],
            seed=given["seed"],
            pad_options=given["pad_options"],
            concurrency=given["concurrency"],
            max_requests=given["max_requests"],
            patience=Patience(n_attempts=given["attempts"]),
            progress=shown.progress,
            tell=console.say,
        )
    except KeyboardInterrupt:
        message = (
            f"stopped by you.\nhint: every reply is kept in {store}; the same command "
            "goes on from there."
        )
        raise ElicitationError(message) from None
    finally:
        shown.end()


def _described(template: Template, given: dict[str, Any]) -> str:
    text = f"template {template.name}"
    if template.style == "instruct":
        text += f", greedy reasoning of at most {given['max_tokens']:,} tokens"
    if given["order"] != "given":
        text += f", options in {given['order']} orders, averaged"
    return text


def _backend(console: Console, given: dict[str, Any]) -> Backend:
    model, endpoint = given["model"], given["endpoint"]
    kind = given["backend"]
    if kind == "auto":
        in_process = model == "embedded" or model.endswith(".gguf")
        kind = "http" if endpoint or not in_process else "embedded"
    thinking = given["thinking"]
    if kind == "http":
        if not endpoint:
            message = (
                f"--model {model} needs --endpoint URL, or --backend transformers; "
                "without a server, --model embedded or --model PATH.gguf"
            )
            raise click.UsageError(message)
        from trueup.elicit import HttpBackend

        return HttpBackend(
            endpoint,
            model,
            api_key=_api_key(console, endpoint, given["api_key_env"]),
            kind=given["server"],
            timeout=given["timeout"],
            thinking=thinking,
        )
    if endpoint:
        message = f"--endpoint is for --backend http, not {kind}"
        raise click.UsageError(message)
    if kind == "transformers":
        from trueup.elicit import TransformersBackend

        device, dtype = given["device"], given["dtype"]
        return TransformersBackend(model, device=device, dtype=dtype, thinking=thinking)
    from trueup.elicit import EmbeddedBackend

    context, n_threads = given["context"], given["threads"]
    return EmbeddedBackend(
        model, context=context, n_threads=n_threads, thinking=thinking
    )


def _api_key(console: Console, endpoint: str, variable: str | None) -> str | None:
    """The key from the environment; OpenAI's own is sent to OpenAI only."""
    from urllib.parse import urlsplit

    host = urlsplit(endpoint).hostname or ""
    if variable is None:
        is_openai = host == "api.openai.com"
        return os.environ.get("OPENAI_API_KEY") if is_openai else None
    key = os.environ.get(variable)
    if not key:
        message = (
            f"the environment variable {variable} is not set.\n"
            "hint: export it; keys are never read from files or options."
        )
        raise ElicitationError(message)
    if endpoint.startswith("http:") and host not in {"localhost", "127.0.0.1", "::1"}:
        console.say("warning: the key is sent without encryption; prefer https")
    return key


class _Shown:
    """Progress on standard error: rate and time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = self._last = time.monotonic()
        self._first: int | None = None
        self._terminal = sys.stderr.isatty()
        self._open = False

    def progress(self, now: Progress) -> None:
        moment = time.monotonic()
        if self._first is None and now.n_sent:
            # What the store answers comes at once and says nothing about the rate.
            self._first, self._start = max(now.n_done - 1, 0), self._last
        pause = 0.2 if self._terminal else 10.0
        if moment - self._last < pause and now.n_done < now.n_items:
            return
        self._last = moment
        if self._console.quiet:
            return
        text = self._line(now, moment)
        self._open = self._terminal
        click.echo(
            f"\r{text}  " if self._terminal else text, err=True, nl=not self._open
        )

    def _line(self, now: Progress, moment: float) -> str:
        rate = (now.n_done - (self._first or 0)) / max(moment - self._start, 1e-9)
        text = f"{now.n_done:,} of {now.n_items:,} items, {now.n_sent:,} requests sent"
        left = now.n_items - now.n_done
        if left and rate > 0:
            text += f", {rate:.2g} items/s, {_duration(left / rate)} left"
        return text

    def end(self) -> None:
        if self._open:
            click.echo("", err=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes >= 2 else f"{60 * minutes + rest} s"


def _not_written(found: Elicited, output: str, path: str) -> str:
    first = harmless(found.unread[0].reason)
    return (
        f"{output} was not written: {len(found.unread):,} of "
        f"{len(found.unread) + len(found.reports):,} items could not be read; the "
        f"first because {first}.\nhint: {path} lists them all."
    )


def _result(console: Console, found: Elicited, output: str, store: str) -> None:
    table = found.table()
    n_items = len(found.reports) + len(found.unread)
    rows = [
        ("predictions", f"{output}: {len(found.reports):,} of {n_items:,} items"),
        ("model", f"{found.model}, template {found.template}"),
        ("requests", f"{found.n_sent:,} sent, {found.n_reused:,} from {store}"),
        *[("note", remark) for remark in found.remarks],
    ]
    content = {
        "output": output,
        "store": store,
        "model": found.model,
        "template": found.template,
        "n_items": n_items,
        "n_read": len(found.reports),
        "n_sent": found.n_sent,
        "n_reused": found.n_reused,
        "columns": table.column_names,
        "remarks": list(found.remarks),
        "unread": [
            {"item_id": one.item_id, "reason": one.reason} for one in found.unread
        ],
    }
    console.result(aligned(rows), content)
