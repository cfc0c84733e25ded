"""Append-only store of requests and replies, one JSON object per line.

A line is written in one piece as soon as a reply is complete, and before it is used.
A process that is killed loses the requests in flight and nothing else: a line that
was cut off is skipped, and asked for again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from trueup.elicit.backends.base import Request
from trueup.errors import ElicitationError


class Store:
    """Replies by the hash of their request, in a file that only grows.

    Only places of replies are held in memory. One process may write at a time.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from trueup.elicit.backends.base import Request
    >>> request = Request("http://localhost/v1/completions", {"prompt": "Hi"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "store.jsonl"
    ...     with Store(path) as store:
    ...         store.put(request, {"text": "Hello"})
    ...     with Store(path) as store:
    ...         store.get(request)
    {'text': 'Hello'}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n_damaged = 0
        """Lines that could not be read: a run was killed while it wrote them."""
        self._places: dict[str, int] = {}
        self._file = self._open()
        self._read_places()

    def _open(self) -> IO[bytes]:
        try:
            # Unbuffered and appending: each write is one system call at the end.
            file = self.path.open("a+b", buffering=0)
        except OSError as error:
            message = f"the store {self.path} cannot be opened: {error.strerror}."
            raise ElicitationError(message) from error
        _lock(file, self.path)
        return file

    def _read_places(self) -> None:
        self._file.seek(0)
        with os.fdopen(os.dup(self._file.fileno()), "rb") as lines:
            place = 0
            ended = True
            for line in lines:
                self._note(line, place)
                place += len(line)
                ended = line.endswith(b"\n")
        if not ended:
            # What follows must not become part of the line that was cut off.
            self._file.write(b"\n")

    def _note(self, line: bytes, place: int) -> None:
        record = _record(line)
        if record is not None:
            self._places[record["key"]] = place
        elif line.strip():
            self.n_damaged += 1

    def __len__(self) -> int:
        return len(self._places)

    def get(self, request: Request) -> Mapping[str, Any] | None:
        """The reply to a request, or None if there is none yet."""
        place = self._places.get(request.key)
        if place is None:
            return None
        with self.path.open("rb") as file:
            file.seek(place)
            record = _record(file.readline())
        if record is None:
            message = (
                f"the store {self.path} was changed by somebody else.\n"
                "hint: a store is only ever appended to; delete it to start again."
            )
            raise ElicitationError(message)
        reply: Mapping[str, Any] = record["reply"]
        return reply

    def put(self, request: Request, reply: Mapping[str, Any]) -> None:
        """Keep a reply; on the disk of this machine when this returns."""
        record = {
            "key": request.key,
            "where": request.where,
            "body": request.body,
            "reply": reply,
        }
        line = json.dumps(record, ensure_ascii=True).encode() + b"\n"
        place = self._file.seek(0, os.SEEK_END)
        written = self._file.write(line)
        while written < len(line):  # a nearly full disk may take a part
            written += self._file.write(line[written:])
        self._places[request.key] = place

    def close(self) -> None:
        """Let another process write."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _record(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or not {"key", "reply"} <= set(record):
        return None
    return record


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        import fcntl  # absent on Windows, where nothing is locked
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        message = (
            f"another run is writing to the store {path}.\n"
            "hint: wait until it has ended, or write to another output."
        )
        raise ElicitationError(message) from error
