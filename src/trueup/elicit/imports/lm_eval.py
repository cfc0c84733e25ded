"""Sample logs of lm-evaluation-harness (``--log_samples``).

A line is one document and one filter; log-likelihoods of the choices are in ``resps``,
as texts. What the choices were is in ``arguments``; documents need not say it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, TypeAlias, get_args

from trueup.elicit.asking import Unread
from trueup.elicit.imports.items import Imported, ImportedItem, shares
from trueup.errors import LogFormatError, UnknownNameError

Normalise: TypeAlias = Literal["none", "characters", "bytes", "mutual-info"]
"""What a log-likelihood is divided by, or what is taken from it: choices of more than
one token need a statement."""

FILE_NAME = re.compile(r"^samples_(?P<task>.+?)(_\d{4}-\d{2}-\d{2}T[\d.:+-]+)?\.jsonl$")
MOST_CHOICES = len(ascii_uppercase)


@dataclass(frozen=True, slots=True)
class _Sample:
    """One line, in the words of this package."""

    place: str
    task: str
    doc_id: str
    filter: str
    doc: Mapping[str, Any]
    target: Any
    choices: tuple[str, ...]
    logprobs: tuple[float, ...]
    unconditional: tuple[float, ...] | None
    prompt_hash: str | None

    @property
    def are_letters(self) -> bool:
        return all(len(choice) == 1 for choice in self.choices)


def read_lm_eval(
    paths: Sequence[Path],
    *,
    normalise: str | None = None,
    wanted_filter: str | None = None,
    id_field: str | None = None,
) -> Imported:
    """Read sample logs of one model, for one or several tasks.

    Parameters
    ----------
    paths
        ``samples_<task>_<date>.jsonl`` files.
    normalise
        For choices longer than a letter: ``none`` takes log-likelihoods as they are,
        ``characters`` (the harness's acc_norm) and ``bytes`` divide them by the length
        of the choice, ``mutual-info`` takes off the log-likelihood without context.
    wanted_filter
        Which filter's lines, if there are several.
    id_field
        Field of the document that names the item; by default task and number.
    """
    if normalise is not None and normalise not in get_args(Normalise):
        raise UnknownNameError.of("normalisation", normalise, get_args(Normalise))
    samples = [sample for path in paths for sample in _samples(path)]
    if not samples:
        message = f"{', '.join(map(str, paths))}: there are no samples."
        raise LogFormatError(message)
    samples, notes = _one_filter(samples, wanted_filter)
    samples, more = _without_repeats(samples)
    normalise = _checked_normalise(samples, normalise)
    items, unread = [], []
    for sample in samples:
        name = _item_id(sample, id_field)
        found = shares(_weights(sample, normalise))
        if found is None:
            reason = f"no choice has a finite log-likelihood: {sample.logprobs}"
            unread.append(Unread(name, reason, is_final=True))
            continue
        items.append(_item(sample, name, found))
    if normalise != "none":
        notes.append(f"log-likelihoods are normalised: {normalise}")
    return Imported(tuple(items), tuple(unread), (*notes, *more))


def _item(sample: _Sample, name: str, found: tuple[float, ...]) -> ImportedItem:
    group = sample.doc.get("subject") or sample.doc.get("category") or sample.task
    mass = math.fsum(map(math.exp, sample.logprobs))
    details = {
        "option_mass": mass if sample.are_letters else None,
        "prompt_hash": sample.prompt_hash,
        **{
            f"raw_logprob_{letter}": value
            for letter, value in zip(ascii_uppercase, sample.logprobs, strict=False)
        },
    }
    return ImportedItem(name, found, _answer(sample), str(group), details)


def _samples(path: Path) -> Iterator[_Sample]:
    named = FILE_NAME.match(path.name)
    task = named["task"] if named else path.stem
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _sample(line, f"{path}, line {number:,}", task)


def _sample(line: str, place: str, task: str) -> _Sample:
    try:
        record = json.loads(line)
        arguments, resps = record["arguments"], record["resps"]
        doc = record.get("doc")
        pairs = [_pair(one) for one in _listed(arguments)]
    except (
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
    ) as error:
        message = (
            f"{place}: this is no sample of lm-evaluation-harness "
            f"({type(error).__name__}: {error}).\n"
            "hint: run it with --log_samples and import samples_<task>_<date>.jsonl."
        )
        raise LogFormatError(message) from error
    values = _loglikelihoods(resps, pairs, place)
    choices, unconditional = _conditional(pairs, values, place)
    return _Sample(
        place=place,
        task=task,
        doc_id=str(record.get("doc_id")),
        filter=str(record.get("filter", "none")),
        doc=doc if isinstance(doc, dict) else {},
        target=record.get("target"),
        choices=choices,
        logprobs=values[: len(choices)],
        unconditional=unconditional,
        prompt_hash=record.get("prompt_hash"),
    )


def _listed(arguments: Any) -> list[Any]:  # noqa: ANN401 - as the log has it
    """Arguments of the requests, in order; older versions wrote a list."""
    if not isinstance(arguments, dict):
        return list(arguments)
    names = sorted(arguments, key=lambda name: int(name.rsplit("_", 1)[1]))
    return [arguments[name] for name in names]


def _pair(one: Any) -> tuple[str, Any]:  # noqa: ANN401 - as the log has it
    context, said = (one["arg_0"], one["arg_1"]) if isinstance(one, dict) else one[:2]
    return context, said


def _loglikelihoods(
    resps: Sequence[Any], pairs: Sequence[tuple[str, Any]], place: str
) -> tuple[float, ...]:
    if not all(isinstance(said, str) for _, said in pairs):
        message = (
            f"{place}: the task lets the model write text, and its log holds no "
            "probabilities.\nhint: use the multiple-choice version of the task, or "
            "trueup elicit."
        )
        raise LogFormatError(message)
    try:
        # One list of [log-likelihood, is greedy] for each choice, both as texts.
        values = tuple(float(one[0][0]) for one in resps)
    except (ValueError, TypeError, IndexError, KeyError) as error:
        message = f"{place}: the log-likelihoods cannot be read: {str(resps)[:80]}."
        raise LogFormatError(message) from error
    if len(values) != len(pairs):
        message = f"{place}: {len(values)} responses for {len(pairs)} requests."
        raise LogFormatError(message)
    return values


def _conditional(
    pairs: Sequence[tuple[str, str]], values: tuple[float, ...], place: str
) -> tuple[tuple[str, ...], tuple[float, ...] | None]:
    """Choices, and their log-likelihoods without context where the task logs them."""
    texts = tuple(said.strip() for _, said in pairs)
    half = len(texts) // 2
    contexts = {context for context, _ in pairs[half:]}
    doubled = (
        half >= 2
        and texts[:half] == texts[half:]
        and contexts.isdisjoint(context for context, _ in pairs[:half])
    )
    choices = texts[:half] if doubled else texts
    if not 2 <= len(choices) <= MOST_CHOICES:
        message = f"{place}: {len(choices)} choices; 2 to {MOST_CHOICES} are read."
        raise LogFormatError(message)
    return choices, values[half:] if doubled else None


def _one_filter(
    samples: list[_Sample], wanted: str | None
) -> tuple[list[_Sample], list[str]]:
    names = list(dict.fromkeys(sample.filter for sample in samples))
    if wanted is not None and wanted not in names:
        raise UnknownNameError.of("filter", wanted, names)
    if wanted is None and len(names) > 1 and "none" not in names:
        message = (
            f"{samples[0].place}: lines of {len(names)} filters: {', '.join(names)}.\n"
            "hint: choose one with --filter."
        )
        raise LogFormatError(message)
    chosen = wanted or ("none" if "none" in names else names[0])
    left = [sample for sample in samples if sample.filter == chosen]
    notes = [f"lines of filter {chosen!r}; left aside: {len(samples) - len(left):,}"]
    return left, notes if len(names) > 1 else []


def _without_repeats(samples: list[_Sample]) -> tuple[list[_Sample], list[str]]:
    """The harness appends: a second run into one file repeats every document."""
    kept: dict[tuple[str, str], _Sample] = {}
    for sample in samples:
        name = (sample.task, sample.doc_id)
        before = kept.setdefault(name, sample)
        if before.logprobs != sample.logprobs or before.choices != sample.choices:
            message = (
                f"{sample.place}: document {sample.doc_id} of {sample.task} occurs "
                f"again with other log-likelihoods (before: {before.place}).\n"
                "hint: two runs were logged into one file; keep the lines of one."
            )
            raise LogFormatError(message)
    n_left = len(samples) - len(kept)
    note = f"{n_left:,} repeated lines are the same and count once"
    return list(kept.values()), [note] if n_left else []


def _checked_normalise(samples: Sequence[_Sample], normalise: str | None) -> str:
    texts = [sample for sample in samples if not sample.are_letters]
    if texts and normalise is None:
        message = (
            f"{texts[0].place}: the choices are texts such as {texts[0].choices[0]!r}, "
            "whose log-likelihoods depend on their length.\n"
            "hint: state how to normalise: --normalise none, characters (acc_norm), "
            "bytes or mutual-info."
        )
        raise LogFormatError(message)
    if normalise == "mutual-info":
        without = [s for s in samples if s.unconditional is None]
        if without:
            message = (
                f"{without[0].place}: there are no log-likelihoods without context.\n"
                "hint: they are logged by tasks with the metric acc_mutual_info."
            )
            raise LogFormatError(message)
    return normalise or "none"


def _weights(sample: _Sample, normalise: str) -> list[float]:
    pairs = zip(sample.logprobs, sample.choices, strict=True)
    if normalise == "characters":
        return [value / max(len(choice), 1) for value, choice in pairs]
    if normalise == "bytes":
        return [value / max(len(choice.encode()), 1) for value, choice in pairs]
    if normalise == "mutual-info" and sample.unconditional is not None:
        both = zip(sample.logprobs, sample.unconditional, strict=True)
        return [value - alone for value, alone in both]
    return list(sample.logprobs)


def _answer(sample: _Sample) -> int | None:
    """The target: an index, or one of the choices; as text in either case."""
    if sample.target is None or str(sample.target).strip() == "":
        return None
    text = str(sample.target).strip()
    n_choices = len(sample.choices)
    as_index = int(text) if text.isdecimal() and int(text) < n_choices else None
    as_choice = sample.choices.index(text) if text in sample.choices else None
    letter = ascii_uppercase.find(text) if len(text) == 1 else -1
    if as_index is not None and as_choice is not None and as_index != as_choice:
        message = (
            f"{sample.place}: the target {text!r} is an index, and another choice.\n"
            "hint: remove 'target' from the lines; predictions need no labels."
        )
        raise LogFormatError(message)
    for found in (as_choice, as_index):
        if found is not None:
            return found
    if 0 <= letter < n_choices:
        return letter
    message = f"{sample.place}: the target {text!r} names none of the choices."
    raise LogFormatError(message)


def _item_id(sample: _Sample, id_field: str | None) -> str:
    if id_field is None:
        return f"{sample.task}/{sample.doc_id}"
    if sample.doc.get(id_field) is None:
        raise UnknownNameError.of("field of the document", id_field, sample.doc)
    return str(sample.doc[id_field])
