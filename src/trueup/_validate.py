"""Arrays in: shape, finiteness, range. The only place that checks them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError, InvalidReportError

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Label: TypeAlias = str | int | float | bool

ROW_SUM_TOLERANCE = 1e-5
"""float32 probabilities of many outcomes miss one by up to about this much."""

EXACT_SUM = 1e-14
"""Sums this near to one are left alone: dividing would make equal entries of two
rows (0.4 and 0.4) differ in the last bit, and so different reports of them."""

RECORDED_DEVIATION = 1e-9
"""Row sums nearer to one than this are double rounding, not worth a remark."""


def floats(values: object, name: str) -> Floats:
    """Convert to float64, refusing text, objects and missing values."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "OUSMm":
            array = _numbers_from_objects(array, name)
        result = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidReportError):
            raise
        message = f"{name} must hold numbers, but could not be read as such: {error}."
        raise InvalidReportError(message) from error
    check_not_empty(result, name)
    return result


def check_not_empty(items: Sized, name: str) -> None:
    if len(items) == 0:
        message = f"{name} is empty.\nhint: pass at least one item."
        raise InvalidReportError(message)


def check_one_per_item(array: Floats, name: str) -> None:
    """A finite number for every item."""
    if array.ndim != 1:
        message = f"{name} must be one number per item, got {array.ndim}-D."
        raise InvalidReportError(message)
    check_finite(array, name)


def _numbers_from_objects(array: NDArray[Any], name: str) -> Floats:
    """Objects may be numbers (a nullable column); text never is, not even "0.5"."""
    flat = [_plain(value) for value in array.ravel()]
    text = [place for place, value in enumerate(flat) if not _is_number(value)]
    if text:
        # A list with one word in it arrives as all text: show the word.
        place = next((one for one in text if not _reads_as_number(flat[one])), text[0])
        row = place // (array.size // len(array))
        message = (
            f"{name} must hold numbers; the first that is not is {flat[place]!r} "
            f"at row {row:,}.\nhint: convert text to numbers before passing it."
        )
        raise InvalidReportError(message)
    numbers = [np.nan if is_missing(value) else value for value in flat]
    return np.array(numbers, dtype=np.float64).reshape(array.shape)


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _is_number(value: object) -> bool:
    return is_missing(value) or isinstance(value, int | float)


def _reads_as_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def is_missing(value: object) -> bool:
    """None, NaN, NaT and pandas' NA, without importing pandas."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def check_finite(array: Floats, name: str) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        raise InvalidReportError.rows(
            name,
            "that are not finite",
            bad=_rows_with(bad).size,
            total=len(array),
            first=f"{_first(array, bad)!r} {_place(bad)}",
            hint="drop these items from both predictors, or repair them yourself",
        )


def check_unit_interval(array: Floats, name: str) -> None:
    bad = (array < 0) | (array > 1)
    if bad.any():
        above = array > 1
        worst = above if above.any() else bad
        raise InvalidReportError.out_of_range(
            name,
            bad=_rows_with(bad).size,
            total=len(array),
            value=_first(array, worst),
            place=_place(worst),
        )


def normalised_rows(array: Floats, name: str) -> tuple[Floats, int]:
    """Divide each row by its sum; returns also how many were visibly off.

    A sum within 1e-5 of one is float32 rounding. Anything further is the caller's
    to explain, not ours to repair.
    """
    sums = array.sum(axis=1)
    deviation = np.abs(sums - 1)
    bad = deviation > ROW_SUM_TOLERANCE
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidReportError.rows(
            name,
            "that do not sum to one",
            bad=int(bad.sum()),
            total=len(array),
            first=f"{sums[row]:.6g} (off by {sums[row] - 1:+.2g}) at row {row:,}",
            hint="normalise them yourself if that is what they mean; logits and "
            "percentages must be converted first",
        )
    divisor = np.where(deviation > EXACT_SUM, sums, 1.0)
    return array / divisor[:, None], int((deviation > RECORDED_DEVIATION).sum())


def probabilities(values: object, name: str) -> tuple[Floats, int]:
    """An (n, K) array of distributions from (n, K), or (n,) meaning P(outcome 1)."""
    array = floats(values, name)
    if array.ndim not in (1, 2):
        message = (
            f"{name} has {array.ndim} dimensions.\nhint: pass an (n, K) array of "
            "distributions, or a 1-D array of P(outcome 1) for two outcomes."
        )
        raise InvalidReportError(message)
    if array.ndim == 2 and array.shape[1] < 2:
        message = (
            f"{name} has one outcome, and nothing can be predicted about that.\n"
            "hint: for two outcomes pass a 1-D array of P(outcome 1)."
        )
        raise InvalidReportError(message)
    check_finite(array, name)
    check_unit_interval(array, name)
    if array.ndim == 1:
        return np.column_stack([1 - array, array]), 0
    return normalised_rows(array, name)


def sample_weights(
    values: object | None, n_rows: int, name: str = "sample_weight"
) -> Floats:
    """Non-negative weights with a positive sum; ones when none are given."""
    if values is None:
        return np.ones(n_rows)
    array = floats(values, name)
    if array.ndim != 1:
        message = f"{name} must be one number per item, got {array.ndim}-D."
        raise InvalidInputError(message)
    if len(array) != n_rows:
        raise InvalidInputError.lengths("primary", n_rows, name, len(array))
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        raise InvalidInputError.rows(
            name,
            "weights that are negative or not finite",
            bad=int(bad.sum()),
            total=n_rows,
            first=f"{_first(array, bad)!r} {_place(bad)}",
            hint="a row stands for that many items; it cannot be a negative number",
        )
    if not array.sum() > 0:
        message = f"{name} is zero everywhere.\nhint: give some item a weight."
        raise InvalidInputError(message)
    return array


def group_codes(
    values: Iterable[Any] | None, n_rows: int, name: str = "groups"
) -> tuple[Ints, tuple[Any, ...]]:
    """Number the group values in order of their text; missing ones are an error."""
    if values is None:
        return np.zeros(n_rows, dtype=np.int64), ()
    items = np.asarray(values, dtype=object).ravel().tolist()
    if len(items) != n_rows:
        raise InvalidInputError.lengths("primary", n_rows, name, len(items))
    missing = [row for row, value in enumerate(items) if is_missing(value)]
    if missing:
        raise InvalidInputError.rows(
            name,
            "missing values",
            bad=len(missing),
            total=n_rows,
            first=f"{items[missing[0]]!r} at row {missing[0]:,}",
            hint="give these items a value (for instance 'unknown'), or drop them",
        )
    labels = sorted(set(items), key=lambda value: (str(type(value)), str(value)))
    code = {label: index for index, label in enumerate(labels)}
    return np.array([code[item] for item in items], dtype=np.int64), tuple(labels)


def outcome_labels(values: Iterable[Any], name: str) -> tuple[Label, ...]:
    """Distinct outcome names as plain Python values that survive JSON."""
    labels = tuple(
        value.item() if isinstance(value, np.generic) else value for value in values
    )
    for label in labels:
        if is_missing(label) or not isinstance(label, str | int | float | bool):
            message = f"{name}: an outcome must be text or a number, got {label!r}."
            raise InvalidInputError(message)
        if isinstance(label, float) and not np.isfinite(label):
            message = f"{name}: an outcome must be a finite number, got {label!r}."
            raise InvalidInputError(message)
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        message = f"{name}: outcome {twice!r} is named more than once."
        raise InvalidInputError(message)
    if len(labels) < 2:
        message = (
            f"{name}: there {'is one outcome' if labels else 'are no outcomes'}; "
            "a prediction needs at least two."
        )
        raise InvalidInputError(message)
    return labels


def outcome_values(labels: Sequence[Label], name: str) -> Floats:
    """The outcomes as finite numbers, for properties of a numeric outcome."""
    for label in labels:
        if isinstance(label, str) or not np.isfinite(float(label)):
            message = (
                f"{name} is about numbers, but the outcome {label!r} is not one.\n"
                "hint: pass outcomes as the values they take, e.g. outcomes=[0, 1, 5]."
            )
            raise InvalidInputError(message)
    return np.array([float(label) for label in labels])


def unit_number(value: float, name: str, *, inclusive: bool) -> float:
    """A single number in [0, 1] (or strictly inside)."""
    number = float(value)
    inside = 0 <= number <= 1 if inclusive else 0 < number < 1
    if not inside:
        where = "in [0, 1]" if inclusive else "strictly between 0 and 1"
        message = f"{name} must lie {where}, got {value!r}."
        raise InvalidInputError(message)
    return number


def non_negative(value: float, name: str) -> float:
    """A finite number that is not negative."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not (np.isfinite(number) and number >= 0):
        message = f"{name} must be a finite number >= 0, got {value!r}."
        raise InvalidInputError(message)
    return number


def _rows_with(bad: Bools) -> Ints:
    return np.flatnonzero(bad if bad.ndim == 1 else bad.any(axis=1))


def _first(array: Floats, bad: Bools) -> float:
    return float(array[bad][0])


def _place(bad: Bools) -> str:
    index = np.argwhere(bad)[0]
    column = f", column {index[1]}" if bad.ndim == 2 else ""
    return f"at row {index[0]:,}{column}"
