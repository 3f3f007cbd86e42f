"""Makes clients wait that guess keys: the count, and an ASGI layer for keys in headers.

A client that guessed too often is refused with any key: it learns nothing. Only where the right key came from before,
it still counts: behind one address there may be many, and nobody must silence the alerts of the others.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from starlette.requests import Request

from holmes.server.bodies import Arriving
from holmes.server.clients import client_of
from holmes.server.errors import ApiError
from holmes.server.security import keys_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from holmes.server.security import Keys

_GUESSES: Final = 10
_SECONDS_PER_GUESS: Final = 6.0
_KNOWN_CLIENTS: Final = 10_000
_GOOD_SECONDS: Final = 86_400.0
"""Longer than Alertmanager waits before it repeats what still fires."""


class Guesses:
    """Counts wrong keys of each client: ten at once, then one every six seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._paid_until: OrderedDict[str, float] = OrderedDict()

    def wait_seconds(self, client: str) -> float:
        """How long this client has to wait for its next guess; 0 when it need not."""
        debt = self._paid_until.get(client, 0.0) - self._clock()
        return max(0.0, debt - (_GUESSES - 1) * _SECONDS_PER_GUESS)

    def wrong(self, client: str) -> None:
        """Note a wrong key."""
        now = max(self._paid_until.get(client, 0.0), self._clock())
        _remember(self._paid_until, client, now + _SECONDS_PER_GUESS)


class GuessLimiter:
    """ASGI: counts wrong keys in headers, and answers 429 to clients that have to wait."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys
        self._guesses = Guesses()
        self._good_until: OrderedDict[str, float] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        refusal = self._refusal(Request(scope)) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await Arriving(receive).refuse(refusal, scope, send)

    def _refusal(self, request: Request) -> ApiError | None:
        candidates = keys_in(request.headers)
        if not candidates or not self._keys.configured:
            return None
        client = client_of(request)
        wait = self._guesses.wait_seconds(client)
        is_right = not self._keys.guesses(candidates)
        if wait > 0 and not (is_right and self._good_until.get(client, 0.0) > time.monotonic()):
            headers = {"Retry-After": str(int(wait) + 1), "Connection": "close"}
            return ApiError(429, "too many wrong keys came from this address; try again later", headers=headers)
        if is_right:
            _remember(self._good_until, client, time.monotonic() + _GOOD_SECONDS)
        else:
            self._guesses.wrong(client)
        return None


def _remember(times: OrderedDict[str, float], client: str, until: float) -> None:
    times[client] = until
    times.move_to_end(client)
    while len(times) > _KNOWN_CLIENTS:
        times.popitem(last=False)
