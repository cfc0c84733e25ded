"""Real predictors: what the maps do to pairs whose outcomes are known.

    python benchmarks/real.py DIR [--sets mmlu10k,cifar100] [--jobs 2] [--json FILE]

DIR holds one folder a prediction set, with ``data.parquet`` or ``logits.parquet``:
a ``label`` column (index of the true class) and ``<model>__p_<class>`` or
``<model>__logit_<class>`` columns. Labels choose the pairs, fit supervised temperature
scaling and score; no map of ours sees one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
import zlib
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import trueup
from trueup.evaluate import Daca, ReferenceCopy, TemperatureScaling

HARM = 0.002
"""Change in top-label Brier that counts as help or harm."""
SLACK = 0.001
LOG_FLOOR = 1e-6
"""Least probability under log loss, because Brier maps reach zero."""
METRICS = ("top_brier", "ece", "cl", "brier", "log")

INFORMATIVE, BOTH = ("informative",), ("informative", "stronger")
BY_CONFIDENCE = ("informative-by-confidence",)
OURS = {
    "mean": {"trust": "mean"},
    "confidence": {"trust": "confidence"},
    "answer-confidence": {"trust": "answer-confidence"},
    "answer-conf + caps": {"trust": "answer-confidence", "caps": True},
    "distribution": {"trust": "distribution"},
    "distribution .05": {"trust": "distribution", "reference_error": 0.05},
    "distribution .1": {"trust": "distribution", "reference_error": 0.1},
    "mean +inf": {"trust": "mean", "assume": INFORMATIVE, "reference_error": 0.02},
    "mean +inf +str": {"trust": "mean", "assume": BOTH, "reference_error": 0.02},
    "confidence +inf": {
        "trust": "confidence",
        "assume": INFORMATIVE,
        "reference_error": 0.02,
    },
    "confidence +byc": {
        "trust": "confidence",
        "assume": BY_CONFIDENCE,
        "reference_error": 0.02,
    },
    "answer-conf +inf": {
        "trust": "answer-confidence",
        "assume": INFORMATIVE,
        "reference_error": 0.02,
    },
    "answer-conf +inf +str": {
        "trust": "answer-confidence",
        "assume": BOTH,
        "reference_error": 0.02,
    },
    "temperature +inf": {
        "trust": "mean",
        "assume": INFORMATIVE,
        "reference_error": 0.02,
        "family": "temperature",
    },
    "temperature +inf +str": {
        "trust": "mean",
        "assume": BOTH,
        "reference_error": 0.02,
        "family": "temperature",
    },
    "temperature +byc": {
        "trust": "confidence",
        "assume": BY_CONFIDENCE,
        "reference_error": 0.02,
        "family": "temperature",
    },
    "temperature +byc +str": {
        "trust": "confidence",
        "assume": (*BY_CONFIDENCE, "stronger"),
        "reference_error": 0.02,
        "family": "temperature",
    },
}
ASSERTED = tuple(name for name, options in OURS.items() if "assume" in options)
GRID, BARE_GRID = "paper's grid", "grid without caps"
GRIDS = {GRID: True, BARE_GRID: False}
"""The paper believes that the reference's answer is the likeliest outcome (caps)."""
DACA, COPY, SUPERVISED = "DACA", "copy reference", "supervised TS"
METHODS = (*OURS, *GRIDS, DACA, COPY, SUPERVISED)
LEGEND = f"""
Mean changes on the half not fitted on; below zero is better. help, harm: share of pairs
whose top-label Brier moved by more than {HARM:g}. supp: share of certificates that
promise something. contr: share of all certificates that promise more than was
realised, by anything, by {SLACK:g}, by 1.645 standard errors of the realised gain.
of TS: share of the top-label Brier gain of supervised temperature scaling. Log loss
sees no probability below {LOG_FLOOR:g}."""


@cache
def read_set(folder):
    """Labels and every model's probabilities."""
    path = next(p for p in files_of(Path(folder)) if p.exists())
    table = pq.read_table(path)
    columns, is_logit = {}, False
    for name in table.column_names:
        for mark in ("__p_", "__logit_"):
            if mark in name:
                columns.setdefault(name.split(mark)[0], []).append(name)
                is_logit = mark == "__logit_"
    models = {}
    for model, names in columns.items():
        rows = np.column_stack([table[name].to_numpy() for name in names])
        rows = rows.astype(np.float64)
        if is_logit:
            rows = np.exp(rows - rows.max(axis=1, keepdims=True))
        models[model] = rows / rows.sum(axis=1, keepdims=True)
    return table["label"].to_numpy().astype(np.int64), models


def files_of(folder):
    return folder / "data.parquet", folder / "logits.parquet"


def top(rows):
    return rows.argmax(axis=1), rows.max(axis=1)


def ece(confidence, hit):
    """Top-label ECE over ten bins (a, b] of equal width."""
    place = np.clip(np.ceil(confidence * 10).astype(int) - 1, 0, 9)
    gaps = np.bincount(place, weights=confidence - hit, minlength=10)
    return float(np.abs(gaps).sum() / len(hit))


def scores(rows, answer, confidence, labels):
    """Metrics, and the loss of each item; ``rows`` is None for bare answers."""
    hit = (answer == labels).astype(np.float64)
    square = (confidence - hit) ** 2
    found = {
        "top_brier": float(square.mean()),
        "ece": ece(confidence, hit),
        "cl": float((confidence**2 - 2 * confidence * hit).mean()),
        "accuracy": float(hit.mean()),
    }
    assert abs(found["cl"] - (found["top_brier"] - found["accuracy"])) < 1e-9
    if rows is None:
        return found, confidence**2 - 2 * confidence * hit
    stated = rows[np.arange(len(labels)), labels]
    full = (rows**2).sum(axis=1) - 2 * stated + 1
    found["brier"] = float(full.mean())
    found["log"] = float(-np.log(np.maximum(stated, LOG_FLOOR)).mean())
    return found, full


def pairs_of(name, folder, is_control):
    """Ordered pairs worth fitting, by the rule of the study."""
    labels, models = read_set(str(folder))
    facts = {}
    for model, rows in models.items():
        answer, confidence = top(rows)
        hit = (answer == labels).astype(np.float64)
        facts[model] = hit.mean(), ece(confidence, hit)
    for primary, (accuracy, error) in facts.items():
        for reference, (weaker, trusted) in facts.items():
            fits = accuracy > weaker and trusted <= min(0.05, error - 0.01)
            if primary != reference and (is_control or fits):
                yield name, str(folder), primary, reference


def run_pair(pair, *, seed):
    """Fit everything on a random half, score on the other."""
    warnings.simplefilter("ignore")
    name, folder, first, second = pair
    labels, models = read_set(folder)
    primary, reference = models[first], models[second]
    key = zlib.crc32(f"{name}/{first}/{second}".encode())
    order = np.random.default_rng([seed, key]).permutation(len(labels))
    fit, held = order[: len(order) // 2], order[len(order) // 2 :]
    before, own_before = scores(primary[held], *top(primary[held]), labels[held])
    _, own_cl = scores(None, *top(primary[held]), labels[held])
    results, seconds = {}, {}

    def keep(method, rows, said, *, started, certificate=None):
        after, own_after = scores(rows, *said, labels[held])
        entry = {m: after[m] - before[m] for m in METRICS if m in after}
        if certificate is not None:
            old = own_before if rows is not None else own_cl
            gain = old - own_after
            entry |= {
                "guaranteed": certificate.guaranteed_improvement,
                "realised": float(gain.mean()),
                "noise": float(gain.std() / np.sqrt(len(gain))),
                "supported": bool(certificate.guaranteed_improvement > 0),
            }
        results[method] = entry
        seconds[method] = time.perf_counter() - started

    for method, options in OURS.items():
        started = time.perf_counter()
        fitted = trueup.fit(
            primary[fit], reference[fit], loss="brier", cells="auto", **options
        )
        rows = fitted.apply(primary[held])
        keep(method, rows, top(rows), certificate=fitted.certificate, started=started)

    as_answers = trueup.AnswerConfidence.from_distributions
    for method, caps in GRIDS.items():
        started = time.perf_counter()
        grid = trueup.fit(
            as_answers(primary[fit]),
            as_answers(reference[fit]),
            loss="confidence",
            trust="answer-confidence",
            caps=caps,
            cells=trueup.Step(0.01),
        )
        moved = grid.apply(as_answers(primary[held]))
        said = moved.answer, moved.confidence
        keep(method, None, said, certificate=grid.certificate, started=started)

    started = time.perf_counter()
    rows = Daca.fit(primary[fit], reference[fit]).apply(primary[held])
    keep(DACA, rows, top(rows), started=started)
    copied = ReferenceCopy.fit(primary[fit], reference[fit])
    rows = copied.apply(primary[held], reference=reference[held])
    keep(COPY, rows, top(rows), started=time.perf_counter())
    started = time.perf_counter()
    rows = TemperatureScaling.fit(primary[fit], labels[fit]).apply(primary[held])
    keep(SUPERVISED, rows, top(rows), started=started)
    return {
        "set": name,
        "primary": first,
        "reference": second,
        "before": before,
        "results": results,
        "seconds": seconds,
    }


def column(pairs, method, key):
    found = [p["results"].get(method, {}).get(key) for p in pairs]
    return np.array([x for x in found if x is not None], dtype=float)


def summary(pairs, method):
    """One row of the table."""
    change = column(pairs, method, "top_brier")
    if not len(change):
        return None
    done = [p for p in pairs if method in p["results"]]
    supervised = -column(done, SUPERVISED, "top_brier").sum()
    row = {m: float(np.mean(x)) for m in METRICS if len(x := column(done, method, m))}
    row |= {
        "pairs": len(change),
        "helped": float((change < -HARM).mean()),
        "harmed": float((change > HARM).mean()),
        "worst": float(change.max()),
        "recovered": float(-change.sum() / supervised) if supervised > 0 else None,
    }
    said, got = column(done, method, "guaranteed"), column(done, method, "realised")
    if len(said):
        beyond = 1.645 * column(done, method, "noise")
        row |= {
            "supported": float((said > 0).mean()),
            "contradicted": float(((said > 0) & (said > got)).mean()),
            "contradicted_by_slack": float(((said > 0) & (said > got + SLACK)).mean()),
            "contradicted_beyond_noise": float(
                ((said > 0) & (said > got + beyond)).mean()
            ),
        }
    return row


def cell(value, form):
    return f"{value:{form}}" if value is not None else "-"


def print_table(title, pairs):
    print(f"\n{title}: {len(pairs)} pairs")
    print(
        f"{'':<22}{'topBS':>8}{'ECE':>8}{'CL':>8}{'Brier':>8}{'log':>8}{'help':>6}"
        f"{'harm':>6}{'worst':>8}{'supp':>6}{'contr':>7}{'>.001':>7}{'>noise':>7}"
        f"{'of TS':>7}"
    )
    for method in METHODS:
        row = summary(pairs, method)
        if row is None:
            continue
        line = "".join(f"{cell(row.get(m), '+.4f'):>8}" for m in METRICS)
        line += f"{row['helped']:6.0%}{row['harmed']:6.1%}{row['worst']:+8.4f}"
        line += f"{cell(row.get('supported'), '.0%'):>6}"
        for key in ("", "_by_slack", "_beyond_noise"):
            line += f"{cell(row.get('contradicted' + key), '.1%'):>7}"
        line += f"{cell(row['recovered'], '.0%'):>7}"
        few = "" if row["pairs"] == len(pairs) else f"  ({row['pairs']} pairs)"
        print(f"{method:<22}{line}{few}")


def targets(pairs):
    """The targets of the study, each with what was measured."""
    lowest, informative = summary(pairs, "confidence"), summary(pairs, "mean +inf")
    bare, capped = "answer-confidence", "answer-conf + caps"
    for name in (bare, capped):
        row = summary(pairs, name)
        yield f"{name}: harmed {row['harmed']:.1%} (at most 2 %)", row["harmed"] <= 0.02
        yield (
            f"{name}: contradicted {row['contradicted']:.1%} (at most 5 %)",
            row["contradicted"] <= 0.05,
        )
    for ours, theirs in (
        (bare, BARE_GRID),
        (capped, GRID),
        (bare, GRID),
        (bare, DACA),
    ):
        change, other = (summary(pairs, name)["top_brier"] for name in (ours, theirs))
        words = f"top-label Brier {change:+.4f}, {theirs} {other:+.4f}"
        yield f"{ours}: {words} (better)", change < other
    for title, row in (("confidence", lowest), ("mean +inf", informative)):
        yield f"{title}: harmed {row['harmed']:.1%} (none)", row["harmed"] == 0
        yield (
            f"{title}: contradicted {row['contradicted']:.1%} (none)",
            row["contradicted"] == 0,
        )


def best_combination(pairs):
    """Most gain among assertions that harm at most 1 %; None if all harm more."""
    found = {name: summary(pairs, name) for name in ASSERTED}
    safe = {n: r for n, r in found.items() if r is not None and r["harmed"] <= 0.01}
    return min(safe, key=lambda n: safe[n]["top_brier"], default=None)


def print_choice(pairs):
    """Choose a combination on some sets, confirm it on the others, both ways."""
    names = sorted({p["set"] for p in pairs})
    parts = names[::2], names[1::2]
    for chosen_on, confirmed_on in (parts, parts[::-1]):
        best = best_combination([p for p in pairs if p["set"] in chosen_on])
        if best is None or not confirmed_on:
            print("  best combination: none harms at most 1 %")
            continue
        row = summary([p for p in pairs if p["set"] in confirmed_on], best)
        met = row["harmed"] <= 0.01 and (row["recovered"] or 0) >= 0.5
        print(
            f"  {'met   ' if met else 'MISSED'} best combination {best!r}, chosen on "
            f"{', '.join(chosen_on)}; on {', '.join(confirmed_on)}: recovered "
            f"{cell(row['recovered'], '.0%')} (at least 50 %), harmed "
            f"{row['harmed']:.1%} (at most 1 %)"
        )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR")
    parser.add_argument("--sets", help="only these, with commas")
    parser.add_argument(
        "--controls", default="flares", help="prefixes of control sets, with commas"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=20260127)
    parser.add_argument("--json", type=Path, help="also write every pair to this file")
    return parser.parse_args()


def all_pairs(options):
    """Every pair of every set; slow ones first, so that none idles in the end."""
    found, controls = [], set()
    prefixes = tuple(options.controls.split(",")) if options.controls else ()
    wanted = options.sets.split(",") if options.sets else None
    for folder in sorted(options.folder.iterdir()):
        has_data = any(path.exists() for path in files_of(folder))
        if not has_data or (wanted and folder.name not in wanted):
            continue
        is_control = bool(prefixes) and folder.name.startswith(prefixes)
        controls |= {folder.name} if is_control else set()
        _, models = read_set(str(folder))
        n_outcomes = next(iter(models.values())).shape[1]
        pairs = list(pairs_of(folder.name, folder, is_control))
        print(f"{folder.name}: {len(models)} models, {len(pairs)} pairs", flush=True)
        found += [(n_outcomes, pair) for pair in pairs]
    found.sort(key=lambda one: -one[0])
    return [pair for _, pair in found], controls


def main():
    options = arguments()
    if options.folder is None:  # `make bench` runs every script without arguments
        print("skipped: pass a folder of prediction sets")
        return
    start = time.perf_counter()
    pairs, controls = all_pairs(options)
    work = partial(run_pair, seed=options.seed)
    done = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for job in as_completed([pool.submit(work, pair) for pair in pairs]):
            done.append(job.result())
            spent = time.perf_counter() - start
            left = spent / len(done) * (len(pairs) - len(done))
            print(
                f"\r{len(done)}/{len(pairs)} pairs, {spent:.0f} s, about {left:.0f} s "
                "left   ",
                end="",
                file=sys.stderr,
                flush=True,
            )
    print(file=sys.stderr)
    done.sort(key=lambda p: (p["set"], p["primary"], p["reference"]))
    for name in sorted({p["set"] for p in done}):
        kind = " (control)" if name in controls else ""
        print_table(name + kind, [p for p in done if p["set"] == name])
    real = [p for p in done if p["set"] not in controls]
    if real:
        print_table("all sets but controls", real)
        print("\nTargets, on all sets but controls")
        for words, met in targets(real):
            print(f"  {'met   ' if met else 'MISSED'} {words}")
        print_choice(real)
    print(LEGEND)
    totals = {m: sum(p["seconds"].get(m, 0.0) for p in done) for m in METHODS}
    slow = sorted(totals, key=lambda m: -totals[m])[:4]
    print(
        f"wall clock {time.perf_counter() - start:.0f} s, {options.jobs} jobs; most "
        "time in " + ", ".join(f"{m} {totals[m]:.0f} s" for m in slow)
    )
    if options.json:
        options.json.write_text(json.dumps(done, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
