"""Commands on files larger than memory, and on counts instead of items."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup.cli._inputs import parsed_outcomes

if TYPE_CHECKING:
    from trueup.cli._output import Console
    from trueup.maps.report_map import ReportMap

LARGE_BYTES = 256 << 20
"""Files larger than this are gone through in passes instead of read at once."""


def is_large(sources: list[str | None], *, asked: bool | None) -> bool:
    """Whether to go through files in passes: as asked, else folders and large files."""
    given = [source for source in sources if source is not None and source != "-"]
    if asked is not None:
        return asked
    if any(Path(source).is_dir() or _is_pattern(source) for source in given):
        return True
    sizes = (os.stat(s).st_size for s in given if Path(s).exists())  # noqa: PTH116
    return sum(sizes) > LARGE_BYTES


def _is_pattern(source: str) -> bool:
    return any(sign in source for sign in "*?[") and not Path(source).exists()


def fit_large(
    console: Console,
    primary: str,
    reference: str | None,
    given: dict[str, Any],
    options: dict[str, Any],
) -> tuple[ReportMap, dict[str, Any]]:
    """Fit in passes; what was read, for JSON."""
    from trueup.scale.fitting import fit_source
    from trueup.scale.pairs import open_pair

    _refuse(given, options, "files gone through in passes")
    if reference is None and None in (
        given["primary_prefix"],
        given["reference_prefix"],
    ):
        message = (
            "one source was given. Name a second one, or choose two predictors of this "
            "one with --primary-prefix and --reference-prefix"
        )
        raise click.UsageError(message)
    with open_pair(
        primary,
        reference,
        primary_prefix=given["primary_prefix"],
        reference_prefix=given["reference_prefix"],
        id=given["item_id"],
        group=options.pop("groups"),
        outcomes=parsed_outcomes(given["outcomes"]),
    ) as source:
        console.say(f"{source.name}: {source.n_items:,} items, gone through in passes")
        console.explain(source.explanation)
        fitted = fit_source(
            source,
            progress=lambda stage, done, total: console.progress(stage, done / total),
            **options,
        )
        read = {
            "source": source.name,
            "n_items": source.n_items,
            "outcomes": list(source.outcomes),
            "explanation": list(source.explanation),
        }
    return fitted, read


def fit_counted(
    console: Console, path: str, given: dict[str, Any], options: dict[str, Any]
) -> tuple[ReportMap, dict[str, Any]]:
    """Fit from pair counts; what was read, for JSON."""
    from trueup.api import fit
    from trueup.data.counts import read_counts
    from trueup.scale.counts import fit_counts

    cells = options["cells"]
    _refuse(given, options, "counts")
    table = read_counts(
        path,
        primary_prefix=given["primary_prefix"] or "primary",
        reference_prefix=given["reference_prefix"] or "reference",
        count=given["weight"],
        group=options.pop("groups"),
        outcomes=parsed_outcomes(given["outcomes"]),
    )
    console.say(f"{path}: {table!r}")
    with console.working("fitting"):
        if cells == "auto":
            fitted = fit_counts(table, **options)
        else:
            kept = ("loss", "trust", "caps", "reference_error", "floor")
            fitted = fit(
                table.primary.take(table.primary_index),
                table.reference.take(table.reference_index),
                cells=cells,
                sample_weight=table.counts,
                groups=[table.groups[i] for i in table.group_index]
                if table.groups
                else None,
                **{name: options[name] for name in kept},
            )
    read = {
        "source": path,
        "n_items": table.n_items,
        "n_pairs": len(table.counts),
        "outcomes": list(table.primary.outcomes),
    }
    return fitted, read


def _refuse(given: dict[str, Any], options: dict[str, Any], where: str) -> None:
    """Options that need the items in memory."""
    cells, blocks = options.pop("cells"), options.pop("blocks")
    cannot = {
        "--method": cells != "auto" and where != "counts",
        "--blocks": blocks is not None,
        "--answers": bool(given["answers"]),
        "--property": given["stated"] is not None,
        "--drop-unpaired": given["drop_unpaired"],
        "--weight": given["weight"] is not None and where != "counts",
    }
    for name, is_given in cannot.items():
        if is_given:
            message = (
                f"{name} does not work with {where}: leave it out, or fit in memory"
            )
            raise click.UsageError(message)


def apply_large(
    console: Console,
    fitted: ReportMap,
    source: str,
    output: str,
    *,
    force: bool,
    **given: Any,  # noqa: ANN401 - the column options
) -> tuple[int, int]:
    """Stream a Parquet file through a map; items, and how many changed."""
    from trueup.scale.stream import apply_parquet

    done = apply_parquet(
        fitted,
        source,
        output,
        prefix=given["prefix"],
        id=given["item_id"],
        label=given["label"],
        group=given["group"],
        weight=given["weight"],
        force=force,
        progress=lambda n, total: console.progress("applying", n / max(total, 1)),
    )
    return done.n_items, done.n_changed


def streams(source: str, output: str, given: dict[str, Any]) -> bool:
    """Whether applying can go through a Parquet file without reading it at once."""
    parquet = all(
        Path(p).suffix.lower() in (".parquet", ".pq") for p in (source, output)
    )
    plain = given["outcomes"] is None and given["stated"] is None
    return parquet and plain and Path(source).is_file()
