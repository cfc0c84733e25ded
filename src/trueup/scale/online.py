"""Calibrating as data arrives: statistics accumulate, the map follows when it pays."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from trueup._validate import Floats
from trueup.core.folds import fold_of, id_numbers, mixed
from trueup.core.pairing import concatenated, paired_reports
from trueup.core.reports import Reports
from trueup.core.resolution import Resolution
from trueup.core.statistics import CellStatistics, ScoreCounts
from trueup.errors import InvalidInputError
from trueup.maps.adaptive import described
from trueup.maps.report_map import ReportMap
from trueup.maps.rules import Tilts
from trueup.scale._online_parts import (
    Items,
    OnlineState,
    OnlineUpdate,
    counted,
    halves_of,
    layout_from,
)
from trueup.scale._seen import SeenItems
from trueup.scale.drift import DriftWatch
from trueup.scale.evidence import Evidence, bounds_of
from trueup.scale.fitting import Wanted, as_map
from trueup.solve.crossfit import CrossFit, Half

_GROWTH = 1.25
"""A new map is tried when there are so many times the items of the last trial."""
WORTH = 1.645
"""Standard errors by which a new map must be certified to be better."""


class OnlineCalibrator:
    """A map that follows two predictors as unlabelled items arrive.

    Statistics of cells accumulate; cells are chosen from the first ``warm_up`` items
    and stay. A new map is tried whenever there are a quarter more items, and replaces
    the deployed one if it is certified to be better on the latest items. The
    certificate is computed on items that the map was not fitted on.

    Parameters
    ----------
    loss, trust, caps, reference_error, assume, floor
        As for :func:`trueup.fit`.
    outcomes
        Names of the K outcomes.
    warm_up
        Items before cells are chosen and a first map is fitted.
    half_life
        Items after which an old item counts half; None forgets nothing.
    window
        Latest items that are kept as they are, to certify new maps.
    false_alarms
        Probability that the drift alarm is ever raised if nothing changes.
    remember
        Latest ids that are recognised one by one; whole batches always are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> online = OnlineCalibrator(warm_up=500)
    >>> for day in range(4):
    ...     reference = rng.choice([0.2, 0.3, 0.4], size=250)
    ...     primary = 3 * reference - 0.5
    ...     ids = np.arange(250) + 250 * day
    ...     done = online.update(primary, reference, ids=ids)
    >>> done.n_items, done.certificate.n_items, done.drift_alarm
    (1000, 1000, False)
    >>> online.map.apply([0.7]).shape
    (1, 2)
    """

    def __init__(
        self,
        *,
        loss: str | None = None,
        trust: str | None = None,
        caps: bool | None = None,
        reference_error: float = 0.0,
        assume: str | Iterable[str] = (),
        floor: float | None = None,
        outcomes: Iterable[Any] | None = None,
        warm_up: int = 2000,
        half_life: float | None = None,
        window: int = 20_000,
        false_alarms: float = 0.01,
        remember: int = 100_000,
    ) -> None:
        if not 0 < false_alarms < 1:
            message = f"false_alarms must lie between 0 and 1, got {false_alarms!r}."
            raise InvalidInputError(message)
        if half_life is not None and not half_life > 0:
            message = (
                f"half_life must be a positive number of items, got {half_life!r}."
            )
            raise InvalidInputError(message)
        names = (assume,) if isinstance(assume, str) else tuple(assume)
        self._state = OnlineState(
            {
                "loss": loss,
                "trust": trust,
                "caps": caps,
                "reference_error": reference_error,
                "assume": names,
                "floor": floor,
                "outcomes": None if outcomes is None else tuple(outcomes),
                "warm_up": max(int(warm_up), 40),
                "half_life": half_life,
                "window": max(int(window), int(warm_up)),
                "false_alarms": false_alarms,
            },
            SeenItems(int(remember)),
        )

    @property
    def map(self) -> ReportMap | None:
        """The deployed map with its certificate; None before the first."""
        return self._state.map

    @property
    def n_items(self) -> int:
        """Items so far."""
        return self._state.n_items

    @property
    def statistics(self) -> CellStatistics | None:
        """What has accumulated; None before cells are chosen."""
        return self._state.statistics

    @property
    def drift_alarm(self) -> bool:
        """Whether counts have contradicted the cells the map was fitted on.

        Stays until :meth:`restart`, even if a new map is deployed.
        """
        alarm = self._state.alarm
        return alarm is not None and alarm.raised

    def update(
        self,
        primary_batch: object,
        reference_batch: object,
        *,
        ids: Iterable[Any] | None = None,
    ) -> OnlineUpdate:
        """Add a batch of items of both predictors; all of it or, on an error, nothing.

        Parameters
        ----------
        primary_batch, reference_batch
            Reports on the same items, as for :func:`trueup.fit`.
        ids
            Names of the items. An item or a batch that was added before is an error.
        """
        state = self._state
        outcomes = state.options["outcomes"]
        first, second = paired_reports(primary_batch, reference_batch, outcomes)
        self._check(first, second)
        named = None if ids is None else list(ids)
        known = None if named is None else state.seen.check(named, len(first))
        numbers = (
            np.arange(state.n_items, state.n_items + len(first))
            if named is None
            else id_numbers(named)
        )
        state.n_updates += 1
        arrived = np.full(len(first), state.n_updates)
        batch = Items(first, second, fold_of(mixed(numbers)), arrived)
        if known is not None:
            state.seen.add(*known, state.n_updates)
        refitted = self._take_in(batch)
        alarm = state.alarm
        return OnlineUpdate(
            n_added=len(first),
            n_items=state.n_items,
            refitted=refitted,
            certificate=None if state.map is None else state.map.certificate,
            drift_evidence=1.0 if alarm is None else alarm.evidence,
            drift_alarm=self.drift_alarm,
        )

    def restart(self) -> None:
        """Forget all statistics, after an alarm; the map stays until the next."""
        state = self._state
        state.statistics, state.alarm, state.window = None, None, None
        state.evidence, state.n_tried = Evidence(), 0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state as JSON, in one step or not at all."""
        from trueup.scale._online_state import write

        write(self._state, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Resume exactly where a saved calibrator stopped."""
        from trueup.scale._online_state import read

        made = cls()
        made._state = read(path)
        return made

    def __repr__(self) -> str:
        state = self._state
        shown = "no map yet" if state.map is None else repr(state.map)
        return f"OnlineCalibrator({state.n_items:,} items, {shown})"

    # What follows changes the state and cannot fail on input.

    def _check(self, primary: Reports, reference: Reports) -> None:
        """The same kind of reports as before."""
        window = self._state.window
        if window is not None:
            concatenated(window.primary.take(np.arange(0)), primary)
            concatenated(window.reference.take(np.arange(0)), reference)
        kinds = primary.about.name, reference.about.name
        self._wanted(primary.outcomes, kinds)
        ScoreCounts.count(primary, reference, np.zeros(len(primary), dtype=np.int64))

    def _wanted(self, outcomes: tuple[Any, ...], kinds: tuple[str, str]) -> Wanted:
        names = ("loss", "trust", "caps", "reference_error", "assume", "floor")
        options = {name: self._state.options[name] for name in names}
        return Wanted.check(outcomes, kinds, 0, **options)

    def _take_in(self, batch: Items) -> bool:
        state = self._state
        state.n_items += len(batch)
        most = state.options["window"]
        state.window = batch if state.window is None else state.window.then(batch, most)
        if state.statistics is None:
            if len(state.window) < state.options["warm_up"]:
                return False
            batch = state.window
            layout = layout_from(batch, self._wanted_now().frame)
            state.statistics = counted(layout, batch)
        else:
            self._certify_further(batch)
            self._forget(len(batch))
            state.statistics = state.statistics + counted(
                state.statistics.layout, batch
            )
        if state.n_items < _GROWTH * state.n_tried:
            return False
        state.n_tried = state.n_items
        return self._try_new_map()

    def _certify_further(self, batch: Items) -> None:
        """Fresh items: both halves of the deployed map are out of sample on them."""
        state = self._state
        if state.map is None or state.statistics is None:
            return
        wanted = self._wanted_now()
        halves = halves_of(state.map)
        if halves:
            z = np.mean([bounds_of(half, batch, wanted) for half in halves], axis=0)
            self._forget_evidence(len(batch))
            state.evidence.add(z)
            self._describe(halves, wanted)
        if state.alarm is not None:
            state.alarm.add(counted(state.statistics.layout, batch).cell_counts())

    def _forget(self, n_items: int) -> None:
        state, half_life = self._state, self._state.options["half_life"]
        if half_life is not None and state.statistics is not None:
            state.statistics = state.statistics.faded(0.5 ** (n_items / half_life))

    def _forget_evidence(self, n_items: int) -> None:
        half_life = self._state.options["half_life"]
        if half_life is not None:
            self._state.evidence.fade(0.5 ** (n_items / half_life))

    def _faded(self, n_items: int) -> Any:  # noqa: ANN401 - an array, or None
        """How much the latest items count, each by the number that came after it."""
        half_life = self._state.options["half_life"]
        if half_life is None:
            return None
        return 0.5 ** (np.arange(n_items)[::-1] / half_life)

    def _wanted_now(self) -> Wanted:
        window = self._state.window
        if window is None:
            message = "no items yet"
            raise InvalidInputError(message)
        kinds = window.primary.about.name, window.reference.about.name
        return self._wanted(window.primary.outcomes, kinds)

    def _try_new_map(self) -> bool:
        """Fit on all statistics; deploy if certified better on the latest items."""
        state = self._state
        if state.statistics is None or state.window is None:
            return False
        wanted, window = self._wanted_now(), state.window
        halves, *_ = wanted.halves(state.statistics, Resolution())
        z = np.where(
            window.fold == 0, *(bounds_of(half, window, wanted) for half in halves)
        )
        price = wanted.trust.reference_error
        if state.map is not None and not self._is_worth_it(z, halves, wanted, price):
            return False
        state.evidence = Evidence()
        state.evidence.add(z, self._faded(len(z)))
        estimate = state.evidence.estimate(halves, wanted.trust)
        state.map = as_map(state.statistics, halves, estimate, wanted)
        state.deployed_at = state.n_updates
        self._watch()
        self._describe(halves, wanted)
        return True

    def _watch(self) -> None:
        """Watch for drift from the new map on; an alarm stays until a restart."""
        state = self._state
        if state.statistics is None or state.window is None or self.drift_alarm:
            return
        known = state.statistics
        if state.options["half_life"] is not None:  # faded counts are no items
            known = counted(known.layout, state.window)
        state.alarm = DriftWatch.start(
            known.cell_counts(), state.options["false_alarms"]
        )

    def _is_worth_it(
        self,
        z: Floats,
        halves: tuple[Half, ...],
        wanted: Wanted,
        price: float,
    ) -> bool:
        """Paired on items that came after the deployed map."""
        state = self._state
        old = () if state.map is None else halves_of(state.map)
        window = state.window
        if not old or window is None:
            return True
        fresh = np.flatnonzero(window.arrived > state.deployed_at)
        if len(fresh) < 2:
            return False
        items = Items(
            window.primary.take(fresh),
            window.reference.take(fresh),
            window.fold[fresh],
            window.arrived[fresh],
        )
        before = np.mean([bounds_of(half, items, wanted) for half in old], axis=0)
        change = z[fresh] - before
        steeper = np.mean([h.multipliers.steepness for h in halves]) - np.mean(
            [h.multipliers.steepness for h in old]
        )
        error = float(change.std() / np.sqrt(len(change)))
        return float(change.mean() - price * steeper) > WORTH * error

    def _describe(self, halves: tuple[Half, ...], wanted: Wanted) -> None:
        """The certificate of the deployed map from the evidence so far."""
        state = self._state
        if state.map is None:
            return
        estimate = state.evidence.estimate(halves, wanted.trust)
        fitted = CrossFit(halves, estimate)
        certificate = described(
            estimate,
            fitted,
            wanted.loss,
            wanted.trust,
            n_items=estimate.n_items,
            assume=wanted.assume,
        )
        note = (
            f"rests on {estimate.n_items:,} items: the latest ones when the map was "
            f"deployed, after update {state.deployed_at:,}, and all that came since; "
            f"the map was fitted on {state.map.fitted_on.n_items:,}"
        )
        if state.options["half_life"] is not None:
            note += f"; an item counts half after {state.options['half_life']:,} items"
        state.map = replace(
            state.map,
            rule=replace(cast("Tilts", state.map.rule), halves=fitted),
            certificate=replace(certificate, notes=(*certificate.notes, note)),
        )
