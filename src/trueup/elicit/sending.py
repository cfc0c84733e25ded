"""Requests with retries, a shared pause, a budget, and the store in front of it all."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from trueup.elicit.backends.base import Backend, Reply, Request, SendError
from trueup.elicit.store import Store


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long to try again.

    Waits double from `first_wait` up to `longest_wait` and are drawn between half and
    the whole of that, so that requests which failed together do not return together.
    What a server asks for in Retry-After is waited at least; if it asks for more than
    `longest_pause` seconds, the run stops and says so.

    Examples
    --------
    >>> from trueup.elicit import Patience
    >>> Patience(n_attempts=3).longest_wait
    60.0
    """

    n_attempts: int = 6
    first_wait: float = 0.5
    longest_wait: float = 60.0
    longest_pause: float = 600.0


class BudgetSpentError(Exception):
    """As many requests were sent as the user allowed."""


class GaveUpError(Exception):
    """No attempt brought a reply; the last failure in words."""


class Sender:
    """Sends what the store cannot answer."""

    def __init__(
        self,
        backend: Backend,
        store: Store,
        *,
        patience: Patience,
        max_requests: int | None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.n_sent = 0
        self.n_reused = 0
        self._backend = backend
        self._store = store
        self._patience = patience
        self._max_requests = max_requests
        self._tell = tell
        self._pause_ends = 0.0
        self._rng = random.Random()  # noqa: S311 - spreads waits, nothing else
        self._under_way: dict[str, asyncio.Future[Reply]] = {}

    async def exchange(self, request: Request) -> Reply:
        """The reply to a request: kept, under way already, or sent now."""
        kept = self._store.get(request)
        if kept is not None:
            self.n_reused += 1
            return kept
        if request.key in self._under_way:
            # Two items may ask the very same thing; nobody pays twice for it.
            return await asyncio.shield(self._under_way[request.key])
        future = asyncio.get_running_loop().create_future()
        self._under_way[request.key] = future
        try:
            reply = await self.retrying(request)
            self._store.put(request, reply)
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # whoever waits sees it; if nobody does, that is fine
            raise
        else:
            future.set_result(reply)
            return reply
        finally:
            del self._under_way[request.key]

    async def retrying(self, request: Request) -> Reply:
        """Send until there is a reply, within patience and budget."""
        patience = self._patience
        for attempt in range(1, patience.n_attempts + 1):
            await self._wait_for_pause()
            self._spend()
            try:
                return await self._backend.send(request)
            except SendError as error:
                if error.remedy != "retry":
                    raise
                if attempt == patience.n_attempts:
                    message = f"{error} (tried {attempt} times)"
                    raise GaveUpError(message) from error
                self._check_pause(error)
                await asyncio.sleep(self._pause(error, attempt))
        raise GaveUpError(request.where)  # no attempts were allowed

    def _spend(self) -> None:
        if self._max_requests is not None and self.n_sent >= self._max_requests:
            raise BudgetSpentError
        self.n_sent += 1

    def _check_pause(self, error: SendError) -> None:
        asked = error.retry_after
        if asked is not None and asked > self._patience.longest_pause:
            message = f"{error}; the server asks to wait {asked:,.0f} seconds"
            raise SendError(message, "stop") from error

    def _pause(self, error: SendError, attempt: int) -> float:
        """Seconds until the next attempt; after Retry-After nobody sends before."""
        patience = self._patience
        longest = min(patience.first_wait * 2 ** (attempt - 1), patience.longest_wait)
        wait = longest * self._rng.uniform(0.5, 1)
        if error.retry_after is None:
            return wait
        ends = time.monotonic() + error.retry_after
        if ends > self._pause_ends + 1:
            self._tell(f"{error}; waiting {error.retry_after:.0f} s as it asks")
        self._pause_ends = max(self._pause_ends, ends)
        return max(wait, error.retry_after)

    async def _wait_for_pause(self) -> None:
        left = self._pause_ends - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)
            # The pause may have been made longer meanwhile.
            await self._wait_for_pause()
