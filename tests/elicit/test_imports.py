"""Logs that other tools really wrote: the same numbers that those tools computed."""

from __future__ import annotations

import json
import math
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

from contract.project import GOLDEN
from trueup.cli.main import group
from trueup.data import read_predictions
from trueup.elicit.decode import UnreadableReplyError
from trueup.elicit.imports.inspect import letter_position, read_inspect, shown_order
from trueup.elicit.imports.lm_eval import read_lm_eval
from trueup.errors import LogFormatError, QuestionFileError, UnknownNameError

LOGS = GOLDEN / "logs"
ANSWERS = ["B", "A", "C", "D", "A"]
SUBJECTS = ["nature", "nature", "time", "tools", "time"]


def _samples(task):
    return next(LOGS.glob(f"samples_own_{task}_*.jsonl"))


def _lines(task):
    return [json.loads(line) for line in _samples(task).read_text().splitlines()]


def _written(path, records):
    path.write_text("\n".join(map(json.dumps, records)))
    return [path]


def _import(*args):
    return CliRunner().invoke(group, ["import", *map(str, args)])


def test_letters_become_the_harness_own_probabilities():
    found = read_lm_eval([_samples("letters")])
    records = _lines("letters")

    assert [item.item_id for item in found.items] == [
        f"own_letters/{n}" for n in range(5)
    ]
    for item, record in zip(found.items, records, strict=True):
        values = np.array([float(value) for value, _ in record["filtered_resps"]])
        expected = np.exp(values) / np.exp(values).sum()
        assert item.probabilities == pytest.approx(expected)
        right = np.argmax(item.probabilities) == item.answer
        assert right == record["acc"]
    table = found.table().to_pylist()
    assert [row["label"] for row in table] == ANSWERS
    assert [row["group"] for row in table] == SUBJECTS
    assert table[0]["option_mass"] == pytest.approx(
        sum(math.exp(float(v)) for v, _ in records[0]["filtered_resps"])
    )


@pytest.mark.parametrize(
    ("normalise", "metric"),
    [
        ("none", "acc"),
        ("characters", "acc_norm"),
        ("mutual-info", "acc_mutual_info"),
        ("bytes", "acc_norm"),  # the texts are ASCII
    ],
)
def test_texts_are_normalised_as_the_harness_does(normalise, metric):
    found = read_lm_eval([_samples("texts")], normalise=normalise)

    assert [len(item.probabilities) for item in found.items] == [4] * 5
    for item, record in zip(found.items, _lines("texts"), strict=True):
        assert (np.argmax(item.probabilities) == item.answer) == record[metric]
        assert math.fsum(item.probabilities) == pytest.approx(1)


def test_texts_need_a_statement_about_their_lengths():
    with pytest.raises(LogFormatError, match="--normalise none, characters") as caught:
        read_lm_eval([_samples("texts")])

    assert "'a stone'" in str(caught.value)
    with pytest.raises(LogFormatError, match="acc_mutual_info"):
        read_lm_eval([_samples("letters")], normalise="mutual-info")
    with pytest.raises(UnknownNameError):
        read_lm_eval([_samples("letters")], normalise="words")


def test_choices_come_from_the_arguments_where_documents_have_none():
    assert "choices" not in _lines("pairs")[0]["doc"]
    found = read_lm_eval([_samples("pairs")], normalise="none")

    assert [item.answer for item in found.items] == [0, 0, 0]
    assert [len(item.probabilities) for item in found.items] == [2, 2, 2]
    assert all(item.probabilities[0] > 0.9 for item in found.items)


def test_generated_text_holds_no_probabilities():
    with pytest.raises(LogFormatError, match="no probabilities"):
        read_lm_eval([_samples("written")])


def test_older_logs_write_arguments_as_lists(tmp_path):
    records = _lines("letters")
    for record in records:
        record["arguments"] = [
            [one["arg_0"], one["arg_1"]] for one in record["arguments"].values()
        ]
    path = _written(tmp_path / "samples_own_letters_2026-11-18.jsonl", records)

    old, new = read_lm_eval(path), read_lm_eval([_samples("letters")])
    assert [i.probabilities for i in old.items] == [i.probabilities for i in new.items]


def test_a_second_run_in_one_file_counts_once_if_it_says_the_same(tmp_path):
    records = _lines("letters")
    twice = read_lm_eval(_written(tmp_path / "samples_x.jsonl", records * 2))

    assert len(twice.items) == 5
    assert "5 repeated lines are the same and count once" in twice.notes
    other = json.loads(json.dumps(records))
    other[1]["resps"][0][0][0] = "-1.0"
    with pytest.raises(LogFormatError, match="again with other log-likelihoods"):
        read_lm_eval(_written(tmp_path / "samples_x.jsonl", records + other))


def test_one_filter_is_read_and_the_others_are_told(tmp_path):
    records = _lines("letters")
    strict = [record | {"filter": "strict"} for record in records]
    loose = [record | {"filter": "loose"} for record in records]
    both = _written(tmp_path / "samples_x.jsonl", records + strict)
    neither = _written(tmp_path / "samples_y.jsonl", loose + strict)

    assert "left aside: 5" in read_lm_eval(both).notes[0]
    assert len(read_lm_eval(neither, wanted_filter="loose").items) == 5
    with pytest.raises(LogFormatError, match="--filter"):
        read_lm_eval(neither)
    with pytest.raises(UnknownNameError, match="filter"):
        read_lm_eval(neither, wanted_filter="none")


@pytest.mark.parametrize(
    ("target", "choices", "answer"),
    [
        ("1", ["A", "B"], 1),
        (1, ["A", "B"], 1),
        ("B", ["A", "B"], 1),
        ("B", ["yes", "no"], 1),
        ("no", ["yes", "no"], 1),
        (None, ["yes", "no"], None),
        ("", ["yes", "no"], None),
        ("0", ["0", "1"], 0),
    ],
)
def test_targets_are_indices_letters_or_choices(tmp_path, target, choices, answer):
    record = _record(choices) | {"target": target}
    found = read_lm_eval(_written(tmp_path / "s.jsonl", [record]), normalise="none")

    assert found.items[0].answer == answer


def _record(choices, values=None):
    values = values or ["-1.0"] * len(choices)
    return {
        "doc_id": 0,
        "doc": {},
        "target": None,
        "arguments": {
            f"gen_args_{n}": {"arg_0": "?", "arg_1": f" {choice}"}
            for n, choice in enumerate(choices)
        },
        "resps": [[[value, "False"]] for value in values],
        "filter": "none",
    }


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (_record(["A", "B"]) | {"target": "C"}, "names none"),
        (_record(["1", "0"]) | {"target": "1"}, "an index, and another choice"),
        (_record(["A"]), "1 choices"),
        (_record(["A", "B"]) | {"resps": [[["-1", "x"]]]}, "1 responses for 2"),
        (_record(["A", "B"], ["-1", "no"]), "cannot be read"),
        (_record(["A", "B"]) | {"arguments": {"x": 1}}, "no sample of"),
        ({"samples": []}, "no sample of"),
        ([1], "no sample of"),
    ],
)
def test_a_wrong_line_is_refused_with_its_place(tmp_path, record, said):
    good = _record(["A", "B"]) | {"doc_id": 9}
    with pytest.raises(LogFormatError, match=said) as caught:
        read_lm_eval(_written(tmp_path / "s.jsonl", [good, record]), normalise="none")

    assert "line 2" in str(caught.value)


def test_an_item_without_any_likelihood_is_listed(tmp_path):
    nothing = _record(["A", "B"], ["-inf", "-inf"])
    some = _record(["A", "B"], ["-inf", "-2"]) | {"doc_id": 1}
    found = read_lm_eval(_written(tmp_path / "s.jsonl", [nothing, some]))

    assert [one.item_id for one in found.unread] == ["s/0"]
    assert found.items[0].probabilities == (0, 1)


def test_both_forms_of_an_inspect_log_are_read():
    archive = read_inspect([LOGS / "inspect_choices.eval"])
    plain = read_inspect([LOGS / "inspect_choices.json"])
    content = json.loads((LOGS / "inspect_choices.json").read_text())

    rows = archive.table().to_pylist()
    assert [row["item_id"] for row in rows] == ["q1", "q2", "q3", "q4", "q5"]
    assert [row["label"] for row in rows] == ANSWERS
    assert [row["group"] for row in rows] == SUBJECTS
    assert {row["model"] for row in rows} == {"openai-api/llama/SmolLM2-135M-Instruct"}
    for item, sample in zip(plain.items, content["samples"], strict=True):
        said = sample["output"]["completion"]
        assert said == f"ANSWER: {'ABCD'[np.argmax(item.probabilities)]}"
        assert item.details["raw_text"] == said
        listed = sample["output"]["choices"][0]["logprobs"]["content"][4][
            "top_logprobs"
        ]
        by_letter = {t["token"].strip(): t["logprob"] for t in listed}
        assert item.details["raw_logprob_A"] == pytest.approx(by_letter["A"])


def test_archives_are_read_whatever_they_are_compressed_with(tmp_path):
    """Newer versions of inspect_ai use Zstandard, older ones deflate."""
    found = read_inspect([LOGS / "inspect_choices.eval"])
    with zipfile.ZipFile(LOGS / "inspect_choices.eval") as archive:
        kinds = {info.compress_type for info in archive.infolist()}
    assert kinds == {93}
    plain = json.loads((LOGS / "inspect_choices.json").read_text())
    with zipfile.ZipFile(tmp_path / "old.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for sample in plain["samples"]:
            name = f"samples/{sample['id']}_epoch_1.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("header.json", json.dumps({"eval": plain["eval"]}))
    old = read_inspect([tmp_path / "old.eval"])

    assert [i.item_id for i in old.items] == ["q1", "q2"]
    assert len(found.items) == 5


def test_an_inspect_log_without_log_probabilities_says_how_to_get_them():
    with pytest.raises(LogFormatError, match="--logprobs --top-logprobs 20"):
        read_inspect([LOGS / "inspect_without_logprobs.json"])


def test_what_cannot_be_read_in_an_inspect_log_is_listed(tmp_path):
    content = json.loads((LOGS / "inspect_choices.json").read_text())
    broken = json.loads(json.dumps(content["samples"][0]))
    more = [
        broken | {"id": "no choices", "choices": None},
        broken | {"id": "an error", "error": {"message": "x"}},
        broken | {"id": "no output", "output": {"choices": []}},
        broken | {"id": "again", "epoch": 2},
    ]
    content["samples"] += more
    (tmp_path / "log.json").write_text(json.dumps(content))
    found = read_inspect([tmp_path / "log.json"])

    assert [one.item_id for one in found.unread] == [
        "no choices",
        "an error",
        "no output",
    ]
    assert found.notes == ("samples of later epochs are left aside: 1",)
    assert len(found.items) == 2


def test_shuffled_choices_are_put_back(tmp_path):
    content = json.loads((LOGS / "inspect_choices.json").read_text())
    plain = read_inspect([LOGS / "inspect_choices.json"]).items[0].probabilities
    sample = content["samples"][0]
    shown = [sample["choices"][k] for k in (2, 0, 3, 1)]
    lines = "\n".join(f"{x}) {text}" for x, text in zip("ABCD", shown, strict=True))
    sample["messages"][-2]["content"] = f"Which?\n{lines}\nOne of A,B,C,D?"
    assert sample["messages"][-2]["role"] == "user"
    (tmp_path / "log.json").write_text(json.dumps(content))
    found = read_inspect([tmp_path / "log.json"]).items[0].probabilities

    assert shown_order(sample, sample["choices"]) == [2, 0, 3, 1]
    assert [found[k] for k in (2, 0, 3, 1)] == pytest.approx(plain)


@pytest.mark.parametrize(
    ("tokens", "place"),
    [
        (["ANSWER", ":", " B"], 2),
        (["Maybe ANSWER: A", " but", " Answer:", " (", "B", ")"], 4),
        (["ANSWER:", " **", "C", "**"], 2),
    ],
)
def test_the_letter_stands_after_the_last_answer(tokens, place):
    content = [
        {"token": token, "top_logprobs": [{"token": str(n), "logprob": -1.0}]}
        for n, token in enumerate(tokens)
    ]

    assert letter_position(content, "ABC")[0].text == str(place)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["B"], "did not write"),
        (["ANSWER:"], "nothing stands"),
        (["ANSWER:", " none"], "not a letter"),
        (["ANSWER:", " D"], "not a letter"),
        (["ANSWER: B"], "nothing stands"),
    ],
)
def test_without_a_letter_nothing_is_guessed(tokens, said):
    content = [{"token": token, "top_logprobs": []} for token in tokens]

    with pytest.raises(UnreadableReplyError, match=said):
        letter_position(content, "ABC")


@pytest.mark.parametrize("text", ["no json", "{}", '{"samples": 5}', "[]"])
def test_a_file_that_is_no_inspect_log_is_refused(tmp_path, text):
    (tmp_path / "log.json").write_text(text)

    with pytest.raises(LogFormatError):
        read_inspect([tmp_path / "log.json"])


def test_the_command_writes_predictions(tmp_path):
    output = tmp_path / "p.parquet"
    done = _import(_samples("letters"), "-o", output, "--id-field=id", "--json")
    read = read_predictions(output)

    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["n_read"] == 5
    assert list(read.item_ids) == ["q1", "q2", "q3", "q4", "q5"]
    assert read.outcomes == ("A", "B", "C", "D")
    assert list(read.labels) == ANSWERS
    assert _import(_samples("letters"), "-o", output).exit_code == 1  # it exists
    assert (
        _import(LOGS / "inspect_choices.eval", "-o", output, "--force").exit_code == 0
    )


def test_several_logs_become_one_file_and_different_sizes_are_refused(tmp_path):
    logs = [_samples("letters"), _samples("texts")]
    output = tmp_path / "p.csv"
    done = _import(*logs, "--normalise=none", "-o", output)
    mixed = _import(
        _samples("letters"),
        _samples("pairs"),
        "--normalise=none",
        "-o",
        tmp_path / "m.csv",
    )
    padded = _import(
        _samples("letters"),
        _samples("pairs"),
        "--normalise=none",
        "--pad-options",
        "-o",
        tmp_path / "m.csv",
    )

    assert done.exit_code == 0
    assert len(read_predictions(output)) == 10
    assert mixed.exit_code == 1
    assert "--pad-options" in mixed.stderr
    assert padded.exit_code == 0


def test_one_id_names_one_item(tmp_path):
    found = read_lm_eval([_samples("letters"), _samples("texts")], normalise="none")
    same = [item.item_id for item in found.items]
    assert len(set(same)) == 10
    twice = read_lm_eval(
        [_samples("letters"), _samples("texts")], normalise="none", id_field="id"
    )

    with pytest.raises(LogFormatError, match="'q1'"):
        twice.table()
    with pytest.raises(QuestionFileError):
        read_lm_eval([_samples("letters"), _samples("pairs")], normalise="none").table()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nowhere.jsonl"], "does not exist"),
        ([LOGS / "README.md"], "--from lm-eval"),
        ([LOGS / "questions.jsonl"], "no sample of"),
    ],
)
def test_wrong_logs_are_refused(tmp_path, args, said):
    done = _import(*args, "-o", tmp_path / "p.csv")

    assert done.exit_code == 1
    assert said in done.stderr
    assert not list(tmp_path.iterdir())
