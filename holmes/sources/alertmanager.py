"""Fetches the alerts that fire from an Alertmanager. Called by `holmes investigate alertmanager`.

Gives back the bytes of its API, bounded in size and time; what they mean is read elsewhere. Whatever goes wrong is
`SourceUnreachable` with one line that says what to do.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx

from holmes.values.errors import ConfigError, HolmesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.sources.label_matchers import LabelMatcher

MAX_BYTES: Final = 50_000_000
_CONNECT_SECONDS: Final = 10.0
_WHOLE_SECONDS: Final = 60.0
_PATH: Final = "/api/v2/alerts"


class SourceUnreachable(HolmesError):
    """The source of alerts does not answer, or not as it should."""

    exit_code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerAccess:
    """Where it is (`http://host:9093`, with the path it is served under) and who asks."""

    url: str
    username: str | None = None
    password: str | None = None


async def fetch_alerts(access: AlertmanagerAccess, matchers: Sequence[LabelMatcher] = ()) -> bytes:
    """The alerts that fire, match and are not kept quiet, as the JSON list of `/api/v2/alerts`.

    Raises `SourceUnreachable`, and `ConfigError` for an address that is none.
    """
    address, own_user = _address(access.url)
    username = access.username or own_user[0]
    auth = httpx.BasicAuth(username, access.password or own_user[1]) if username else None
    wanted = {"active": "true", "silenced": "false", "inhibited": "false"}
    query = {**wanted, "filter": [str(matcher) for matcher in matchers]}
    timeout = httpx.Timeout(_WHOLE_SECONDS, connect=_CONNECT_SECONDS)
    try:
        async with (
            asyncio.timeout(_WHOLE_SECONDS),
            httpx.AsyncClient(auth=auth, timeout=timeout, follow_redirects=False) as client,
            client.stream("GET", f"{address}{_PATH}", params=query) as response,
        ):
            return await _content(response, address)
    except (TimeoutError, httpx.TimeoutException):
        raise SourceUnreachable(
            f"Alertmanager at {address} does not answer in time; check --alertmanager-url"
        ) from None
    except (httpx.TransportError, httpx.DecodingError) as error:
        reason = str(error) or type(error).__name__
        raise SourceUnreachable(
            f"Alertmanager at {address} cannot be reached: {reason}; check --alertmanager-url"
        ) from error


async def _content(response: httpx.Response, address: str) -> bytes:
    if response.status_code in {401, 403}:
        raise SourceUnreachable(
            f"Alertmanager at {address} refuses with {response.status_code}; check --alertmanager-username and "
            "--alertmanager-password"
        )
    if response.status_code != httpx.codes.OK:
        raise SourceUnreachable(
            f"Alertmanager at {address} answered {response.status_code} to {_PATH}; is it an Alertmanager of version "
            "0.16 or later?"
        )
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MAX_BYTES:
            raise SourceUnreachable(
                f"Alertmanager at {address} sent more than {MAX_BYTES // 1_000_000} MB; ask for fewer alerts with "
                "--alertmanager-label"
            )
    return bytes(content)


def _address(url: str) -> tuple[str, tuple[str, str]]:
    """The address without the user that may stand in it, and that user; messages must not show the password."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        host, parts, port = None, urlsplit(""), ""
    if not host or parts.scheme not in {"http", "https"}:
        raise ConfigError("alertmanager_url is no address: write for example http://alertmanager.monitoring:9093")
    shown = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/").removesuffix(_PATH)
    return urlunsplit((parts.scheme, f"{shown}{port}", path, "", "")), (
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )
