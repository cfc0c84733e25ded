"""All items: at most so many at once, in one synchronous call, and resumable."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trueup.elicit import problems
from trueup.elicit.asking import Asking, ItemReport, Unread
from trueup.elicit.backends.base import Backend, SendError
from trueup.elicit.decode import UnreadableReplyError
from trueup.elicit.output import Elicited
from trueup.elicit.prompts import OrderKind, Template, get_template, option_orders
from trueup.elicit.questions import Question, check_ids, option_counts
from trueup.elicit.sending import BudgetSpentError, GaveUpError, Patience, Sender
from trueup.elicit.store import Store
from trueup.errors import ElicitationError, InvalidInputError, QuestionFileError

T = TypeVar("T")

FAILURES_IN_A_ROW = 10
"""So many items without any reply mean that the server is gone."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    n_done: int
    n_items: int
    n_sent: int
    n_reused: int


@dataclass(slots=True)
class _Run:
    """What the workers of a run share."""

    asking: Asking
    sender: Sender
    questions: Sequence[Question]
    orders: Callable[[Question], list[tuple[int, ...]]]
    tell_progress: Callable[[Progress], None]
    reports: dict[str, ItemReport] = field(default_factory=dict)
    unread: dict[str, Unread] = field(default_factory=dict)
    failures_in_a_row: int = 0
    stopped: str | None = None

    async def work(self, waiting: Iterator[Question]) -> None:
        for question in waiting:
            if self.stopped is not None:
                return
            await self._one(question)
            self.tell_progress(self.progress)

    async def _one(self, question: Question) -> None:
        try:
            report = await self.asking.item(question, self.orders(question))
        except BudgetSpentError:
            self.stopped = f"the budget of {self.sender.n_sent:,} requests is spent"
        except UnreadableReplyError as error:
            self._note(question, str(error), is_final=True)
        except SendError as error:
            if error.remedy == "stop":
                self.stopped = str(error)
            else:
                self._note(question, str(error), is_final=False)
        except GaveUpError as error:
            self._note(question, str(error), is_final=False)
            self.failures_in_a_row += 1
            if self.failures_in_a_row >= FAILURES_IN_A_ROW:
                self.stopped = f"{FAILURES_IN_A_ROW} items in a row failed: {error}"
        else:
            self.reports[question.id] = report
            self.failures_in_a_row = 0

    def _note(self, question: Question, reason: str, *, is_final: bool) -> None:
        self.unread[question.id] = Unread(question.id, reason, is_final)

    @property
    def progress(self) -> Progress:
        done = len(self.reports) + len(self.unread)
        sender = self.sender
        return Progress(done, len(self.questions), sender.n_sent, sender.n_reused)


def elicit(
    questions: Sequence[Question],
    backend: Backend,
    *,
    store: str | os.PathLike[str],
    template: str | Template = "paper-base",
    max_tokens: int = 512,
    order: OrderKind = "given",
    n_orders: int | None = None,
    seed: int = 0,
    pad_options: bool = False,
    concurrency: int = 8,
    max_requests: int | None = None,
    patience: Patience | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> Elicited:
    """Ask a language model for the probabilities of every question's options.

    Everything that was answered is in the `store` before it is used: after a crash the
    same call goes on where it stopped, and sends nothing again that was answered.

    Parameters
    ----------
    questions
        With ids that differ; see :func:`read_questions`.
    backend
        :class:`HttpBackend`, :class:`EmbeddedBackend`, :class:`TransformersBackend`, or
        anything with the same methods. It is closed at the end.
    store
        File to which requests and replies are appended.
    template
        Name, file or object; its style decides whether the model reasons first.
    max_tokens
        Most tokens of the reasoning; decoding is greedy.
    order, n_orders, seed
        Orders in which the options are shown; probabilities are averaged over them.
    pad_options
        Allow questions with different numbers of options.
    concurrency
        Most items asked about at once.
    max_requests
        Most requests sent by this call, with retries and probes.
    patience
        How to try again.
    progress, tell
        Called with every item that is done, and with remarks for a person.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from trueup.elicit import EmbeddedBackend, Question, elicit
    >>> question = Question("q1", "Which is a fruit?", ("stone", "pear"), answer=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = pathlib.Path(folder) / "store.jsonl"
    ...     elicit([question], EmbeddedBackend("embedded"), store=store)
    Elicited(SmolLM2-135M-Instruct.Q4_1, paper-base, 1 of 1 items read)
    """
    if concurrency < 1 or max_tokens < 1:
        raise InvalidInputError(problems.limits(concurrency, max_tokens))
    if not questions:
        raise QuestionFileError(problems.no_questions())
    check_ids(questions, "the list of questions")
    counts = option_counts(questions)
    if len(counts) > 1 and not pad_options:
        raise problems.mixed(counts)
    chosen = template if isinstance(template, Template) else get_template(template)

    def orders(question: Question) -> list[tuple[int, ...]]:
        return option_orders(question, order, n_orders, seed)

    orders(questions[0])  # refuse a wrong kind before anything is sent
    with Store(store) as kept:
        sender = Sender(
            backend,
            kept,
            patience=patience or Patience(),
            max_requests=max_requests,
            tell=tell,
        )
        asking = Asking(backend, sender, chosen, max_tokens)
        run = _Run(asking, sender, questions, orders, progress)
        _told_store(kept, tell)
        _synchronously(_all(run, backend, concurrency, tell))
    if run.stopped is not None:
        raise ElicitationError(problems.stopped(run.stopped, *_left(run), str(store)))
    return Elicited(
        reports=tuple(run.reports[q.id] for q in questions if q.id in run.reports),
        unread=tuple(run.unread[q.id] for q in questions if q.id in run.unread),
        model=backend.model,
        template=chosen.name,
        n_sent=sender.n_sent,
        n_reused=sender.n_reused,
    )


async def _all(
    run: _Run, backend: Backend, concurrency: int, tell: Callable[[str], None]
) -> None:
    n_workers = min(concurrency, backend.n_slots or concurrency)
    longest = max(run.questions, key=lambda question: len(question.choices))
    style = run.asking.template.style
    try:
        for line in await backend.prepare(style, longest.letters, run.sender.retrying):
            tell(line)
        waiting = iter(run.questions)
        # No worker is cancelled for another's failure: what was sent is kept.
        await asyncio.gather(*(run.work(waiting) for _ in range(n_workers)))
    except (SendError, GaveUpError) as error:
        run.stopped = str(error)
    except BudgetSpentError:
        run.stopped = f"the budget of {run.sender.n_sent:,} requests is spent"
    finally:
        await backend.close()


def _told_store(store: Store, tell: Callable[[str], None]) -> None:
    if len(store):
        tell(f"{len(store):,} replies are in {store.path} already")
    if store.n_damaged:
        tell(f"{store.n_damaged:,} lines of it were cut off and are asked for again")


def _left(run: _Run) -> tuple[int, int]:
    return len(run.reports), len(run.questions)


def _synchronously(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, also where an event loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - raised again below
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
