"""Baselines are saved and loaded like our own maps, and cross-fitted where needed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evaluate.labelled import random_world
from trueup import AnswerConfidence
from trueup.errors import MapFormatError, TrueupError
from trueup.evaluate import BASELINES, cross_fitted, evaluate
from trueup.evaluate.baselines import _schema

P, _, LABELS = random_world(np.random.default_rng(1), 120, 3, 0.6)
Q = P[::-1].copy()
OUTCOMES = ["A", "B", "C"]


def fitted(name, primary=P, reference=Q):
    made = BASELINES[name]
    second = LABELS if made.needs == "labels" else reference
    return made.fit(primary, second, outcomes=OUTCOMES)


def same(first, second):
    if isinstance(first, AnswerConfidence):
        assert_array_equal(first.answer, second.answer)
        assert_array_equal(first.confidence, second.confidence)
    else:
        assert_array_equal(first, second)


@pytest.mark.parametrize("name", BASELINES)
def test_a_loaded_baseline_applies_bit_for_bit(name, tmp_path):
    before = fitted(name)
    before.save(tmp_path / "map.json")
    after = _schema.read(tmp_path / "map.json")

    assert type(after) is type(before)
    assert repr(after) == repr(before)
    assert after.outcomes == before.outcomes
    same(before.apply(P, reference=Q), after.apply(P, reference=Q))
    assert _schema.to_json(after) == _schema.to_json(before)


@pytest.mark.parametrize("name", BASELINES)
def test_the_file_says_what_it_is(name, tmp_path):
    fitted(name).save(tmp_path / "map.json")
    content = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))

    assert content["format"] == 1
    assert content["kind"] == "trueup.baseline_map"
    assert content["method"] == name
    assert content["outcomes"] == OUTCOMES
    assert [path.name for path in tmp_path.iterdir()] == ["map.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "trueup.report_map"}, "not a saved baseline"),
        ({"format": 2, "created_by": "trueup 9.1"}, "written by trueup 9.1; upgrade"),
        ({"format": 0}, "damaged or edited"),
        ({"format": True}, "damaged or edited"),
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"reads": "tea leaves"}, "unknown kind of reports"),
        ({"outcomes": ["A", "A"]}, "named more than once"),
        ({"parameters": {}}, "KeyError: 'temperature'"),
        ({"parameters": {"temperature": "hot"}}, "expected a number, found 'hot'"),
        ({"parameters": {"temperature": -1}}, "expected a positive number"),
        ({"parameters": {"temperature": 1e999}}, "expected a finite number"),
        ({"fitted_on": None}, "damaged"),
    ],
)
def test_a_damaged_file_says_what_is_wrong(change, message):
    content = _schema.to_json(fitted("temperature")) | change

    with pytest.raises(MapFormatError, match=message):
        _schema.from_json(content, "map.json")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("histogram", {"rates": [0.5] * 9}),
        ("histogram", {"rates": [1.5] * 10}),
        ("isotonic", {"stated": [0.5, 0.4], "rates": [0, 1]}),
        ("isotonic", {"stated": [], "rates": []}),
        ("isotonic", {"stated": [0.5], "rates": [True]}),
        ("platt", {"slope": None, "intercept": 0}),
    ],
)
def test_parameters_are_checked(name, parameters):
    content = _schema.to_json(fitted(name)) | {"parameters": parameters}

    with pytest.raises(MapFormatError, match="damaged and cannot be used"):
        _schema.from_json(content)


def test_what_is_not_json_is_refused(tmp_path):
    (tmp_path / "map.json").write_text("[1, 2", encoding="utf-8")

    with pytest.raises(MapFormatError, match="not JSON"):
        _schema.read(tmp_path / "map.json")


@pytest.mark.parametrize("name", BASELINES)
def test_names_of_outcomes_are_followed(name):
    """A predictor whose outcomes are in another order is put in order."""
    baseline = fitted(name)
    back = AnswerConfidence(
        answer=["C", "A"], confidence=[0.7, 0.6], outcomes=["C", "B", "A"]
    )
    if baseline.reads == "distribution":
        with pytest.raises(TrueupError, match="pass its distributions"):
            baseline.apply(back, reference=back)
    else:
        assert baseline.apply(back, reference=back).labels() == ["C", "A"]


SUPERVISED = [name for name, made in BASELINES.items() if made.needs == "labels"]


@pytest.mark.parametrize("name", SUPERVISED)
def test_no_report_depends_on_its_own_label(name):
    done = cross_fitted(name, P, LABELS)
    half = np.flatnonzero(done.fold == 0)
    changed = LABELS.copy()
    changed[half[0]] = (changed[half[0]] + 1) % 3
    again = cross_fitted(name, P, changed)

    def at(reports, index):
        one = reports.confidence if hasattr(reports, "confidence") else reports
        return one[index]

    assert_array_equal(at(done.reports, half), at(again.reports, half))


@pytest.mark.parametrize("name", SUPERVISED)
def test_cross_fitting_is_marked_and_keeps_the_order(name):
    done = cross_fitted(name, P, LABELS, outcomes=OUTCOMES)

    assert done.is_cross_fitted
    assert done.title == f"{name}, cross-fitted on 2 halves"
    assert [one.fitted_on.fold for one in done.maps] == [
        "all but fold 1 of 2",
        "all but fold 2 of 2",
    ]
    assert sorted(np.bincount(done.fold)) == [60, 60]
    for part in (0, 1):
        mine = np.flatnonzero(done.fold == part)
        theirs = done.maps[part].apply(P[mine])
        if isinstance(theirs, AnswerConfidence):
            same(theirs, done.reports.take(mine))
        else:
            same(theirs, done.reports[mine])
    assert evaluate(done.reports, LABELS, n_bootstrap=10).n_items == 120


def test_blocks_stay_in_one_fold():
    blocks = np.repeat(np.arange(40), 3)
    done = cross_fitted("histogram", P, LABELS, blocks=blocks, n_folds=4)

    assert all(len(set(done.fold[blocks == block])) == 1 for block in range(40))
    assert done.title == "histogram, cross-fitted on 4 folds"


def test_weights_reach_the_fits():
    weights = np.random.default_rng(2).uniform(size=120)
    plain = cross_fitted("temperature", P, LABELS)
    weighted = cross_fitted("temperature", P, LABELS, sample_weight=weights)

    assert plain.maps[0].temperature != weighted.maps[0].temperature


class Shrink:
    """Somebody else's baseline: the mean of the report and the base rates."""

    def __init__(self, rates=None):
        self.rates = rates

    def fit(self, primary, labels):
        return Shrink(np.bincount(labels, minlength=primary.shape[1]) / len(labels))

    def apply(self, primary):
        return (np.asarray(primary) + self.rates) / 2


def test_a_baseline_need_not_be_ours():
    done = cross_fitted(Shrink(), P, LABELS)
    mine = np.flatnonzero(done.fold == 1)

    assert done.title == "Shrink, cross-fitted on 2 halves"
    rates = np.bincount(LABELS[done.fold == 0], minlength=3) / 60
    np.testing.assert_allclose(done.reports[mine], (P[mine] + rates) / 2)
    with pytest.raises(TrueupError, match="sample_weight is not passed on to 'Shrink'"):
        cross_fitted(Shrink(), P, LABELS, sample_weight=np.ones(120))


def test_cross_fitting_repeats():
    one = cross_fitted("platt", P, LABELS)
    two = cross_fitted("platt", P, LABELS, rng=np.random.default_rng(0))
    three = cross_fitted("platt", P, LABELS, rng=np.random.default_rng(5))

    assert_array_equal(one.fold, two.fold)
    assert_array_equal(one.reports.confidence, two.reports.confidence)
    assert (one.fold != three.fold).any()
