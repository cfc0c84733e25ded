"""The public functions take dataframes, paired by item."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import trueup

P = np.array([0.1, 0.7, 0.3, 0.9])
R = np.array([0.5, 0.5, 0.25, 0.25])
IDS = ["a", "b", "c", "d"]
PRIMARY = {"item_id": IDS, "p_no": 1 - P, "p_yes": P}
# The same items in another order, the outcomes too.
REFERENCE = {"p_yes": R[::-1], "item_id": IDS[::-1], "p_no": 1 - R[::-1]}
MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy polars": pl.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": lambda said: duckdb.from_arrow(pa.table(said)),
}


@pytest.fixture(params=MAKERS)
def frames(request):
    made = MAKERS[request.param]
    return made(PRIMARY), made(REFERENCE)


def test_fit_and_apply(frames):
    fitted = trueup.fit(*frames, cells="exact")
    expected = trueup.fit(P, R, cells="exact")

    assert fitted.outcomes == ("no", "yes")
    assert fitted.apply(frames[0]) == pytest.approx(expected.apply(P))


def test_audit_and_bounds(frames):
    found, expected = trueup.audit(*frames), trueup.audit(P, R)

    assert found.verdict == expected.verdict
    assert found.min_ece == pytest.approx(expected.min_ece)
    accuracy = trueup.bounds(*frames)
    assert accuracy.lower == pytest.approx(trueup.bounds(P, R).lower)


def test_evaluate(frames):
    labels = ["no", "yes", "no", "yes"]

    assert trueup.evaluate(frames[0], labels, n_bootstrap=10)["accuracy"].value == 1


def test_a_frame_and_an_array_are_paired_by_row(frames):
    fitted = trueup.fit(frames[0], R, cells="exact")

    assert fitted.outcomes == ("no", "yes")


def test_items_that_only_one_frame_holds_are_named():
    with pytest.raises(trueup.TrueupError, match="missing from reference: d"):
        trueup.fit(pl.DataFrame(PRIMARY), pl.DataFrame(REFERENCE).tail(3))


def test_frames_without_a_schema_say_what_to_do():
    with pytest.raises(trueup.TrueupError, match="name them p_<outcome>"):
        trueup.fit(pd.DataFrame({"x": ["a"]}), pd.DataFrame({"x": ["a"]}))
