"""Two tables of predictions made one, by id or row by row."""

from __future__ import annotations

from pathlib import Path

from trueup.data.schema import Columns
from trueup.errors import PredictionFileError, TrueupError
from trueup.scale.files import NUMBER, Chosen, Database, Files, check_pairing, named


def joined(
    database: Database,
    files: list[Files],
    numeric: list[dict[str, bool]],
    chosen: Chosen,
    folder: Path,
) -> tuple[str, Chosen]:
    """Both tables as one file, written once and read by every pass."""
    first, second = chosen.primary, chosen.reference
    ours, theirs = first.item_id, second.item_id
    kept = [*first.predictions, *([ours] if ours else [])]
    kept += [first.group] if first.group else []
    left = ", ".join(f"a.{named(c)}" for c in dict.fromkeys(kept))
    renamed = {c: f"__reference_{i}" for i, c in enumerate(second.predictions)}
    right = ", ".join(f"b.{named(c)} AS {new}" for c, new in renamed.items())
    target = folder / "joined.parquet"
    a, b = files[0].sql(), files[1].sql()
    if ours and theirs:
        join = f"{a} a JOIN {b} b ON a.{named(ours)} = b.{named(theirs)}"
    else:
        check_pairing(numeric, database.name)
        join = f"{a} a POSITIONAL JOIN {b} b"
    written = text(str(target))
    database.rows(
        f"COPY (SELECT a.{NUMBER}, {left}, {right} FROM {join}) TO {written} "
        "(FORMAT parquet)"
    )
    counts = [n_items_of(database, t) for t in (a, b, written)]
    if len(set(counts)) > 1:
        raise _not_paired(database, counts, ours if ours and theirs else None)
    outcomes = {name: renamed[c] for name, c in second.outcomes.items()}
    moved = Columns(
        second.kind,
        outcomes,
        answer=renamed.get(second.answer or ""),
        confidence=renamed.get(second.confidence or ""),
        explanation=second.explanation,
    )
    own = ours if ours and theirs else None
    return f"{written}", Chosen(first, moved, own, chosen.group)


def _not_paired(database: Database, counts: list[int], id_: str | None) -> TrueupError:
    n_first, n_second, n_joined = counts
    if id_ is None:
        problem = f"{n_first:,} and {n_second:,} rows cannot be paired row by row."
        return PredictionFileError.of(database.name, problem, "name items with an id")
    return PredictionFileError.of(
        database.name,
        f"{n_first:,} and {n_second:,} rows make {n_joined:,} pairs by {id_!r}: ids "
        "are missing on one side, or occur more than once.",
        "every item must occur once on both sides",
    )


def n_items_of(database: Database, table: str) -> int:
    """Rows of a table."""
    return int(database.rows(f"SELECT count(*) FROM {table}")[0][0])


def text(value: object) -> str:
    """A value as text in SQL."""
    return "'" + str(value).replace("'", "''") + "'"
