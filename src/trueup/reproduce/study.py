"""What is compared: pairs of prediction files, or models to ask and sets to ask about.

Prediction files are found by name, one folder a set::

    DIR/<set>/<model>.base.<suffix>                   the reference
    DIR/<set>/<model>.instruct.<suffix>               the primary
    DIR/<set>/<model>.instruct-calibration.<suffix>   a labelled split, if there is one

or listed in a TOML file, which may also list models and sets.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from trueup.errors import InvalidInputError, UnknownNameError
from trueup.reproduce.paper import paper_model, set_id

BASE, INSTRUCT, CALIBRATION = "base", "instruct", "instruct-calibration"
ROLES = (BASE, INSTRUCT, CALIBRATION)
_SUFFIXES = (
    ".csv",
    ".tsv",
    ".parquet",
    ".pq",
    ".jsonl",
    ".ndjson",
    ".arrow",
    ".feather",
    ".ipc",
)


@dataclass(frozen=True, slots=True)
class Source:
    """A prediction file, and which predictor of it."""

    path: str
    prefix: str | None = None


@dataclass(frozen=True, slots=True)
class PairSpec:
    """A primary and a reference on one set."""

    model: str
    set: str
    primary: Source
    reference: Source
    calibration: Source | None = None
    main: bool = True
    """Whether the pair belongs to Tables 1 and 2; others are in Table 3."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A base and an instruct model to ask."""

    name: str
    base: str
    instruct: str
    base_endpoint: str | None = None
    instruct_endpoint: str | None = None
    api_key_env: str | None = None
    main: bool = True

    def __post_init__(self) -> None:
        if not self.name or set(self.name) & set('/\\:*?"<>|') or self.name[0] == ".":
            message = (
                f"the model name {self.name!r} cannot name files.\n"
                "hint: choose a name without slashes (--name, or name in the file)."
            )
            raise InvalidInputError(message)

    def asked(self, role: str) -> tuple[str, str | None]:
        """Which model answers in a role, and where."""
        if role == BASE:
            return self.base, self.base_endpoint
        return self.instruct, self.instruct_endpoint


@dataclass(frozen=True, slots=True)
class SetSpec:
    """Questions to ask; a labelled split for supervised baselines, if there is one."""

    name: str
    questions: str
    calibration: str | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """Everything one run compares."""

    title: str = "The paper's experiment"
    pairs: tuple[PairSpec, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    sets: tuple[SetSpec, ...] = ()


PAPER_SETS = (
    SetSpec("mmlu-redux", "datasets:mmlu-redux"),
    SetSpec("commonsense-qa", "datasets:commonsense-qa"),
)
"""The paper's evaluation sets, through the ``datasets`` package."""


def is_main(model: str) -> bool:
    """Whether a model is in Tables 1 and 2: the paper's three, and unknown ones."""
    known = paper_model(model)
    return known is None or known.main


def find_pairs(folder: str | Path) -> tuple[PairSpec, ...]:
    """Pairs of prediction files, by the names of files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for role in ("base", "instruct"):
    ...         path = Path(folder, "commonsense-qa", f"Qwen3-8B.{role}.csv")
    ...         path.parent.mkdir(exist_ok=True)
    ...         path.touch()
    ...     [(pair.set, pair.model, pair.main) for pair in find_pairs(folder)]
    [('commonsense-qa', 'Qwen3-8B', True)]
    """
    root = Path(folder)
    if not root.is_dir():
        message = f"{root} is not a folder.\nhint: --predictions names a folder."
        raise InvalidInputError(message)
    found: dict[tuple[str, str], dict[str, str]] = {}
    for path in sorted(root.glob("*/*")):
        known = _model_and_role(path)
        if known is None:
            continue
        model, role = known
        roles = found.setdefault((path.parent.name, model), {})
        if role in roles:
            message = (
                f"{path} and {roles[role]} are both the {role} predictions of {model}."
                "\nhint: keep one of the two."
            )
            raise InvalidInputError(message)
        roles[role] = str(path)
    pairs = tuple(
        PairSpec(
            model=model,
            set=set_id(set_name),
            primary=Source(roles[INSTRUCT]),
            reference=Source(roles[BASE]),
            calibration=Source(roles[CALIBRATION]) if CALIBRATION in roles else None,
            main=is_main(model),
        )
        for (set_name, model), roles in found.items()
        if BASE in roles and INSTRUCT in roles
    )
    if not pairs:
        raise InvalidInputError(_nothing_found(root, found))
    return pairs


def _model_and_role(path: Path) -> tuple[str, str] | None:
    name = path.name.removesuffix(".gz")
    stem, dot, suffix = name.rpartition(".")
    if not path.is_file() or f"{dot}{suffix}" not in _SUFFIXES:
        return None
    model, _, role = stem.rpartition(".")
    return (model, role) if model and role in ROLES else None


def _nothing_found(
    root: Path, found: Mapping[tuple[str, str], Mapping[str, str]]
) -> str:
    lonely = [f"{model} on {name}" for (name, model) in found]
    having = f" Only one half is there of {', '.join(lonely)}." if lonely else ""
    return (
        f"{root} holds no pair of prediction files.{having}\n"
        "hint: name them DIR/<set>/<model>.base.parquet and "
        "DIR/<set>/<model>.instruct.parquet (or .csv, .jsonl, ...), or list pairs in a "
        "TOML file for --config."
    )


def read_study(path: str | Path, *, root: str | Path | None = None) -> Study:
    """Read a TOML file with ``[[pair]]``, or ``[[model]]`` and ``[[set]]``.

    Parameters
    ----------
    root
        Folder of the prediction files; that of the TOML file when left out.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read: {error}.\nhint: it must be a TOML file."
        raise InvalidInputError(message) from error
    _check_keys(content, {"title", "pair", "model", "set"}, str(path))
    folder = Path(path).parent if root is None else Path(root)
    pairs = [_pair(one, folder, str(path)) for one in _listed(content, "pair", path)]
    models = [
        _made(ModelSpec, {"main": is_main(str(one.get("name", ""))), **one}, str(path))
        for one in _listed(content, "model", path)
    ]
    sets = [_made(SetSpec, one, str(path)) for one in _listed(content, "set", path)]
    sets = [replace(one, name=set_id(one.name)) for one in sets]
    study = Study(
        str(content.get("title", Study().title)),
        tuple(pairs),
        tuple(models),
        tuple(sets or (PAPER_SETS if models else ())),
    )
    if not study.pairs and not study.models:
        message = f"{path} lists nothing.\nhint: add [[pair]] or [[model]] tables."
        raise InvalidInputError(message)
    return study


def _pair(one: Mapping[str, Any], folder: Path, name: str) -> PairSpec:
    known = {"model", "set", "file", "main"}
    sides = ("primary", "reference", "calibration")
    known |= {*sides, *(f"{side}_file" for side in sides)}
    _check_keys(one, known, f"{name}, [[pair]]")
    _check_texts(one, known - {"main"}, f"{name}, [[pair]]")
    for wanted in ("model", "set", "primary", "reference"):
        if wanted not in one and not (wanted in sides and f"{wanted}_file" in one):
            message = (
                f"{name}: a [[pair]] has no {wanted!r}.\n"
                "hint: model, set, and for primary and reference a prefix of the "
                "columns of `file`, or a file of their own (primary_file)."
            )
            raise InvalidInputError(message)

    def source(side: str) -> Source | None:
        path = one.get(f"{side}_file", one.get("file") if side in one else None)
        return None if path is None else Source(str(folder / path), one.get(side))

    primary, reference = source("primary"), source("reference")
    if primary is None or reference is None:
        message = f"{name}: a [[pair]] names no file.\nhint: add file = 'NAME'."
        raise InvalidInputError(message)
    return PairSpec(
        model=one["model"],
        set=set_id(one["set"]),
        primary=primary,
        reference=reference,
        calibration=source("calibration"),
        main=bool(one.get("main", True)),
    )


def _made(made: Any, one: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401
    """A dataclass from a table of the file."""
    known = {field.name for field in fields(made)}
    what = f"{name}, [[{made.__name__.removesuffix('Spec').lower()}]]"
    _check_keys(one, known, what)
    _check_texts(one, known - {"main"}, what)
    needed = (
        {"name", "base", "instruct"} if made is ModelSpec else {"name", "questions"}
    )
    missing = sorted(needed - set(one))
    if missing:
        message = f"{what}: {missing[0]!r} is missing.\nhint: add {missing[0]} = '...'."
        raise InvalidInputError(message)
    return made(**one)


def _listed(
    content: Mapping[str, Any], key: str, path: object
) -> Iterable[Mapping[str, Any]]:
    tables = content.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        message = f"{path}: {key} must be a list of tables.\nhint: write [[{key}]]."
        raise InvalidInputError(message)
    return tables


def _check_keys(content: Mapping[str, Any], known: set[str], place: str) -> None:
    for key in content:
        if key not in known:
            kind = f"key of {place}"
            raise UnknownNameError.of(kind, key, known)


def _check_texts(content: Mapping[str, Any], names: set[str], place: str) -> None:
    for name in names & set(content):
        if not isinstance(content[name], str) or not content[name]:
            message = (
                f"{place}: {name} must be a text, got {content[name]!r}.\n"
                "hint: put it in quotes."
            )
            raise InvalidInputError(message)
