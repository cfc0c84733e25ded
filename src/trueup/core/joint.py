"""The joint table: everything the two predictors say together, without labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from trueup import _sketch, _validate
from trueup._arrays import distinct_rows, group_sums
from trueup._render import html_table
from trueup._validate import Floats, Ints
from trueup.core.pairing import concatenated, paired_reports
from trueup.core.reports import Reports
from trueup.core.stated import stated
from trueup.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class JointTable:
    """How often each pair of a primary and a reference report occurs.

    Sparse: only pairs that occur are kept. Build one with :meth:`from_counts`.
    Pair p joins ``primary`` report ``primary_index[p]`` with ``reference`` report
    ``reference_index[p]`` in group ``group_index[p]``.

    Examples
    --------
    The pair (0.1, 0.5) occurs three times and the pair (0.7, 0.5) once:

    >>> table = JointTable.from_counts([0.1, 0.7], [0.5, 0.5], counts=[3, 1])
    >>> table
    JointTable(2 primary x 1 reference reports, 2 pairs, 4 items, 2 outcomes)
    >>> sorted(table.primary_shares.tolist())
    [0.25, 0.75]

    Tables add up, exactly, in any order:

    >>> table + JointTable.from_counts([0.1, 0.2], [0.5, 0.5], counts=[1, 2])
    JointTable(3 primary x 1 reference reports, 3 pairs, 7 items, 2 outcomes)
    """

    primary: Reports
    """The distinct primary reports."""
    reference: Reports
    """The distinct reference reports."""
    primary_index: Ints
    reference_index: Ints
    group_index: Ints
    counts: Floats
    """How many items (or how much sample weight) each pair stands for."""
    groups: tuple[Any, ...]
    """Names of the groups; empty when no groups are trusted."""
    n_items: int

    @classmethod
    def from_counts(
        cls,
        primary: object,
        reference: object,
        *,
        counts: object | None = None,
        groups: Iterable[Any] | None = None,
        outcomes: Iterable[Any] | None = None,
    ) -> Self:
        """Build the table from pairs of reports and how often each occurs.

        Rows may repeat; equal pairs add up. Rows with count zero take no part.

        Parameters
        ----------
        primary, reference
            One report a row: an (n, K) array, a 1-D array of P(outcome 1),
            :class:`~trueup.AnswerConfidence` or :class:`~trueup.PointReport`.
        counts
            Items each row stands for; ones when left out.
        groups
            One context value a row.
        outcomes
            Names of the K outcomes, for arrays.

        Examples
        --------
        >>> import numpy as np
        >>> p, q = np.array([.1, .7]), np.array([.5, .5])
        >>> JointTable.from_counts(p, q, counts=[3, 1])
        JointTable(2 primary x 1 reference reports, 2 pairs, 4 items, 2 outcomes)
        """
        named = None if outcomes is None else tuple(outcomes)
        return cls.from_reports(
            *paired_reports(primary, reference, named), counts=counts, groups=groups
        )

    @classmethod
    def from_reports(
        cls,
        primary: Reports,
        reference: Reports,
        *,
        counts: object | None = None,
        groups: Iterable[Any] | None = None,
        counted_as: str = "counts",
    ) -> Self:
        """Count pairs of reports that are checked and about the same outcomes."""
        weights = _validate.sample_weights(counts, len(primary), counted_as)
        group, names = _validate.group_codes(groups, len(primary))
        used = np.flatnonzero(weights > 0)
        first, second = primary.take(used), reference.take(used)
        rows, primary_of_item = distinct_rows(first.keys())
        columns, reference_of_item = distinct_rows(second.keys())
        keys = np.column_stack([reference_of_item, group[used], primary_of_item])
        pairs, pair_of_item = distinct_rows(keys.astype(np.float64))
        return cls(
            primary=first.take(rows),
            reference=second.take(columns),
            primary_index=primary_of_item[pairs],
            reference_index=reference_of_item[pairs],
            group_index=group[used][pairs],
            counts=group_sums(pair_of_item, weights[used], len(pairs)),
            groups=names,
            n_items=len(used) if counts is None else round(float(weights.sum())),
        )

    def __add__(self, other: Self) -> Self:
        """The table of both: day by day, shard by shard, in any order."""
        if not isinstance(other, JointTable):
            return NotImplemented
        if bool(self.groups) != bool(other.groups):
            message = (
                "one table has groups and the other has none.\n"
                "hint: give both tables groups, or neither."
            )
            raise InvalidInputError(message)
        both = (self, other)
        groups = None
        if self.groups:
            groups = [one.groups[index] for one in both for index in one.group_index]
        made = type(self).from_reports(
            concatenated(*(one.primary.take(one.primary_index) for one in both)),
            concatenated(*(one.reference.take(one.reference_index) for one in both)),
            counts=np.append(self.counts, other.counts),
            groups=groups,
        )
        return replace(made, n_items=self.n_items + other.n_items)

    @property
    def weights(self) -> Floats:
        """Share of each pair."""
        return self.counts / self.counts.sum()

    @property
    def primary_shares(self) -> Floats:
        """Share of each distinct primary report."""
        return group_sums(self.primary_index, self.weights, len(self.primary))

    @property
    def n_outcomes(self) -> int:
        """How many outcomes both predictors are about."""
        return self.primary.n_outcomes

    def __repr__(self) -> str:
        return (
            f"JointTable({len(self.primary):,} primary x {len(self.reference):,} "
            f"reference reports, {len(self.counts):,} pairs, {self.n_items:,} items, "
            f"{self.n_outcomes} outcomes)"
        )

    def _repr_html_(self) -> str:
        first, second = stated(self.primary), stated(self.reference)
        shares = np.zeros((_BANDS, _BANDS))
        place = (
            first.bands(_BANDS)[self.primary_index],
            second.bands(_BANDS)[self.reference_index],
        )
        np.add.at(shares, place, self.weights)
        rows = [
            ("primary reports", f"{len(self.primary):,}"),
            ("reference reports", f"{len(self.reference):,}"),
            ("pairs that occur", f"{len(self.counts):,}"),
            ("items", f"{self.n_items:,}"),
            ("outcomes", f"{self.n_outcomes:,}"),
        ]
        if self.groups:
            rows.append(("groups", f"{len(self.groups):,}"))
        picture = _sketch.heat(
            shares.tolist(),
            labels=(f"reference: {second.title}", f"primary: {first.title}"),
            summary="How often each pair of reports occurs.",
        )
        return _sketch.beside(html_table("Joint table", ("", ""), rows), picture)


_BANDS = 10
"""Of each side of the picture."""
