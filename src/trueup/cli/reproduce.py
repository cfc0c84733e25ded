"""``trueup reproduce``: the paper's tables from predictions or models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from trueup.cli._output import Console, harmless, reporting
from trueup.cli._reproduce_options import reproduce_options
from trueup.errors import ElicitationError, UnknownNameError

if TYPE_CHECKING:
    from trueup.elicit.backends.base import Backend
    from trueup.reproduce.gather import Ask
    from trueup.reproduce.run import Finished, Step
    from trueup.reproduce.study import ModelSpec, PairSpec, SetSpec, Study
    from trueup.reproduce.tables import Table


@click.command("reproduce")
@reproduce_options
@reporting
def command(console: Console, **given: Any) -> None:  # noqa: ANN401 - options
    """Repeat the paper's experiment: its Tables 1 to 3, and what they lack.

    Base models are references, instruct models primaries. From prediction files, or
    from models that are asked with the paper's prompts. Whatever was answered or
    finished is kept in the output folder: the same command goes on from there.

    \b
    Example:
      trueup reproduce --predictions runs -o tables
      trueup reproduce --endpoint http://localhost:8000 --dry-run
    """
    study = _study(given)
    asks = _asks(study, given)
    if given["dry_run"]:
        from trueup.cli._reproduce_plan import dry_run

        dry_run(console, study, asks, given)
        return
    if asks:
        _gather(console, asks, given)
    pairs = _pairs(study, asks)
    finished = _run(console, study, pairs, given)
    _result(console, finished, given)


def _study(given: dict[str, Any]) -> Study:
    from trueup.reproduce.study import Study, find_pairs, read_study

    _check_usage(given)
    if given["config"]:
        study = read_study(given["config"], root=given["predictions"])
    elif given["predictions"]:
        study = Study(pairs=find_pairs(given["predictions"]))
    else:
        study = Study(models=_models(given), sets=_sets(given))
    return _only(study, given["only"])


def _check_usage(given: dict[str, Any]) -> None:
    asks = given["base"] or given["instruct"] or given["endpoint"]
    asks = asks or given["backend"] == "transformers"
    if bool(given["base"]) != bool(given["instruct"]):
        message = "--base and --instruct go together"
        raise click.UsageError(message)
    if asks and (given["predictions"] or given["config"]):
        message = "models are asked, or files are read: choose one"
        raise click.UsageError(message)
    if not (asks or given["predictions"] or given["config"]):
        message = (
            "name --predictions DIR or --config FILE, or what to ask: --endpoint URL "
            "(with --base and --instruct for two models), or --backend transformers"
        )
        raise click.UsageError(message)


def _models(given: dict[str, Any]) -> tuple[ModelSpec, ...]:
    from trueup.reproduce.paper import paper_model, paper_models
    from trueup.reproduce.study import ModelSpec, is_main

    where = {
        "base_endpoint": given["base_endpoint"] or given["endpoint"],
        "instruct_endpoint": given["instruct_endpoint"] or given["endpoint"],
        "api_key_env": given["api_key_env"],
    }
    if not given["base"]:
        return tuple(
            ModelSpec(one.model, one.base, one.instruct, main=one.main, **where)
            for one in paper_models()
        )
    known = paper_model(given["instruct"])
    short = given["instruct"].rsplit("/", 1)[-1]
    name = given["name"] or (known.model if known else short)
    pair = given["base"], given["instruct"]
    return (ModelSpec(name, *pair, main=is_main(name), **where),)


def _sets(given: dict[str, Any]) -> tuple[SetSpec, ...]:
    from dataclasses import replace

    from trueup.reproduce.study import PAPER_SETS, SetSpec

    asked = _named(given["questions"], "--questions")
    splits = _named(given["calibration"], "--calibration")
    sets = tuple(SetSpec(*one) for one in asked.items()) or PAPER_SETS
    unknown = sorted(set(splits) - {one.name for one in sets})
    if unknown:
        raise UnknownNameError.of("set", unknown[0], [one.name for one in sets])
    return tuple(replace(one, calibration=splits.get(one.name)) for one in sets)


def _named(values: Sequence[str], option: str) -> dict[str, str]:
    from trueup.reproduce.paper import set_id

    found = {}
    for value in values:
        name, is_there, source = value.partition("=")
        if not (is_there and name and source) or "/" in name or name[0] == ".":
            message = f"{value!r} is not SET=SOURCE"
            raise click.BadParameter(message, param_hint=option)
        found[set_id(name)] = source
    return found


def _only(study: Study, names: Sequence[str]) -> Study:
    from dataclasses import replace

    if not names:
        return study
    known = {one.name for one in study.models} | {one.model for one in study.pairs}
    for name in names:
        if name not in known:
            raise UnknownNameError.of("model", name, known)
    return replace(
        study,
        models=tuple(one for one in study.models if one.name in names),
        pairs=tuple(one for one in study.pairs if one.model in names),
    )


def _asks(study: Study, given: dict[str, Any]) -> tuple[Ask, ...]:
    if not study.models:
        return ()
    from pathlib import Path

    from trueup.reproduce.gather import planned
    from trueup.reproduce.run import PREDICTIONS

    return planned(study, Path(given["output"], PREDICTIONS))


def _pairs(study: Study, asks: Sequence[Ask]) -> tuple[PairSpec, ...]:
    if not asks:
        return study.pairs
    from trueup.reproduce.gather import asked_pairs

    return (*study.pairs, *asked_pairs(asks))


def _gather(console: Console, asks: Sequence[Ask], given: dict[str, Any]) -> None:
    from trueup.cli.elicit import _Shown
    from trueup.elicit import Patience
    from trueup.reproduce.gather import gather

    shown = [_Shown(console)]

    def starting(ask: Ask, n_questions: int) -> None:
        # Every list has a rate of its own.
        shown[0].end()
        shown[0] = _Shown(console)
        model, _ = ask.model.asked(ask.role)
        console.say(f"{model} ({ask.role}) on {ask.set.name}: {n_questions:,} items")

    try:
        gather(
            asks,
            lambda model, role: _backend(console, model, role, given),
            limit=given["limit"],
            corrected=given["corrected"],
            max_tokens=given["max_tokens"],
            concurrency=given["concurrency"],
            patience=Patience(n_attempts=given["attempts"]),
            starting=starting,
            progress=lambda now: shown[0].progress(now),  # noqa: PLW0108 - replaced
            tell=console.say,
        )
    except KeyboardInterrupt:
        message = (
            f"stopped by you.\nhint: every reply is kept in {given['output']}; the "
            "same command goes on from there."
        )
        raise ElicitationError(message) from None
    finally:
        shown[0].end()


def _backend(
    console: Console, model: ModelSpec, role: str, given: dict[str, Any]
) -> Backend:
    from trueup.cli.elicit import _backend as elicit_backend

    name, endpoint = model.asked(role)
    keys = ("backend", "server", "timeout", "context", "threads", "device", "dtype")
    options = {key: given[key] for key in keys}
    return elicit_backend(
        console,
        {
            **options,
            "model": name,
            "endpoint": endpoint,
            "api_key_env": model.api_key_env or given["api_key_env"],
            "thinking": False,
        },
    )


def _run(
    console: Console,
    study: Study,
    pairs: Sequence[PairSpec],
    given: dict[str, Any],
) -> Finished:
    import sys

    from trueup.reproduce.run import run_study

    in_place = sys.stderr.isatty()

    def progress(step: Step) -> None:
        # A log gets one line a pair; a terminal shows the method too, in place.
        what = f"{step.pair}: {step.method}" if in_place else step.pair
        console.progress(what, step.n_done / step.n_pairs)

    finished = run_study(
        pairs,
        given["output"],
        title=study.title,
        asked=_how_asked(study, given),
        drop_unpaired=given["drop_unpaired"],
        progress=progress,
    )
    console.progress("all pairs done", 1.0)
    if finished.n_reused:
        console.say(f"{finished.n_reused:,} pairs were finished before")
    return finished


def _how_asked(study: Study, given: dict[str, Any]) -> dict[str, Any] | None:
    """What decides about replies; no addresses, no paths."""
    from pathlib import Path

    if not study.models:
        return None
    keys = ("limit", "corrected", "max_tokens")
    return {
        **{key: given[key] for key in keys},
        "templates": ["paper-base", "paper-instruct"],
        "models": [
            {"name": one.name, "base": _name(one.base), "instruct": _name(one.instruct)}
            for one in study.models
        ],
        "sets": [
            {"name": one.name, "questions": Path(one.questions).name}
            for one in study.sets
        ],
    }


def _name(model: str) -> str:
    """A model's name; of weights in a file, the file's."""
    from pathlib import Path

    return Path(model).name if model.endswith(".gguf") else model


def _result(console: Console, finished: Finished, given: dict[str, Any]) -> None:
    shown = [finished.tables[0], finished.tables[-1]]
    text = "\n\n".join(_text(table) for table in shown)
    written = "\n".join(f"  {path}" for path in finished.files)
    content = {
        "dry_run": False,
        "output": given["output"],
        "files": list(finished.files),
        "n_reused": finished.n_reused,
        "results": list(finished.results),
    }
    console.result(f"{text}\n\nwritten:\n{harmless(written)}", content)


def _text(table: Table) -> str:
    from trueup.evaluate._render import text_table

    body = text_table(table.header, table.rows, left=table.left)
    return harmless("\n".join([table.title, body, *table.notes]))
