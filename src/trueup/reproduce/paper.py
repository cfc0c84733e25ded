"""What the paper prints and names, transcribed once, for comparison only.

*Calibration without Ground Truth* (Kong, Song, Wang, Wu; 2026): Tables 1 to 3 hold 84
rows, of which Table 1 repeats some. ``paper_tables.csv`` holds each row once, digit by
digit; ``paper_models.csv`` the models that the paper names, with the names under which
their weights are published. The paper's text says LLaMA-3-3B where only LLaMA-3.2-3B
exists.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

METRICS = ("accuracy", "brier_top", "ece", "confidence_loss")
"""The columns of the paper's tables: ACC, BS, ECE, CL."""

SET_SIZES = {"mmlu-redux": 5700, "commonsense-qa": 1221}
"""Items of each evaluation set, as the paper says."""

_SET_TITLES = {"mmlu-redux": "MMLU-Redux", "commonsense-qa": "CommonsenseQA"}
_SET_NAMES = {
    "mmluredux": "mmlu-redux",
    "mmluredux2": "mmlu-redux",
    "commonsenseqa": "commonsense-qa",
    "csqa": "commonsense-qa",
}
_DECORATION = re.compile(r"[-_](base|instruct|it|chat|\d{4})(?=$|[-_])")


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One row of a printed table."""

    model: str
    set: str
    method: str
    """base, instruct, temperature, histogram, isotonic, or paper (its own method)."""
    accuracy: float | None
    """As a share; None where the paper prints a dash (answers do not change)."""
    brier_top: float
    ece: float
    confidence_loss: float


@dataclass(frozen=True, slots=True)
class PaperModel:
    """A model that the paper names."""

    model: str
    family: str
    main: bool
    """Whether it is in Tables 1 and 2; others are in Table 3, or only named."""
    base: str
    instruct: str


@cache
def paper_rows() -> tuple[PaperRow, ...]:
    """Every row that the paper prints.

    Examples
    --------
    >>> rows = paper_rows()
    >>> len(rows), rows[0].model, rows[0].ece
    (84, 'Qwen3-8B', 0.0326)
    """
    return tuple(
        PaperRow(
            model=row["model"],
            set=row["set"],
            method=row["method"],
            accuracy=_share(row["accuracy_percent"]),
            brier_top=float(row["brier_top"]),
            ece=float(row["ece"]),
            confidence_loss=float(row["confidence_loss"]),
        )
        for row in _read("paper_tables.csv")
    )


@cache
def paper_models() -> tuple[PaperModel, ...]:
    """Every model that the paper names.

    Examples
    --------
    >>> [one.model for one in paper_models() if one.main]
    ['Qwen3-8B', 'LLaMA-3.1-8B', 'Ministral-3-8B']
    """
    return tuple(
        PaperModel(
            row["model"],
            row["family"],
            row["main"] == "yes",
            row["base"],
            row["instruct"],
        )
        for row in _read("paper_models.csv")
    )


def printed(model: str, set_name: str, method: str) -> PaperRow | None:
    """What the paper prints about a method on a model and a set, if it does.

    Examples
    --------
    >>> printed("Qwen/Qwen3-8B", "CommonsenseQA", "paper").accuracy
    0.8329
    >>> printed("Llama-2-7b", "CommonsenseQA", "paper") is None
    True
    """
    known, on = paper_model(model), set_id(set_name)
    if known is None:
        return None
    return _index().get((known.model, on, method))


def paper_model(name: str) -> PaperModel | None:
    """The paper's model that a name means, in its own or its publisher's spelling.

    Examples
    --------
    >>> paper_model("meta-llama/Llama-3.1-8B-Instruct").model
    'LLaMA-3.1-8B'
    """
    return {_plain(one.model): one for one in paper_models()}.get(_plain(name))


def set_id(name: str) -> str:
    """The name of a set as files and tables use it; unknown ones stay as they are.

    Examples
    --------
    >>> set_id("CSQA"), set_id("vlm_mmbench")
    ('commonsense-qa', 'vlm_mmbench')
    """
    return _SET_NAMES.get(re.sub(r"[^a-z0-9]", "", name.lower()), name)


def set_title(name: str) -> str:
    """A set's name as the paper spells it."""
    return _SET_TITLES.get(name, name)


@cache
def _index() -> dict[tuple[str, str, str], PaperRow]:
    return {(row.model, row.set, row.method): row for row in paper_rows()}


def _read(name: str) -> list[dict[str, str]]:
    text = files("trueup.reproduce").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _share(percent: str) -> float | None:
    return round(float(percent) / 100, 6) if percent else None


def _plain(name: str) -> str:
    """Without publisher, decoration and differences of spelling."""
    own = name.lower().rsplit("/", 1)[-1].removeprefix("meta-")
    return _DECORATION.sub("", own).replace("_", "-")
