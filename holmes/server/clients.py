"""Who counts as one client, and how often one may guess keys: the count, and an ASGI layer for keys in headers.

Behind a proxy every connection comes from the proxy. `X-Forwarded-For` says for whom, and anybody can write anything
into it, so only what a trusted proxy added counts: its right-most address that is no trusted proxy itself.

A client that guessed too often is refused with any key: it learns nothing. Only where the right key came from before,
it still counts: behind one address there may be many, and nobody must silence the alerts of the others.
"""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from holmes.server.bodies import Arriving
from holmes.server.errors import ApiError
from holmes.server.security import SESSION_COOKIE, Keys, keys_in, keys_of

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class TrustedProxies:
    """The proxies whose `X-Forwarded-For` is believed; none by default. Takes addresses and CIDR ranges."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(ipaddress.ip_network(each, strict=False) for each in networks)

    def address(self, peer: str, forwarded_for: Sequence[str]) -> str:
        """Where a request comes from, whose connection comes from `peer`, by the values of its headers."""
        found = _address(peer)
        if found is None:
            return peer
        hops = [hop for value in forwarded_for for hop in value.split(",")]
        while hops and self._trusts(found):
            before = _address(hops.pop())
            if before is None:
                break  # a proxy that hides it, or nonsense of the client: nobody before it can be told
            found = before
        return str(found)

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def client_of(request: Request) -> str:
    """Who counts as one client: a session of the page, else an address."""
    session, keys = request.cookies.get(SESSION_COOKIE), keys_of(request)
    if session and keys.required and keys.valid_session(session):
        return f"session {session}"
    if request.client is None:
        return "unknown"
    proxies: TrustedProxies = request.app.state.proxies
    return proxies.address(request.client.host, request.headers.getlist("x-forwarded-for"))


def _address(text: str) -> _Address | None:
    """The address in `text`, which may have a port; None when it has none."""
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
