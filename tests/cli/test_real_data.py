"""A chat model and its base model, from their file to what the labels say."""

from __future__ import annotations

import pytest

from evaluate.labelled import DATA

MMLU = DATA / "mmlu10k" / "logits.parquet"
PREFIXES = (
    *("--primary-prefix", "Llama_2_7b_chat_chatv2"),
    *("--reference-prefix", "Llama_2_7b"),
)

pytestmark = pytest.mark.skipif(not MMLU.exists(), reason="the data are not here")


def test_from_one_file_to_a_guarantee_that_holds(run, tmp_path):
    fitted = run("fit", MMLU, *PREFIXES, "-o", "map.json", "--json").json
    options = ("--prefix", "Llama_2_7b_chat_chatv2", "--bootstrap", "50", "--json")
    seen = run("evaluate", MMLU, "--against", "map.json", *options).json
    change = seen["evaluation"]["differences"]["brier"]["value"]
    guaranteed = fitted["certificate"]["guaranteed_improvement"]

    assert fitted["inputs"]["n_items"] == 9970
    assert 0 < guaranteed < -change


def test_the_chat_model_contradicts_its_base(run):
    assert run("audit", MMLU, *PREFIXES, "--json").json["audit"]["verdict"] == (
        "contradiction"
    )


def test_bounds_hold_for_the_labels(run):
    found = run("bounds", MMLU, *PREFIXES, "--json").json["bounds"]

    assert found["lower"] < 0.479 < found["upper"]
