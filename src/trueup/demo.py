"""The whole path on real data: two models, a map, its guarantee, a report, labels.

An unpruned decision tree is certain of every handwritten digit and wrong about a fifth
of them. Gaussian classes on three principal components are weaker, but roughly
calibrated. The map is fitted on what both say about digits whose labels it never sees;
only then are the labels used, to compare what was guaranteed with what happened.

``python -m trueup.demo`` runs it; so do ``trueup demo`` and ``make demo``.
"""

from __future__ import annotations

import csv
import io
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._validate import Floats, Ints
from trueup.api import fit
from trueup.core.reports import AnswerConfidence
from trueup.errors import ExistingFileError, MissingExtraError
from trueup.maps._files import write_atomically
from trueup.report.gather import summarise
from trueup.report.write import render

if TYPE_CHECKING:
    from trueup.maps.report_map import ReportMap
    from trueup.report.summary import ReportSummary

N_LABELLED = 600
RUNGS = (
    ("mean", "mean", None),
    ("confidence", "confidence", None),
    ("answer-confidence", "answer-confidence", False),
    ("answer-confidence with caps", "answer-confidence", True),
)
CHOSEN = "confidence"
"""The rung of the map that is kept: what ECE measures, and no more."""
NAMES = ("Tree", "Gauss")
_WIDTH = 79
_HERE = Path("trueup-demo")
_FILES = ("map.json", "report.html", "primary.csv", "reference.csv", "labels.csv")


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What both models say about the same digits, and the labels held back."""

    primary: AnswerConfidence
    reference: AnswerConfidence
    labels: Ints


@dataclass(frozen=True, slots=True)
class RungResult:
    """What one rung guaranteed, and what the labels say about it."""

    title: str
    guaranteed: float
    actual: float

    @property
    def verdict(self) -> str:
        """Whether the labels agree."""
        if self.guaranteed <= 0:
            return "nothing guaranteed"
        return "held" if self.actual >= self.guaranteed else "CONTRADICTED"


@dataclass(frozen=True, slots=True, eq=False)
class Demo:
    """What the demo found and where it wrote it."""

    text: str
    """The result in plain language, for a terminal."""
    folder: Path
    rungs: tuple[RungResult, ...]
    summary: ReportSummary

    @property
    def report(self) -> Path:
        """The report to open in a browser."""
        return self.folder / "report.html"

    @property
    def map(self) -> Path:
        """The map that was saved."""
        return self.folder / "map.json"

    def to_dict(self) -> dict[str, Any]:
        """The result as one JSON object."""
        return {
            "report": str(self.report),
            "map": str(self.map),
            "headline": self.summary.headline,
            "plain": list(self.summary.plain),
            "rungs": [
                {
                    "rung": one.title,
                    "guaranteed_improvement": one.guaranteed,
                    "actual_improvement": one.actual,
                    "verdict": one.verdict,
                }
                for one in self.rungs
            ],
        }


def run(
    output: Path | None = None,
    *,
    seed: int = 0,
    force: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> Demo:
    """Run the demo: train, fit, apply, audit, report, evaluate.

    Needs the extras ``sklearn`` and ``report``, no network, and less than a minute.

    Parameters
    ----------
    output
        Folder to write into; ``trueup-demo`` here when left out, which is the demo's
        own and is written over.
    seed
        Which split of the digits.
    force
        Whether files in a folder that was named may be replaced.
    progress
        Called with what is being done and the share of the work behind it.
    """
    told = progress or _silent
    folder = _HERE if output is None else output
    _check_folder(folder, force=force or output is None)
    told("training two classifiers", 0.0)
    seen = predict(seed)
    told("fitting at every rung, without labels", 0.1)
    maps = {title: _fitted(seen, trust, caps) for title, trust, caps in RUNGS}
    kept = maps[CHOSEN]
    rungs = tuple(
        RungResult(
            title,
            one.certificate.guaranteed_improvement,
            confidence_loss(seen.primary, seen.labels)
            - confidence_loss(one.apply(seen.primary), seen.labels),
        )
        for title, one in maps.items()
    )
    summary = summarise(
        kept,
        seen.primary,
        seen.reference,
        labels=seen.labels.tolist(),
        names=NAMES,
        title="Handwritten digits: a decision tree against Gaussian classes",
        progress=lambda what, share: told(what, 0.2 + 0.7 * share),
    )
    told("writing", 0.9)
    _write(folder, kept, summary, seen)
    told("done", 1.0)
    text = _text(seen, rungs, summary, folder)
    return Demo(text, folder, rungs, summary)


def predict(seed: int) -> Seen:
    """Train both models on a few labelled digits; let them report on all others."""
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415 - an extra
        from sklearn.decomposition import PCA  # noqa: PLC0415
        from sklearn.discriminant_analysis import (  # noqa: PLC0415
            QuadraticDiscriminantAnalysis,
        )
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415
        from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError.of("scikit-learn", "sklearn") from error
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    train, rest = order[:N_LABELLED], order[N_LABELLED:]
    strong = DecisionTreeClassifier(random_state=0)
    weak = make_pipeline(
        PCA(3, random_state=0), QuadraticDiscriminantAnalysis(reg_param=0.01)
    )
    primary, reference = (
        AnswerConfidence.from_distributions(
            model.fit(images[train], labels[train]).predict_proba(images[rest]),
            outcomes=range(10),
        )
        for model in (strong, weak)
    )
    return Seen(primary, reference, labels[rest])


def confidence_loss(reports: AnswerConfidence, labels: Ints) -> float:
    """Mean of c^2 - 2 c [right]: top-label Brier minus accuracy."""
    right = (reports.answer == labels).astype(np.float64)
    confidence: Floats = reports.confidence
    return float(np.mean(confidence**2 - 2 * confidence * right))


def _fitted(seen: Seen, trust: str, caps: bool | None) -> ReportMap:
    return fit(seen.primary, seen.reference, trust=trust, caps=caps, cells="auto")


def _check_folder(folder: Path, *, force: bool) -> None:
    for name in _FILES:
        if (folder / name).exists() and not force:
            raise ExistingFileError.of(folder / name)
    folder.mkdir(parents=True, exist_ok=True)


def _write(folder: Path, kept: ReportMap, summary: ReportSummary, seen: Seen) -> None:
    kept.save(folder / "map.json")
    write_atomically(folder / "report.html", render(summary, "html"))
    items = [f"digit-{place:04d}" for place in range(len(seen.labels))]
    for name, reports in (("primary", seen.primary), ("reference", seen.reference)):
        rows = zip(items, reports.labels(), reports.confidence.tolist(), strict=True)
        table = _csv(("item_id", "answer", "confidence"), rows)
        write_atomically(folder / f"{name}.csv", table)
    labelled = zip(items, seen.labels.tolist(), strict=True)
    write_atomically(folder / "labels.csv", _csv(("item_id", "label"), labelled))


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _text(
    seen: Seen, rungs: tuple[RungResult, ...], summary: ReportSummary, folder: Path
) -> str:
    """The result for a terminal."""
    found = summary.contradictions
    bets = "" if found is None or not found.contracts else found.contracts[0].sentence
    parts = [
        _heading("trueup demo: calibrating a digit classifier without labels"),
        _predictors(len(seen.labels)),
        _heading("What was assumed"),
        _wrapped(f"{summary.assumption.sentence}"),
        _heading("What is guaranteed, and what the labels say"),
        _wrapped(
            "By how much the confidence loss (top-label Brier minus accuracy) falls: "
            "guaranteed without labels, and measured with the labels held back."
        ),
        _rung_table(rungs),
        _heading("Before and after"),
        _scores(summary),
        _heading("Where the two contradict each other"),
        _wrapped("" if found is None else found.explanation),
        _wrapped(bets),
        _heading("In plain words"),
        *map(_wrapped, summary.plain),
        _heading("What cannot be concluded"),
        *(_wrapped(point, "- ") for point in CAVEATS),
        _heading("Files"),
        _files(folder),
    ]
    return "\n\n".join(part for part in parts if part)


def _heading(title: str) -> str:
    return f"{title}\n{'-' * len(title)}"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _predictors(n_items: int) -> str:
    return textwrap.dedent(
        f"""\
        primary    decision tree on 64 pixels: stronger, certain of everything
        reference  Gaussian classes on 3 principal components: weaker, calibrated?
        trained    both on the same {N_LABELLED} labelled digits
        fitted     on what both say about {n_items:,} other digits, without labels"""
    )


def _rung_table(rungs: tuple[RungResult, ...]) -> str:
    lines = [f"{'the reference is trusted for':<30}{'guaranteed':>11}{'actual':>10}"]
    for one in rungs:
        mark = "<- the map kept" if one.title == CHOSEN else ""
        lines.append(
            f"{one.title:<30}{one.guaranteed:>11.4f}{one.actual:>10.4f}"
            f"  {one.verdict}  {mark}".rstrip()
        )
    return "\n".join(lines)


def _scores(summary: ReportSummary) -> str:
    wanted = ("accuracy", "ece", "brier_top", "confidence_loss")
    titles = ("accuracy", "ECE", "top Brier", "conf. loss")
    lines = [" " * 26 + "".join(f"{title:>11}" for title in titles)]
    for score in () if summary.labelled is None else summary.labelled.scores:
        by_name = {one.name: one.value for one in score.metrics}
        kind = {"supervised": " (sees labels)"}.get(score.kind, "")
        values = "".join(f"{by_name[name]:>11.4f}" for name in wanted)
        lines.append(f"{score.name + kind:<26}{values}")
    return "\n".join(lines)


def _files(folder: Path) -> str:
    report = folder / "report.html"
    return "\n".join(
        [
            f"report  {report}",
            f"        {report.resolve().as_uri()}",
            f"map     {folder / 'map.json'}  (readable JSON)",
            "",
            "The same from files:",
            f"  trueup fit {folder / 'primary.csv'} {folder / 'reference.csv'} \\",
            f"    --trust {CHOSEN} -o another.json --report another.html",
        ]
    )


CAVEATS = (
    """This pair was chosen with the labels in view, among some sixty combinations of
    classifiers, training sizes and grids, because its primary is badly overconfident.
    It shows how to read the numbers, not how often guarantees hold.""",
    """The guarantee is a worst case, not an estimate, and says nothing about the error
    that remains: after the map the tree is better calibrated, not calibrated.""",
    """It is worth what its assumption is worth. The report compares the reference's
    measured error with the break-even.""",
)


def _silent(what: str, share: float) -> None:
    del what, share


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from a terminal: the result to standard output, progress to the other."""
    import argparse  # noqa: PLC0415 - only scripts need it

    parser = argparse.ArgumentParser(
        prog="python -m trueup.demo", description=str(__doc__).splitlines()[0]
    )
    parser.add_argument("--seed", type=int, default=0, help="which split of the digits")
    parser.add_argument("--output", type=Path, help="folder to write into")
    parser.add_argument("--force", action="store_true", help="replace its files")
    chosen = parser.parse_args(arguments)
    shown = sys.stderr.isatty()

    def told(what: str, share: float) -> None:
        if shown:
            sys.stderr.write(f"\r\033[K{share:4.0%} {what}")
            sys.stderr.flush()

    made = run(chosen.output, seed=chosen.seed, force=chosen.force, progress=told)
    if shown:
        sys.stderr.write("\r\033[K")
    sys.stdout.write(made.text + "\n")


if __name__ == "__main__":
    main()
