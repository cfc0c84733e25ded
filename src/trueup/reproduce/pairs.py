"""One pair: run every method, score it, and keep the result as plain values."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trueup.errors import MissingExtraError
from trueup.maps._documents import this_version
from trueup.maps._files import write_atomically
from trueup.reproduce.methods import METHODS, Method, NotApplicableError, Produced
from trueup.reproduce.sample import Sample
from trueup.reproduce.scoring import Said, gain, scores
from trueup.reproduce.study import PairSpec
from trueup.solve.certificate import Certificate

FORMAT = 1
DIGITS = 10
"""Kept of every number: beyond, sums depend on the machine."""


def run_pair(
    spec: PairSpec,
    methods: Sequence[Method] = METHODS,
    *,
    drop_unpaired: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run methods on a pair; labels score, and fit supervised baselines only."""
    sample = Sample.read(spec, drop_unpaired=drop_unpaired)
    before = Said.of(sample.primary).take(sample.scored)
    rows = {}
    for method in methods:
        progress(method.title)
        rows[method.name] = _row(method, sample, before)
    return {
        "model": spec.model,
        "set": spec.set,
        "main": spec.main,
        "n_items": len(sample),
        "n_scored": len(sample.scored),
        "n_outcomes": len(sample.primary.outcomes),
        "n_calibration": (
            None if sample.calibration is None else len(sample.calibration.labels)
        ),
        "pairing": list(sample.notes),
        "methods": rows,
    }


def _row(method: Method, sample: Sample, before: Said) -> dict[str, Any]:
    described = {"title": method.title, "kind": method.kind}
    try:
        made = method(sample)
    except (NotApplicableError, MissingExtraError) as error:
        return {**described, "absent": str(error)}
    after = made.said.take(sample.scored)
    fall = gain(before, after, sample.labels)
    return {
        **described,
        **_rounded(asdict(scores(after, sample.labels))),
        "gain": _number(fall.value),
        "gain_error": _number(fall.error),
        "certificate": _certificate(made),
        "notes": list(made.notes),
    }


def _certificate(made: Produced) -> dict[str, Any] | None:
    proof: Certificate | None = made.certificate
    if proof is None:
        return None
    numbers = {
        "guaranteed_improvement": proof.guaranteed_improvement,
        "fitted": proof.fitted,
        "certified": proof.certified,
    }
    return {
        **_rounded(numbers),
        "supported": proof.guaranteed_improvement > 0,
        "trust": proof.trust,
        "caps": proof.caps,
        "reference_error": proof.reference_error,
        "assumption": proof.assumption,
    }


def _rounded(values: dict[str, float]) -> dict[str, float | None]:
    return {name: _number(value) for name, value in values.items()}


def _number(value: float) -> float | None:
    return round(value, DIGITS) + 0.0 if math.isfinite(value) else None


def pair_key(
    spec: PairSpec, methods: Sequence[Method] = METHODS, *, drop_unpaired: bool = False
) -> str:
    """Names everything a result depends on, the content of files included."""
    sources = (spec.primary, spec.reference, spec.calibration)
    told = [
        FORMAT,
        this_version(),
        spec.model,
        spec.set,
        spec.main,
        drop_unpaired,
        [method.name for method in methods],
        [
            None if one is None else [_digest(Path(one.path)), one.prefix]
            for one in sources
        ],
    ]
    text = json.dumps(told, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def result_path(folder: Path, spec: PairSpec) -> Path:
    """Where the result of a pair is kept; its name is for people."""
    name = f"{spec.set}--{spec.model}"
    safe = "".join(c if c.isalnum() or c in "-._" else "_" for c in name)
    tag = hashlib.sha256(name.encode()).hexdigest()[:6]
    return folder / f"{safe[:100]}--{tag}.json"


def kept_result(path: Path, key: str) -> dict[str, Any] | None:
    """A finished result, if it is there and depends on the same things."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_same = isinstance(content, dict) and content.get("key") == key
    return content["result"] if is_same else None


def keep_result(path: Path, key: str, result: dict[str, Any]) -> None:
    """Write a finished result in one step."""
    content = {"format": FORMAT, "key": key, "result": result}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
    write_atomically(path, text + "\n")
