"""Reads alerts from Alertmanager, and matches their labels.

Returns the unparsed response of the API, within limits for size and time. If Alertmanager cannot be read, raises
`SourceUnreachable` with a one-line message that contains the next step.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

import regex

from holmes.toolsets.patterns import LONGEST_OF_USERS, bounded_pattern
from holmes.values.errors import ConfigError, HolmesError, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import httpx

Operator: TypeAlias = Literal["=", "!=", "=~", "!~"]
_MATCHER = re.compile(r"\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)
_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMatcher:
    """A condition on one label. A missing label has an empty value. A regular expression must match the whole value."""

    label: str
    operator: Operator
    value: str

    def __str__(self) -> str:
        """Return the condition in the syntax of the Alertmanager API."""
        return f"{self.label}{self.operator}{json.dumps(self.value, ensure_ascii=False)}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.label, "")
        if self.operator in {"=", "!="}:
            return (value == self.value) is (self.operator == "=")
        found = regex.fullmatch(self.value, value, timeout=_SECONDS) is not None
        return found is (self.operator == "=~")


def matches_all(matchers: Iterable[LabelMatcher], labels: Mapping[str, str]) -> bool:
    """Return whether the labels meet all conditions. Raises `ConfigError` if a regular expression takes too long."""
    try:
        return all(matcher.matches(labels) for matcher in matchers)
    except TimeoutError:
        raise ConfigError(
            "a regular expression in --alertmanager-label takes too long; write a simpler expression"
        ) from None


def parse_matcher(text: str) -> LabelMatcher:
    """Parse a matcher such as `severity=critical` or `namespace=~"shop|legacy"`. Raises `ConfigError`."""
    match = _MATCHER.fullmatch(text)
    if match is None:
        message = (
            f'{text!r} is not a valid label matcher; expected for example severity=critical or namespace=~"shop|legacy"'
        )
        raise ConfigError(message)
    operator: Operator = match[2]  # type: ignore[assignment]  # the expression allows nothing else
    value = _unquoted(match[3], text)
    if operator in {"=~", "!~"}:
        try:
            bounded_pattern(value, name=match[1], longest=LONGEST_OF_USERS)
        except ToolError as error:
            raise ConfigError(f"--alertmanager-label {text!r}: {error}") from None
    return LabelMatcher(label=match[1], operator=operator, value=value)


def _unquoted(value: str, text: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        unquoted = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        unquoted = None
    if not isinstance(unquoted, str):
        raise ConfigError(f"{text!r}: missing closing quotation mark")
    return unquoted


MAX_BYTES: Final = 50_000_000
_CONNECT_SECONDS: Final = 10.0
_WHOLE_SECONDS: Final = 60.0
_PATH: Final = "/api/v2/alerts"


class SourceUnreachable(HolmesError):
    """Alertmanager does not respond, or its response is invalid."""

    exit_code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerAccess:
    """Reads alerts from the Alertmanager at `url`, for example `http://host:9093`, including its path prefix."""

    url: str
    username: str | None = None
    password: str | None = None


async def fetch_alerts(access: AlertmanagerAccess, matchers: Sequence[LabelMatcher] = ()) -> bytes:
    """Read the firing alerts that match and are not silenced or inhibited.

    Returns the JSON list of `/api/v2/alerts`. Raises `SourceUnreachable`, and `ConfigError` for an invalid URL.
    """
    import httpx

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
            f"Alertmanager at {address} does not respond in time; check --alertmanager-url"
        ) from None
    except (httpx.TransportError, httpx.DecodingError) as error:
        reason = str(error) or type(error).__name__
        raise SourceUnreachable(
            f"Alertmanager at {address} cannot be reached: {reason}; check --alertmanager-url"
        ) from error


async def _content(response: httpx.Response, address: str) -> bytes:
    if response.status_code in {401, 403}:
        raise SourceUnreachable(
            f"Alertmanager at {address} rejected the request ({response.status_code}); check "
            "--alertmanager-username and --alertmanager-password"
        )
    if not response.is_success:
        raise SourceUnreachable(
            f"Alertmanager at {address} returned {response.status_code} for {_PATH}; "
            "Alertmanager 0.16 or later is required"
        )
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MAX_BYTES:
            raise SourceUnreachable(
                f"Alertmanager at {address} sent more than {MAX_BYTES // 1_000_000} MB; request fewer alerts with "
                "--alertmanager-label"
            )
    return bytes(content)


def _address(url: str) -> tuple[str, tuple[str, str]]:
    """Split a URL into the URL without its user information, and the user information.

    Messages must not show the password.
    """
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        host, parts, port = None, urlsplit(""), ""
    if not host or parts.scheme not in {"http", "https"}:
        raise ConfigError(
            "alertmanager_url is not a valid URL; expected for example http://alertmanager.monitoring:9093"
        )
    shown = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/").removesuffix(_PATH)
    return urlunsplit((parts.scheme, f"{shown}{port}", path, "", "")), (
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )
