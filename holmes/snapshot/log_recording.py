"""Reads the logs of containers for a recording, within limits, and removes recognised secrets from them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.kubernetes.errors import ApiError, Forbidden
from holmes.kubernetes.fields import child, children, integer, text
from holmes.kubernetes.kinds import api_path, checked_name
from holmes.snapshot.recorded_logs import LogKey
from holmes.snapshot.recording import Unread
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from holmes.kubernetes.client import ClusterClient
    from holmes.snapshot.scrubbing import Scrubber
    from holmes.values.json_types import JsonObject

_AT_ONCE = 8
_READ_FACTOR = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """Limits for each log, and for all logs together."""

    tail_lines: int = 1_000
    log_bytes: int = 512 * 1024
    total_bytes: int = 64 * 1024 * 1024


class LogReader:
    """Reads and scrubs logs. `unread` lists the logs that could not be read."""

    def __init__(self, client: ClusterClient, limits: LogLimits, scrubber: Scrubber) -> None:
        self._client = client
        self._limits = limits
        self._scrubber = scrubber
        self._left_bytes = limits.total_bytes
        self.unread: list[Unread] = []

    async def read_all(self, pods: Sequence[JsonObject]) -> AsyncIterator[tuple[LogKey, bytes]]:
        """Read the logs of `pods`, several at a time, until the total limit is reached."""
        wanted = [key for pod in sorted(pods, key=_most_restarts_first) for key in _logs_of(pod)]
        for start in range(0, len(wanted), _AT_ONCE):
            batch = wanted[start : start + _AT_ONCE]
            if self._left_bytes <= 0:
                limit = f"the limit of {self._limits.total_bytes:,} bytes was reached"
                reason = f"{limit}; {len(wanted) - start} logs were not read"
                self.unread.append(
                    Unread(resource="pods/log", namespace="", forbidden=False, reason=reason, partly=True)
                )
                return
            for key, content in zip(batch, await asyncio.gather(*map(self._read, batch)), strict=True):
                if content is not None:
                    self._left_bytes -= len(content)
                    yield key, content

    async def _read(self, key: LogKey) -> bytes | None:
        most_bytes = self._limits.log_bytes * _READ_FACTOR
        params = {
            "container": key.container,
            "timestamps": "true",
            "tailLines": str(self._limits.tail_lines),
            "limitBytes": str(most_bytes),
            **({"previous": "true"} if key.previous else {}),
        }
        kept = bytearray()
        read_bytes = 0
        try:
            # The names become part of paths and file names, so names that Kubernetes does not accept are rejected.
            path = api_path("v1", "pods", namespace=key.namespace, name=key.pod, subresource="log")
            checked_name(key.container, "container")
            async with self._client.stream_text(path, params) as pieces:
                async for piece in pieces:
                    kept += piece
                    read_bytes += len(piece)
                    if len(kept) > 2 * self._limits.log_bytes:
                        del kept[: -self._limits.log_bytes]
        except ToolError as error:
            self._note(key, error)
            return None
        content = bytes(kept)
        # Drop incomplete lines, because they may contain a part of a token that the scrubber does not recognise.
        if read_bytes >= most_bytes:
            content = content[: content.rfind(b"\n") + 1]
        if read_bytes > self._limits.log_bytes:
            content = content[-self._limits.log_bytes :].partition(b"\n")[2]
        return await asyncio.to_thread(self._scrubber.scrubbed_log, content)

    def _note(self, key: LogKey, error: ToolError) -> None:
        which = f"{key.pod}/{key.container}{' (previous)' if key.previous else ''}"
        reason = error.detail if isinstance(error, ApiError) and error.detail else str(error)
        forbidden = isinstance(error, Forbidden)
        note = Unread(
            resource="pods/log", namespace=key.namespace, forbidden=forbidden, reason=f"{which}: {reason}", partly=True
        )
        self.unread.append(note)


def _most_restarts_first(pod: JsonObject) -> tuple[int, str, str]:
    restarts = sum(integer(status, "restartCount") for status in _statuses(pod))
    return -restarts, text(pod, "metadata", "namespace"), text(pod, "metadata", "name")


def _statuses(pod: JsonObject) -> Iterator[JsonObject]:
    for key in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        yield from children(pod, "status", key)


def _logs_of(pod: JsonObject) -> Iterator[LogKey]:
    """Return the logs that the kubelet may have: those of containers that are running, have ended or have restarted."""
    namespace, name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
    for status in _statuses(pod):
        container, state = text(status, "name"), child(status, "state")
        ended_before = "terminated" in child(status, "lastState")
        if "running" in state or "terminated" in state or ended_before:
            yield LogKey(namespace=namespace, pod=name, container=container)
        if ended_before:
            yield LogKey(namespace=namespace, pod=name, container=container, previous=True)
