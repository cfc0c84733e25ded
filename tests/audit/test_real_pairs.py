"""Audits of real language models, where their answers are at hand."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

import trueup
from trueup.audit.audit import audit

DATA = Path(
    os.environ.get("TRUEUP_DATA", Path(__file__).parents[3] / "shared" / "data")
)
ANSWERS = DATA / "mmlu10k" / "logits.parquet"
PAIRS = {
    "Llama 2 7B": ("Llama_2_7b_chat_chatv2", "Llama_2_7b"),
    "DeepSeek 7B": ("deepseek_llm_7b_chat_chatv2", "deepseek_llm_7b_base"),
}

pytestmark = pytest.mark.skipif(not ANSWERS.exists(), reason="the data are not here")


def answers(model):
    from pyarrow import parquet

    columns = [f"{model}__logit_{letter}" for letter in "ABCDEF"]
    table = parquet.read_table(ANSWERS, columns=columns)
    logits = np.column_stack([table.column(name).to_numpy() for name in columns])
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return trueup.AnswerConfidence.from_distributions(
        odds / odds.sum(axis=1, keepdims=True), outcomes=list("ABCDEF")
    )


@pytest.mark.parametrize("names", PAIRS.values(), ids=PAIRS)
def test_chat_models_contradict_their_calibrated_bases(names):
    chat, base = map(answers, names)
    start = time.perf_counter()
    a = audit(chat, base, cells=trueup.Step(0.01))

    assert a.verdict == "contradiction"
    a.arbitrage.check()
    assert 0 < a.arbitrage.value < 0.2
    assert a.nearest.gap < 1e-8
    assert a.nearest.primary_part > a.nearest.reference_part
    assert a.guaranteed_improvement > 0
    json.dumps(a.to_dict(), allow_nan=False)
    # Seconds on one core; the limit only notices if it becomes minutes.
    assert time.perf_counter() - start < 60
