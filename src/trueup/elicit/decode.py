"""Replies of servers into option probabilities: pure functions.

Five shapes occur. Completions of OpenAI and vLLM hold a dictionary of texts; chat
completions, and both routes of llama.cpp, hold lists of tokens; Ollama, SGLang and
llama.cpp's own route have their own. Tokens are matched by their bytes or ids, because
the text of a token that is not valid UTF-8 alone is not what it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LARGEST_LOGPROB = 0.01
"""Rounding may lift a probability above one by this much, not more."""


class UnreadableReplyError(Exception):
    """A reply from which no probabilities of the options can be read; says why."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token that could have come next, and its log-probability."""

    text: str
    logprob: float
    id: int | None = None
    raw: bytes | None = None

    @property
    def spelling(self) -> str:
        """What the token writes, with tokenisers' marks for a space as a space."""
        if self.raw:
            return self.raw.decode("utf-8", errors="replace")
        return self.text.replace("▁", " ").replace("Ġ", " ")


@dataclass(frozen=True, slots=True)
class Generated:
    """Text that a model wrote."""

    text: str
    thinking: str = ""
    """What a server's reasoning parser took out of the text."""
    finish_reason: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """Log-probabilities of the options as next token.

    A censored option was not among the tokens that the server listed. Its entry is the
    least log-probability listed, which bounds it from above.
    """

    logprobs: tuple[float, ...]
    censored: tuple[bool, ...]

    @property
    def option_mass(self) -> float:
        """Probability of all options together, without censored ones."""
        seen = zip(self.logprobs, self.censored, strict=True)
        return math.fsum(math.exp(value) for value, cut in seen if not cut)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Renormalised over the options; a censored one counts with its bound."""
        top = max(self.logprobs)
        parts = [math.exp(value - top) for value in self.logprobs]
        total = math.fsum(parts)
        return tuple(part / total for part in parts)


def read_options(
    tokens: Sequence[TokenLogprob], letters: Sequence[str], ids: Mapping[int, str] = {}
) -> Reading:
    """Log-probability of each letter: its spellings with and without a space, added.

    Examples
    --------
    >>> from math import exp, log
    >>> tokens = [TokenLogprob(" A", log(0.5)), TokenLogprob("A", log(0.1)),
    ...           TokenLogprob(" B", log(0.2)), TokenLogprob(" the", log(0.05))]
    >>> reading = read_options(tokens, "ABC")
    >>> [round(exp(value), 3) for value in reading.logprobs]
    [0.6, 0.2, 0.05]
    >>> reading.censored
    (False, False, True)
    """
    found: dict[str, list[float]] = {letter: [] for letter in letters}
    for token in _distinct(tokens):
        letter = ids.get(token.id, "") if token.id is not None else ""
        spelling = letter or token.spelling.removeprefix(" ")
        if spelling in found:
            found[spelling].append(token.logprob)
    if not any(map(_any_finite, found.values())):
        raise UnreadableReplyError(_none_found(tokens, letters))
    bound = min(t.logprob for t in tokens if math.isfinite(t.logprob))
    return Reading(
        logprobs=tuple(_log_sum(found[x]) if found[x] else bound for x in letters),
        censored=tuple(not found[letter] for letter in letters),
    )


def _any_finite(values: Sequence[float]) -> bool:
    """Whether there is a value, and one that is not minus infinity."""
    return any(math.isfinite(value) for value in values)


def _distinct(tokens: Iterable[TokenLogprob]) -> Iterable[TokenLogprob]:
    """Each token once: some servers list the chosen token again."""
    seen: set[object] = set()
    for token in tokens:
        name = token.id if token.id is not None else (token.raw or token.text)
        if name not in seen:
            seen.add(name)
            yield token


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    if not math.isfinite(top):
        return top
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


def _none_found(tokens: Sequence[TokenLogprob], letters: Sequence[str]) -> str:
    best = max(tokens, key=lambda token: token.logprob)
    return (
        f"none of the options {', '.join(letters)} is among the {len(tokens)} tokens "
        f"listed; the most probable is {best.spelling!r}"
    )


def first_token(reply: Mapping[str, Any]) -> list[TokenLogprob]:
    """Every token listed for the first position that the model wrote."""
    try:
        listed = _listed(reply)
        tokens = [_token(entry) for entry in listed]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        problem = f"the reply has an unknown shape ({type(error).__name__}: {error})"
        raise UnreadableReplyError(problem) from error
    if not tokens:
        problem = (
            "the reply lists no log-probabilities; some servers send none if the most "
            "probable token ends the text"
        )
        raise UnreadableReplyError(problem)
    for token in tokens:
        if math.isnan(token.logprob) or token.logprob > LARGEST_LOGPROB:
            problem = f"{token.logprob!r} for {token.text!r} is not a log-probability"
            raise UnreadableReplyError(problem)
    return tokens


def _listed(reply: Mapping[str, Any]) -> list[Any]:
    if "meta_info" in reply:  # SGLang
        meta = reply["meta_info"]
        named = meta.get("output_token_ids_logprobs") or [[]]
        top = meta.get("output_top_logprobs") or [[]]
        return [*(named[0] or []), *(top[0] or [])]
    if "choices" not in reply:
        # Ollama, or llama.cpp's own route.
        entries = reply.get("logprobs") or reply.get("completion_probabilities")
        return list(entries[0]["top_logprobs"]) if entries else _no_logprobs()
    logprobs = reply["choices"][0].get("logprobs")
    if not logprobs:
        return _no_logprobs()
    if logprobs.get("content") is not None:
        content = logprobs["content"]
        return list(content[0]["top_logprobs"]) if content else []
    top = logprobs.get("top_logprobs")
    if top is None:
        return _no_logprobs()
    return list(top[0].items()) if top and top[0] else []


def _no_logprobs() -> list[Any]:
    problem = "the reply holds no log-probabilities; this server or model gives none"
    raise UnreadableReplyError(problem)


def _token(entry: Any) -> TokenLogprob:  # noqa: ANN401 - whatever the server sent
    if isinstance(entry, tuple):  # an item of the legacy dictionary
        text, logprob = entry
        if text.startswith("token_id:"):
            return TokenLogprob("", _number(logprob), int(text[len("token_id:") :]))
        return TokenLogprob(text, _number(logprob))
    if isinstance(entry, list):  # SGLang: log-probability, id, text
        logprob, number, text = entry
        return TokenLogprob(text or "", _number(logprob), number)
    raw = entry.get("bytes")
    text = entry["token"]
    number = entry.get("id")
    if text.startswith("token_id:"):
        number = int(text[len("token_id:") :])
    return TokenLogprob(
        text, _number(entry["logprob"]), number, bytes(raw) if raw else None
    )


def _number(value: Any) -> float:  # noqa: ANN401 - whatever the server sent
    # JSON has no infinity: servers write null for a token that cannot come next.
    return -math.inf if value is None else float(value)


def generated(reply: Mapping[str, Any]) -> Generated:
    """The text a model wrote, of any shape."""
    try:
        if "meta_info" in reply:  # SGLang
            reason = reply["meta_info"].get("finish_reason") or {}
            kind = reason.get("type", "") if isinstance(reason, Mapping) else reason
            return Generated(str(reply["text"]), finish_reason=str(kind))
        if "choices" not in reply:  # Ollama
            message = reply.get("message") or reply
            text = message["content"] if "content" in message else message["response"]
            reason = str(reply.get("done_reason") or "")
            return Generated(text, message.get("thinking") or "", reason)
        choice = reply["choices"][0]
        reason = str(choice.get("finish_reason") or "")
        if "message" not in choice:
            return Generated(str(choice["text"]), finish_reason=reason)
        message = choice["message"]
        thinking = message.get("reasoning_content") or message.get("reasoning") or ""
        return Generated(message.get("content") or "", thinking, reason)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        problem = f"the reply has an unknown shape ({type(error).__name__}: {error})"
        raise UnreadableReplyError(problem) from error


def visible_reasoning(said: Generated) -> str:
    """What the model said before answering, with an open think block closed.

    Examples
    --------
    >>> visible_reasoning(Generated("<think>It is B"))
    '<think>It is B</think>'
    """
    text = said.text if said.text.strip() else said.thinking
    opened, closed = text.rfind("<think>"), text.rfind("</think>")
    return f"{text}</think>" if opened > closed else text
