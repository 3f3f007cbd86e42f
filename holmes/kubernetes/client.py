"""Reads objects, lists and logs of the cluster. No method of the client changes anything.

The client limits concurrency, time, the size of a response and the length of a list.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Self

from holmes.kubernetes.credentials import ClusterLogin
from holmes.kubernetes.errors import Forbidden, Gone, Throttled
from holmes.kubernetes.fields import text
from holmes.kubernetes.list_page import ListPage, PageGuard
from holmes.kubernetes.scope import refuse_outside, scope_of
from holmes.kubernetes.sender import ClientLimits, RequestSender
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject

RECORDED_NAMESPACES = "Holmes-Recorded-Namespaces"
"""Response header that lists the namespaces of a recording. It is omitted if all namespaces were recorded."""

_PARSE_IN_THREAD_BYTES = 256 * 1024
_PROBE_TIMEOUT_SECONDS = 10.0
_FIRST_ATTEMPT: Final = 0.3
"""The part of the time after which a probe opens a second connection: a busy machine can lose the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """The result of `probe()`. `version` has the form `v1.34.1`.

    It is empty if the credentials do not allow reading the version.
    """

    server: str
    context: str
    namespace: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectList:
    """The objects that were read from a list. `complete` is false if the list has more objects.

    `remaining` is the number of further objects, or None if the server did not report it.
    """

    items: tuple[JsonObject, ...]
    complete: bool
    remaining: int | None = None


class ClusterClient:
    """Read-only access to one cluster. Use it as an async context manager, or call `close()`."""

    def __init__(self, login: ClusterLogin, limits: ClientLimits | None = None) -> None:
        self._login = login
        self._limits = limits or ClientLimits()
        self._sender = RequestSender(login.access, login.credentials, login.environment, self._limits)

    @classmethod
    async def connect(cls, environment: Environment, *, limits: ClientLimits | None = None) -> ClusterClient:
        """Create a client for the context that `environment` selects, without sending a request.

        Reads KUBECONFIG, HOME, HOLMES_KUBE_CONTEXT, HOLMES_KUBE_NAMESPACE and KUBERNETES_SERVICE_HOST/PORT from it.
        Raises `ClusterUnreachable` if the configuration is missing, and `ConfigError` if it is not valid.
        """
        return cls(await ClusterLogin.load(environment), limits)

    @property
    def context(self) -> str:
        return self._login.access.context

    @property
    def namespace(self) -> str:
        """The default namespace."""
        return self._login.access.namespace

    @property
    def scope(self) -> tuple[str, ...]:
        """The namespaces that Holmes may read. Empty means all namespaces."""
        return scope_of(self._login.environment)

    @property
    def server(self) -> str:
        return self._login.access.cluster.server

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._sender.close()

    @property
    def server_seconds(self) -> float | None:
        """The server time of the last response in seconds since the epoch, or None before the first response.

        The server of a recording sends the time at which it was recorded.
        """
        return _seconds_of(self._sender.last_headers.get("Date", ""))

    @property
    def rejections(self) -> int:
        """The number of requests that the server rejected because of too much load. They were repeated."""
        return self._sender.rejections

    @property
    def recorded_namespaces(self) -> tuple[str, ...]:
        """The namespaces in a recording, from the response headers.

        Empty if all namespaces were recorded, or if the source is a cluster.
        """
        names = self._sender.last_headers.get(RECORDED_NAMESPACES, "")
        return tuple(name for name in names.split(",") if name)

    async def get(self, path: str, params: Mapping[str, str] | None = None, *, accept: str = "") -> JsonObject:
        """Get one object, or one page of a list. `accept` is the media type to request, by default JSON.

        Raises `NotFound`, `Forbidden`, `ApiError` or `ClusterUnreachable`.
        """
        refuse_outside(path, self.scope)
        body = await self._sender.read(path, params or {}, accept)
        document = await asyncio.to_thread(_parsed, path, body) if _is_large(body) else _parsed(path, body)
        if not isinstance(document, dict):
            raise ToolError(f"GET {path}: the API server returned JSON that is not an object")
        return document

    async def list(self, path: str, params: Mapping[str, str] | None = None, *, limit: int = 5_000) -> ObjectList:
        """Read up to `limit` objects in pages.

        If the list expires between two pages, the client reads it again once. Raises the same errors as `get()`, and
        `ToolError` if the response is not a list of these objects or the list does not end.
        """
        try:
            return await self._pages(path, params or {}, limit)
        except Gone:
            return await self._pages(path, params or {}, limit)

    def stream_text(
        self, path: str, params: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Stream the body of a response: `async with client.stream_text(path) as pieces`.

        Opening the stream raises the same errors as `get()`. Reading raises `ReadCutOff` if the connection breaks.
        """
        refuse_outside(path, self.scope)
        return self._sender.stream(path, params or {})

    async def probe(self, *, timeout_seconds: float = _PROBE_TIMEOUT_SECONDS) -> ClusterInfo:
        """Check within `timeout_seconds` that the API server responds and accepts the credentials.

        A server that rejects the request because of too much load, or that accepts the connection but does not respond
        in time, may still respond later, so it counts as reachable. An exec plugin has a separate timeout, which is not
        included. Raises `ClusterUnreachable` with a one-line message for the user.
        """
        version = ""
        await self._sender.prepare()  # loading code and certificates says nothing about the server
        try:
            version = await self._version(timeout_seconds)
        except (Forbidden, Throttled):
            pass  # the server responded, which is enough
        except ToolError as error:
            why = f"the server does not respond like a Kubernetes API server ({error})"
            raise self._login.access.unreachable(
                why, "check the address and any proxy in front of the server"
            ) from error
        except TimeoutError as error:
            if not self._sender.connected:
                why = f"no response within {timeout_seconds:g} s"
                raise self._login.access.unreachable(why, "check the network, the VPN and the address") from error
        return ClusterInfo(server=self.server, context=self.context, namespace=self.namespace, version=version)

    async def _version(self, timeout_seconds: float) -> str:
        """Return the version of the server. A first connection that gets no response is given up early."""
        first_seconds = timeout_seconds * _FIRST_ATTEMPT
        try:
            async with asyncio.timeout(first_seconds):
                return _git_version(await self.get("/version"))
        except TimeoutError:
            if self._sender.connected:
                raise
        async with asyncio.timeout(timeout_seconds - first_seconds):
            return _git_version(await self.get("/version"))

    async def _pages(self, path: str, params: Mapping[str, str], limit: int) -> ObjectList:
        items: list[JsonObject] = []
        guard, position = PageGuard(path), dict[str, str]()
        while True:
            page_size = min(self._limits.page_size, limit - len(items))
            page = ListPage.of(path, await self.get(path, {**params, "limit": str(page_size), **position}))
            items.extend(page.items)
            fault = page.fault or ("" if len(items) >= limit else guard.fault_after(page, len(items)))
            if fault:
                raise ToolError(f"{fault}; check the address of the server and any proxy in front of it")
            if not page.token or len(items) >= limit:
                return ObjectList(items=tuple(items[:limit]), complete=not page.token, remaining=page.remaining)
            position = {"continue": page.token}


def _seconds_of(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except ValueError:
        return None


def _git_version(answer: JsonObject) -> str:
    version = text(answer, "gitVersion")
    if not version:
        raise ToolError("GET /version: the response has no gitVersion")
    return version


def _is_large(body: bytes) -> bool:
    return len(body) > _PARSE_IN_THREAD_BYTES


def _parsed(path: str, body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"GET {path}: the response is not JSON; is {path!r} behind a proxy or a login page?") from error
