"""Reads container logs within limits, keeps the newest lines, and counts all lines that were read.

If a log cannot be read, its section explains why, and the other logs are still read.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.kubernetes.errors import ApiError, Forbidden, ReadCutOff
from holmes.kubernetes.kinds import api_path
from holmes.toolsets.kubernetes_logs.request import TailLines, line_filter
from holmes.toolsets.kubernetes_logs.window import LineWindow
from holmes.values.errors import ClusterUnreachable, ToolError
from holmes.values.expressions import expression
from holmes.values.steps import concurrently

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from holmes.kubernetes.client import ClusterClient
    from holmes.kubernetes.workloads import ContainerView, PodView
    from holmes.toolsets.kubernetes_logs.request import LineFilter, LogRequest
    from holmes.values.errors import HolmesError

End: TypeAlias = Literal["complete", "past_end", "bound", "deadline", "cut"]

_FEED_BYTES = 256 * 1024
_FEW_LINES = 20
# If the container was already removed, the kubelet responds with status 200 and only this line, without a timestamp.
_LOG_IS_GONE = expression(rb"unable to retrieve container logs for [a-z-]+://[0-9a-f]+\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Limits of one tool call. `newest_lines` is the maximum number of lines to read if `until` is not set.

    `kept_bytes` limits the total size of the lines that are kept for all containers. `container_bytes` is the maximum
    number of bytes to read from each container.
    """

    timeout_seconds: float = 60.0
    container_bytes: int = 20 * 1024 * 1024
    newest_lines: int = 200_000
    kept_bytes: int = 8 * 1024 * 1024
    tail: TailLines = field(default_factory=TailLines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The log of one container instance. `recent` contains the last lines without filters.

    `unread` explains why the log is missing, and each of the `notes` describes a missing part. `exact` is false if the
    log has more lines than were read. The counts are then lower bounds. `failure` is the error that caused `unread`, if
    any. `begins` is the time of the first line that was read. `source` is the source of logs that had the lines. It is
    empty if a node had them.
    """

    pod: PodView
    container: ContainerView
    previous: bool = False
    lines: tuple[bytes, ...] = ()
    recent: tuple[bytes, ...] = ()
    matching_lines: int = 0
    total_lines: int = 0
    exact: bool = True
    notes: tuple[str, ...] = ()
    unread: str = ""
    failure: HolmesError | None = None
    begins: datetime | None = None
    source: str = ""


class LogReader:
    """Reads the logs for one tool call, within one deadline and one memory limit."""

    def __init__(self, client: ClusterClient, request: LogRequest, limits: ReadLimits) -> None:
        self._client = client
        self._request = request
        self._limits = limits
        self._filter: LineFilter = line_filter(request)
        self._deadline = asyncio.get_running_loop().time() + limits.timeout_seconds

    async def read(self, targets: tuple[tuple[PodView, ContainerView], ...]) -> tuple[Section, ...]:
        """Return the sections of all `targets`, in order. Raises `ToolError` if a pattern is too slow."""
        kept_bytes = max(65_536, self._limits.kept_bytes // max(1, len(targets)))
        works = [self._sections(pod, container, kept_bytes) for pod, container in targets]
        sections = await concurrently(works)
        return tuple(section for group in sections for section in group)

    async def _sections(self, pod: PodView, container: ContainerView, kept_bytes: int) -> tuple[Section, ...]:
        """Read the log of the requested instance.

        If none is requested, read the current log and, if it is short, also the log of the previous instance.
        """
        blank = Section(pod=pod, container=container, previous=self._request.previous is True)
        reason = _why_unreadable(pod, container, previous=blank.previous)
        if reason:
            return (replace(blank, unread=reason),)
        first = await self._section(blank, kept_bytes)
        if self._request.previous is not None or not _previous_tells_more(first):
            return (first,)
        return await self._section(replace(blank, previous=True), kept_bytes), first

    async def _section(self, blank: Section, kept_bytes: int) -> Section:
        try:
            newest = self._limits.newest_lines if self._request.until_time is None else None
            return await self._read_newest(blank, kept_bytes, newest)
        except ApiError as error:
            return replace(blank, unread=error.detail or str(error), failure=error)
        except ClusterUnreachable as error:
            return replace(blank, unread=str(error), failure=error)

    async def _read_newest(self, blank: Section, kept_bytes: int, newest: int | None, halvings: int = 3) -> Section:
        """Read the `newest` lines. If they exceed the byte limit, retry with half as many lines as were received."""
        window = LineWindow(tail_lines=self._request.tail_lines, kept_limit_bytes=kept_bytes, line_filter=self._filter)
        end = await self._fill(window, self._log_path(blank), self._params(blank, newest))
        if end == "bound" and newest is not None and halvings > 0:
            return await self._read_newest(blank, kept_bytes, max(1, window.total_lines // 2), halvings - 1)
        if end in {"deadline", "cut"} and not window.total_lines:
            error = ToolError("".join(self._notes(end)))
            return replace(blank, unread=str(error), failure=error)
        if window.total_lines == 1 and window.kept and _LOG_IS_GONE.match(window.kept[0]):
            return replace(blank, unread="the node has already deleted this log")
        return replace(
            blank,
            lines=window.kept,
            recent=window.recent,
            matching_lines=window.matching_lines,
            total_lines=window.total_lines,
            exact=end in {"complete", "past_end"} and (newest is None or window.stored_lines < newest),
            notes=self._notes(end),
            begins=window.begins,
        )

    @staticmethod
    def _log_path(section: Section) -> str:
        return api_path("v1", "pods", namespace=section.pod.namespace, name=section.pod.name, subresource="log")

    def _notes(self, end: End) -> tuple[str, ...]:
        match end:
            case "complete" | "past_end":
                return ()
            case "bound":
                size = f"{self._limits.container_bytes / 1024 / 1024:.3g} MB"
                return (f"reading stopped after {size}; newer lines are missing: narrow since and until",)
            case "deadline":
                return (f"reading stopped after {self._limits.timeout_seconds:g} s; some lines are missing",)
            case "cut":
                return ("the connection was interrupted; newer lines may be missing",)

    async def _fill(self, window: LineWindow, path: str, params: dict[str, str]) -> End:
        """Read the log into `window` until it ends or a limit is reached, and return why reading ended.

        The deadline can interrupt the wait for data, but not the counting, which runs in a thread.
        """
        read_bytes, end = 0, None
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(self._deadline):
                    pieces = await stack.enter_async_context(self._client.stream_text(path, params))
            except TimeoutError:
                return "deadline"
            while end is None:
                block, end = await self._block(pieces)
                read_bytes += len(block)
                await asyncio.to_thread(window.feed, block)
                if end is None and window.past_end:
                    end = "past_end"
                elif end is None and read_bytes >= self._limits.container_bytes:
                    end = "bound"
        await asyncio.to_thread(window.finish)
        return end

    async def _block(self, pieces: AsyncIterator[bytes]) -> tuple[bytes, End | None]:
        """Return the next block. The second value states why reading ended, or is None if the log continues.

        The caller counts the lines of each block in a thread.
        """
        gathered = bytearray()
        try:
            async with asyncio.timeout_at(self._deadline):
                async for piece in pieces:
                    gathered += piece
                    if len(gathered) >= _FEED_BYTES:
                        return bytes(gathered), None
        except TimeoutError:
            return bytes(gathered), "deadline"
        except ReadCutOff:
            return bytes(gathered), "cut"
        return bytes(gathered), "complete"

    def _params(self, section: Section, newest: int | None) -> dict[str, str]:
        params = {"container": section.container.name, "timestamps": "true"}
        if section.previous:
            params["previous"] = "true"
        if newest is not None:
            params["tailLines"] = str(newest)
        if self._request.since_seconds is not None:
            params["sinceSeconds"] = str(self._request.since_seconds)
        if self._request.since_time is not None:
            params["sinceTime"] = self._request.since_time.isoformat(timespec="seconds")
        return params


def _why_unreadable(pod: PodView, container: ContainerView, *, previous: bool) -> str:
    """Return why this instance has no log, according to the pod's status, or "" if it should have a log."""
    if previous:
        return "" if container.last is not None else f"no previous instance ({container.restarts} restarts)"
    state = container.state
    if state.status == "waiting" and container.last is None:
        return f"waiting: {_reason(state.reason or 'not started', state.message)}"
    if state.status == "unknown" and container.last is None:
        return pod.problem or f"not started yet (pod is {pod.phase or 'unknown'})"
    return ""


def _reason(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason


def _previous_tells_more(section: Section) -> bool:
    """Return whether the current instance has so few log lines that the previous instance should be read too.

    A waiting container has no current instance, so its log already belongs to the last instance.
    """
    container = section.container
    return container.last is not None and container.state.status != "waiting" and section.total_lines < _FEW_LINES


def refusal_of_all(sections: tuple[Section, ...]) -> HolmesError | None:
    """Return the error to report if every section failed, else None."""
    failures = [section.failure for section in sections]
    if not failures or any(failure is None for failure in failures):
        return None
    return next((failure for failure in failures if isinstance(failure, Forbidden)), failures[0])
