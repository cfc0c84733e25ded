"""A command line in this process, and a pair of predictors in files."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from trueup.cli.main import group
from trueup.data import write_table


class Result:
    """What a command did."""

    def __init__(self, done):
        self.code, self.out, self.err = done.exit_code, done.stdout, done.stderr
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception  # a traceback is never an answer

    @property
    def json(self):
        """The one object on standard output."""
        return json.loads(self.out, parse_constant=_refuse)


def _refuse(constant):
    raise ValueError(constant)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder; the files it names are there."""
    monkeypatch.chdir(tmp_path)

    def command(*args, given=None):
        done = CliRunner().invoke(group, [str(arg) for arg in args], input=given)
        return Result(done)

    return command


def world(n_items=600, seed=0):
    """A reference that is right, a primary that exaggerates, and what happened."""
    rng = np.random.default_rng(seed)
    reference = rng.choice([0.2, 0.3, 0.4], size=n_items)
    truth = reference + rng.choice([-0.15, 0.15], size=n_items)
    odds = (truth / (1 - truth)) ** 4
    labels = np.where(rng.random(n_items) < truth, "yes", "no")
    ids = [f"q{place}" for place in range(n_items)]
    return ids, odds / (1 + odds), reference, labels


@pytest.fixture
def files(tmp_path):
    """primary.csv, reference.parquet (in another order), labels.csv, both.jsonl."""
    ids, primary, reference, labels = world()
    order = np.random.default_rng(1).permutation(len(ids))
    topic = ["x" if place % 3 else "y" for place in range(len(ids))]

    def said(p, **more):
        return {"p_yes": p, "p_no": 1 - p, **more}

    first = pa.table({"item_id": ids, **said(primary, topic=topic)})
    second = pa.table({"item_id": ids, **said(reference)})
    write_table(first, tmp_path / "primary.csv")
    write_table(second.take(order), tmp_path / "reference.parquet")
    write_table(pa.table({"item_id": ids, "label": labels}), tmp_path / "labels.csv")
    both = {"item_id": ids, "label": labels}
    for name, p in (("strong", primary), ("weak", reference)):
        both |= {f"{name}__p_yes": p, f"{name}__p_no": 1 - p}
    write_table(pa.table(both), tmp_path / "both.jsonl")
    return tmp_path
