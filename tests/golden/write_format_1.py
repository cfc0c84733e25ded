"""Write the golden maps of format 1: run once, when the format was new.

A golden file stands for the maps people have saved. It is never written again to make
a test pass; a changed format gets a new number, a new script and new files. Until
version 0.1.0 is released nobody has such maps, and ``python tests/golden/
write_format_1.py`` may still replace them.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import trueup

FOLDER = Path(__file__).parent


def cases() -> dict[str, tuple[trueup.ReportMap, Any]]:
    """One map of each kind, and reports to apply it to: fitted ones and a new one."""
    return {
        "distribution": (
            trueup.fit(
                [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5], [0.7, 0.2, 0.1]],
                [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.2, 0.2, 0.6]],
                trust="distribution",
                outcomes=["rain", "snow", "dry"],
                cells="exact",
            ),
            [[0.7, 0.2, 0.1], [0.25, 0.25, 0.5], [0.6, 0.3, 0.1]],
        ),
        "distribution_log": (
            trueup.fit(
                [0.0, 0.9, 0.9, 0.55],
                [0.3, 0.3, 0.5, 0.5],
                loss="log",
                floor=0.001,
                cells=trueup.Step(0.05),
                groups=["a", "b", "a", "b"],
                sample_weight=[1, 2, 3, 4],
                reference_error=0.01,
            ),
            [0.0, 0.9, 0.55, 0.31],
        ),
        "answer_confidence": (
            trueup.fit(
                answers("AB", [0.5, 0.6]),
                answers("AA", [0.7, 0.7]),
                loss="confidence",
                cells="exact",
            ),
            answers("ABB", [0.5, 0.6, 0.9]),
        ),
        "adaptive": (adaptive(), [[0.9, 0.05, 0.05], [0.2, 0.3, 0.5]]),
        "quantile": (
            trueup.fit(
                medians([5, 2, 5, 0]), ninth_deciles([1, 1, 1, 1]), cells="exact"
            ),
            medians([5, 2, 0, 1]),
        ),
        "mode": (
            trueup.fit(modes("ABB"), answers("AAA", [0.7] * 3), cells="exact"),
            modes("AB"),
        ),
    }


def adaptive() -> trueup.ReportMap:
    """A formula on adaptive cells, with groups and an assertion."""
    rng = np.random.default_rng(0)
    reference = rng.dirichlet(np.ones(3), 120)
    return trueup.fit(
        rng.dirichlet(np.full(3, 0.3), 120),
        reference,
        groups=["a", "b"] * 60,
        assume="informative",
        reference_error=0.02,
        cells="auto",
    )


def answers(answer: str, confidence: list[float]) -> trueup.AnswerConfidence:
    """Answers A or B with a confidence each."""
    return trueup.AnswerConfidence(
        answer=list(answer), confidence=confidence, outcomes=["A", "B"]
    )


def medians(value: list[int]) -> trueup.PointReport:
    """Medians of a number that may be 0, 1, 2 or 5."""
    return trueup.PointReport(value=value, outcomes=[0, 1, 2, 5], property="median")


def ninth_deciles(value: list[int]) -> trueup.PointReport:
    """Values that the same number exceeds at most one time in ten."""
    return trueup.PointReport(
        value=value, outcomes=[0, 1, 2, 5], property="quantile", level=0.9
    )


def modes(value: str) -> trueup.PointReport:
    """Most likely outcomes."""
    return trueup.PointReport(value=list(value), outcomes=["A", "B"], property="mode")


def plain(reports: Any) -> Any:
    """Reports as JSON values."""
    if isinstance(reports, trueup.AnswerConfidence):
        return {"answer": reports.labels(), "confidence": reports.confidence.tolist()}
    if isinstance(reports, trueup.PointReport):
        return {"value": reports.labels()}
    return np.asarray(reports).tolist()


def what_it_does(fitted: trueup.ReportMap, primary: Any) -> dict[str, Any]:
    """Everything applying a map gives, as JSON values."""
    drawn = fitted.randomised
    return {
        "applied": plain(fitted.apply(primary)),
        "distributions": fitted.distributions(primary).tolist(),
        "weights": None if drawn is None else drawn.weights(primary).tolist(),
    }


def main() -> None:
    """Write every map, and beside them what each does."""
    expected = {}
    for name, (fitted, primary) in cases().items():
        fitted.save(FOLDER / f"map_format_1_{name}.json")
        expected[name] = {"primary": plain(primary), **what_it_does(fitted, primary)}
    text = json.dumps(expected, indent=1)
    (FOLDER / "expected_format_1.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trueup.TrueupWarning)
        main()
