"""The paper's experiment, repeatable: from predictions or models to its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup._packages import lazy_names

if TYPE_CHECKING:
    from trueup.reproduce.methods import METHODS
    from trueup.reproduce.paper import PaperModel, PaperRow, paper_models, paper_rows
    from trueup.reproduce.paper_mode import paper_map
    from trueup.reproduce.run import run_study
    from trueup.reproduce.study import PairSpec, Source, Study, find_pairs, read_study
    from trueup.reproduce.tables import make_tables

__all__ = [
    "METHODS",
    "PairSpec",
    "PaperModel",
    "PaperRow",
    "Source",
    "Study",
    "find_pairs",
    "make_tables",
    "paper_map",
    "paper_models",
    "paper_rows",
    "read_study",
    "run_study",
]

_HOMES = {
    "METHODS": "trueup.reproduce.methods",
    "PairSpec": "trueup.reproduce.study",
    "PaperModel": "trueup.reproduce.paper",
    "PaperRow": "trueup.reproduce.paper",
    "Source": "trueup.reproduce.study",
    "Study": "trueup.reproduce.study",
    "find_pairs": "trueup.reproduce.study",
    "make_tables": "trueup.reproduce.tables",
    "paper_map": "trueup.reproduce.paper_mode",
    "paper_models": "trueup.reproduce.paper",
    "paper_rows": "trueup.reproduce.paper",
    "read_study": "trueup.reproduce.study",
    "run_study": "trueup.reproduce.run",
}

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
