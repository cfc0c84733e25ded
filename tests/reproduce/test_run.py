"""A study from files: right, deterministic, resumable, and safe to show."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest

from reproduce.worlds import write_pair
from trueup import AnswerConfidence
from trueup.reproduce import METHODS, find_pairs, paper_map, run_study
from trueup.reproduce.paper import printed
from trueup.reproduce.sample import Sample
from trueup.reproduce.scoring import Said, scores

FEW = tuple(
    method
    for method in METHODS
    if method.name in ("base", "instruct", "temperature", "paper", "auto-confidence")
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Every method on one pair."""
    folder = tmp_path_factory.mktemp("whole")
    write_pair(folder / "in", split=True, n_items=500)
    return folder, run_study(find_pairs(folder / "in"), folder / "out")


def rows_of(finished):
    return finished.results[0]["methods"]


def test_every_method_has_its_row(whole):
    rows = rows_of(whole[1])

    assert list(rows) == [method.name for method in METHODS]
    assert not [name for name, row in rows.items() if "absent" in row]


def test_given_rows_are_the_scores_of_the_files(whole):
    folder, finished = whole
    (spec,) = find_pairs(folder / "in")
    sample = Sample.read(spec)
    wanted = scores(Said.of(sample.primary), sample.labels)

    assert rows_of(finished)["instruct"]["ece"] == pytest.approx(wanted.ece, abs=1e-9)
    assert rows_of(finished)["instruct"]["gain"] == 0
    reference = scores(Said.of(sample.reference), sample.labels)
    assert rows_of(finished)["base"]["brier_top"] == pytest.approx(
        reference.brier_top, abs=1e-9
    )


def test_the_paper_s_row_is_its_mode_on_the_items_themselves(whole):
    folder, finished = whole
    (spec,) = find_pairs(folder / "in")
    sample = Sample.read(spec)
    fitted = paper_map(sample.primary, sample.reference)
    better = scores(Said.of(fitted.apply(sample.primary)), sample.labels)
    row = rows_of(finished)["paper"]

    assert row["brier_top"] == pytest.approx(better.brier_top, abs=1e-9)
    assert row["certificate"]["guaranteed_improvement"] == pytest.approx(
        fitted.certificate.guaranteed_improvement, abs=1e-9
    )
    assert row["certificate"]["caps"]


def test_drawn_answers_promise_at_least_as_much(whole):
    rows = rows_of(whole[1])
    promised = [
        rows[name]["certificate"]["guaranteed_improvement"]
        for name in ("paper", "paper-drawn")
    ]

    assert promised[1] >= promised[0] - 1e-6


def test_confidence_loss_is_brier_minus_accuracy_in_every_row(whole):
    for row in rows_of(whole[1]).values():
        gap = row["brier_top"] - row["accuracy"] - row["confidence_loss"]
        assert abs(gap) < 1e-9


def test_labels_reach_nothing_but_scores_and_supervised_rows(tmp_path):
    """Shuffled labels change no map: only what is scored."""
    write_pair(tmp_path / "in", split=True)
    (spec,) = find_pairs(tmp_path / "in")
    sample = Sample.read(spec)
    other = Sample(
        sample.primary,
        sample.reference,
        sample.primary_vectors,
        sample.reference_vectors,
        sample.scored,
        np.random.default_rng(0).permutation(sample.labels),
        None,
        sample.notes,
    )
    for method in METHODS:
        if method.kind == "supervised":
            continue
        one, two = method(sample).said, method(other).said
        assert np.array_equal(one.confidence, two.confidence), method.name
        assert np.array_equal(one.answers, two.answers), method.name


def test_supervised_rows_say_what_they_were_fitted_on(whole, tmp_path):
    note = rows_of(whole[1])["isotonic"]["notes"][0]
    assert note == "fitted on a calibration split of 400 items"

    write_pair(tmp_path / "in")
    finished = run_study(find_pairs(tmp_path / "in"), tmp_path / "out", methods=FEW)
    assert "cross-fitted" in rows_of(finished)["temperature"]["notes"][0]
    assert "cross-fitted" in (tmp_path / "out" / "tables.md").read_text()


def test_a_second_run_repeats_nothing_and_writes_the_same(tmp_path):
    write_pair(tmp_path / "in")
    pairs = find_pairs(tmp_path / "in")
    run_study(pairs, tmp_path / "one", methods=FEW)
    first = contents(tmp_path / "one")
    steps = []
    again = run_study(pairs, tmp_path / "one", methods=FEW, progress=steps.append)
    run_study(pairs, tmp_path / "two", methods=FEW)

    assert again.n_reused == 1
    assert steps == []
    assert contents(tmp_path / "one") == contents(tmp_path / "two") == first
    assert str(tmp_path) not in "".join(first.values())


def test_changed_predictions_are_run_again(tmp_path):
    write_pair(tmp_path / "in")
    pairs = find_pairs(tmp_path / "in")
    before = run_study(pairs, tmp_path / "out", methods=FEW)
    write_pair_again = tmp_path / "in" / "commonsense-qa" / "Qwen3-8B.base.parquet"
    write_pair_again.unlink()
    (tmp_path / "in" / "commonsense-qa" / "Qwen3-8B.instruct.csv").unlink()
    write_pair(tmp_path / "in", seed=1)
    after = run_study(pairs, tmp_path / "out", methods=FEW)

    assert after.n_reused == 0
    assert rows_of(before)["base"] != rows_of(after)["base"]


def test_a_damaged_result_is_run_again(tmp_path):
    write_pair(tmp_path / "in")
    pairs = find_pairs(tmp_path / "in")
    run_study(pairs, tmp_path / "out", methods=FEW)
    (path,) = (tmp_path / "out" / "results").iterdir()
    path.write_text(path.read_text()[:100])

    assert run_study(pairs, tmp_path / "out", methods=FEW).n_reused == 0


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_printed_numbers_and_differences_stand_beside_ours(whole):
    folder, finished = whole
    known = printed("Qwen3-8B", "commonsense-qa", "paper")
    lines = csv.DictReader(io.StringIO((folder / "out" / "tables.csv").read_text()))
    row = next(line for line in lines if line["method"] == "paper")
    ours = rows_of(finished)["paper"]["ece"]

    assert float(row["printed_ece"]) == known.ece
    assert float(row["difference_ece"]) == pytest.approx(ours - known.ece, abs=1e-6)
    shown = (folder / "out" / "tables.md").read_text()
    assert f"printed in the paper | 83.29% | {known.brier_top:.4f}" in shown


def test_the_first_table_is_the_paper_s(whole):
    first, second = whole[1].tables[:2]

    assert first.title.startswith("Table 1")
    assert [row[1] for row in first.rows if not row[1].startswith(" ")] == [
        "Base model (reference)",
        "Instruct model (primary)",
        "Temperature scaling",
        "Paper's mode",
    ]
    assert first.header[2:] == tuple(
        f"CommonsenseQA {name}" for name in ("ACC", "BS", "ECE", "CL")
    )
    assert len(second.rows) > len(first.rows)


def test_unlabelled_items_take_part_in_fitting_only(tmp_path):
    from reproduce.worlds import pair_of_models, table
    from trueup.data import write_table

    base, instruct, labels = pair_of_models()
    labels = np.where(np.arange(len(labels)) % 4 == 0, -1, labels)
    folder = tmp_path / "in" / "s"
    folder.mkdir(parents=True)
    write_table(table(base, labels), folder / "m.base.csv")
    write_table(table(instruct, labels), folder / "m.instruct.parquet")
    one = run_study(find_pairs(tmp_path / "in"), tmp_path / "out", methods=FEW)
    result = one.results[0]

    assert (result["n_items"], result["n_scored"]) == (400, 300)
    assert "labels are missing" in result["methods"]["temperature"]["absent"]
    assert result["methods"]["paper"]["certificate"]["guaranteed_improvement"] >= 0


def test_answers_without_distributions_leave_out_what_needs_them(tmp_path):
    base, instruct, labels = write_pair(tmp_path / "in")
    folder = tmp_path / "in" / "commonsense-qa"
    for path in list(folder.iterdir()):
        path.unlink()
    for role, rows in (("base", base), ("instruct", instruct)):
        said = AnswerConfidence.from_distributions(rows, outcomes="ABCD")
        lines = ["item_id,answer,confidence,label"]
        lines += [
            f"q{k},{answer},{confidence!r},{'ABCD'[label]}"
            for k, (answer, confidence, label) in enumerate(
                zip(said.labels(), said.confidence.tolist(), labels, strict=True)
            )
        ]
        (folder / f"m.{role}.csv").write_text("\n".join(lines) + "\n")
    chosen = [m for m in METHODS if m.name in ("instruct", "daca", "auto-distribution")]
    finished = run_study(find_pairs(tmp_path / "in"), tmp_path / "out", methods=chosen)
    rows = rows_of(finished)

    assert "every option" in rows["daca"]["absent"]
    assert "every option" in rows["auto-distribution"]["absent"]
    assert "DACA is absent" in (tmp_path / "out" / "tables.md").read_text()


def test_hostile_names_are_shown_and_not_run(tmp_path):
    evil = "<script>alert(1)</script>|[x](y)"
    write_pair(tmp_path / "in", "m")
    from dataclasses import replace

    (spec,) = find_pairs(tmp_path / "in")
    spec = replace(spec, model=evil, set="=cmd()")
    run_study([spec], tmp_path / "out", methods=FEW, title=evil)
    page = (tmp_path / "out" / "tables.html").read_text()
    text = (tmp_path / "out" / "tables.md").read_text()
    table = (tmp_path / "out" / "tables.csv").read_text()

    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\\<script\\>" in text
    assert "](y)" not in text.replace("\\]", "")
    assert all(line.startswith(("set,", "'=cmd()")) for line in table.splitlines())


def test_the_page_needs_nothing_from_elsewhere(whole):
    page = (whole[0] / "out" / "tables.html").read_text()

    assert not re.search(r"src=|href=\"[^#]|url\(|@import|https?:", page)
    for target in re.findall(r'href="#([^"]+)"', page):
        assert page.count(f'id="{target}"') == 1
    assert len(page) < 60_000


def test_the_config_is_plain(whole):
    config = json.loads((whole[0] / "out" / "config.json").read_text())

    assert config["paper_mode"]["step"] == 0.01
    assert (
        config["pairs"][0]["primary"]["file"] == "commonsense-qa/Qwen3-8B.instruct.csv"
    )
