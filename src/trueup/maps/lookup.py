"""Finding a report among the fitted ones, or the nearest with the same answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.core.reports import Reports


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Where each report was found among the fitted reports."""

    index: Ints
    """Position of the fitted report; -1 if none has the same answer."""
    is_exact: Bools
    """Whether it is that very report."""

    @property
    def n_nearest(self) -> int:
        """Reports that were matched to their nearest neighbour."""
        return int((~self.is_exact & (self.index >= 0)).sum())

    @property
    def n_unmatched(self) -> int:
        """Reports whose answer was never fitted, and which stay as they are."""
        return int((self.index < 0).sum())


def match(reports: Reports, fitted: Reports) -> Match:
    """Look every report up, by exact equality first."""
    index = _equal_rows(reports.keys() + 0.0, fitted.keys() + 0.0)
    is_exact = index >= 0
    unseen = np.flatnonzero(~is_exact)
    if unseen.size:
        index[unseen] = _nearest(reports.take(unseen), fitted)
    return Match(index, is_exact)


def _equal_rows(rows: Floats, table: Floats) -> Ints:
    """Position in the table of each row, or -1; both compared bit by bit."""
    width = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
    keys = np.ascontiguousarray(table).view(width).ravel()
    wanted = np.ascontiguousarray(rows).view(width).ravel()
    order = np.argsort(keys)
    place = np.searchsorted(keys, wanted, sorter=order)
    candidate = order[np.minimum(place, len(keys) - 1)]
    return np.where(keys[candidate] == wanted, candidate, -1)


def _nearest(reports: Reports, fitted: Reports) -> Ints:
    """Nearest fitted report with the same answer; ties to the first in the table."""
    answers, known = reports.answers(), fitted.answers()
    if answers is None or known is None:
        return _nearest_rows(reports.keys(), fitted.keys())
    index = np.full(len(reports), -1)
    for answer in np.unique(answers):
        asked, offered = (
            np.flatnonzero(answers == answer),
            np.flatnonzero(known == answer),
        )
        if offered.size:
            found = _nearest_rows(reports.keys()[asked], fitted.keys()[offered])
            index[asked] = offered[found]
    return index


def _nearest_rows(rows: Floats, table: Floats) -> Ints:
    from scipy.spatial import KDTree  # noqa: PLC0415 - only unseen reports need it

    _, index = KDTree(table).query(rows)
    return np.asarray(index, dtype=np.int64)
