"""How many chats may run at once, and whether there is money for one. Used by `chat_runs`."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from holmes.investigations.records import SECONDS_PER_DAY
from holmes.server.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.app.serving import Service

_RETRY_SECONDS = 10


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
        limit = self._service.settings.server.max_cost_per_day
        if limit is None:
            return
        spent = await self._service.investigations.spent_today()
        if spent >= limit:
            until_midnight = SECONDS_PER_DAY - time.time() % SECONDS_PER_DAY
            raise ApiError(
                429,
                f"the budget of today is spent: ${spent:.2f} of ${limit:.2f}",
                code="budget_spent",
                headers={"Retry-After": str(int(until_midnight) + 1)},
            )


def _busy(message: str) -> ApiError:
    return ApiError(429, f"{message}; try again later", headers={"Retry-After": str(_RETRY_SECONDS)})
