"""Which columns of a table hold what: chosen by name, explained, and overridable.

One schema for everything that is read or written::

    item_id                        which item a row is about
    p_<outcome>                    a probability for every outcome, or
    logit_<outcome>                its logits, or
    logprob_<outcome>              its log-probabilities, or
    <outcome>                      probabilities in every other column of numbers, or
    answer, confidence             an answer and the probability that it is right, or
    value                          a number: a mean, a quantile, an expectile
    label, group, weight           what happened, a context, the weight of a row

Several predictors share a file as ``<model>__p_<outcome>`` and so on; a prefix chooses.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trueup.errors import PredictionFileError

SEPARATOR = "__"
FAMILIES = {
    "p_": "probabilities",
    "logit_": "logits",
    "logprob_": "log-probabilities",
}
_KEY_LIKE = re.compile(
    r"(^|_)(id|ids|uid|uuid|guid|key|index|idx|hash)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Columns:
    """What was chosen, and why."""

    kind: str
    """``probabilities``, ``logits``, ``log-probabilities``, ``answers``, ``modes`` or
    ``values``."""
    outcomes: Mapping[str, str]
    """Outcome → column, in the order of the columns; empty without distributions."""
    answer: str | None = None
    confidence: str | None = None
    value: str | None = None
    item_id: str | None = None
    label: str | None = None
    group: str | None = None
    weight: str | None = None
    prefix: str = ""
    explanation: tuple[str, ...] = ()

    @property
    def predictions(self) -> tuple[str, ...]:
        """Columns that hold what the predictor says."""
        single = (self.answer, self.confidence, self.value)
        return (*self.outcomes.values(), *(name for name in single if name))

    @property
    def used(self) -> frozenset[str]:
        """Every column that has a meaning."""
        special = (self.item_id, self.label, self.group, self.weight)
        return frozenset((*self.predictions, *(name for name in special if name)))


def is_key_like(name: str) -> bool:
    """Whether a column's name says that it identifies rows."""
    return bool(_KEY_LIKE.search(name))


def model_prefixes(names: Iterable[str]) -> list[str]:
    """Prefixes of the predictors that share a table, each ending in ``__``."""
    found = {}
    for name in names:
        model, separator, rest = name.partition(SEPARATOR)
        if separator and model and _says_something(rest):
            found[model + SEPARATOR] = True
    return list(found)


def detect_columns(
    numeric: Mapping[str, bool],
    *,
    name: str = "the table",
    prefix: str | None = None,
    id: str | None = None,  # noqa: A002 - what users call it
    label: str | None = None,
    group: str | None = None,
    weight: str | None = None,
) -> Columns:
    """Choose the columns of one predictor.

    Parameters
    ----------
    numeric
        Every column of the table, in order, and whether it holds numbers.
    name
        How messages call the table.
    prefix
        The predictor's prefix, where several share the table.
    id, label, group, weight
        Names of these columns where they are not ``item_id``, ``label``, ``group`` and
        ``weight``.

    Examples
    --------
    >>> found = detect_columns({"item_id": False, "p_yes": True, "p_no": True})
    >>> found.outcomes
    {'yes': 'p_yes', 'no': 'p_no'}
    >>> print("; ".join(found.explanation))
    probabilities of 2 outcomes from p_yes, p_no; items are named by item_id
    """
    chosen = {"item_id": id, "label": label, "group": group, "weight": weight}
    special = {
        role: _special(role, given, numeric, name) for role, given in chosen.items()
    }
    own, used_prefix = _own_columns(numeric, prefix, name)
    taken = {column for column in special.values() if column}
    said = _what_it_says(own, numeric, taken, name)
    return _explained(said, special, used_prefix)


def _special(
    role: str, given: str | None, numeric: Mapping[str, bool], name: str
) -> str | None:
    if given is None:
        return role if role in numeric else None
    if given in numeric:
        return given
    near = difflib.get_close_matches(given, numeric, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    raise PredictionFileError.of(
        name,
        f"there is no column {given!r} for the {role.replace('_', ' ')}.{guess}",
        f"the columns are {listed(numeric)}",
    )


def _own_columns(
    numeric: Mapping[str, bool], prefix: str | None, name: str
) -> tuple[dict[str, str], str]:
    """The predictor's columns: name without prefix → name in the table."""
    prefixes = model_prefixes(numeric)
    if prefix is None:
        plain = {
            column: column
            for column in numeric
            if not any(column.startswith(one) for one in prefixes)
        }
        if _says_something(*plain) or not prefixes:
            return plain, ""
        if len(prefixes) > 1:
            raise PredictionFileError.of(
                name,
                f"{len(prefixes)} predictors share this table: {listed(prefixes)}.",
                "choose one by its prefix (--prefix, --primary-prefix, "
                "--reference-prefix; in Python prefix=)",
            )
        prefix = prefixes[0]
    own = _with_prefix(numeric, prefix)
    if own is not None:
        return own
    near = difflib.get_close_matches(prefix, prefixes, n=1, cutoff=0.4)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    known = (
        f"the prefixes here are {listed(prefixes)}"
        if prefixes
        else ("no predictor has a prefix here: leave it out")
    )
    raise PredictionFileError.of(
        name, f"no prediction columns start with {prefix!r}.{guess}", known
    )


def _with_prefix(
    numeric: Mapping[str, bool], prefix: str
) -> tuple[dict[str, str], str] | None:
    """Columns with this prefix, with or without the separator that follows it."""
    candidates = [
        (
            {
                column.removeprefix(whole): column
                for column in numeric
                if column.startswith(whole) and column != whole
            },
            whole,
        )
        for whole in (prefix, prefix + SEPARATOR)
    ]
    for own, whole in candidates:
        if _says_something(*own):
            return own, whole
    # Bare outcome names below a prefix, which only an explicit prefix can mean.
    for own, whole in reversed(candidates):
        if sum(numeric[column] for column in own.values()) > 1:
            return own, whole
    return None


def _says_something(*names: str) -> bool:
    return any(
        name in ("answer", "confidence", "value")
        or any(name.startswith(family) and name != family for family in FAMILIES)
        for name in names
    )


def _what_it_says(
    own: Mapping[str, str],
    numeric: Mapping[str, bool],
    taken: set[str],
    name: str,
) -> Columns:
    for family, kind in FAMILIES.items():
        outcomes = {
            short.removeprefix(family): column
            for short, column in own.items()
            if short.startswith(family) and short != family and column not in taken
        }
        if len(outcomes) == 1:
            column = next(iter(outcomes.values()))
            raise PredictionFileError.of(
                name,
                f"{column!r} is the only column of {kind}, and a prediction needs two "
                "outcomes.",
                f"add a column {family}<other outcome>",
            )
        if outcomes:
            others = [
                other
                for other in FAMILIES
                if other != family and any(short.startswith(other) for short in own)
            ]
            shown = listed(family + outcome for outcome in outcomes)
            why = f"{kind} of {len(outcomes)} outcomes from {shown}"
            aside = tuple(f"the {FAMILIES[other]} were left aside" for other in others)
            return Columns(kind, outcomes, explanation=(why, *aside))
    return _answers_or_values(own, numeric, taken, name)


def _answers_or_values(
    own: Mapping[str, str], numeric: Mapping[str, bool], taken: set[str], name: str
) -> Columns:
    if "answer" in own and "confidence" in own:
        answer, confidence = own["answer"], own["confidence"]
        why = f"answers from {answer} with their probability from {confidence}"
        return Columns(
            "answers", {}, answer=answer, confidence=confidence, explanation=(why,)
        )
    if "value" in own:
        why = f"values from {own['value']}"
        return Columns("values", {}, value=own["value"], explanation=(why,))
    if "answer" in own:
        why = f"answers without confidence from {own['answer']}"
        return Columns("modes", {}, answer=own["answer"], explanation=(why,))
    outcomes = {
        short: column
        for short, column in own.items()
        if numeric[column] and column not in taken and not is_key_like(column)
    }
    if len(outcomes) < 2:
        raise _nothing_found(numeric, name)
    why = (
        f"probabilities of {len(outcomes)} outcomes from every other column of "
        f"numbers: {listed(outcomes)}"
    )
    return Columns("probabilities", outcomes, explanation=(why,))


def _nothing_found(numeric: Mapping[str, bool], name: str) -> PredictionFileError:
    one = len(numeric) == 1
    delimiter = "; if there should be more columns, check the delimiter" if one else ""
    text = [column for column, is_number in numeric.items() if not is_number]
    said = (
        f" ({listed(text)} {'holds' if len(text) == 1 else 'hold'} text)"
        if text
        else ""
    )
    return PredictionFileError.of(
        name,
        f"no predictions among the columns {listed(numeric)}{said}.",
        "name them p_<outcome>, logit_<outcome>, logprob_<outcome>, answer and "
        f"confidence, or value{delimiter}",
    )


def _explained(
    said: Columns, special: Mapping[str, str | None], prefix: str
) -> Columns:
    words = {
        "item_id": "items are named by {}",
        "label": "labels are in {}",
        "group": "groups are in {}",
        "weight": "each row counts as often as {} says",
    }
    told = [words[role].format(column) for role, column in special.items() if column]
    first, *rest = said.explanation
    lines = (f"{prefix}: {first}" if prefix else first, *rest, *told)
    return Columns(
        said.kind,
        said.outcomes,
        answer=said.answer,
        confidence=said.confidence,
        value=said.value,
        prefix=prefix,
        explanation=lines,
        **special,
    )


def listed(names: Iterable[str], most: int = 6) -> str:
    """Some names for a message, and how many more there are."""
    every = [str(name) for name in names]
    shown = [name if len(name) <= 60 else name[:57] + "..." for name in every[:most]]
    text = ", ".join(ascii_safe(name) for name in shown) or "(none)"
    return f"{text} and {len(every) - most:,} more" if len(every) > most else text


def ascii_safe(name: str) -> str:
    """A name on one line: quoted where it holds what would break a message."""
    plain = name and name.isprintable() and name == name.strip() and "," not in name
    return name if plain else repr(name)
