"""One pass over data that need not fit in memory, on all cores.

Threads take pieces of the data in order and add them to totals of their own, which are
merged afterwards. Totals are whole numbers, so neither the number of threads nor who
took which piece changes them. Reading and counting release the interpreter's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

from trueup.scale.batch_counts import Batch

MOST_WORKERS = 16
"""More threads than this wait for memory, not for each other."""

Total = TypeVar("Total")


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Items that follow each other, read when they are wanted."""

    n_before: int
    """Items of all pieces before."""
    read: Callable[[], Iterator[Batch]]
    share: int = 1
    """How many items of the data each of these stands for."""


class BadItems(Exception):  # noqa: N818 - caught by the pass that knows the source
    """A batch that holds a report which is none."""

    def __init__(self, batch: Batch, block: int, n_before: int) -> None:
        """Keep where it is: the batch, the block in it, and items before the batch."""
        super().__init__(batch, block, n_before)
        self.place = (batch, block, n_before)


@dataclass(slots=True, eq=False)
class _Pass(Generic[Total]):
    """What the threads of one pass share."""

    pieces: Generator[Piece]
    add: Callable[[Total, Batch], int]
    lock: Lock
    stopped: Event
    """No further piece is taken."""
    abandoned: Event
    """Not even the pieces that were taken are gone through to their end."""
    told: SimpleQueue[int | None]
    """Items done; None from a thread that has ended."""
    failures: dict[int, BaseException]
    n_taken: int = 0

    def work(self, total: Total) -> None:
        """Take pieces until there are none, or one failed."""
        while not self.stopped.is_set():
            with self.lock:
                index, piece = self.n_taken, self._next()
                self.n_taken += 1
            if piece is None:
                break
            try:
                self._add_piece(piece, total)
            except BaseException as error:  # noqa: BLE001 - raised again by the caller
                self.failures[index] = error
                self.stopped.set()
        self.told.put(None)

    def _next(self) -> Piece | None:
        """The next piece; what goes wrong in finding it fails in its place."""
        try:
            return next(self.pieces, None)
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            self.failures[self.n_taken] = error
            self.stopped.set()
            return None

    def _add_piece(self, piece: Piece, total: Total) -> None:
        n_before = piece.n_before
        for batch in piece.read():
            bad = self.add(total, batch)
            if bad >= 0:
                raise BadItems(batch, bad, n_before)
            n_before += len(batch)
            if self.abandoned.is_set():
                return
            self.told.put(len(batch) * piece.share)


def go_through(
    pieces: Iterable[Piece],
    totals: list[Total],
    add: Callable[[Total, Batch], int],
    after: Callable[[int], None] | None = None,
) -> None:
    """Add every piece to one of the totals, one thread each.

    ``add`` returns the start of a block with a bad row, or -1. Of several failures the
    first in the order of the data is raised, whichever thread was faster.
    """
    shared: _Pass[Total] = _Pass(
        _each(pieces), add, Lock(), Event(), Event(), SimpleQueue(), failures={}
    )
    threads = [
        Thread(target=shared.work, args=(total,), daemon=True, name="trueup-pass")
        for total in totals
    ]
    for thread in threads:
        thread.start()
    n_done, n_ended = 0, 0
    try:
        while n_ended < len(threads):
            n_items = shared.told.get()
            if n_items is None:
                n_ended += 1
                continue
            n_done += n_items
            if after is not None:
                after(n_done)
    except BaseException:  # interrupted, by a key or by the one who is told
        shared.abandoned.set()
        raise
    finally:
        shared.stopped.set()
        for thread in threads:
            thread.join()
        shared.pieces.close()  # reading ahead ends before its source is closed
    if shared.failures:
        raise shared.failures[min(shared.failures)]


def _each(pieces: Iterable[Piece]) -> Generator[Piece]:
    yield from pieces


def n_workers(n_bytes: int = 0, most_bytes: int = 512 << 20) -> int:
    """Threads for one pass, fewer where the totals of each are large."""
    cores = n_cores()
    if n_bytes:
        cores = min(cores, most_bytes // n_bytes)
    return max(1, min(cores, MOST_WORKERS))


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
