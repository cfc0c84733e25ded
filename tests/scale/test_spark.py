"""Spark on this machine: several, skewed and empty partitions, gaps, a failing task."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import trueup
from scale.conftest import pair_table, rows_of
from trueup.core.folds import id_numbers
from trueup.core.resolution import Resolution
from trueup.errors import PredictionFileError
from trueup.scale.api import _opened
from trueup.scale.fitting import count, layout_of
from trueup.scale.spark import open_spark

PREFIXES = {"primary_prefix": "primary", "reference_prefix": "reference"}
PLAIN = PREFIXES | {"id": None, "group": None, "outcomes": None}
N = 4000


@pytest.fixture(scope="session")
def spark():
    missing = None
    if shutil.which("java") is None:
        missing = "Spark needs a JRE (Debian: openjdk-17-jre-headless)"
    else:
        try:
            import pyspark  # noqa: F401
        except ImportError:
            missing = "pyspark is not installed: pip install 'trueup[spark]'"
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    import warnings

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2, 3]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "3")
            .config("spark.driver.memory", "1g")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def table():
    return pair_table(N, seed=8, ids=[f"q{place}" for place in range(N)])


@pytest.fixture(scope="module")
def frame(spark, table):
    """Of six partitions one holds nearly everything, one a few rows, four nothing."""
    from pyspark.sql import functions as F  # noqa: N812

    whole = spark.createDataFrame(table.to_pandas())
    few = F.col("item_id").isin(*(f"q{place}" for place in range(10)))
    return whole.repartition(6, few).cache()


@pytest.fixture(scope="module")
def fitted(table):
    return trueup.fit_frame(table, **PREFIXES, trust="confidence")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout_frame", ["answer", "rank"])
def test_counts_equal_those_of_duckdb_and_memory(frame, table, layout_frame):
    pair = open_spark(frame, **PLAIN)
    scores = pair.table.score_counts()
    layout = layout_of(scores, pair, layout_frame, Resolution())
    with _opened(table, **PLAIN) as source:
        expected = count(source, layout)

    sizes = frame.rdd.glom().map(len).collect()
    assert sorted(sizes) == [0, 0, 0, 0, 10, N - 10]
    assert pair.table.check() == N
    assert pair.table.statistics(layout).equals(expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        {"trust": "confidence"},
        {"trust": "answer-confidence", "assume": ("informative",), "loss": "log"},
        {"trust": "confidence", "group": "topic"},
    ],
    ids=str,
)
def test_spark_fits_the_same_map_and_certificate(frame, table, options):
    ours = trueup.fit_frame(frame, **PREFIXES, **options)
    expected = trueup.fit_frame(table, **PREFIXES, **options)
    rows = rows_of(table, "primary")

    assert np.array_equal(ours.apply(rows), expected.apply(rows))
    assert ours.certificate.lower == expected.certificate.lower
    assert ours.certificate.n_items == N


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options", [{"trust": "confidence"}, {"trust": "mean", "assume": "informative"}]
)
def test_applying_by_column_expressions_keeps_rows_and_columns(frame, table, options):
    fitted = trueup.fit_frame(table, **PREFIXES, **options)
    better = fitted.apply_frame(frame, prefix="primary")
    given, found = frame.toPandas(), better.toPandas()

    assert better.columns == ["item_id", "p_a", "p_b", "p_c", "p_d", "topic"]
    assert found["item_id"].tolist() == given["item_id"].tolist()
    assert found["topic"].tolist() == given["topic"].tolist()
    assert "Python" not in better._jdf.queryExecution().toString()
    rows = np.column_stack([found[f"p_{k}"].to_numpy() for k in "abcd"])
    old = given[[f"primary__p_{k}" for k in "abcd"]].to_numpy()
    assert np.allclose(rows, fitted.apply(old), atol=1e-13)


@pytest.mark.filterwarnings("ignore")
def test_many_outcomes_are_applied_in_arrow_batches(spark):
    names = [chr(ord("a") + k) for k in range(8)]
    table = pair_table(1000, n_outcomes=8, seed=2)
    fitted = trueup.fit_frame(table, **PREFIXES, trust="confidence")
    frame = spark.createDataFrame(table.to_pandas()).repartition(3)
    found = (
        fitted.apply_frame(frame, prefix="primary").toPandas().sort_values("item_id")
    )

    expected = fitted.apply(rows_of(table, "primary", names))
    assert np.allclose(found[[f"p_{k}" for k in names]].to_numpy(), expected)
    assert found["topic"].tolist() == table["topic"].to_pylist()


@pytest.mark.filterwarnings("ignore")
def test_gaps_are_named_with_their_number(spark, frame, fitted):
    from pyspark.sql import functions as F  # noqa: N812

    few = F.col("item_id").isin("q1", "q2", "q3")
    empty = F.when(few, F.lit(None)).otherwise(F.col("reference__p_c"))
    holes = frame.withColumn("reference__p_c", empty)

    with pytest.raises(
        PredictionFileError, match="'reference__p_c' has 3 missing values"
    ):
        trueup.fit_frame(holes, **PREFIXES)
    with pytest.raises(Exception, match="missing a value"):
        fitted.apply_frame(holes, prefix="reference").collect()
    with pytest.raises(PredictionFileError, match="ids"):
        trueup.fit_frame(frame.drop("item_id"), **PREFIXES)


@pytest.mark.filterwarnings("ignore")
def test_a_failing_task_is_repeated_and_counts_stay_right(frame, table, tmp_path):
    """The first attempt at every partition that holds items dies half way."""
    mark = str(tmp_path)

    def dies_once(batches):
        for place, batch in enumerate(batches):
            from pyspark import TaskContext

            name = Path(mark, f"{TaskContext.get().partitionId()}-{place}")
            if len(batch) and not name.exists():
                name.touch()
                message = "injected"
                raise RuntimeError(message)
            yield batch

    shaky = frame.mapInArrow(dies_once, frame.schema)
    pair, calm = open_spark(shaky, **PLAIN), open_spark(frame, **PLAIN)
    layout = layout_of(calm.table.score_counts(), calm, "answer", Resolution())
    with _opened(table, **PLAIN) as source:
        expected = count(source, layout)

    assert pair.table.statistics(layout).equals(expected)
    assert len(list(tmp_path.iterdir())) >= 2


def test_text_ids_are_the_same_number_everywhere(table):
    with _opened(table, **PLAIN) as source:
        numbers = np.concatenate([batch.numbers for batch in source.batches()])

    assert np.array_equal(numbers, id_numbers(table["item_id"].to_pylist()))
