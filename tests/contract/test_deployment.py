"""The programs of the page on deployment do what ReportMap.apply does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import duckdb
import numpy as np
import pytest

import trueup
from contract.project import ROOT

PAGE = ROOT / "docs" / "how-to" / "deploy.md"
FENCE = re.compile(r"^```(sql|javascript)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def world(n_outcomes, n_items=1500, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_items, n_outcomes)) + np.linspace(1, 0, n_outcomes)
    primary = np.exp(3 * logits)
    reference = np.exp(0.5 * logits.round())
    return (
        primary / primary.sum(axis=1, keepdims=True),
        reference / reference.sum(axis=1, keepdims=True),
    )


@pytest.fixture(
    scope="module",
    params=[(2, {}), (4, {}), (4, {"assume": "informative", "family": "temperature"})],
    ids=["two outcomes", "four outcomes", "temperature"],
)
def saved(request, tmp_path_factory):
    """A map in a file, and what it makes of reports new and old."""
    n_outcomes, options = request.param
    primary, reference = world(n_outcomes)
    fitted = trueup.fit(primary, reference, cells="auto", **options)
    path = tmp_path_factory.mktemp("deploy") / "map.json"
    fitted.save(path)
    reports = np.vstack([primary[:200], world(n_outcomes, seed=1)[0][:200]])
    assert fitted.rule.halves is not None
    assert np.abs(fitted.apply(reports) - reports).max() > 1e-3
    return path, reports, fitted.apply(reports)


def programs(language):
    found = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    return [source for kind, source in found if kind == language]


def test_sql(saved, monkeypatch):
    path, reports, expected = saved
    monkeypatch.chdir(path.parent)
    apply, average = programs("sql")
    with duckdb.connect() as database:
        database.execute("CREATE TABLE predictions (item_id INTEGER, p DOUBLE[])")
        rows = [(item, p.tolist()) for item, p in enumerate(reports)]
        database.executemany("INSERT INTO predictions VALUES (?, ?)", rows)
        database.execute(f"CREATE TABLE applied AS {apply}")
        database.execute(average)
        ordered = "SELECT p FROM better ORDER BY item_id, outcome"
        found = np.array(database.execute(ordered).fetchall()).reshape(reports.shape)

    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript(saved):
    path, reports, expected = saved
    (source,) = programs("javascript")
    call = (
        'const fs = require("node:fs");\n'
        "const [map, rows] = JSON.parse(fs.readFileSync(0));\n"
        "console.log(JSON.stringify(rows.map((p) => applyMap(map, p))));\n"
    )
    given = json.dumps([json.loads(path.read_text()), reports.tolist()])
    done = subprocess.run(
        ["node", "-e", source + call],
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )

    assert np.array(json.loads(done.stdout)) == pytest.approx(expected, abs=1e-12)


def test_the_programs_are_short():
    sql, _ = programs("sql")
    (javascript,) = programs("javascript")

    assert len(sql.splitlines()) <= 40
    assert len(javascript.splitlines()) <= 30
