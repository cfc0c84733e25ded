"""``trueup import``: predictions from logs of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trueup.cli._output import Console, aligned, reporting
from trueup.cli._unread import list_unread
from trueup.errors import FileAccessError, LogFormatError

if TYPE_CHECKING:
    from trueup.elicit.imports.items import Imported


@click.command("import")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option("-o", "--output", required=True, metavar="FILE", help="Write them here.")
@click.option(
    "--from",
    "tool",
    type=click.Choice(["auto", "lm-eval", "inspect"]),
    default="auto",
    show_default=True,
    help="Which tool wrote the logs.",
)
@click.option(
    "--normalise",
    type=click.Choice(["none", "characters", "bytes", "mutual-info"]),
    help="lm-eval: what to do about the lengths of choices that are texts.",
)
@click.option("--filter", "wanted_filter", help="lm-eval: lines of this filter.")
@click.option(
    "--id-field",
    metavar="NAME",
    help="lm-eval: field of the document that names the item.  [default: task/number]",
)
@click.option(
    "--pad-options",
    is_flag=True,
    help="Allow different numbers of options; absent ones get probability zero.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
@reporting
def command(
    console: Console,
    *,
    logs: tuple[str, ...],
    output: str,
    tool: str,
    normalise: str | None,
    wanted_filter: str | None,
    id_field: str | None,
    pad_options: bool,
    force: bool,
) -> None:
    """Read predictions from LOGs of lm-evaluation-harness or inspect_ai.

    Several logs of one model become one file. Outcomes are named by letters: the first
    choice is A.

    \b
    Example:
      trueup import samples_mmlu_2026-11-18.jsonl -o base.parquet
    """
    from trueup.data.files import check_target, write_table
    from trueup.elicit.imports.inspect import read_inspect
    from trueup.elicit.imports.lm_eval import read_lm_eval

    check_target(output, force=force)
    paths = [_existing(name) for name in logs]
    if tool == "auto":
        tool = _tool(paths[0])
    console.say(
        f"{len(paths)} logs of {tool}" if len(paths) > 1 else f"a log of {tool}"
    )
    if tool == "inspect":
        found = read_inspect(paths)
    else:
        found = read_lm_eval(
            paths,
            normalise=normalise,
            wanted_filter=wanted_filter,
            id_field=id_field,
        )
    if not found.items:
        message = f"{logs[0]}: no item could be read."
        raise LogFormatError(message)
    write_table(found.table(pad_options=pad_options), output, force=force)
    _result(console, found, output, tool)


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        message = f"{name} does not exist, or is a folder.\nhint: name log files."
        raise FileAccessError(message)
    return path


def _tool(path: Path) -> str:
    """Sample logs have lines; inspect_ai writes one object or an archive."""
    if path.suffix in {".eval", ".json"}:
        return "inspect"
    if path.suffix == ".jsonl":
        return "lm-eval"
    message = (
        f"{path}: the name does not tell which tool wrote this.\n"
        "hint: say it with --from lm-eval or --from inspect."
    )
    raise LogFormatError(message)


def _result(console: Console, found: Imported, output: str, tool: str) -> None:
    from trueup.elicit.output import unread_path

    n_items = len(found.items) + len(found.unread)
    list_unread(console, found.unread, unread_path(output))
    rows = [
        ("predictions", f"{output}: {len(found.items):,} of {n_items:,} items"),
        *[("note", note) for note in found.notes],
    ]
    content = {
        "output": output,
        "tool": tool,
        "n_items": n_items,
        "n_read": len(found.items),
        "notes": list(found.notes),
        "unread": [
            {"item_id": one.item_id, "reason": one.reason} for one in found.unread
        ],
    }
    console.result(aligned(rows), content)
