"""Coverage: how often a printed guarantee is true, in worlds where truth is known.

    python benchmarks/coverage.py [--worlds 216] [--jobs 2] [--chosen-on]

Maps are fitted on N = 200 to 20,000 unlabelled items of each world; the improvement and
the worst case of the very map are then computed on the whole population, exactly. Rules
were chosen on one range of seeds (--chosen-on) and are reported on another.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from worlds import KINDS, make_world

import trueup

if __name__ == "coverage":
    # Scripts here have this folder first on their path, so numba, looking for the
    # coverage tool, finds this file; told that there is none, it goes on without.
    message = "this is a benchmark, not the coverage tool"
    raise ImportError(message)

CHOSEN_ON, REPORTED = 1_000_000, 3_000_000
"""First seed of the worlds that rules may look at, and of those that are reported.

Those from 2,000,000 were reported once; a rule was chosen on seeing them.
"""
SLACK, ROUNDING = 0.001, 1e-9
SETTINGS = {
    "confidence": {"trust": "confidence"},
    "answer-confidence": {"trust": "answer-confidence"},
    "mean +inf": {
        "trust": "mean",
        "assume": ("informative",),
        "reference_error": 0.02,
    },
    "distribution": {"trust": "distribution"},
    "distribution .05": {"trust": "distribution", "reference_error": 0.05},
}


def run_world(number, first_seed, answers):
    """Fit every setting on one sample of one world, and send what is found."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(first_seed + number)
    kind = KINDS[number % len(KINDS)]
    world = make_world(kind, rng)
    n_items = int(np.exp(rng.uniform(np.log(200), np.log(20_000))))
    primary, reference = world.draw(rng, n_items)
    answers.send((kind, n_items))
    for name, options in SETTINGS.items():
        fitted = trueup.fit(primary, reference, loss="brier", cells="auto", **options)
        better, proof = fitted.apply(world.primary), fitted.certificate
        found = {
            "guaranteed": proof.guaranteed_improvement,
            "fitted": proof.fitted,
            "certified": proof.certified,
            "supported": proof.supported,
            "true": world.improvement(better),
            "worst": None,
        }
        answers.send((name, found))
        if "assume" not in options:  # bounds know nothing of assertions
            worst = trueup.worst_case_improvement(
                better,
                world.primary,
                world.reference,
                loss="brier",
                sample_weight=world.mass,
                cells="exact",
                **options,
            )
            answers.send((name, found | {"worst": float(worst)}))
    answers.send(None)


def watched(number, *, first_seed, limit):
    """One world in a process of its own, ended if it is silent for too long.

    A compiled loop that does not end cannot be interrupted from inside.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.Process(target=run_world, args=(number, first_seed, theirs))
    child.start()
    theirs.close()
    heard, is_whole = [], False
    try:
        while not is_whole and ours.poll(limit):
            message = ours.recv()
            is_whole = message is None
            heard += [] if is_whole else [message]
    except EOFError:  # it failed, and has said why
        pass
    if child.is_alive() and not is_whole:
        child.kill()
    child.join()
    kind, n_items = heard[0]
    found = dict(heard[1:])
    return {"kind": kind, "n": n_items, "found": found, "finished": is_whole}


def summary(worlds, name):
    """Shares of worlds in which something went wrong, and the mean gain."""
    rows = [w["found"][name] for w in worlds if name in w["found"]]
    said, fitted, true = (
        np.array([r[key] for r in rows]) for key in ("guaranteed", "fitted", "true")
    )
    supported = np.array([r["supported"] for r in rows])
    made = {
        "worlds": len(rows),
        "supported": supported.mean(),
        "false": (supported & (said > true + SLACK)).mean(),
        "harmed": (true < -SLACK).mean(),
        "harmed_supported": (supported & (true < -SLACK)).mean(),
        "worst_true": true.min(),
        "guaranteed": said.mean(),
        "gain": true.mean(),
        "fitted_false": (fitted > true + SLACK).mean(),
    }
    known = np.array([r["worst"] is not None for r in rows])
    if known.any():
        worst = np.array([r["worst"] for r in rows if r["worst"] is not None])
        said, fitted, supported = said[known], fitted[known], supported[known]
        made["above_worst"] = (supported & (said > worst + ROUNDING)).mean()
        made["above_worst_slack"] = (supported & (said > worst + SLACK)).mean()
        made["fitted_above_worst"] = (fitted > worst + SLACK).mean()
    return made


def share(value):
    return "-" if value is None else f"{value:.1%}"


def print_table(title, worlds):
    print(f"\n{title}: {len(worlds)} worlds")
    print(
        f"{'':<18}{'supp':>7}{'>true':>8}{'>worst':>8}{'+.001':>8}{'harm':>8}"
        f"{'lowest':>9}{'guarant.':>10}{'gain':>9}{'fit>true':>10}{'fit>worst':>10}"
    )
    for name in SETTINGS:
        row = summary(worlds, name)
        shares = "".join(
            f"{share(row.get(key)):>8}"
            for key in ("false", "above_worst", "above_worst_slack", "harmed")
        )
        print(
            f"{name:<18}{row['supported']:7.0%}{shares}{row['worst_true']:+9.4f}"
            f"{row['guaranteed']:10.4f}{row['gain']:+9.4f}"
            f"{share(row['fitted_false']):>10}"
            f"{share(row.get('fitted_above_worst')):>10}"
            + ("" if row["worlds"] == len(worlds) else f"  ({row['worlds']} worlds)")
        )


def print_targets(worlds):
    print("\nTargets, on all worlds")
    limits = (
        ("false", 0.01, "guarantee above the true improvement by .001"),
        ("above_worst", 0.05, "guarantee above the worst case of its map"),
        ("harmed", 0.01, "harmed by .001"),
    )
    for name in SETTINGS:
        row = summary(worlds, name)
        for key, limit, words in limits:
            if key in row:
                met = "met   " if row[key] <= limit else "MISSED"
                print(f"  {met} {name}: {words} {row[key]:.1%} (at most {limit:.0%})")


def parts(worlds):
    """Groups of worlds, each with a title."""
    yield "all worlds", worlds
    for place in range(5):
        for value in dict.fromkeys(kind[place] for kind in KINDS):
            chosen = [w for w in worlds if w["kind"][place] == value]
            yield (f"K = {value}" if place == 4 else value), chosen
    for low, high in ((200, 1000), (1000, 5000), (5000, 20_001)):
        yield (
            f"N {low:,} to {high - high % 10:,}",
            [w for w in worlds if low <= w["n"] < high],
        )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=3 * len(KINDS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--chosen-on", action="store_true", help="the worlds rules were chosen on"
    )
    parser.add_argument(
        "--limit", type=float, default=30, help="seconds a world may be silent"
    )
    parser.add_argument("--by", action="store_true", help="also by kind of world")
    parser.add_argument("--json", type=Path, help="also write every world to this file")
    return parser.parse_args()


def main():
    options = arguments()
    start = time.perf_counter()
    first_seed = CHOSEN_ON if options.chosen_on else REPORTED
    importlib.import_module("trueup.solve._kernels")  # once, for all children
    work = partial(watched, first_seed=first_seed, limit=options.limit)
    worlds = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for world in pool.map(work, range(options.worlds)):
            worlds.append(world)
            spent = time.perf_counter() - start
            left = spent / len(worlds) * (options.worlds - len(worlds))
            print(
                f"\r{len(worlds)}/{options.worlds} worlds, about {left:.0f} s left   ",
                end="",
                file=sys.stderr,
                flush=True,
            )
    print(file=sys.stderr)
    for title, chosen in list(parts(worlds))[: None if options.by else 1]:
        if chosen:
            print_table(title, chosen)
    print_targets(worlds)
    print(LEGEND)
    stuck = [w for w in worlds if not w["finished"]]
    print(f"worlds not finished, silent for {options.limit:g} s: {len(stuck)}")
    for world in stuck:
        last = list(world["found"].items())[-1:]
        where = f"after {last[0][0]!r}" if last else "before any setting"
        print(f"  {', '.join(map(str, world['kind']))}, N = {world['n']:,}, {where}")
    print(f"wall clock {time.perf_counter() - start:.0f} s, {options.jobs} jobs")
    if options.json:
        options.json.write_text(json.dumps(worlds, indent=1), encoding="utf-8")


LEGEND = f"""
Shares of all worlds. >true: the guarantee exceeds the true improvement by {SLACK:g};
>worst, +.001: the worst case over the population of its own map, by anything, by
{SLACK:g}; harm: the map loses {SLACK:g}; lowest: the lowest true improvement. fit>true,
fit>worst: the same, by {SLACK:g}, for the bound on the items the map was fitted on."""

if __name__ == "__main__":
    main()
