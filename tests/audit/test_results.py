"""How results show themselves: one line, tables, notebooks, JSON; and bad input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import trueup
from trueup.audit.audit import audit

EVIL = ("<b>cat</b>", 'd"og', "o&x")
PRIMARY = trueup.AnswerConfidence(
    answer=[EVIL[0], EVIL[0], EVIL[1], EVIL[2]] * 3,
    confidence=[0.9, 0.9, 0.8, 0.95] * 3,
    outcomes=EVIL,
)
REFERENCE = trueup.AnswerConfidence(
    answer=[EVIL[0], EVIL[1], EVIL[1], EVIL[0]] * 3,
    confidence=[0.4, 0.6, 0.4, 0.5] * 3,
    outcomes=EVIL,
)
A = audit(PRIMARY, REFERENCE, groups=["<i>g</i>", "h"] * 6)
QUIET = audit([0.4, 0.6], [0.5, 0.5])
WARNING = "an overconfident but well-informed primary often passes"

RESULTS = {
    "audit": A,
    "quiet audit": QUIET,
    "arbitrage": A.arbitrage,
    "no arbitrage": QUIET.arbitrage,
    "contracts": A.arbitrage.contracts,
    "contracts with margin": A.arbitrage.contracts(margin=0.01),
    "nearest": A.nearest,
    "nobody moves": QUIET.nearest,
    "curve": A.guarantee_curve(),
    "rungs": A.rungs,
    "other losses": A.other_losses(),
    "moments": A.reference_moments,
    "imperfect": A.imperfect_reference(0.01),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_result_prints_on_one_line(result):
    shown = repr(result)

    assert "\n" not in shown
    assert shown.startswith(type(result).__name__ + "(")


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_result_is_a_table_in_a_terminal(result):
    assert str(result) == result.table()
    assert result.table().count("\n") >= 2


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_result_is_an_escaped_table_in_a_notebook(result):
    shown = result._repr_html_()

    assert shown.startswith("<table><caption>")
    ET.fromstring(f"<div>{shown}</div>")
    assert "<b>cat" not in shown
    assert "<i>g" not in shown


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_result_is_one_json_object(result):
    text = json.dumps(result.to_dict(), allow_nan=False)

    assert isinstance(json.loads(text), dict)


def test_infinity_is_a_word_in_json():
    primary = trueup.AnswerConfidence(answer=[0], confidence=[0.1], outcomes=range(3))
    a = audit(primary, np.array([[0.5, 0.3, 0.2]]))

    assert a.to_dict()["break_even_reference_error"] == "inf"
    json.dumps(a.to_dict(), allow_nan=False)
    json.dumps(a.guarantee_curve([0.0]).to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "shown",
    [
        repr(QUIET),
        str(QUIET),
        QUIET._repr_html_(),
        QUIET.explanation,
        json.dumps(QUIET.to_dict()),
    ],
    ids=["repr", "str", "html", "explanation", "json"],
)
def test_none_found_always_says_that_this_does_not_mean_calibrated(shown):
    assert "does not mean that the primary is calibrated" in shown
    assert WARNING in shown
    assert "mutually calibrated" not in shown.lower()


def test_a_contradiction_carries_no_such_remark():
    assert WARNING not in str(A)
    assert "Contradiction: for the primary to be right" in str(A)


def test_contracts_read_as_a_trader_would_write_them():
    a = audit([0.1, 0.7], [0.5, 0.5], outcomes=["no", "yes"])

    assert a.arbitrage.contracts[0].sentence == (
        "You sell PRIMARY, whenever it reports P(yes) = 0.1 [50.0% of items]: "
        "it receives 0.1111 if no, pays 1.0000 if yes."
    )


def test_many_outcomes_with_one_payoff_are_the_others():
    primary = trueup.AnswerConfidence(
        answer=["A"], confidence=[0.9], outcomes=list("ABCD")
    )
    reference = trueup.AnswerConfidence(
        answer=["A"], confidence=[0.5], outcomes=list("ABCD")
    )
    contracts = audit(primary, reference).arbitrage.contracts
    (sold,) = [one for one in contracts if one.who == "primary"]

    assert re.fullmatch(
        r"You sell PRIMARY, whenever it reports \(A, 0\.9\) \[100\.0% of items\]: "
        r"it receives 0\.\d{4} if A, pays \d\.\d{4} otherwise\.",
        sold.sentence,
    )


def test_contracts_are_a_sequence_with_the_largest_profit_first():
    contracts = A.arbitrage.contracts

    assert len(contracts) == len(list(contracts)) == len(contracts[:])
    assert contracts[0].contribution == max(one.contribution for one in contracts)
    assert contracts.margin == 0


def test_every_contract_pays_its_margin_by_the_predictors_own_report():
    a = audit([0.1, 0.7], [0.5, 0.5])

    for one in a.arbitrage.contracts(margin=0.03):
        assert np.dot(one.report, one.payoffs) == pytest.approx(0.03)
        assert max(map(abs, one.payoffs)) <= 1


def test_long_tables_say_how_much_they_leave_out():
    rng = np.random.default_rng(0)
    a = audit(rng.dirichlet(np.ones(3), 40), rng.dirichlet(np.ones(3), 40))

    assert "... and " in str(a.arbitrage)
    assert "holds 1.0 items on average" in str(a)


def test_rounding_to_steps_is_mentioned():
    a = audit([0.11, 0.7], [0.5, 0.5], cells=trueup.Step(0.1))

    assert "rounded to steps of 0.1" in str(a)


def test_lower_rungs_name_the_reports_they_pool():
    p = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8]])
    q = np.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])
    pooled = audit(p, q, trust="mean").reference_moments
    binned = audit(p, q, trust="confidence").reference_moments

    assert [row.report for row in pooled] == ["all of 3 reports"]
    assert [row.report for row in binned] == ["(any answer, 0.4)", "(2, 0.5)"]


class TestFigure:
    figure = A.figure()

    def test_it_is_valid_svg_with_escaped_names(self):
        tree = ET.fromstring(self.figure.svg)

        assert tree.tag.endswith("svg")
        assert self.figure._repr_svg_() == self.figure.svg
        assert "<b>cat" not in self.figure.svg
        assert "P(&lt;b&gt;cat&lt;/b&gt;)" in self.figure.svg

    def test_it_is_readable_on_dark_pages(self):
        assert "prefers-color-scheme:dark" in self.figure.svg

    def test_it_can_be_saved(self, tmp_path):
        self.figure.save(tmp_path / "figure.svg")

        assert (tmp_path / "figure.svg").read_text("utf-8") == self.figure.svg

    def test_its_numbers_are_json(self):
        shown = json.dumps(self.figure.to_dict(), allow_nan=False)

        assert set(json.loads(shown)) == {
            "axes",
            "primary",
            "projection",
            "compatible",
        }
        assert "\n" not in repr(self.figure)

    def test_a_small_move_is_shown_from_nearer_by(self):
        near = audit([0.48, 0.5], [0.5, 0.5]).figure()

        assert "(close-up)" in near.svg
        assert "(close-up)" not in audit([0.1, 0.7], [0.5, 0.5]).figure().svg

    def test_a_set_of_one_point_is_drawn_as_a_point(self):
        figure = audit([0.3, 0.6], [0.4, 0.9]).figure()

        assert len(figure.compatible) == 1
        np.testing.assert_allclose(np.sort(figure.compatible[0]), [0.4, 0.9], atol=1e-4)
        ET.fromstring(figure.svg)

    def test_one_report_cannot_be_drawn(self):
        with pytest.raises(ValueError, match="needs two different primary reports"):
            audit([0.3], [0.4]).figure()

    def test_a_mode_leaves_a_region(self):
        primary = trueup.PointReport(value=[0, 1], outcomes=[0, 1, 2], property="mode")
        a = audit(primary, np.array([[0.2, 0.3, 0.5]] * 2))

        with pytest.raises(ValueError, match="whose report is a point; a mode"):
            a.figure()


class TestBadInput:
    a = audit([0.1, 0.7], [0.5, 0.5])

    @pytest.mark.parametrize("margin", [-0.1, 1.0, float("nan"), "much"])
    def test_a_margin_lies_between_zero_and_one(self, margin):
        with pytest.raises(trueup.TrueupError, match="margin must be"):
            self.a.arbitrage.contracts(margin=margin)

    @pytest.mark.parametrize("errors", [[-0.1], [np.inf], [[0.1]]])
    def test_errors_of_a_curve_are_finite_and_not_negative(self, errors):
        with pytest.raises(trueup.TrueupError, match="errors must be finite"):
            self.a.guarantee_curve(errors)

    def test_an_error_vector_has_one_entry_a_moment(self):
        with pytest.raises(trueup.TrueupError, match=r"each of the 1 moments.*\(2,\)"):
            self.a.imperfect_reference([0.1, 0.2])

    def test_errors_of_a_distribution_sum_to_zero(self):
        a = audit(
            np.array([[0.8, 0.1, 0.1]]),
            np.array([[0.5, 0.3, 0.2]]),
            trust="distribution",
        )

        with pytest.raises(trueup.TrueupError, match=r"sum to zero.*sum to 0\.1"):
            a.imperfect_reference([0.1, 0.0, 0.0])
        a.imperfect_reference([0.1, -0.1, 0.0])

    def test_an_unknown_norm_is_named(self):
        with pytest.raises(trueup.TrueupError, match="unknown norm 'l3'"):
            self.a.imperfect_reference(0.1, norm="l3")

    def test_a_map_is_something_that_can_be_applied(self):
        with pytest.raises(trueup.TrueupError, match="map must be a fitted map"):
            self.a.other_losses(0.5)

    def test_adaptive_cells_are_refused(self):
        with pytest.raises(trueup.TrueupError, match=r"hint: use cells=trueup.Step"):
            audit([0.1, 0.7], [0.5, 0.5], cells="auto")

    def test_the_same_predictor_twice_is_doubtful(self):
        with pytest.warns(trueup.errors.DoubtfulInputWarning, match="passed twice"):
            a = audit([0.1, 0.7], [0.1, 0.7])

        assert a.verdict == "none-found"

    def test_log_loss_does_not_take_zeros(self):
        with pytest.raises(trueup.TrueupError, match="log loss is infinite"):
            audit([0.0, 0.7], [0.5, 0.5], loss="log")

    def test_another_loss_is_left_out_where_it_is_infinite(self):
        rows = audit([0.0, 0.7], [0.5, 0.5]).other_losses()

        assert [row.loss for row in rows] == ["brier", "spherical"]
        assert rows.undefined == ("log",)
        assert "log loss is infinite" in str(rows)

    def test_caps_that_cannot_hold_warn_once(self):
        reference = trueup.AnswerConfidence(
            answer=[0, 1], confidence=[0.1, 0.6], outcomes=range(3)
        )
        with pytest.warns(trueup.errors.RelaxedAssumptionWarning, match="below 1/3"):
            a = audit(np.array([[0.5, 0.3, 0.2]] * 2), reference)

        # Everything else is silent: a warning would be an error here.
        assert len(a.rungs) == 4
        assert len(a.guarantee_curve().errors) == 8


class TestBrokenContracts:
    """What check() is for: it does not believe the contracts it is given."""

    contracts = audit([0.1, 0.7], [0.5, 0.5]).arbitrage.contracts

    def changed(self, change):
        reference, primary = self.contracts._payoffs
        return replace(self.contracts, _payoffs=(reference, change(primary)))

    def test_payoffs_above_one_are_noticed(self):
        with pytest.raises(trueup.errors.SolverError, match="more than 1"):
            self.changed(lambda payoffs: 2 * payoffs).check()

    def test_a_bet_that_the_predictor_would_refuse_is_noticed(self):
        with pytest.raises(
            trueup.errors.SolverError, match="by that report, less than"
        ):
            self.changed(lambda payoffs: np.maximum(payoffs - 0.1, -1)).check()

    def test_a_profit_that_is_not_there_is_noticed(self):
        broken = self.changed(lambda payoffs: payoffs / 2)
        broken.__dict__["profit"] = self.contracts.profit

        with pytest.raises(trueup.errors.SolverError, match="the contracts earn"):
            broken.check()


def test_the_package_answers_calls_whatever_was_imported_before():
    import trueup.audit as package

    assert package([0.1, 0.7], [0.5, 0.5]).verdict == "contradiction"
    assert package.Audit is type(TestBadInput.a)
    with pytest.raises(AttributeError, match="no attribute 'odit'"):
        package.odit  # noqa: B018
    assert dir(package) == sorted(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)
