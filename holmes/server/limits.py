"""How much clients may begin: limits, money, and that the server is about to end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from holmes.investigations.records.records import SECONDS_PER_DAY
from holmes.server.errors import ApiError, ending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from holmes.app.serving import Service
    from holmes.investigations.records.values import InvestigationId

_RETRY_SECONDS = 10
_KNOWN_CLIENTS = 10_000


class ChatSlots:
    """Counts the running chats of each client."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._running: Counter[str] = Counter()

    def take(self, client: str) -> Callable[[], None]:
        """Count a chat of `client`; call what this returns when it ends. Raises `ApiError` 429."""
        limits = self._service.settings.server
        if self._running[client] >= limits.chats_per_client:
            raise _busy(f"{limits.chats_per_client} chats of yours are running already")
        if self._running.total() >= limits.chats:
            raise _busy(f"{limits.chats} chats are running already")
        self._running[client] += 1

        def release() -> None:
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]

        return release

    async def refuse_beyond_budget(self) -> None:
        """Raises `ApiError` 429 when the money of this day (UTC) is spent, by chats and investigations together."""
        problem = await spent_budget(self._service)
        if problem is not None:
            until_midnight = SECONDS_PER_DAY - time.time() % SECONDS_PER_DAY
            headers = {"Retry-After": str(int(until_midnight) + 1)}
            raise ApiError(429, problem, code="budget_spent", headers=headers)


class InvestigationSlots:
    """Counts the unfinished investigations: those of a client that began here, and all of the database."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._begun: dict[str, set[InvestigationId]] = {}
        self._beginning: Counter[str] = Counter()

    @asynccontextmanager
    async def place(self, client: str) -> AsyncIterator[None]:
        """Room for one more of `client`, held until the block has stored it. Raises `ApiError` 429."""
        limits, records = self._service.settings.server, self._service.investigations
        most = limits.investigations_per_client
        if self._count(client) >= most:
            known = frozenset(self._begun.get(client, ()))
            finished = known - await records.unfinished(tuple(known))
            self._begun.get(client, set()).difference_update(finished)
        if self._count(client) >= most:
            raise _busy(f"{most} investigations of yours are not finished yet")
        self._beginning[client] += 1  # at once, or many requests would see the same free place
        try:
            if await records.count_unfinished() + self._beginning.total() > limits.queue_limit:
                raise _busy(f"{limits.queue_limit} investigations are queued or running already")
            yield
        finally:
            self._beginning[client] -= 1
            if not self._beginning[client]:
                del self._beginning[client]

    def took(self, client: str, identity: InvestigationId) -> None:
        """`client` began an investigation."""
        # The client that began something last is the last one, and the first is forgotten when there are too many.
        self._begun[client] = self._begun.pop(client, set())
        self._begun[client].add(identity)
        if len(self._begun) > _KNOWN_CLIENTS:
            del self._begun[next(iter(self._begun))]

    def _count(self, client: str) -> int:
        return len(self._begun.get(client, ())) + self._beginning[client]


async def spent_budget(service: Service) -> str | None:
    """Why no money may be spent today (UTC); None when some may. Raises `DatabaseUnavailable`."""
    limit = service.settings.server.max_cost_per_day
    if limit is None:
        return None
    spent = await service.investigations.spent_today()
    return f"the budget of today is spent: ${spent:.2f} of ${limit:.2f}" if spent >= limit else None


def _busy(message: str) -> ApiError:
    return ApiError(429, f"{message}; try again later", headers={"Retry-After": str(_RETRY_SECONDS)})


class Draining:
    """Begins once, and never ends."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def begun(self) -> bool:
        """Whether nothing new may be begun."""
        return self._event.is_set()

    def begin(self) -> None:
        """From now on `/readyz` fails, whatever is new is refused, and streams that only watch are ended."""
        self._event.set()

    def refuse_when_begun(self) -> None:
        """Raises `ApiError` 503 when nothing new may be begun."""
        if self.begun:
            raise ending()

    async def wait(self) -> None:
        """Until it begins."""
        await self._event.wait()
