"""Logs of inspect_ai: ``.json``, and ``.eval``, which is a ZIP archive of JSON.

Probabilities are there only if the evaluation was run with ``logprobs=True`` and
``top_logprobs=k``. The letter is looked for after the last “ANSWER:”, where the
multiple-choice solver wants it. inspect_ai itself is not needed.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from trueup.elicit import decode
from trueup.elicit.asking import Unread
from trueup.elicit.decode import TokenLogprob, UnreadableReplyError
from trueup.elicit.imports.items import Imported, ImportedItem
from trueup.errors import LogFormatError

ANSWER = re.compile(r"ANSWER\s*:", re.IGNORECASE)
OPTION = re.compile(r"^\(?([A-Z])[).:]\s*(.*?)\s*$", re.MULTILINE)
PASSED_OVER = frozenset(" \n\t*_(\"'`$\\[{")
"""What may stand between “ANSWER:” and the letter."""
ZSTANDARD = 93
"""Compression in ZIP archives that Python cannot read before version 3.14."""


def read_inspect(paths: Sequence[Path]) -> Imported:
    """Read evaluation logs of one model."""
    items: list[ImportedItem] = []
    unread: list[Unread] = []
    notes: list[str] = []
    for path in paths:
        header, samples = _log(path)
        said = header.get("eval") or {}
        chosen, more = _first_epoch(samples)
        notes += more
        for sample in chosen:
            _one(sample, said, items, unread)
    if not items and unread:
        message = (
            f"{paths[0]}: no item has probabilities; the first is "
            f"{unread[0].item_id!r}: {unread[0].reason}.\n"
            "hint: run inspect with --logprobs --top-logprobs 20, on a "
            "multiple-choice task."
        )
        raise LogFormatError(message)
    return Imported(tuple(items), tuple(unread), tuple(dict.fromkeys(notes)))


def _one(
    sample: Mapping[str, Any],
    said: Mapping[str, Any],
    items: list[ImportedItem],
    unread: list[Unread],
) -> None:
    name = str(sample.get("id"))
    try:
        items.append(_item(sample, said))
    except UnreadableReplyError as error:
        unread.append(Unread(name, str(error), is_final=True))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        reason = f"the sample has an unknown shape ({type(error).__name__}: {error})"
        unread.append(Unread(name, reason, is_final=True))


def _item(sample: Mapping[str, Any], said: Mapping[str, Any]) -> ImportedItem:
    if sample.get("error"):
        problem = "the sample ended with an error"
        raise UnreadableReplyError(problem)
    choices = sample.get("choices")
    if not choices or not 2 <= len(choices) <= len(ascii_uppercase):
        problem = "the sample has no choices"
        raise UnreadableReplyError(problem)
    letters = ascii_uppercase[: len(choices)]
    output = sample["output"]["choices"][0]
    tokens = letter_position(_content(output), letters)
    reading = decode.read_options(tokens, letters)
    order = shown_order(sample, choices)
    back = dict(zip(order, range(len(choices)), strict=True))
    given = [back[k] for k in range(len(choices))]
    cut = [letters[k] for k, j in enumerate(given) if reading.censored[j]]
    metadata = sample.get("metadata") or {}
    group = metadata.get("subject") or metadata.get("category") or said.get("task")
    details = {
        "option_mass": reading.option_mass,
        "censored": ",".join(cut),
        "finish_reason": output.get("stop_reason"),
        "raw_text": sample["output"].get("completion"),
        "model": said.get("model"),
        **{
            f"raw_logprob_{letters[k]}": reading.logprobs[j]
            for k, j in enumerate(given)
        },
    }
    found = tuple(reading.probabilities[j] for j in given)
    answer = _answer(sample.get("target"), letters)
    group = None if group is None else str(group)
    return ImportedItem(str(sample["id"]), found, answer, group, details)


def _content(output: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    logprobs = output.get("logprobs")
    if not logprobs or not logprobs.get("content"):
        problem = "no log-probabilities were logged"
        raise UnreadableReplyError(problem)
    return list(logprobs["content"])


def letter_position(
    content: Sequence[Mapping[str, Any]], letters: str
) -> list[TokenLogprob]:
    """Tokens listed where the letter stands after the last “ANSWER:”."""
    texts = [str(token["token"]) for token in content]
    found = list(ANSWER.finditer("".join(texts)))
    if not found:
        problem = "the model did not write “ANSWER:”"
        raise UnreadableReplyError(problem)
    start = 0
    for token, text in zip(content, texts, strict=True):
        after, start = start >= found[-1].end(), start + len(text)
        bare = text.removeprefix("▁").removeprefix("Ġ").strip()
        if not after or not set(text) - PASSED_OVER:
            continue
        if bare in letters and len(bare) == 1:
            return _tokens(token)
        problem = f"after “ANSWER:” stands {text!r}, not a letter of {letters}"
        raise UnreadableReplyError(problem)
    problem = "nothing stands after “ANSWER:”"
    raise UnreadableReplyError(problem)


def _tokens(token: Mapping[str, Any]) -> list[TokenLogprob]:
    listed = token.get("top_logprobs") or []
    if not listed:
        problem = "no alternatives were logged (top_logprobs)"
        raise UnreadableReplyError(problem)
    reply = {"choices": [{"logprobs": {"content": [{"top_logprobs": listed}]}}]}
    return decode.first_token(reply)


def shown_order(sample: Mapping[str, Any], choices: Sequence[str]) -> list[int]:
    """Which choice each letter stood for: the solver may have shuffled them."""
    given = list(range(len(choices)))
    for message in reversed(sample.get("messages") or []):
        text = message.get("content")
        if message.get("role") != "user" or not isinstance(text, str):
            continue
        shown = dict(OPTION.findall(text))
        texts = [shown.get(letter) for letter in ascii_uppercase[: len(choices)]]
        stripped = [str(choice).strip() for choice in choices]
        # Choices that are the same, or written over several lines, tell nothing.
        if len(set(stripped)) == len(stripped) and sorted(map(str, texts)) == sorted(
            stripped
        ):
            return [stripped.index(str(one)) for one in texts]
    return given


def _answer(target: object, letters: str) -> int | None:
    one = target[0] if isinstance(target, list) and len(target) == 1 else target
    text = str(one).strip()
    return letters.index(text) if len(text) == 1 and text in letters else None


def _first_epoch(
    samples: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[str]]:
    first = [sample for sample in samples if sample.get("epoch", 1) == 1]
    n_left = len(samples) - len(first)
    note = f"samples of later epochs are left aside: {n_left:,}"
    return first, [note] if n_left else []


def _log(path: Path) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    try:
        if zipfile.is_zipfile(path):
            header, samples = _archive(path)
        else:
            header = json.loads(path.read_text(encoding="utf-8"))
            samples = list(header["samples"] or [])
        _check_objects(samples)
    except LogFormatError:
        raise
    except (
        ValueError,
        KeyError,
        TypeError,
        zipfile.BadZipFile,
        NotImplementedError,
    ) as error:
        message = (
            f"{path}: this is no log of inspect_ai ({type(error).__name__}: {error}).\n"
            "hint: logs are .eval or .json files, with samples."
        )
        raise LogFormatError(message) from error
    return header, samples


def _check_objects(samples: Sequence[object]) -> None:
    for number, sample in enumerate(samples, start=1):
        if not isinstance(sample, dict):
            message = f"sample {number:,} is no object"
            raise TypeError(message)


def _archive(path: Path) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    header: Mapping[str, Any] = {}
    samples: list[Mapping[str, Any]] = []
    with zipfile.ZipFile(path) as archive:
        for name, content in _members(archive, path):
            if name == "header.json":
                header = json.loads(content)
            else:
                samples.append(json.loads(content))
    if not header:
        message = "header.json"
        raise KeyError(message)
    return header, samples


def _members(archive: zipfile.ZipFile, path: Path) -> Iterator[tuple[str, bytes]]:
    for info in archive.infolist():
        if info.filename != "header.json" and not info.filename.startswith("samples/"):
            continue
        if info.compress_type != ZSTANDARD:
            yield info.filename, archive.read(info)
        else:
            yield info.filename, _unpacked(path, info)


def _unpacked(path: Path, info: zipfile.ZipInfo) -> bytes:
    """A member that zipfile cannot unpack, with the Zstandard of pyarrow."""
    import pyarrow as pa

    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(30)  # fixed part of a local header; then name and extra
        lengths = (
            int.from_bytes(local[26:28], "little"),
            int.from_bytes(local[28:30], "little"),
        )
        file.seek(info.header_offset + 30 + sum(lengths))
        packed = file.read(info.compress_size)
    try:
        codec = pa.Codec("zstd")
        return bytes(codec.decompress(packed, decompressed_size=info.file_size))
    except (pa.ArrowException, OSError) as error:
        message = f"{path}: {info.filename} is damaged: {error}."
        raise LogFormatError(message) from error
