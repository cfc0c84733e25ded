"""Draw the figures of docs/explanation/paper-study.md from the numbers beside this.

python experiments/paper_study/draw.py
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from statistics import mean

from plot import Panel, Series, figure

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "docs" / "images" / "paper-study"
TABLES = [HERE.parent / name / "tables.csv" for name in ("mmlu10k", "vlm_mmbench")]
RUNGS = {
    "paper": "paper's mode, in-sample",
    "auto-mean": "mean",
    "auto-confidence": "confidence",
    "auto-answer-confidence": "answer-confidence",
    "auto-answer-confidence-caps": "answer-confidence, caps",
    "auto-distribution": "distribution",
    "auto-informative": "informative, mean within .02",
    "auto-informative-by-confidence": "informative by confidence, .02",
}
CELLS = {"0.01": "c0", "0.05": "c2", "0.2": "c4", "adaptive": "c1"}
NAMES = {
    "0.01": "step .01 (the paper's)",
    "0.05": "step .05",
    "0.2": "step .2",
    "adaptive": "adaptive cells",
}
VERDICTS = {
    "held": ("c1", ("held",)),
    "not reached, within noise": ("c2", ("not reached, within noise",)),
    "contradicted": ("c0", ("contradicted",)),
    "no guarantee": ("c4", ("no guarantee",)),
}


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def averaged(rows, key, value):
    """Mean of a column at each value of another."""
    found = defaultdict(list)
    for row in rows:
        found[float(row[key])].append(float(row[value]))
    return [(x, mean(ys)) for x, ys in sorted(found.items())]


def spread(rows, key, value):
    """Least and greatest of a column at each value of another."""
    found = defaultdict(list)
    for row in rows:
        found[float(row[key])].append(float(row[value]))
    return [(x, min(ys), max(ys)) for x, ys in sorted(found.items())]


def held_out():
    rows = read(HERE / "held_out.csv")
    panels = []
    for pair in dict.fromkeys(row["pair"] for row in rows):
        mine = [row for row in rows if row["pair"] == pair]
        series = []
        for cells, colour in CELLS.items():
            here = [row for row in mine if row["cells"] == cells]
            column = "n_items", "held_out_gain"
            points, bars = averaged(here, *column), spread(here, *column)
            series.append(Series(NAMES[cells], points, colour, spread=bars))
        paper = [row for row in mine if row["cells"] == "0.01"]
        said = averaged(paper, "n_items", "guaranteed")
        name = "guaranteed in-sample, step .01"
        series.append(Series(name, said, "c0", dashed=True, marks=False))
        panels.append(Panel(pair, series, x_log=True, x_ticks=(100, 300, 1000, 3000)))
    return figure(
        "Gain of the paper's mode on items it was not fitted on",
        panels,
        "unlabelled items fitted on; bars: all draws",
        "fall in confidence loss",
    )


def small_cells():
    rows = read(HERE / "small_cells.csv")
    panels = []
    for world in dict.fromkeys(row["world"] for row in rows):
        for n_items in dict.fromkeys(row["n_items"] for row in rows):
            mine = [
                row
                for row in rows
                if row["world"] == world and row["n_items"] == n_items
            ]
            panels.append(world_panel(world, int(n_items), mine))
    return figure(
        "Small cells: what is guaranteed on the sample, and what is true",
        panels,
        "items in a reference cell, on average (left: every report its own cell)",
        "fall in confidence loss",
        columns=2,
    )


def world_panel(world, n_items, rows):
    grids = list(dict.fromkeys(row["cells"] for row in rows))
    points = {"guaranteed": [], "true_gain": []}
    for cells in grids:
        mine = [row for row in rows if row["cells"] == cells]
        if cells == "adaptive":
            continue
        size = n_items / mean(float(row["n_cells"]) for row in mine)
        for key, found in points.items():
            found.append((size, mean(float(row[key]) for row in mine)))
    adaptive = [row for row in rows if row["cells"] == "adaptive"]
    level = mean(float(row["true_gain"]) for row in adaptive)
    top = max(x for x, _ in points["guaranteed"])
    series = [
        Series(
            "guaranteed, in-sample", sorted(points["guaranteed"]), "c0", dashed=True
        ),
        Series("true, same maps", sorted(points["true_gain"]), "c0"),
        Series("true, adaptive cells", [(1, level), (top, level)], "c1", marks=False),
    ]
    title = f"{world} primary, {n_items:,} items"
    shown = [x for x in (1, 3, 10, 30, 100, 300) if x <= top]
    return Panel(title, series, x_log=True, x_ticks=tuple(shown))


def promises():
    rows = [row for path in TABLES for row in read(path)]
    panels = []
    for method, title in RUNGS.items():
        mine = [row for row in rows if row["method"] == method and row["gain"]]
        series = []
        for name, (colour, verdicts) in VERDICTS.items():
            points = [
                (float(row["guaranteed"]), float(row["gain"]))
                for row in mine
                if row["verdict"] in verdicts
            ]
            series.append(Series(name, points, colour, line=False))
        panels.append(promise_panel(title, [one for one in series if one.points]))
    return figure(
        "Guaranteed and realised, 49 real pairs, adaptive maps but for the first panel",
        panels,
        "guaranteed fall in confidence loss (square-root axes; dashed: equality)",
        "realised",
        columns=4,
    )


def promise_panel(title, series):
    return Panel(
        title,
        series,
        diagonal=True,
        root=True,
        x_range=(-0.00015, 0.03),
        y_range=(-0.006, 0.065),
        x_ticks=(0, 0.001, 0.005, 0.02),
        y_ticks=(-0.005, -0.001, 0, 0.001, 0.005, 0.01, 0.02, 0.04, 0.06),
        width=200.0,
    )


def main():
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, make in (
        ("held-out", held_out),
        ("small-cells", small_cells),
        ("promises", promises),
    ):
        (IMAGES / f"{name}.svg").write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
