"""What ``trueup reproduce`` would ask and run, without doing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trueup.cli._output import Console, aligned

if TYPE_CHECKING:
    from trueup.reproduce.gather import Ask, Estimate
    from trueup.reproduce.study import PairSpec, Study


def dry_run(
    console: Console, study: Study, asks: Sequence[Ask], given: dict[str, Any]
) -> None:
    """Print requests, tokens and pairs."""
    from trueup.reproduce.methods import METHODS

    asked = [_estimated(ask, given) for ask in asks]
    pairs = [_pair_state(pair, given) for pair in study.pairs]
    lines = [_ask_line(one) for one in asked]
    if asked:
        total = {key: sum(one[key] for one in asked) for key in _COUNTED}
        lines.append(("together, at most", _counts(total)))
        lines.append(("estimate", _HOW))
    lines += [(f"{one['model']} on {one['set']}", one["state"]) for one in pairs]
    lines.append(("methods", ", ".join(method.name for method in METHODS)))
    content = {
        "dry_run": True,
        "output": given["output"],
        "asked": asked,
        "pairs": pairs,
        "methods": [method.name for method in METHODS],
    }
    console.result(aligned(lines), content)


_COUNTED = ("n_requests", "n_prompt_tokens", "n_reply_tokens")
_HOW = (
    "4 characters are counted as a token and every reasoning as long as --max-tokens "
    "allows; retries, probes of servers and rendering of chat templates come on top, "
    "replies in stores are not asked for again"
)


def _estimated(ask: Ask, given: dict[str, Any]) -> dict[str, Any]:
    from pathlib import Path

    from trueup.elicit.output import store_path
    from trueup.reproduce.gather import estimate, read_for

    model, endpoint = ask.model.asked(ask.role)
    where: dict[str, Any] = {"model": model, "endpoint": endpoint, "set": ask.set.name}
    where |= {"role": ask.role, "output": str(ask.output), "is_done": ask.is_done}
    if ask.is_done:
        return {**where, "n_questions": 0, **dict.fromkeys(_COUNTED, 0), "n_kept": 0}
    questions = read_for(ask, limit=given["limit"], corrected=given["corrected"])
    guess: Estimate = estimate(ask, questions, given["max_tokens"])
    store = Path(store_path(ask.output))
    n_kept = len(store.read_bytes().splitlines()) if store.exists() else 0
    counts = {key: getattr(guess, key) for key in ("n_questions", *_COUNTED)}
    return {**where, **counts, "n_kept": n_kept}


def _ask_line(one: dict[str, Any]) -> tuple[str, str]:
    title = f"{one['model']} ({one['role']}) on {one['set']}"
    if one["is_done"]:
        return title, f"nothing: {one['output']} is there"
    kept = f"; {one['n_kept']:,} replies are kept already" if one["n_kept"] else ""
    return title, f"{one['n_questions']:,} questions, {_counts(one)}{kept}"


def _counts(one: dict[str, Any]) -> str:
    return (
        f"{one['n_requests']:,} requests, {one['n_prompt_tokens']:,} tokens of "
        f"prompts, {one['n_reply_tokens']:,} of replies"
    )


def _pair_state(pair: PairSpec, given: dict[str, Any]) -> dict[str, Any]:
    from pathlib import Path

    from trueup.reproduce.pairs import kept_result, pair_key, result_path
    from trueup.reproduce.run import RESULTS

    drop = given["drop_unpaired"]
    path = result_path(Path(given["output"], RESULTS), pair)
    kept = kept_result(path, pair_key(pair, drop_unpaired=drop))
    return {
        "model": pair.model,
        "set": pair.set,
        "primary": pair.primary.path,
        "reference": pair.reference.path,
        "state": "finished before" if kept else "to be run",
    }
