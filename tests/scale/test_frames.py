"""One narwhals program on several engines gives the statistics to the last bit."""

from __future__ import annotations

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from scale.conftest import pair_table, rows_of
from trueup.core.folds import fold_of, mixed
from trueup.core.reports import AnswerConfidence, Distributions
from trueup.core.resolution import Resolution
from trueup.core.statistics import CellStatistics, ScoreCounts
from trueup.errors import PredictionFileError
from trueup.scale.fitting import layout_of
from trueup.scale.frames import PairTable, Side

SIDES = ("primary", "reference")
ENGINES = {
    "duckdb": duckdb.from_arrow,
    "polars": lambda table: pl.from_arrow(table).lazy(),
}


def names(n):
    return tuple(chr(ord("a") + k) for k in range(n))


def sides(n, kinds):
    made = []
    for side, kind in zip(("primary", "reference"), kinds, strict=True):
        if kind == "distribution":
            made.append(Side(side, tuple(f"{side}__p_{k}" for k in names(n))))
        else:
            made.append(Side(side, (), f"{side}__answer", f"{side}__confidence"))
    return made


def with_answers(table, n):
    for side in ("primary", "reference"):
        rows = rows_of(table, side, names(n))
        answers = [names(n)[k] for k in rows.argmax(axis=1)]
        table = table.append_column(f"{side}__answer", pa.array(answers))
        table = table.append_column(f"{side}__confidence", pa.array(rows.max(axis=1)))
    return table


def reports(table, side, kind, n):
    read = Distributions.parse(rows_of(table, side, names(n)), side, names(n))
    if kind == "distribution":
        return read
    top = read.probabilities.max(axis=1)
    return AnswerConfidence._of(read.answers(), top, names(n))


def expected(table, n, kinds, frame):
    both = [reports(table, s, k, n) for s, k in zip(SIDES, kinds, strict=True)]
    fold = fold_of(mixed(table["item_id"].to_numpy()))
    scores = ScoreCounts.count(*both, fold)

    class Source:
        outcomes, groups = names(n), ()

    Source.kinds = kinds
    layout = layout_of(scores, Source, frame, Resolution())
    return scores, CellStatistics.count(layout, *both, fold)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("frame", ["answer", "rank"])
@pytest.mark.parametrize(
    ("n", "kinds"),
    [
        (2, ("distribution", "distribution")),
        (4, ("distribution", "answer-confidence")),
        (4, ("answer-confidence", "distribution")),
        (9, ("distribution", "distribution")),
    ],
)
def test_engines_count_as_memory_does(engine, frame, n, kinds):
    table = with_answers(pair_table(3000, n_outcomes=n, seed=n), n)
    scores, statistics = expected(table, n, kinds, frame)
    lazy = nw.from_native(ENGINES[engine](table))
    counted = PairTable(lazy, *sides(n, kinds), names(n), "the table", "item_id")

    assert counted.check() == 3000
    found = counted.score_counts()
    assert np.array_equal(found.primary, scores.primary)
    assert np.array_equal(found.reference, scores.reference)
    assert counted.statistics(statistics.layout).equals(statistics)


@pytest.mark.parametrize("engine", ENGINES)
def test_gaps_and_impossible_reports_are_named_with_their_number(engine):
    table = pair_table(100)
    gaps = pa.array([None, None, *table["primary__p_b"].to_pylist()[2:]])
    holes = table.set_column(2, "primary__p_b", gaps)
    wrong = table.set_column(2, "primary__p_b", pa.array(np.full(100, 0.9)))

    def of(one):
        lazy = nw.from_native(ENGINES[engine](one))
        kinds = ("distribution", "distribution")
        return PairTable(lazy, *sides(4, kinds), names(4), "the table", "item_id")

    with pytest.raises(
        PredictionFileError, match="'primary__p_b' has 2 missing values"
    ):
        of(holes).check()
    with pytest.raises(PredictionFileError, match=r"of 100 rows of the primary.*sum"):
        of(wrong).check()
    with pytest.raises(PredictionFileError, match="no rows"):
        of(table.slice(0, 0)).check()
