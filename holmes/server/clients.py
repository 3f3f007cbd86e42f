"""Who counts as one client: for limits, and for the lock-out after wrong keys. Used by the routes that count.

Behind a proxy every connection comes from the proxy. `X-Forwarded-For` says for whom, and anybody can write anything
into it, so only what a trusted proxy added counts: its right-most address that is no trusted proxy itself.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from fastapi import Request

from holmes.server.security import SESSION_COOKIE, keys_of

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
