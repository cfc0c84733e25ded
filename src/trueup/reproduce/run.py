"""A whole study: every pair, resumable, then tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueup.errors import FileAccessError
from trueup.maps._documents import this_version
from trueup.maps._files import write_atomically
from trueup.reproduce import render
from trueup.reproduce.methods import INFORMATIVE_ERROR, METHODS, Method
from trueup.reproduce.pairs import (
    keep_result,
    kept_result,
    pair_key,
    result_path,
    run_pair,
)
from trueup.reproduce.paper_mode import PAPER_STEP
from trueup.reproduce.study import PairSpec, Source
from trueup.reproduce.tables import Table, make_tables

RESULTS = "results"
"""Folder of finished pairs inside the output folder."""
PREDICTIONS = "predictions"
"""Folder of what models said, where they are asked."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a study found, and where it was written."""

    results: tuple[dict[str, Any], ...]
    tables: tuple[Table, ...]
    files: tuple[str, ...]
    n_reused: int


@dataclass(frozen=True, slots=True)
class Step:
    """How far a run is."""

    n_done: int
    n_pairs: int
    pair: str
    method: str


def run_study(
    pairs: Sequence[PairSpec],
    output: str | Path,
    *,
    title: str = "The paper's experiment",
    notes: Sequence[str] = (),
    asked: Mapping[str, Any] | None = None,
    methods: Sequence[Method] = METHODS,
    drop_unpaired: bool = False,
    progress: Callable[[Step], None] = lambda _: None,
) -> Finished:
    """Run every pair and write the tables; finished pairs are not run again.

    Parameters
    ----------
    pairs
        From :func:`find_pairs` or :func:`read_study`.
    output
        Folder for ``tables.md``, ``tables.csv``, ``tables.html``, ``config.json`` and
        the results of single pairs.
    notes
        Sentences below the title.
    asked
        How models were asked, where they were, for ``config.json``.
    methods
        Which rows; ``instruct`` is always needed.
    drop_unpaired
        Leave out items that only one of two models has.
    progress
        Called before every method of every pair.
    """
    folder = Path(output)
    try:
        (folder / RESULTS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{folder} cannot be made: {error.strerror}."
        raise FileAccessError(message) from error
    results, n_reused = [], 0
    for n_done, spec in enumerate(pairs):
        key = pair_key(spec, methods, drop_unpaired=drop_unpaired)
        path = result_path(folder / RESULTS, spec)
        result = kept_result(path, key)
        if result is None:

            def tell(what: str, n_done: int = n_done, spec: PairSpec = spec) -> None:
                pair = f"{spec.model}, {spec.set}"
                progress(Step(n_done, len(pairs), pair, what))

            result = run_pair(spec, methods, drop_unpaired=drop_unpaired, progress=tell)
            keep_result(path, key, result)
        else:
            n_reused += 1
        results.append(result)
    tables = make_tables(results)
    config = _config(title, pairs, results, asked)
    written = {
        "tables.md": render.markdown(title, tables, notes),
        "tables.csv": render.csv_text(results),
        "tables.html": render.html(title, tables, notes),
        "config.json": json.dumps(config, indent=1, ensure_ascii=False) + "\n",
    }
    for name, text in written.items():
        write_atomically(folder / name, text)
    files = tuple(str(folder / name) for name in written)
    return Finished(tuple(results), tables, files, n_reused)


def _config(
    title: str,
    pairs: Sequence[PairSpec],
    results: Sequence[dict[str, Any]],
    asked: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What decides about the numbers; no path of the machine it ran on."""
    return {
        "title": title,
        "created_by": this_version(),
        "paper_mode": {
            "loss": "confidence",
            "trust": "answer-confidence",
            "caps": True,
            "step": PAPER_STEP,
            "fitted_on": "the evaluation items' own unlabelled outputs",
        },
        "informative_reference_error": INFORMATIVE_ERROR,
        "asked": None if asked is None else dict(asked),
        "pairs": [
            {
                "model": spec.model,
                "set": spec.set,
                "main": spec.main,
                "n_items": one["n_items"],
                "n_scored": one["n_scored"],
                "primary": _source(spec.primary),
                "reference": _source(spec.reference),
                "calibration": _source(spec.calibration),
            }
            for spec, one in zip(pairs, results, strict=True)
        ],
    }


def _source(source: Source | None) -> dict[str, Any] | None:
    if source is None:
        return None
    path = Path(source.path)
    return {"file": f"{path.parent.name}/{path.name}", "prefix": source.prefix}
