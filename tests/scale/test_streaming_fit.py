"""Fitting in passes: the same numbers as in memory, whatever the files look like."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

from scale.conftest import OUTCOMES, rows_of
from trueup.core.folds import fold_of, mixed
from trueup.core.reports import AnswerConfidence, Distributions
from trueup.core.resolution import Resolution
from trueup.core.statistics import UNITS, CellStatistics, ScoreCounts
from trueup.errors import TrueupError
from trueup.scale.batch_counts import Batch, SideBatch
from trueup.scale.certify import Totals
from trueup.scale.fitting import Wanted, count, layout_of, sketch_layout
from trueup.scale.pairs import open_pair
from trueup.scale.passes import Piece
from trueup.solve.sample import Sample
from trueup.solve.statistics import floored_reports

PREFIXES = {"primary_prefix": "primary", "reference_prefix": "reference"}
EMPTY = np.empty(0, dtype=np.int64)
COARSE = Resolution(
    reference_bins=5, certify_bins=4, primary_bins=3, ranked_bins=4, micro_cells=100
)


def opened(path, **options):
    return open_pair(path, **PREFIXES, **options)


def written(table, path):
    pq.write_table(table, path, row_group_size=1000)
    return path


class Memory:
    """A source of batches that are in memory already."""

    def __init__(self, table, size=777, kinds=("distribution", "distribution")):
        self.table, self.size, self.kinds = table, size, kinds
        self.name, self.outcomes, self.groups = "memory", OUTCOMES, ()
        self.n_items = table.num_rows

    def side(self, table, name, kind):
        rows = rows_of(table, name)
        if kind == "distribution":
            return SideBatch(rows, EMPTY)
        return SideBatch(rows.max(axis=1)[:, None].copy(), rows.argmax(axis=1))

    def pieces(self):
        n_before = 0
        for batch in self.batches():
            yield Piece(n_before, lambda batch=batch: iter([batch]))
            n_before += len(batch)

    def sample(self, share):
        return self.pieces(), share

    def batches(self):
        for first in range(0, self.n_items, self.size):
            part = self.table.slice(first, self.size)
            yield Batch(
                self.side(part, "primary", self.kinds[0]),
                self.side(part, "reference", self.kinds[1]),
                part["item_id"].to_numpy(),
                EMPTY,
            )


def reports(table, name, kind="distribution"):
    read = Distributions.parse(rows_of(table, name), name, OUTCOMES)
    if kind == "distribution":
        return read
    return AnswerConfidence._of(
        read.answers(), read.probabilities.max(axis=1), OUTCOMES
    )


FRAMES = pytest.mark.parametrize("frame", ["answer", "rank"])


@FRAMES
def test_counting_in_batches_equals_counting_at_once(pairs, tmp_path, frame):
    fold = fold_of(mixed(pairs["item_id"].to_numpy()))
    both = reports(pairs, "primary"), reports(pairs, "reference")

    with opened(written(pairs, tmp_path / "pairs.parquet")) as source:
        layout = sketch_layout(source, frame, COARSE)
        streamed = count(source, layout)
    scores = ScoreCounts.count(*both, fold)
    at_once = CellStatistics.count(layout, *both, fold)

    assert layout_of(scores, Memory(pairs), frame, COARSE).same_as(layout)
    assert streamed.equals(at_once)


@FRAMES
def test_statistics_add_up_exactly_in_any_order_and_any_split(pairs, frame):
    layout = sketch_layout(Memory(pairs), frame, COARSE)
    whole = count(Memory(pairs), layout)
    rng = np.random.default_rng(1)
    for _ in range(5):
        cuts = np.sort(rng.integers(0, pairs.num_rows, 4))
        bounds = [0, *cuts, pairs.num_rows]
        parts = [
            count(Memory(pairs.slice(a, b - a)), layout)
            for a, b in pairwise(bounds)
            if b > a
        ]
        rng.shuffle(parts)
        total = parts[0]
        for part in parts[1:]:
            total = total + part

        assert total.equals(whole)


def test_statistics_on_other_cells_are_not_added(pairs):
    one = sketch_layout(Memory(pairs), "answer", COARSE)
    other = sketch_layout(Memory(pairs), "answer", Resolution(reference_bins=4))

    with pytest.raises(TrueupError, match="different cells"):
        count(Memory(pairs), one) + count(Memory(pairs), other)


KINDS = ("distribution", "answer-confidence")
SETTINGS = [
    {"trust": "mean", "assume": ("informative",)},
    {"trust": "confidence"},
    {"trust": "answer-confidence", "assume": ("stronger", "informative")},
    {"trust": "confidence", "assume": ("informative-by-confidence",)},
    {
        "trust": "answer-confidence",
        "assume": ("stronger",),
        "loss": "log",
        "floor": 1e-3,
    },
    {"trust": "answer-confidence", "caps": True},
    {"trust": "distribution", "reference_error": 0.01},
    {"trust": "distribution", "loss": "log", "floor": 1e-4},
    {"trust": "distribution", "loss": "spherical"},
    {"trust": "confidence", "assume": ("informative",), "family": "temperature"},
]


def named(setting):
    return " ".join(str(value) for value in setting.values())


def fits(setting, kinds):
    about_rows = {"loss", "family"} & set(setting)
    if kinds[0] != "distribution" and about_rows:
        return False
    return kinds[1] == "distribution" or setting["trust"] != "distribution"


@pytest.mark.parametrize(
    ("setting", "kinds"),
    [(s, (a, b)) for s in SETTINGS for a in KINDS for b in KINDS if fits(s, (a, b))],
    ids=lambda value: named(value) if isinstance(value, dict) else "/".join(value),
)
def test_compiled_certificates_equal_the_formula(pairs, setting, kinds):
    source = Memory(pairs, kinds=kinds)
    wanted = Wanted.check(OUTCOMES, kinds, 0, **setting)
    layout = sketch_layout(source, wanted.frame, COARSE)
    statistics = count(source, layout)
    tried = wanted.halves(statistics, COARSE)
    halves = tried[-1]
    certifier = wanted.certifier(halves, source)
    totals = Totals.empty()
    for batch in source.batches():
        assert certifier.add(totals, batch) == -1

    fold = fold_of(mixed(pairs["item_id"].to_numpy()))
    sample = Sample(
        floored_reports(reports(pairs, "primary", kinds[0]), wanted.floor),
        reports(pairs, "reference", kinds[1]),
        np.zeros(pairs.num_rows, dtype=np.int64),
        0,
        np.ones(pairs.num_rows),
    )
    for which, half in enumerate(halves):
        own = sample.take(np.flatnonzero(fold == which))
        z = half.bounds(own, wanted.loss, wanted.trust)

        assert totals.sums[which][0] == len(z)
        assert totals.sums[which][1] / UNITS == pytest.approx(
            z.sum(), abs=2e-9 * len(z)
        )
        assert totals.sums[which][1] / UNITS <= z.sum() + 1e-9
        assert totals.sums[which][2] / UNITS == pytest.approx(
            (z * z).sum(), abs=2e-9 * len(z)
        )
