"""The transcribed tables: complete, and true to the identities of their metrics."""

from __future__ import annotations

import pytest

from trueup.reproduce.paper import (
    SET_SIZES,
    paper_model,
    paper_models,
    paper_rows,
    printed,
    set_id,
)

ROWS = paper_rows()
METHODS = ("base", "instruct", "temperature", "histogram", "isotonic", "paper")
HALF_A_DIGIT = 0.00005
"""Rounding of a number that is printed with four decimals."""


def accuracy_of(row):
    """Printed, or that of the instruct model whose answers a method keeps."""
    if row.accuracy is not None:
        return row.accuracy
    return printed(row.model, row.set, "instruct").accuracy


def test_every_model_and_set_has_every_method_once():
    places = {(row.model, row.set) for row in ROWS}

    assert len(places) == 14
    assert sorted((row.model, row.set, row.method) for row in ROWS) == sorted(
        (*place, method) for place in places for method in METHODS
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r.model}-{r.set}-{r.method}")
def test_confidence_loss_is_brier_minus_accuracy_up_to_rounding(row):
    """No printed row violates it."""
    gap = row.brier_top - accuracy_of(row) - row.confidence_loss

    assert abs(gap) <= 3 * HALF_A_DIGIT + 1e-12


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r.model}-{r.set}-{r.method}")
def test_metrics_are_possible(row):
    """Jensen: the squared ECE is at most the Brier score."""
    assert 0 <= row.ece**2 <= row.brier_top + HALF_A_DIGIT <= 1
    assert -1 <= row.confidence_loss <= 0


def test_supervised_methods_print_no_accuracy():
    silent = {row.method for row in ROWS if row.accuracy is None}

    assert silent == {"temperature", "histogram", "isotonic"}


def test_accuracies_that_no_number_of_right_answers_gives():
    """Two of the paper's own rows are averages over drawn answers, or misprinted.

    A share of N items is a whole number over N. Both are rows in which the method
    changes answers, which fits a loss that averages over tied answers.
    """
    odd = []
    for row in ROWS:
        if row.accuracy is None:
            continue
        n_items = SET_SIZES[row.set]
        nearest = round(row.accuracy * n_items) / n_items
        if abs(nearest - row.accuracy) > HALF_A_DIGIT + 1e-9:
            odd.append((row.model, row.set, row.method))

    assert odd == [
        ("Ministral-3-8B", "mmlu-redux", "paper"),
        ("Ministral-3-8B", "commonsense-qa", "paper"),
    ]


def test_the_paper_s_claim_about_brier_scores_holds_in_its_main_tables():
    """More than 8 % off the instruct model's Brier score, but for Qwen3 on MMLU."""
    falls = {}
    for one in paper_models():
        for name in SET_SIZES:
            after = printed(one.model, name, "paper")
            if one.main and after is not None:
                before = printed(one.model, name, "instruct")
                falls[one.model, name] = 1 - after.brier_top / before.brier_top

    assert min(falls, key=falls.get) == ("Qwen3-8B", "mmlu-redux")
    assert 0.078 < min(falls.values()) < 0.08


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("Qwen/Qwen3-8B-Base", "Qwen3-8B"),
        ("qwen3_8b", "Qwen3-8B"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "LLaMA-3-8B"),
        ("mistralai/Ministral-3-14B-Instruct-2512", "Ministral-3-14B"),
        ("Llama-2-7b-chat", None),
        ("Qwen3-80B", None),
    ],
)
def test_models_are_recognised_in_other_spellings(name, model):
    found = paper_model(name)

    assert (found.model if found else None) == model


def test_published_names_mean_their_own_model():
    for one in paper_models():
        assert paper_model(one.base) == paper_model(one.instruct) == one


def test_every_printed_model_is_named():
    assert {row.model for row in ROWS} <= {one.model for one in paper_models()}
    assert len(paper_models()) == 12


def test_sets_are_recognised_in_other_spellings():
    assert set_id("CommonSenseQA") == set_id("csqa") == "commonsense-qa"
    assert set_id("MMLU-Redux 2") == "mmlu-redux"
    assert set_id("mmlu10k") == "mmlu10k"
