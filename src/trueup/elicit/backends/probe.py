"""Finding out what a server is and can do, with a handful of requests at the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueup.elicit import decode, problems
from trueup.elicit.backends import dialects
from trueup.elicit.backends.base import Reply, Request, Retrying, SendError
from trueup.elicit.backends.dialects import CANDIDATES, Asked, Facts, Kind
from trueup.elicit.prompts import Prompt, Style
from trueup.errors import ElicitationError

TEXT = Prompt(text="Question: Which letter is the first?\nA. A\nB. B\n\nAnswer:")
TALK = (("user", "Which letter is the first: A or B?"),)
START = "The first letter is"


@dataclass(frozen=True, slots=True)
class Probing:
    """A server to be asked, with retries and within the budget."""

    root: str
    model: str
    letters: Sequence[str]
    send: Retrying

    async def ask(self, asked: Asked) -> Reply:
        route, body = asked
        return await self.send(Request(self.root + route, body))

    async def ask_or_none(self, asked: Asked) -> Reply | None:
        """None if the server refuses, or sends something else than JSON."""
        try:
            return await self.ask(asked)
        except SendError as error:
            if error.remedy == "retry":
                raise  # it is not there, or has no time: later questions fail as well
            return None


async def find_out(
    probing: Probing, kind: Kind | None, style: Style
) -> tuple[Facts, list[str]]:
    """What the server can do for a style of prompts, and that in words."""
    models = await probing.ask_or_none(("/v1/models", {}))
    kind = kind or await _kind(probing, models or {})
    said = [f"{probing.root} is {_described(kind)}"]
    names = dialects.model_names(models or {})
    if names and probing.model not in names and kind != "llama.cpp":
        said.append(f"it does not list {probing.model!r}, but {', '.join(names[:5])}")
    facts = Facts(kind, completes=kind != "openai")
    if style == "base":
        facts, more = await _completions(probing, facts)
        return facts, [*said, *more]
    facts, more = await _messages(probing, facts)
    return facts, [*said, *more]


def _described(kind: Kind) -> str:
    unknown = "an OpenAI-style server of unknown kind"
    return unknown if kind == "openai-like" else f"a {kind} server"


async def _kind(probing: Probing, models: Reply) -> Kind:
    found = dialects.kind_from_models(models)
    if found:
        return found
    if probing.root.endswith("api.openai.com"):
        return "openai"
    signs: list[tuple[str, str, Kind]] = [
        ("/props", "default_generation_settings", "llama.cpp"),
        ("/api/version", "version", "ollama"),
        ("/get_model_info", "model_path", "sglang"),
        ("/version", "version", "vllm"),
    ]
    for route, field, kind in signs:
        reply = await probing.ask_or_none((route, {}))
        if reply is not None and field in reply:
            return kind
    return "openai-like"


async def _completions(probing: Probing, facts: Facts) -> tuple[Facts, list[str]]:
    """How a raw text can be continued and its next tokens listed."""
    if not facts.completes:
        raise ElicitationError(problems.no_completions(probing.root))
    facts = replace(facts, ids=await _letter_ids(probing, facts, TEXT))
    facts, listed = await _tops(probing, facts, TEXT)
    said = [listed]
    if facts.kind in {"openai-like", "vllm"}:
        said.append(await _echo(probing, facts))
    return facts, said


async def _messages(probing: Probing, facts: Facts) -> tuple[Facts, list[str]]:
    """How the answer after the reasoning can be read."""
    if facts.kind == "llama.cpp":
        rendering = replace(facts, ending="render")
        asked = dialects.render_body(rendering, Prompt(messages=TALK))
        reply = await probing.ask_or_none(asked)
        if reply is not None and isinstance(reply.get("prompt"), str):
            facts, said = await _completions(probing, rendering)
            return facts, [*said, "answers follow the rendered chat template"]
    facts, why = await _ending(probing, facts)
    prompt = Prompt(messages=TALK, prefill=START, turn="Which?", reasoning="A is first")
    if facts.kind == "vllm":
        facts = replace(facts, ids=await _letter_ids(probing, facts, prompt))
    facts, listed = await _tops(probing, facts, prompt)
    return facts, [listed, why]


async def _tops(probing: Probing, facts: Facts, prompt: Prompt) -> tuple[Facts, str]:
    """The largest number of tokens that the server lists, of those worth trying."""
    reason: object = ""
    for place, top in enumerate(CANDIDATES[facts.kind]):
        asked = dialects.read_body(facts, probing.model, prompt, "AB", top)
        try:
            tokens = decode.first_token(await probing.ask(asked))
        except SendError as error:
            if error.remedy != "skip":
                raise
            reason = error
            continue
        except decode.UnreadableReplyError as error:
            reason = error
            continue
        deeper = CANDIDATES[facts.kind][place:] if facts.kind == "llama.cpp" else (top,)
        listed = f"among the {len(tokens)} most probable tokens"
        how = "by their ids" if facts.ids else listed
        return replace(facts, tops=deeper), f"options are read {how}"
    raise ElicitationError(problems.no_logprobs(probing.root, reason))


async def _letter_ids(
    probing: Probing, facts: Facts, prompt: Prompt
) -> dict[str, tuple[int, ...]]:
    """Ids of the tokens that spell letters, if the server lists tokens by id."""
    if facts.kind not in {"vllm", "sglang"}:
        return {}
    ids: dict[str, tuple[int, ...]] = {}
    for letter in probing.letters:
        found = [
            await _one_token(probing, facts, text) for text in (" " + letter, letter)
        ]
        known = tuple(dict.fromkeys(number for number in found if number is not None))
        if not known:
            return {}
        ids[letter] = known
    trial = replace(facts, ids=ids)
    asked = dialects.read_body(trial, probing.model, prompt, "AB", 5)
    try:
        reply = await probing.ask_or_none(asked)
        listed = {token.id for token in decode.first_token(reply or {})}
    except decode.UnreadableReplyError:
        return {}
    # An older version ignores the list of ids and sends what it likes.
    return ids if {*ids["A"], *ids["B"]} <= listed else {}


async def _one_token(probing: Probing, facts: Facts, text: str) -> int | None:
    asked = dialects.tokenise_body(facts, probing.model, text)
    reply = await probing.ask_or_none(asked) if asked else None
    tokens = reply.get("tokens") if reply else None
    if isinstance(tokens, list) and len(tokens) == 1 and isinstance(tokens[0], int):
        return tokens[0]
    return None


async def _ending(probing: Probing, facts: Facts) -> tuple[Facts, str]:
    """Whether the start of the assistant's message is continued.

    A server that continues sees fewer tokens than one that closes the message and
    opens another one; or it repeats the start in its reply.
    """
    going_on = replace(facts, ending="continue")
    if facts.kind == "ollama":
        return going_on, "answers continue the assistant's message"
    if facts.kind != "openai":
        asked = _with_start(going_on, probing.model)
        flagged = await probing.ask_or_none(asked)
        plain = await probing.ask_or_none((asked[0], _without_flags(asked[1])))
        if flagged is not None and _continues(flagged, plain):
            return going_on, "answers continue the assistant's message"
    why = (
        "this server cannot continue a message: the answer is asked for in a further "
        "turn, which is not the prompt of the paper"
    )
    return replace(facts, ending="turn"), why


def _with_start(facts: Facts, model: str) -> Asked:
    prompt = Prompt(messages=TALK, prefill=START)
    return dialects.chat_body(facts, model, prompt, max_tokens=1)


def _without_flags(body: dict[str, Any]) -> dict[str, Any]:
    flags = {"add_generation_prompt", "continue_final_message"}
    return {name: value for name, value in body.items() if name not in flags}


def _continues(flagged: Reply, plain: Reply | None) -> bool:
    try:
        repeats = decode.generated(flagged).text.startswith(START)
    except decode.UnreadableReplyError:
        return False
    if repeats or plain is None:  # without the flags it may be refused
        return True
    counts = [_prompt_tokens(reply) for reply in (flagged, plain)]
    return None not in counts and counts[0] < counts[1]  # type: ignore[operator]


def _prompt_tokens(reply: Reply) -> int | None:
    usage = reply.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) else None


async def _echo(probing: Probing, facts: Facts) -> str:
    route, body = dialects.read_body(facts, probing.model, TEXT, "AB", facts.tops[0])
    reply = await probing.ask_or_none((route, {**body, "echo": True}))
    try:
        text = decode.generated(reply or {}).text
    except decode.UnreadableReplyError:
        text = ""
    honoured = text.startswith(TEXT.text)
    return f"echo is {'honoured' if honoured else 'ignored'}; it is not used"
