"""On real predictions: the numbers of the data's own description, and baselines."""

from __future__ import annotations

import numpy as np
import pytest

import trueup
from evaluate.labelled import mmlu
from trueup import AnswerConfidence
from trueup.evaluate import (
    BASELINES,
    check_reference,
    cross_fitted,
    decompose,
    evaluate,
    get_baseline,
)

CHAT, BASE = "Llama_2_7b_chat_chatv2", "Llama_2_7b"


@pytest.mark.parametrize(
    ("model", "accuracy", "ece"),
    [
        (CHAT, 0.479, 0.293),
        (BASE, 0.461, 0.029),
        ("deepseek_llm_7b_chat_chatv2", 0.473, 0.179),
        ("deepseek_llm_7b_base", 0.470, 0.027),
        ("Yi_6B_Chat_chatv2", 0.617, 0.109),
        ("Yi_6B", 0.616, 0.024),
    ],
)
def test_the_described_numbers_come_out(model, accuracy, ece):
    p, labels = mmlu(model)
    result = evaluate(p, labels, n_bootstrap=10)

    assert round(result["accuracy"].value, 3) == accuracy
    assert round(result["ece"].value, 3) == ece


def test_the_chat_model_is_the_less_calibrated_one():
    chat, labels = mmlu(CHAT)
    base, _ = mmlu(BASE)
    result = evaluate(chat, labels, against=base, n_bootstrap=200)

    assert result.differences["accuracy"].lower > 0
    assert result.differences["ece"].lower > 0.2
    assert result.differences["brier"].lower > 0.1


def test_supervised_baselines_improve_the_chat_model():
    chat, labels = mmlu(CHAT, 4000)
    before = evaluate(chat, labels, n_bootstrap=10)
    supervised = [name for name, made in BASELINES.items() if made.needs == "labels"]
    for name in supervised:
        done = cross_fitted(name, chat, labels)
        after = evaluate(done.reports, labels, n_bootstrap=10)

        assert after["accuracy"].value == before["accuracy"].value, name
        assert after["brier_top"].value < before["brier_top"].value - 0.05, name
        assert after["ece"].value < before["ece"].value / 1.8, name


def test_label_free_baselines_run_on_a_real_pair():
    chat, labels = mmlu(CHAT)
    base, _ = mmlu(BASE)
    found = {}
    for name in ("max-confidence", "daca", "reference-copy"):
        fitted = get_baseline(name).fit(chat, base)
        found[name] = evaluate(
            fitted.apply(chat, reference=base), labels, n_bootstrap=10
        )

    assert found["reference-copy"]["ece"].value == pytest.approx(0.029, abs=5e-4)
    assert found["max-confidence"]["ece"].value > 0.28
    # The same answers as the primary, and here a lucky temperature.
    assert found["daca"]["accuracy"].value == pytest.approx(0.479, abs=5e-4)
    assert found["daca"]["ece"].value < 0.06


def test_the_reference_is_nearly_top_label_calibrated_and_no_more():
    p, labels = mmlu(BASE)
    check = check_reference(p, labels, n_resamples=200)

    assert check.recommended.rung == "confidence"
    assert check.recommended.reference_error < 0.05
    # Options E and F are never right, but get probability.
    assert check["distribution"].error.lower > 0.1


def test_a_fitted_map_is_decomposed():
    chat, labels = mmlu(CHAT, 1200)
    base, _ = mmlu(BASE, 1200)
    primary = AnswerConfidence.from_distributions(chat)
    reference = AnswerConfidence.from_distributions(base)
    fitted = trueup.fit(primary, reference, trust="confidence", cells=trueup.Step(0.01))
    parts = decompose(fitted, primary, reference, labels, n_bootstrap=50)

    rounded = trueup.Step(0.01).merge(primary)
    before = evaluate(rounded, labels, n_bootstrap=10)["confidence_loss"].value
    after = evaluate(fitted.apply(primary), labels, n_bootstrap=10)["confidence_loss"]
    assert parts.realised.value == pytest.approx(before - after.value)
    assert parts.geometric_gain.value == pytest.approx(
        fitted.certificate.guaranteed_improvement, abs=1e-6
    )
    assert np.isclose(parts.transfer.value, 0, atol=1e-6)
