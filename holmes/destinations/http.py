"""What the destinations that speak HTTP share. Errors name the host only: a path or a query may hold a secret."""

from __future__ import annotations

import httpx


async def read_bounded(response: httpx.Response, limit_bytes: int) -> bytes:
    """The body of a streamed response, at most `limit_bytes` of it."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= limit_bytes:
            break
    return bytes(body[:limit_bytes])


def failed_connection(error: Exception, url: httpx.URL) -> str:
    """One clause about a request that got no answer."""
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return f"{place(url)} did not answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"{place(url)} cannot be reached: {_cause(error)}"
    return f"the connection to {place(url)} failed: {_cause(error)}"


def place(url: httpx.URL) -> str:
    """Scheme, host and port of an address, for messages."""
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}"


def _cause(error: Exception) -> str:
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.LocalProtocolError):
        return "the request is not valid"  # what is not valid may be a secret
    return str(error).strip() or type(error).__name__
