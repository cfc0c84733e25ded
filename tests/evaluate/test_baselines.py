"""Baselines: against scikit-learn and their authors' code, by hand, and at the ends."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal

from evaluate.labelled import answer_worlds, distribution_worlds, random_world, softmax
from trueup import AnswerConfidence
from trueup.errors import DoubtfulInputWarning, MissingExtraError, TrueupWarning
from trueup.evaluate import (
    BASELINES,
    BetaCalibration,
    ConfidenceTemperature,
    Daca,
    HistogramBinning,
    IsotonicCalibration,
    MaxConfidence,
    PlattScaling,
    ReferenceCopy,
    TemperatureScaling,
    evaluate,
)
from trueup.evaluate.baselines.scalar import ScalarMap

SUPERVISED = {n: made for n, made in BASELINES.items() if made.needs == "labels"}
SCALAR = {n: made for n, made in SUPERVISED.items() if issubclass(made, ScalarMap)}


def quietly_fitted(made, *arguments, **options):
    """Fit extreme samples without the warning that they are extreme."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        return made.fit(*arguments, **options)


def answers(confidence, outcomes=("A", "B", "C")):
    return AnswerConfidence(
        answer=[0] * len(confidence), confidence=confidence, outcomes=outcomes
    )


def chances(n_items=500, seed=1):
    """Overconfident chances, and whether they came true."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n_items)
    true = 1 / (1 + np.exp(-z))
    return 1 / (1 + np.exp(-2.5 * z - 0.3)), (rng.random(n_items) < true).astype(int)


def test_temperature_minimises_the_log_loss():
    p, _, labels = random_world(np.random.default_rng(2), 400, 4, 0.5)
    fitted = TemperatureScaling.fit(p, labels)

    def loss(temperature):
        scaled = softmax(np.log(p) / temperature)
        return -np.log(scaled[np.arange(400), labels]).mean()

    best = min(np.linspace(0.2, 6, 2000), key=loss)
    assert fitted.temperature == pytest.approx(best, abs=0.004)
    assert_allclose(fitted.apply(p), softmax(np.log(p) / fitted.temperature))


def test_a_known_temperature_is_recovered():
    """Labels in exactly the proportions of p: T is 1; of p squared: T is 1/2."""
    p = np.array([[0.6, 0.3, 0.1]])
    for power, counts in ((1, [60, 30, 10]), (2, [36, 9, 1])):
        labels = np.repeat([0, 1, 2], counts)
        fitted = TemperatureScaling.fit(np.repeat(p, len(labels), axis=0), labels)
        assert fitted.temperature == pytest.approx(1 / power)


def test_binary_temperature_is_the_multi_class_one():
    """For two outcomes both scale the same log-odds."""
    p, hits = chances()
    both = ConfidenceTemperature.fit(p, hits), TemperatureScaling.fit(p, hits)

    assert both[0].temperature == pytest.approx(both[1].temperature, rel=1e-5)
    assert_allclose(both[0].apply(p), both[1].apply(p), atol=1e-6)


def test_confidence_temperature_by_hand():
    """Always .9 and right in 3 of 4: logit(.75) = logit(.9) / T."""
    fitted = ConfidenceTemperature.fit(answers([0.9] * 4), ["A", "A", "A", "B"])

    assert fitted.temperature == pytest.approx(np.log(9) / np.log(3))
    assert_allclose(fitted.apply(answers([0.9])).confidence, 0.75)


def test_platt_is_scikit_learns_sigmoid_on_the_log_odds():
    calibration = pytest.importorskip("sklearn.calibration")
    p, hits = chances()
    fitted = PlattScaling.fit(p, hits)

    z = np.log(p / (1 - p))
    theirs = calibration._SigmoidCalibration().fit(z, hits)
    assert_allclose(fitted.apply(p)[:, 1], theirs.predict(z), atol=1e-4)


def test_isotonic_is_scikit_learns():
    isotonic = pytest.importorskip("sklearn.isotonic")
    p, hits = chances()
    p = np.round(p, 2)  # ties
    new = np.linspace(0, 1, 301)
    weights = np.random.default_rng(3).uniform(size=len(p))
    fitted = IsotonicCalibration.fit(p, hits, sample_weight=weights)

    theirs = isotonic.IsotonicRegression(out_of_bounds="clip").fit(p, hits, weights)
    assert_allclose(fitted.apply(new)[:, 1], theirs.predict(new), atol=1e-12)


def test_beta_is_the_published_one():
    """betacal 1.1 by its authors, which stops its regression earlier than we do."""
    published = pytest.importorskip("betacal")
    p, hits = chances(3000)
    fitted = BetaCalibration.fit(p, hits)

    with warnings.catch_warnings():  # it silences all warnings for good
        theirs = published.BetaCalibration("abm").fit(p[:, None], hits)
        expected = theirs.predict(p)
    assert_allclose(fitted.apply(p)[:, 1], expected, atol=2e-3)


def test_beta_sets_negative_coefficients_to_zero():
    """Chances that mean their opposite leave only the base rate."""
    p, hits = chances()
    fitted = BetaCalibration.fit(1 - p, hits)

    assert fitted.a == fitted.b == 0
    assert_allclose(fitted.apply(p)[:, 1], hits.mean(), atol=1e-6)


def test_histogram_by_hand():
    """Bins [a, b): .5 starts a bin, and 1 belongs to the last."""
    confidence = [0.49, 0.5, 0.55, 0.5, 0.95, 1.0]
    labels = ["A", "A", "B", "A", "A", "B"]
    fitted = HistogramBinning.fit(answers(confidence), labels)

    assert fitted.rates[4] == 1
    assert fitted.rates[5] == pytest.approx(2 / 3)
    assert fitted.rates[9] == 0.5
    assert fitted.rates[0] is None
    applied = fitted.apply(answers([0.5, 0.05, 1.0, 0.49999]))
    assert_allclose(applied.confidence, [2 / 3, 0.05, 0.5, 1])


def test_max_confidence_by_hand():
    """Ties stay with the primary."""
    primary = AnswerConfidence(
        answer=list("ABC"), confidence=[0.5, 0.9, 0.6], outcomes=list("ABC")
    )
    reference = AnswerConfidence(
        answer=list("BCA"), confidence=[0.7, 0.8, 0.6], outcomes=list("ABC")
    )
    rule = MaxConfidence.fit(primary, reference)
    chosen = rule.apply(primary, reference=reference)

    assert chosen.labels() == ["B", "B", "C"]
    assert chosen.confidence.tolist() == [0.7, 0.9, 0.6]


def test_choices_between_a_distribution_and_an_answer_are_answers():
    primary = np.array([[0.7, 0.3], [0.4, 0.6]])
    reference = AnswerConfidence(answer=[1, 0], confidence=[0.9, 0.5], outcomes=[0, 1])

    best = MaxConfidence.fit(primary, reference).apply(primary, reference=reference)
    copy = ReferenceCopy.fit(primary, reference).apply(primary, reference=reference)

    assert best.labels() == [1, 1]
    assert best.confidence.tolist() == [0.9, 0.6]
    assert copy.labels() == [1, 0]


def test_a_copy_of_distributions_is_the_reference():
    p, _, _ = random_world(np.random.default_rng(4), 20, 3)
    q = p[::-1].copy()

    assert_array_equal(ReferenceCopy.fit(p, q).apply(p, reference=q), q)


def test_daca_recovers_the_temperature_between_two_predictors():
    """Reference = primary at temperature 3: that is the answer, where they agree."""
    p, _, _ = random_world(np.random.default_rng(5), 200, 4)
    q = softmax(np.log(p) / 3)
    q[:50] = q[:50, ::-1]  # other answers here, which must not matter

    fitted = Daca.fit(p, q)

    agree = (p.argmax(axis=1) == q.argmax(axis=1)).sum()
    assert fitted.fitted_on.n_used == agree
    assert fitted.fitted_on.n_items == 200
    assert fitted.temperature == pytest.approx(3, rel=0.1)
    clean = Daca.fit(p[50:], q[50:])
    assert clean.temperature == pytest.approx(3, rel=1e-9)


@pytest.mark.parametrize("made", SUPERVISED.values(), ids=SUPERVISED)
def test_a_weight_is_a_repetition(made):
    p, hits = chances(60)
    weights = np.random.default_rng(6).integers(1, 4, size=60)

    weighted = made.fit(p, hits, sample_weight=weights)
    repeated = made.fit(np.repeat(p, weights), np.repeat(hits, weights))

    assert_allclose(weighted.apply(p), repeated.apply(p), atol=1e-6)


@pytest.mark.parametrize("made", SUPERVISED.values(), ids=SUPERVISED)
def test_fitting_lowers_the_loss_that_was_fitted(made):
    """Squared error for step functions, log loss for the others."""
    p, hits = chances(2000)
    before = evaluate(p, hits, n_bootstrap=10)
    after = evaluate(made.fit(p, hits).apply(p), hits, n_bootstrap=10)

    steps = (HistogramBinning, IsotonicCalibration)
    metric = "brier" if issubclass(made, steps) else "log_loss"
    assert after[metric].value < before[metric].value


@pytest.mark.parametrize("made", SCALAR.values(), ids=SCALAR)
def test_scalar_methods_keep_the_answers_of_many_outcomes(made):
    p, _, labels = random_world(np.random.default_rng(7), 100, 5)
    fitted = made.fit(p, labels)
    better = fitted.apply(p)

    assert_array_equal(better.answer, p.argmax(axis=1))
    same = made.fit(AnswerConfidence.from_distributions(p), labels)
    assert_array_equal(same.apply(p).confidence, better.confidence)


@pytest.mark.parametrize("made", SUPERVISED.values(), ids=SUPERVISED)
@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_present(made, outcome):
    p = np.array([0.2, 0.6, 0.7, 0.9])
    better = quietly_fitted(made, p, [outcome] * 4).apply(p)

    assert np.isfinite(better).all()
    before = -np.log(np.column_stack([1 - p, p])[:, outcome]).mean()
    assert -np.log(better[:, outcome]).mean() < before


@pytest.mark.parametrize("made", SUPERVISED.values(), ids=SUPERVISED)
def test_confidence_all_zero_or_one(made):
    p = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    hits = [0, 1, 0, 0, 1, 1, 1, 0]
    better = quietly_fitted(made, p, hits).apply(p)

    # Each side is right in three of four cases.
    assert_allclose(better[p == 1, 1], 0.75, atol=0.1)
    assert_allclose(better[p == 0, 1], 0.25, atol=0.1)


@pytest.mark.parametrize("made", SUPERVISED.values(), ids=SUPERVISED)
def test_one_constant_chance(made):
    p = np.full(10, 0.8)
    better = made.fit(p, [1] * 6 + [0] * 4).apply(p)

    assert_allclose(better[:, 1], 0.6, atol=0.02)


@pytest.mark.parametrize("made", SUPERVISED.values(), ids=SUPERVISED)
def test_uniform_reports_stay_legal(made):
    better = quietly_fitted(made, np.full(6, 0.5), [1, 0, 1, 0, 1, 0])

    assert_allclose(better.apply(np.full(2, 0.5)), 0.5, atol=1e-6)


@pytest.mark.parametrize("made", SUPERVISED.values(), ids=SUPERVISED)
def test_ten_items_that_are_separable(made):
    """Every miss below every hit: coefficients would run to infinity."""
    p, hits = np.linspace(0.05, 0.95, 10), np.repeat([0, 1], 5)
    better = quietly_fitted(made, p, hits).apply(p)

    assert np.isfinite(better).all()
    assert (np.diff(better[:, 1]) >= -1e-12).all()


def test_a_thousand_outcomes():
    p, _, labels = random_world(np.random.default_rng(8), 80, 1000)
    for made in SUPERVISED.values():
        better = quietly_fitted(made, p, labels).apply(p)
        assert len(better) == 80
    assert_allclose(TemperatureScaling.fit(p, labels).apply(p).sum(axis=1), 1)


def test_zeros_of_a_distribution_stay_finite():
    p = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.9, 0.1, 0.0]])
    fitted = TemperatureScaling.fit(p, [0, 1, 2])

    assert (fitted.apply(p) > 0).all()
    assert np.isfinite(evaluate(fitted.apply(p), [0, 1, 2])["log_loss"].value)


def test_a_temperature_at_its_limit_warns():
    with pytest.warns(DoubtfulInputWarning, match="ran to its limit 0.01"):
        TemperatureScaling.fit([[0.6, 0.4]] * 3, [0, 0, 0])
    with pytest.warns(DoubtfulInputWarning, match="ran to its limit 100"):
        ConfidenceTemperature.fit(answers([0.6, 0.7]), ["B", "B"])


@given(world=answer_worlds())
@settings(max_examples=25)
def test_every_fit_gives_legal_confidences(world):
    reports, labels, weights = world
    for made in SCALAR.values():
        fitted = quietly_fitted(made, reports, labels, sample_weight=weights)
        better = fitted.apply(reports)

        assert ((better.confidence >= 0) & (better.confidence <= 1)).all()
        assert_array_equal(better.answer, reports.answer)


@given(world=distribution_worlds())
@settings(max_examples=25)
def test_every_temperature_keeps_the_answers(world):
    p, labels, weights = world
    fitted = quietly_fitted(TemperatureScaling, p, labels, sample_weight=weights)
    better = fitted.apply(p)

    assert_allclose(better.sum(axis=1), 1)
    top = better[np.arange(len(p)), p.argmax(axis=1)]
    assert_allclose(top, better.max(axis=1))


@pytest.mark.parametrize("made", [PlattScaling, BetaCalibration, IsotonicCalibration])
def test_without_scikit_learn_the_extra_is_named(made, monkeypatch):
    for name in ("sklearn", "sklearn.linear_model", "sklearn.isotonic"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(MissingExtraError, match=r"trueup\[sklearn\]"):
        made.fit(*chances(20))


@pytest.mark.parametrize("made", [TemperatureScaling, HistogramBinning, Daca])
def test_the_others_need_no_scikit_learn(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    p, hits = chances(40)

    made.fit(p, p if made is Daca else hits)
