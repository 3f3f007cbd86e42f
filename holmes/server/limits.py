"""Identifies clients, and limits their wrong keys, running chats, unfinished investigations and costs.

Behind a proxy, every connection comes from the proxy. Clients can forge `X-Forwarded-For`, so the client address is the
right-most entry that is not a trusted proxy. Requests from an address that sent too many wrong keys are rejected, even
with the right key. However, the right key is still accepted from an address that sent it before, because many senders
may share one address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from fastapi import Request

from holmes.investigations.records.records import SECONDS_PER_DAY
from holmes.server.bodies import Arriving
from holmes.server.errors import ApiError, ending
from holmes.server.security import SESSION_COOKIE, Keys, keys_in, keys_of
from holmes.values.request_headers import RequestHeaders

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from holmes.app.serving import Service
    from holmes.investigations.records.values import InvestigationId

_RETRY_SECONDS = 10
_KNOWN_CLIENTS = 10_000


class ChatSlots:
    """Limits the running chats of each client and of all clients."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._running: Counter[str] = Counter()

    def take(self, client: str) -> Callable[[], None]:
        """Reserve a chat slot for `client`. Call the returned function when the chat ends. Raises `ApiError` 429."""
        limits = self._service.settings.server
        if self._running[client] >= limits.chats_per_client:
            raise _busy(f"too many running chats for this client (maximum: {limits.chats_per_client})")
        if self._running.total() >= limits.chats:
            raise _busy(f"too many running chats (maximum: {limits.chats})")
        self._running[client] += 1

        def release() -> None:
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]

        return release

    async def refuse_beyond_budget(self) -> None:
        """Raise `ApiError` 429 if chats and investigations have exhausted the budget of the current day (UTC)."""
        problem = await spent_budget(self._service)
        if problem is not None:
            until_midnight = SECONDS_PER_DAY - time.time() % SECONDS_PER_DAY
            headers = {"Retry-After": str(int(until_midnight) + 1)}
            raise ApiError(429, problem, code="budget_spent", headers=headers)


class InvestigationSlots:
    """Limits the unfinished investigations of each client on this replica, and of all clients in the database."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._begun: dict[str, set[InvestigationId]] = {}
        self._beginning: Counter[str] = Counter()

    @asynccontextmanager
    async def place(self, client: str) -> AsyncIterator[None]:
        """Reserve a slot for `client` while the block stores an investigation. Raises `ApiError` 429."""
        limits, records = self._service.settings.server, self._service.investigations
        most = limits.investigations_per_client
        if self._count(client) >= most:
            known = frozenset(self._begun.get(client, ()))
            finished = known - await records.unfinished(tuple(known))
            self._begun.get(client, set()).difference_update(finished)
        if self._count(client) >= most:
            raise _busy(f"too many unfinished investigations for this client (maximum: {most})")
        self._beginning[client] += 1  # before any `await`, so that concurrent requests cannot take the same slot
        try:
            if await records.count_unfinished() + self._beginning.total() > limits.queue_limit:
                raise _busy(f"too many unfinished investigations (maximum: {limits.queue_limit})")
            yield
        finally:
            self._beginning[client] -= 1
            if not self._beginning[client]:
                del self._beginning[client]

    def took(self, client: str, identity: InvestigationId) -> None:
        """Record that `client` started an investigation."""
        # Moves `client` to the end, so that the client whose latest start is oldest is removed first.
        self._begun[client] = self._begun.pop(client, set())
        self._begun[client].add(identity)
        if len(self._begun) > _KNOWN_CLIENTS:
            del self._begun[next(iter(self._begun))]

    def _count(self, client: str) -> int:
        return len(self._begun.get(client, ())) + self._beginning[client]


async def spent_budget(service: Service) -> str | None:
    """Return a message if the budget of the current day (UTC) is exhausted, else None. Raises `DatabaseUnavailable`."""
    limit = service.settings.server.max_cost_per_day
    if limit is None:
        return None
    spent = await service.investigations.spent_today()
    return f"today's budget is exhausted: ${spent:.2f} of ${limit:.2f}" if spent >= limit else None


def _busy(message: str) -> ApiError:
    return ApiError(429, f"{message}; try again later", headers={"Retry-After": str(_RETRY_SECONDS)})


class Draining:
    """The signal that the server is stopping."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def begun(self) -> bool:
        """Whether the server rejects new work."""
        return self._event.is_set()

    def begin(self) -> None:
        """Let `/readyz` fail, reject new work, and end the event streams of investigations."""
        self._event.set()

    def refuse_when_begun(self) -> None:
        """Raise `ApiError` 503 if the server is stopping."""
        if self.begun:
            raise ending()

    async def wait(self) -> None:
        """Wait until the server is stopping."""
        await self._event.wait()


async def cancel_investigation(service: Service, identity: InvestigationId) -> bool:
    """Cancel an unfinished investigation and count it in the metrics, because its worker cannot count it.

    Returns false if the investigation had already finished.
    """
    if not await service.investigations.cancel(identity):
        return False
    record = await service.investigations.get(identity)
    if record is not None:
        service.metrics.investigation_finished(outcome="cancelled", source=record.source, answered_by=None)
    return True


_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class TrustedProxies:
    """Finds client addresses behind trusted proxies. `networks` are the proxies' addresses and CIDR ranges."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(ipaddress.ip_network(each, strict=False) for each in networks)

    def address(self, peer: str, forwarded_for: Sequence[str]) -> str:
        """Return the client address. `forwarded_for` contains the values of `X-Forwarded-For`."""
        found = _address(peer)
        if found is None:
            return peer
        hops = [hop for value in forwarded_for for hop in value.split(",")]
        while hops and self._trusts(found):
            before = _address(hops.pop())
            if before is None:
                break  # obfuscated or invalid, so earlier hops are unknown
            found = before
        return str(found)

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request: the key that identifies the client for limits, and the headers of the request."""

    client: str
    headers: RequestHeaders = field(repr=False)


def caller_of(request: Request) -> Caller:
    return Caller(client_of(request), RequestHeaders(request.headers))


def client_of(request: Request) -> str:
    """Return the key that identifies a client for limits: its login session, or else its address."""
    session, keys = request.cookies.get(SESSION_COOKIE), keys_of(request)
    if session and keys.required and keys.valid_session(session):
        return f"session {session}"
    if request.client is None:
        return "unknown"
    proxies: TrustedProxies = request.app.state.proxies
    return proxies.address(request.client.host, request.headers.getlist("x-forwarded-for"))


def _address(text: str) -> _Address | None:
    """Parse an address, with or without a port. Returns None if it is invalid."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


_GUESSES: Final = 10
_SECONDS_PER_GUESS: Final = 6.0
_GOOD_SECONDS: Final = 86_400.0
"""Time in seconds during which an address that sent the right key can use it again, even after too many wrong keys.

This time is longer than Alertmanager's repeat interval.
"""


class Guesses:
    """Limits the wrong keys of each client: ten without a pause, then one every six seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._paid_until: OrderedDict[str, float] = OrderedDict()

    def wait_seconds(self, client: str) -> float:
        """Return the seconds until `client` may try another key, or 0 if it may try now."""
        debt = self._paid_until.get(client, 0.0) - self._clock()
        return max(0.0, debt - (_GUESSES - 1) * _SECONDS_PER_GUESS)

    def wrong(self, client: str) -> None:
        """Count a wrong key from `client`."""
        now = max(self._paid_until.get(client, 0.0), self._clock())
        _remember(self._paid_until, client, now + _SECONDS_PER_GUESS)


class KeyGuessMiddleware:
    """ASGI layer that counts wrong keys in headers, and responds with 429 to clients that must wait."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys
        self._guesses = Guesses()
        self._good_until: OrderedDict[str, float] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            return ApiError(429, "too many wrong keys from this address; try again later", headers=headers)
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
