"""Online: what accumulates, what is certified, what is refused, what is alarmed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import kstest

from scale.conftest import OUTCOMES, predictors
from trueup.core.folds import fold_of, id_numbers, mixed
from trueup.core.reports import Distributions
from trueup.core.statistics import CellStatistics
from trueup.errors import InvalidInputError, MapFormatError
from trueup.scale.drift import BlockBet, DriftWatch
from trueup.scale.online import OnlineCalibrator

N = 6000
BATCH = 500


@pytest.fixture(scope="module")
def both():
    return predictors(N, seed=3)


def calibrator(**options):
    given = {"trust": "answer-confidence", "outcomes": OUTCOMES, "warm_up": 1000}
    return OnlineCalibrator(**given | options)


def feed(online, both, start, stop, names="item-{}"):
    done = None
    for first in range(start, stop, BATCH):
        part = slice(first, min(first + BATCH, stop))
        ids = [names.format(place) for place in range(part.start, part.stop)]
        done = online.update(both[0][part], both[1][part], ids=ids)
    return done


def test_statistics_accumulate_to_those_of_all_items(both):
    online = calibrator()
    done = feed(online, both, 0, N)
    ids = [f"item-{place}" for place in range(N)]
    reports = [Distributions.parse(rows, "rows", OUTCOMES) for rows in both]
    at_once = CellStatistics.count(
        online.statistics.layout, *reports, fold_of(mixed(id_numbers(ids)))
    )

    assert done.n_items == N
    assert online.statistics.equals(at_once)


def test_the_certificate_says_how_much_data_it_rests_on(both):
    online = calibrator()
    done = feed(online, both, 0, N)
    certificate = online.map.certificate

    assert done.certificate is certificate
    assert "rests on" in certificate.notes[-1]
    assert 1000 <= certificate.n_items <= N
    assert f"{certificate.n_items:,} items" in certificate.assumption


def test_items_after_deployment_certify_as_recertify_does(both):
    """Between two maps the evidence is the window's, then each fresh item's."""
    online = calibrator(warm_up=5000)
    feed(online, both, 0, 5000)
    before = online.map.certificate
    feed(online, both, 5000, N)
    fresh = online.map.recertify(both[0][5000:], both[1][5000:])
    total = before.certified * before.n_items + fresh.certified * fresh.n_items

    assert online.map.certificate.n_items == N
    assert online.map.certificate.certified == pytest.approx(total / N, abs=1e-12)


@pytest.mark.parametrize(("half_life", "stop"), [(None, 500), (3000, 3500)])
def test_a_saved_calibrator_resumes_to_the_last_bit(both, tmp_path, half_life, stop):
    whole, first = calibrator(half_life=half_life), calibrator(half_life=half_life)
    feed(whole, both, 0, stop)
    feed(first, both, 0, stop)
    first.save(tmp_path / "state.json")
    resumed = OnlineCalibrator.load(tmp_path / "state.json")
    one, other = feed(whole, both, stop, N), feed(resumed, both, stop, N)
    whole.save(tmp_path / "one.json")
    resumed.save(tmp_path / "other.json")

    assert one.drift_evidence == other.drift_evidence
    assert (tmp_path / "one.json").read_text() == (tmp_path / "other.json").read_text()
    assert np.array_equal(whole.map.apply(both[0]), resumed.map.apply(both[0]))


def test_a_state_is_plain_json_and_a_damaged_one_is_refused(both, tmp_path):
    online = calibrator()
    feed(online, both, 0, 2000)
    online.save(tmp_path / "state.json")
    saved = json.loads((tmp_path / "state.json").read_text())
    saved["statistics"]["keys"][0][2] = 99
    (tmp_path / "damaged.json").write_text(json.dumps(saved))
    (tmp_path / "other.json").write_text('{"kind": "trueup.report_map"}')

    with pytest.raises(MapFormatError, match=r"damaged\.json"):
        OnlineCalibrator.load(tmp_path / "damaged.json")
    with pytest.raises(MapFormatError, match="online calibrator"):
        OnlineCalibrator.load(tmp_path / "other.json")


def test_a_repeated_batch_is_refused_and_changes_nothing(both, tmp_path):
    online = calibrator(remember=100)
    feed(online, both, 0, 2000)
    online.save(tmp_path / "before.json")
    ids = [f"item-{place}" for place in range(BATCH)]

    with pytest.raises(InvalidInputError, match="added already, as update 1"):
        online.update(both[0][:BATCH], both[1][:BATCH], ids=ids)
    with pytest.raises(
        InvalidInputError, match=r"1 of 2 items were added already.*1999"
    ):
        online.update(both[0][:2], both[1][:2], ids=["item-1999", "new"])
    with pytest.raises(InvalidInputError, match="'x' more than once"):
        online.update(both[0][:2], both[1][:2], ids=["x", "x"])
    online.save(tmp_path / "after.json")

    assert (tmp_path / "before.json").read_text() == (
        tmp_path / "after.json"
    ).read_text()


def test_bad_batches_change_nothing(both, tmp_path):
    online = calibrator()
    feed(online, both, 0, 2000)
    online.save(tmp_path / "before.json")
    bad = both[0][:5].copy()
    bad[3, 1] = np.nan
    for primary, reference in (
        (bad, both[1][:5]),
        (both[0][:4], both[1][:5]),
        (both[0][:5, :3] / both[0][:5, :3].sum(axis=1, keepdims=True), both[1][:5]),
    ):
        with pytest.raises(ValueError, match=r"."):
            online.update(primary, reference, ids=list("abcde"))
    online.save(tmp_path / "after.json")

    assert (tmp_path / "before.json").read_text() == (
        tmp_path / "after.json"
    ).read_text()


def test_forgetting_lets_old_items_count_for_less(both):
    online = calibrator(half_life=1000)
    feed(online, both, 0, N)

    assert online.statistics.n_items.sum() == pytest.approx(
        BATCH / (1 - 0.5 ** (BATCH / 1000)), rel=0.03
    )
    assert online.map.certificate.n_items < 3000


def test_a_change_of_the_primary_raises_the_alarm_and_restarting_lowers_it(both):
    online = calibrator()
    quiet = feed(online, both, 0, 4000)
    sharper = predictors(3000, seed=5, sharpness=6.0)
    loud = feed(online, sharper, 0, 3000, names="new-{}")

    assert not quiet.drift_alarm
    assert loud.drift_alarm
    online.restart()
    assert not online.drift_alarm
    assert feed(online, sharper, 0, 0) is None


FREQUENCIES = {
    "all cells alike": lambda rng: rng.dirichlet(np.full(24, 3.0)),
    "a few large cells": lambda rng: rng.dirichlet(np.full(40, 0.05)),
    "three of four cells empty": lambda rng: np.append(
        rng.dirichlet(np.ones(10)), np.zeros(30)
    ),
}


@pytest.mark.parametrize("make", FREQUENCIES.values(), ids=FREQUENCIES)
def test_the_false_alarm_rate_is_at_most_the_stated_one(make):
    """150 lives of 40 batches: at 10 % about 15 alarms may happen, 25 in 0.5 %."""
    rng = np.random.default_rng(11)
    n_alarms = 0
    for _ in range(150):
        shares = [make(rng), make(rng)]
        watch = DriftWatch.start([rng.multinomial(2000, p) for p in shares], 0.1)
        for _ in range(40):
            watch.add([rng.multinomial(250, p) for p in shares])
        n_alarms += watch.raised

    assert n_alarms <= 25


def test_ranks_of_blocks_are_uniform_and_unrelated():
    rng = np.random.default_rng(13)
    share = rng.dirichlet(np.full(30, 0.3))
    bet, ranks = BlockBet.start(rng.multinomial(500, share), 100, 0), []
    for _ in range(2000):
        bet.open = rng.multinomial(100, share)
        ranks.append(bet._rank(bet.seen + bet.open))
        bet.seen, bet.n_blocks = bet.seen + bet.open, bet.n_blocks + 1

    assert kstest(ranks, "uniform").pvalue > 0.005
    assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 0.07


def test_the_alarm_notices_a_change_of_a_tenth_of_the_items():
    rng = np.random.default_rng(12)
    delays = []
    for _ in range(15):
        before, other = rng.dirichlet(np.ones(24)), rng.dirichlet(np.ones(24))
        watch = DriftWatch.start([rng.multinomial(5000, before)], 0.01)
        for batch in range(100):
            after = 0.9 * before + 0.1 * other
            watch.add([rng.multinomial(500, before if batch < 20 else after)])
            if watch.raised:
                break
        delays.append(batch - 19)

    assert min(delays) >= 1
    assert np.median(delays) <= 15


@pytest.mark.parametrize("option", [{"false_alarms": 0}, {"half_life": -1}])
def test_impossible_options_are_refused(option):
    with pytest.raises(InvalidInputError, match=next(iter(option))):
        OnlineCalibrator(**option)
