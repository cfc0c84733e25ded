"""Files written in one step or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write beside the target, then rename: a reader never sees half a file."""
    with temporary_beside(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def temporary_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to fill, which takes the target's place when all went well."""
    target = Path(path)
    if target.is_dir():
        message = f"{target} is a folder: name a file in it"
        raise IsADirectoryError(message)
    if not target.parent.is_dir():
        message = f"the folder {target.parent} does not exist: make it first"
        raise FileNotFoundError(message)
    handle, temporary = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
    )
    os.close(handle)
    try:
        yield Path(temporary)
        with Path(temporary).open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp makes private files; a saved map is as readable as any other file.
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
