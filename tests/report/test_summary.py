"""What a summary says is what the results it was gathered from say."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import trueup
from evaluate.labelled import LETTERS, mmlu
from report.situations import SITUATIONS, answers, binary, nothing, table, worlds
from trueup.errors import InvalidInputError
from trueup.report import ReportSummary, render, summarise
from trueup.report._contradictions import bet
from trueup.report._words import aligned, number, percent


def test_the_guarantee_is_the_certificate():
    primary, reference, _ = worlds(shift=2.5)
    proof = trueup.fit(primary, reference, cells="auto").certificate
    shown = binary().guarantee

    assert shown.guaranteed_improvement == proof.guaranteed_improvement
    assert (shown.fitted, shown.certified, shown.lower) == (
        proof.fitted,
        proof.certified,
        proof.lower,
    )
    assert binary().assumption.sentence == proof.assumption


def test_every_rung_and_loss_is_there_and_one_is_the_map():
    rows = binary().guarantees

    assert {row.loss for row in rows} == {"brier", "log", "spherical"}
    assert [row.title for row in rows if row.loss == "brier"] == [
        "mean",
        "confidence",
        "answer-confidence",
        "distribution",
    ]
    assert [row for row in rows if row.is_chosen] == [binary().guarantee]


def test_another_rung_is_what_fitting_it_gives():
    primary, reference, _ = worlds(shift=2.5)
    again = trueup.fit(primary, reference, trust="mean", loss="log", cells="auto")
    row = next(r for r in binary().guarantees if (r.loss, r.title) == ("log", "mean"))

    assert row.guaranteed_improvement == pytest.approx(
        again.certificate.guaranteed_improvement, abs=1e-12
    )


@pytest.mark.parametrize("situation", SITUATIONS)
def test_curves_fall_from_the_guarantee_to_zero_at_the_break_even(situation):
    summary = SITUATIONS[situation]()
    used = summary.assumption.reference_error
    for row in summary.guarantees:
        curve = next(
            one
            for one in summary.curves
            if (one.loss, one.title, one.kind) == (row.loss, row.title, "this map")
        )
        values = np.array(curve.guaranteed_improvement)

        assert (np.diff(values) <= 1e-9).all()
        at_used = values[curve.errors.index(used)]
        assert at_used == pytest.approx(row.guaranteed_improvement, abs=1e-8)
        if math.isfinite(row.guaranteed_until):
            beyond = np.array(curve.errors) >= row.guaranteed_until - 1e-12
            assert values[beyond] == pytest.approx(0, abs=1e-7)


def test_an_exact_table_has_the_exact_break_even_of_its_map():
    fitted = trueup.fit([0.1, 0.7], [0.5, 0.5], cells="exact")

    assert table().guarantee.guaranteed_until == pytest.approx(
        fitted.certificate.break_even_reference_error
    )
    assert table().contradictions.break_even_reference_error == pytest.approx(0.1)
    assert table().contradictions.profit == pytest.approx(1 / 9, abs=1e-6)


def test_zero_is_told_with_its_reason_as_a_normal_result():
    summary = nothing()

    assert summary.headline == "Nothing is guaranteed"
    assert summary.guarantee.reason.lower() in summary.plain[0].lower()
    assert "normal result" in summary.plain[0]
    assert any("may do harm" in point for point in summary.not_concluded)
    assert not any("mutually calibrated" in point for point in summary.not_concluded)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_shares_add_up(situation):
    changes = SITUATIONS[situation]().changes

    assert sum(one.share for one in changes.joint) == pytest.approx(1)
    assert sum(one.before for one in changes.bands) == pytest.approx(1)
    assert sum(one.after for one in changes.bands) == pytest.approx(1)
    all_answers = [one for one in changes.moves if not one.answer]
    assert sum(one.share for one in all_answers) == pytest.approx(1)


def test_the_labels_measure_what_evaluate_measures():
    primary, reference, labels = worlds(shift=2.5)
    fitted = trueup.fit(primary, reference, cells="auto")
    before = trueup.evaluate(primary, labels, n_bootstrap=10)["brier"].value
    after = trueup.evaluate(fitted.apply(primary), labels, n_bootstrap=10)[
        "brier"
    ].value
    found = binary().labelled

    assert found.improvement == pytest.approx(before - after)
    assert found.improvement_lower < found.improvement < found.improvement_upper
    assert found.verdict == "held"
    by_kind = {score.kind for score in found.scores}
    assert by_kind == {"primary", "map", "reference", "label-free", "supervised"}


def test_items_without_a_label_are_left_out_of_the_section_only():
    summary = answers()

    assert summary.n_items == 1200
    assert summary.labelled.n_items == 800
    assert summary.assumption.n_groups == 2


def test_labels_that_refute_the_assumption_are_told():
    """The reference says 70 % and is right in 40 % of the cases."""
    rng = np.random.default_rng(0)
    reference, primary = np.full(2000, 0.7), np.where(rng.random(2000) < 0.5, 0.2, 0.6)
    fitted = trueup.fit(primary, reference, cells="auto")
    labels = (rng.random(2000) < 0.4).astype(int)
    found = summarise(fitted, primary, reference, labels=labels).labelled

    assert found.verdict == "contradicted"
    assert found.assumption_refuted
    assert "trust it for less" in found.explanation


def test_no_label_changes_anything_else():
    primary, reference, labels = worlds(300, 3)
    fitted = trueup.fit(primary, reference, cells="auto")
    with_labels = summarise(fitted, primary, reference, labels=labels)
    without = summarise(fitted, primary, reference)

    assert with_labels.guarantees == without.guarantees
    assert with_labels.curves == without.curves
    assert with_labels.changes == without.changes
    assert with_labels.contradictions == without.contradictions


def test_progress_runs_from_nothing_to_all():
    told = []
    fitted = trueup.fit([0.1, 0.7], [0.5, 0.5], cells="exact")
    summarise(
        fitted, [0.1, 0.7], [0.5, 0.5], progress=lambda what, share: told.append(share)
    )

    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_summary_holds_plain_values_only(situation):
    """Nothing of ours reaches a renderer but strings, numbers and tuples of them."""

    def check(value):
        if is_dataclass(value):
            for one in fields(value):
                check(getattr(value, one.name))
        elif type(value) is tuple:
            for one in value:
                check(one)
        else:
            assert value is None or type(value) in {str, int, float, bool}, value

    check(SITUATIONS[situation]())


def test_the_same_input_gives_the_same_summary():
    primary, reference, labels = worlds(300, 3)
    fitted = trueup.fit(primary, reference, cells="auto")
    texts = {
        render(summarise(fitted, primary, reference, labels=labels), "json")
        for _ in range(2)
    }

    assert len(texts) == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"labels": [0]}, "primary has 2 rows but labels has 1"),
        ({"ids": ["a"]}, "primary has 2 rows but ids has 1"),
    ],
)
def test_input_of_the_wrong_length_is_named(options, problem):
    fitted = trueup.fit([0.1, 0.7], [0.5, 0.5], cells="exact")

    with pytest.raises(InvalidInputError, match=problem):
        summarise(fitted, [0.1, 0.7], [0.5, 0.5], **options)


def test_only_a_map_can_be_reported():
    with pytest.raises(InvalidInputError, match="a report is about a fitted map"):
        summarise("map.json", [0.1, 0.7], [0.5, 0.5])


def test_real_models_are_summarised_whole():
    chat, labels = mmlu("Llama_2_7b_chat_chatv2", 1500)
    base, _ = mmlu("Llama_2_7b", 1500)
    fitted = trueup.fit(chat, base, cells="auto", trust="confidence", outcomes=LETTERS)
    summary = summarise(
        fitted,
        chat,
        base,
        labels=[LETTERS[place] for place in labels],
        names=("c", "b"),
    )

    assert isinstance(summary, ReportSummary)
    assert len(summary.guarantees) == 15
    assert summary.left_out == ()
    assert summary.labelled.notes == ()
    assert len(render(summary, "html")) < 3_000_000
    assert json.loads(render(summary, "json"))["n_items"] == 1500


@pytest.mark.parametrize(
    ("value", "prose", "column"),
    [
        (0.02, "0.02", "0.0200"),
        (1.0, "1", "1.00"),
        (-0.000012345, "−0.0000123", "−0.0000123"),
        (1e-12, "0", "0"),
        (math.inf, "∞", "∞"),
        (math.nan, "–", "–"),
        (1234.5, "1234", "1234"),
        (100.0, "100", "100"),
    ],
)
def test_numbers_are_shown_as_people_read_them(value, prose, column):
    assert number(value) == prose
    assert aligned(value) == column


def test_a_small_share_is_not_shown_as_none():
    assert [percent(x) for x in (0.0, 0.001, 0.5, 1.0)] == [
        "0 %",
        "below 1 %",
        "50 %",
        "100 %",
    ]


def test_bets_are_told_in_words():
    assert bet([-1, 0.5, 0.5], "ABC") == (
        "pays 1 if A happens and receives 0.5 unless A happens"
    )
    assert bet([-0.2, -0.2], "AB") == "pays 0.2 whatever happens"
    assert bet([0, 0], "AB") == "neither pays nor receives"
    assert bet([-1, -1, 0, 0], "ABCD") == "pays 1 if A or B happens"


def test_what_is_optional_ends_with_the_time_and_is_named():
    primary, reference, _ = worlds(300, 3)
    fitted = trueup.fit(primary, reference, cells="auto")
    summary = summarise(fitted, primary, reference, time_limit=0)

    assert {row.loss for row in summary.guarantees} == {"brier"}
    assert len(summary.guarantees) == 5
    assert [one.split(":")[0] for one in summary.left_out] == [
        "log loss",
        "spherical loss",
    ]
    assert "no time was left" in render(summary, "html")


def test_a_map_fitted_elsewhere_is_told():
    primary, reference, _ = worlds(300, 3)
    fitted = trueup.fit(primary, reference, cells="auto")
    summary = summarise(fitted, primary[:200], reference[:200], time_limit=0)

    assert any("fitted on 300 items" in note for note in summary.assumption.notes)
