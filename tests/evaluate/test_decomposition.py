"""decompose(): four terms that add up to what the labels show."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueup
from evaluate.labelled import draw_labels, softmax
from trueup import AnswerConfidence, PointReport
from trueup.evaluate import decompose, evaluate

TERMS = ("geometric_gain", "transfer", "compatibility_bonus", "miscalibration_risk")
FEW = {"n_bootstrap": 10}


def total(parts):
    return sum(getattr(parts, name).value for name in TERMS)


def test_the_paper_toy_is_all_geometric():
    """Primary .1 and .7, reference .5, truth .2 and .8 exactly: gain .02, no more."""
    p, q = np.repeat([0.1, 0.7], 5), np.full(10, 0.5)
    parts = decompose(
        trueup.fit(p, q, cells="exact"), p, q, [1, 0, 0, 0, 0, 1, 1, 1, 1, 0], **FEW
    )

    assert parts.realised.value == pytest.approx(0.02)
    assert parts.geometric_gain.value == pytest.approx(0.02)
    for name in TERMS[1:]:
        assert getattr(parts, name).value == pytest.approx(0, abs=1e-9)


def test_an_imperfect_reference_costs_what_the_method_says():
    """Reference .2, primary 1 and .05 (weights 1/4, 3/4), truth 1 and 0.

    The primary says .2875 on average, so the map is (.8, 0). Binary squared error
    rises from .75 * .0025 to .25 * .04, Brier by twice .008125.
    """
    p, q, weights = np.array([1, 0.05]), np.array([0.2, 0.2]), [1, 3]
    fitted = trueup.fit(p, q, sample_weight=weights, cells="exact")
    parts = decompose(fitted, p, q, [1, 0], sample_weight=weights, **FEW)

    before = evaluate(p, [1, 0], sample_weight=weights, **FEW)["brier"].value
    after = evaluate(fitted.apply(p), [1, 0], sample_weight=weights, **FEW)
    assert parts.realised.value == pytest.approx(before - after["brier"].value)
    assert parts.realised.value == pytest.approx(-0.01625)
    assert parts.geometric_gain.value > 0
    assert parts.compatibility_bonus.value >= 0
    # The truth has .25 where the reference says .2: the risk is what turns it negative.
    assert parts.miscalibration_risk.value < -parts.geometric_gain.value


def _world(rng, kind, n_items):
    """Primary and reference of one kind about three outcomes, and labels."""
    truth = softmax(np.round(2 * rng.normal(size=(n_items, 3))) / 2)
    labels = draw_labels(truth, rng)
    sharp = np.round(truth**2 / (truth**2).sum(axis=1, keepdims=True), 1)
    sharp /= sharp.sum(axis=1, keepdims=True)
    blunt = np.round(rng.dirichlet([1, 1, 1], size=n_items) * 4 + 1)
    blunt /= blunt.sum(axis=1, keepdims=True)
    if kind == "distribution":
        return sharp, blunt, labels
    if kind == "answer":
        both = (AnswerConfidence.from_distributions(one) for one in (sharp, blunt))
        return *both, labels
    values = np.array([0.0, 1.0, 3.0])

    def point(p):
        stated = np.round(p @ values, 1), values[p.argmax(axis=1)]
        return PointReport(value=stated[kind != "mean"], outcomes=values, property=kind)

    return point(sharp), point(blunt), values[labels]


CASES = [
    ("distribution", {"trust": "distribution"}),
    ("distribution", {"trust": "answer-confidence"}),
    ("distribution", {"trust": "confidence", "loss": "spherical"}),
    ("distribution", {"trust": "distribution", "loss": "log", "floor": 0.01}),
    ("answer", {"trust": "mean"}),
    ("answer", {"trust": "confidence"}),
    ("answer", {"trust": "answer-confidence", "caps": True}),
    ("answer", {"trust": "answer-confidence", "caps": False}),
    ("answer", {"trust": "answer-confidence", "reference_error": 0.05}),
    ("mean", {}),
    ("median", {}),
    ("mode", {}),
]


@pytest.mark.parametrize(("kind", "options"), CASES)
@settings(max_examples=6)
@given(seed=st.integers(0, 10_000))
def test_terms_add_up_to_what_the_labels_show(kind, options, seed):
    rng = np.random.default_rng(seed)
    primary, reference, labels = _world(rng, kind, 14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trueup.TrueupWarning)
        fitted = trueup.fit(primary, reference, **options, cells="exact")
        parts = decompose(fitted, primary, reference, labels, **FEW)

    assert total(parts) == pytest.approx(parts.realised.value, abs=1e-12)
    assert parts.compatibility_bonus.value >= -1e-12
    assert parts.geometric_gain.value >= -1e-9
    if not options.get("reference_error"):
        gap = fitted.certificate.gap + 1e-7
        assert -gap <= parts.transfer.value <= gap


@pytest.mark.parametrize("kind", ["distribution", "answer"])
def test_on_other_items_the_terms_still_add_up(kind):
    rng = np.random.default_rng(3)
    fitted = trueup.fit(*_world(rng, kind, 40)[:2], trust="confidence", cells="exact")
    primary, reference, labels = _world(rng, kind, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trueup.TrueupWarning)
        parts = decompose(fitted, primary, reference, labels, **FEW)

    assert total(parts) == pytest.approx(parts.realised.value, abs=1e-12)
    assert parts.compatibility_bonus.value >= 0


def test_a_calibrated_reference_costs_nothing_on_average():
    """Every outcome as often as the reference says: the risk is exactly zero."""
    p = np.repeat([0.1, 0.7, 0.2, 0.9], 10)
    q = np.repeat([0.4, 0.4, 0.6, 0.6], 10)
    labels = np.concatenate([np.repeat([1, 0], [4, 6]), np.repeat([1, 0], [6, 4])] * 2)
    labels[:20], labels[20:] = np.repeat([1, 0], [8, 12]), np.repeat([1, 0], [12, 8])
    parts = decompose(trueup.fit(p, q, cells="exact"), p, q, labels, **FEW)

    assert parts.miscalibration_risk.value == pytest.approx(0, abs=1e-9)
    assert parts.realised.value >= parts.geometric_gain.value - 1e-9


def test_groups_are_those_of_the_fit():
    rng = np.random.default_rng(4)
    primary, reference, labels = _world(rng, "distribution", 24)
    groups = np.repeat(["a", "b"], 12)
    fitted = trueup.fit(
        primary, reference, trust="confidence", groups=groups, cells="exact"
    )
    parts = decompose(fitted, primary, reference, labels, groups=groups, **FEW)

    assert total(parts) == pytest.approx(parts.realised.value)
    assert parts.transfer.value == pytest.approx(0, abs=1e-6)


def test_an_infinite_change_is_refused():
    primary = np.array([[0.5, 0.5], [0.6, 0.4]])
    reference = np.array([[1.0, 0.0], [1.0, 0.0]])
    fitted = trueup.fit(primary, reference, loss="log", cells="exact")

    with pytest.raises(trueup.TrueupError, match="infinite on 1 of 2 items"):
        decompose(fitted, primary, reference, [0, 1], **FEW)


def test_lengths_must_agree():
    p, q = np.array([0.1, 0.7]), np.array([0.5, 0.5])

    with pytest.raises(trueup.TrueupError, match="primary has 2 rows but labels has 1"):
        decompose(trueup.fit(p, q, cells="exact"), p, q, [1])


def test_decompositions_print_and_serialise():
    p, q = np.array([0.1, 0.7]), np.array([0.5, 0.5])
    parts = decompose(trueup.fit(p, q, cells="exact"), p, q, [0, 1], **FEW)

    assert repr(parts).startswith("Decomposition(brier loss, 2 items: realised +0.")
    assert "compatibility bonus" in parts.table()
    assert parts._repr_html_().count("<tr>") == 6
    assert json.loads(json.dumps(parts.to_dict()))["loss"] == "brier"
