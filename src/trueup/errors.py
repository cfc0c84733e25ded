"""Every error and warning trueup raises on purpose.

::

    TrueupError
    ├── InvalidReportError    (ValueError)   a report cannot be what it claims to be
    ├── InvalidInputError     (ValueError)   lengths, weights, groups, parameters
    ├── UnknownNameError      (ValueError)   a loss, rung or property nobody knows
    ├── UnsuitableLossError   (ValueError)   a loss that does not fit the property
    ├── SolverError           (RuntimeError) no usable answer from the engine
    ├── MapFormatError        (ValueError)   a saved map that cannot be read
    ├── PredictionFileError   (ValueError)   a table that does not hold predictions
    ├── FileAccessError       (OSError)      a path that cannot be read or written
    ├── ExistingFileError     (FileExistsError)  a file that would be overwritten
    └── MissingExtraError     (ImportError)  an optional dependency is absent

    TrueupWarning             (UserWarning)
    ├── RelaxedAssumptionWarning   something asked for could not be assumed
    ├── UnseenReportWarning        reports that were not present in fitting
    ├── GapWarning                 optimality is proved less tightly than asked
    └── DoubtfulInputWarning       legal input that is probably a mistake

The wording lives with the class; a call site is one line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Self


class TrueupError(Exception):
    """Base of every error trueup raises on purpose.

    Examples
    --------
    >>> import trueup
    >>> try:
    ...     trueup.fit([10, 70], [0.5, 0.5])
    ... except trueup.TrueupError as error:
    ...     print(error)
    primary holds 2 of 2 reports outside [0, 1]; the first is 10.0 at row 0.
    hint: these look like percentages: divide them by 100.
    """


class TrueupWarning(UserWarning):
    """Base of every warning trueup issues on purpose.

    Examples
    --------
    Fitting on a single item is legal and doubtful:

    >>> import warnings
    >>> import trueup
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", trueup.TrueupWarning)
    ...     fitted = trueup.fit([0.3], [0.5])
    >>> print(caught[0].message)
    fitted on one item: its pair of reports is taken as the whole population.
    """


class RelaxedAssumptionWarning(TrueupWarning):
    """Something the caller asked to assume could not be assumed everywhere."""


class UnseenReportWarning(TrueupWarning):
    """A map was applied to reports that were not present in fitting."""


class GapWarning(TrueupWarning):
    """The printed bound is true, but optimality is proved less tightly than asked."""


class DoubtfulInputWarning(TrueupWarning):
    """Legal input that is probably a mistake."""


class InvalidInputError(TrueupError, ValueError):
    """Lengths, weights, groups or parameters that make no sense."""

    @classmethod
    def lengths(cls, first: str, n_first: int, second: str, n_second: int) -> Self:
        return cls(
            f"{first} has {n_first:,} rows but {second} has {n_second:,}.\n"
            "hint: both must describe the same items in the same order."
        )

    @classmethod
    def rows(
        cls, name: str, problem: str, *, bad: int, total: int, first: str, hint: str
    ) -> Self:
        return cls(
            f"{name} holds {bad:,} of {total:,} {problem}; the first is {first}.\n"
            f"hint: {hint}."
        )


class InvalidReportError(TrueupError, ValueError):
    """A report cannot be what it claims to be."""

    @classmethod
    def rows(
        cls, name: str, problem: str, *, bad: int, total: int, first: str, hint: str
    ) -> Self:
        return cls(
            f"{name} holds {bad:,} of {total:,} reports {problem}; "
            f"the first is {first}.\nhint: {hint}."
        )

    @classmethod
    def out_of_range(
        cls, name: str, *, bad: int, total: int, value: float, place: str
    ) -> Self:
        hint = (
            "these look like percentages: divide them by 100"
            if 1 < value <= 100
            else "trueup never clips silently: drop these rows or clip them yourself"
        )
        return cls.rows(
            name,
            "outside [0, 1]",
            bad=bad,
            total=total,
            first=f"{value!r} {place}",
            hint=hint,
        )


class UnknownNameError(TrueupError, ValueError):
    """A name that is not on the list; suggests the nearest that is."""

    @classmethod
    def of(cls, kind: str, name: object, known: Iterable[str]) -> Self:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        return cls(
            f"unknown {kind} {name!r}.{guess}\n"
            f"hint: choose one of {', '.join(map(repr, names))}."
        )


class UnsuitableLossError(TrueupError, ValueError):
    """A loss that does not fit what the primary reports."""

    @classmethod
    def of(cls, loss: str, described: str, fitting: Iterable[str]) -> Self:
        names = ", ".join(map(repr, fitting))
        return cls(
            f"loss {loss!r} does not fit a primary that reports {described}.\n"
            f"hint: losses that do: {names}."
        )


class SolverError(TrueupError, RuntimeError):
    """The engine returned nothing that could be used, not even as a starting point."""


class MapFormatError(TrueupError, ValueError):
    """A saved map that cannot be read."""


class PredictionFileError(TrueupError, ValueError):
    """A table that does not hold predictions, or two that cannot be paired."""

    @classmethod
    def of(cls, name: str, problem: str, hint: str) -> Self:
        return cls(f"{name}: {problem}\nhint: {hint}.")


class FileAccessError(TrueupError, OSError):
    """A path that cannot be read or written."""


class ExistingFileError(TrueupError, FileExistsError):
    """A file that would be overwritten."""

    @classmethod
    def of(cls, path: object) -> Self:
        return cls(
            f"{path} exists already and is left as it is.\n"
            "hint: choose another name, or pass --force (in Python: force=True)."
        )


class MissingExtraError(TrueupError, ImportError):
    """An optional dependency is absent."""

    @classmethod
    def of(cls, package: str, extra: str) -> Self:
        return cls(
            f"this needs {package}, which is not installed.\n"
            f"hint: pip install 'trueup[{extra}]'."
        )
