"""Asking models: what would be asked, and asking it, into named prediction files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trueup.data.files import write_table
from trueup.elicit import Elicited, Patience, get_template, read_questions
from trueup.elicit.backends.base import Backend
from trueup.elicit.output import store_path, unread_lines, unread_path
from trueup.elicit.prompts import Template
from trueup.elicit.questions import Question
from trueup.elicit.runner import Progress, elicit
from trueup.errors import ElicitationError
from trueup.maps._files import write_atomically
from trueup.reproduce.study import (
    BASE,
    CALIBRATION,
    INSTRUCT,
    ModelSpec,
    PairSpec,
    SetSpec,
    Source,
    Study,
)

CHARACTERS_PER_TOKEN = 4
"""A usual average for English; only for the estimate of a dry run."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One model on one set, in one role."""

    model: ModelSpec
    set: SetSpec
    role: str
    output: Path

    @property
    def is_done(self) -> bool:
        """Whether its predictions are there already."""
        return self.output.exists()

    @property
    def template(self) -> Template:
        """The paper's prompt for the role."""
        return get_template("paper-base" if self.role == BASE else "paper-instruct")

    @property
    def source(self) -> str:
        """Where its questions are."""
        is_split = self.role == CALIBRATION and self.set.calibration
        return self.set.calibration if is_split else self.set.questions  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What asking would take, if nothing was answered yet."""

    n_questions: int
    n_requests: int
    n_prompt_tokens: int
    n_reply_tokens: int
    """At most: reasonings may be shorter than their limit."""


def planned(study: Study, folder: str | Path) -> tuple[Ask, ...]:
    """Every question list that every model is asked, in order."""
    asks = []
    for model in study.models:
        for one in study.sets:
            roles = [BASE, INSTRUCT, *([CALIBRATION] if one.calibration else [])]
            for role in roles:
                path = Path(folder, one.name, f"{model.name}.{role}.parquet")
                asks.append(Ask(model, one, role, path))
    return tuple(asks)


def estimate(ask: Ask, questions: Sequence[Question], max_tokens: int) -> Estimate:
    """Requests and tokens of one list of questions.

    A base model reads each question once. An instruct model reasons first, and then
    reads the question and its reasoning again.
    """
    template = ask.template
    n_characters = 0
    for question in questions:
        prompt = template.render(question)
        said = [text for _, text in prompt.messages]
        n_characters += len(prompt.text) + sum(map(len, said))
    n_tokens = round(n_characters / CHARACTERS_PER_TOKEN)
    n_questions = len(questions)
    if template.style == "base":
        return Estimate(n_questions, n_questions, n_tokens, n_questions)
    reasoned = n_questions * max_tokens
    trigger = n_questions * len(template.answer) // CHARACTERS_PER_TOKEN
    return Estimate(
        n_questions,
        2 * n_questions,
        2 * n_tokens + reasoned + trigger,
        reasoned + n_questions,
    )


def read_for(
    ask: Ask, *, limit: int | None = None, corrected: bool = False
) -> list[Question]:
    """The questions of one list."""
    return read_questions(ask.source, corrected=corrected)[:limit]


def gather(
    asks: Iterable[Ask],
    make_backend: Callable[[ModelSpec, str], Backend],
    *,
    limit: int | None = None,
    corrected: bool = False,
    max_tokens: int = 512,
    concurrency: int = 8,
    patience: Patience | None = None,
    starting: Callable[[Ask, int], None] = lambda _ask, _n: None,
    progress: Callable[[Progress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Elicited]:
    """Ask whatever is not done; a killed run goes on where it stopped.

    Parameters
    ----------
    make_backend
        Called with a model and a role when it is about to be asked.
    limit, corrected
        As of :func:`trueup.elicit.read_questions` and the command ``elicit``.
    starting
        Called with each list that is asked and its number of questions.
    """
    found = []
    for ask in asks:
        if ask.is_done:
            tell(f"{ask.output} is there already")
            continue
        questions = read_for(ask, limit=limit, corrected=corrected)
        starting(ask, len(questions))
        ask.output.parent.mkdir(parents=True, exist_ok=True)
        elicited = elicit(
            questions,
            make_backend(ask.model, ask.role),
            store=store_path(ask.output),
            template=ask.template,
            max_tokens=max_tokens,
            concurrency=concurrency,
            patience=patience,
            progress=progress,
            tell=tell,
        )
        _keep(ask, elicited, tell)
        found.append(elicited)
    return found


def _keep(ask: Ask, elicited: Elicited, tell: Callable[[str], None]) -> None:
    for remark in elicited.remarks:
        tell(f"  {remark}")
    if elicited.unread:
        write_atomically(unread_path(ask.output), unread_lines(elicited.unread))
    if not elicited.reports:
        reason = elicited.unread[0].reason
        message = (
            f"nothing that {ask.model.asked(ask.role)[0]} said could be read; the "
            f"first because {reason}.\nhint: {unread_path(ask.output)} lists all."
        )
        raise ElicitationError(message)
    write_table(elicited.table(), ask.output)


def asked_pairs(asks: Sequence[Ask]) -> tuple[PairSpec, ...]:
    """The pairs that asking gives."""
    by_place = {(ask.model.name, ask.set.name, ask.role): ask for ask in asks}
    pairs = []
    for (model, name, role), ask in by_place.items():
        if role != INSTRUCT:
            continue
        base = by_place[model, name, BASE]
        split = by_place.get((model, name, CALIBRATION))
        pairs.append(
            PairSpec(
                model=model,
                set=name,
                primary=Source(str(ask.output)),
                reference=Source(str(base.output)),
                calibration=None if split is None else Source(str(split.output)),
                main=ask.model.main,
            )
        )
    return tuple(pairs)
