"""Reads container logs for the rules from sources of logs, if the nodes do not have them."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.fields import moment, text
from holmes.observability.access import open_source
from holmes.observability.logs.products import source_of
from holmes.observability.logs.source import LogSubject, Span, WantedLines
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_state import ClusterState, LogKey
    from holmes.kubernetes.log_reader import LogLimits
    from holmes.observability.logs.source import LogAccess, LogSource, StoredLog

_log = logging.getLogger(__name__)
_DAYS: Final = 7
_LATE_SECONDS: Final = 2.0
"""Collectors write the last lines of a container with times shortly after its end."""


class StoredContainerLogs:
    """Reads from the first source that has the log. A source that fails is left out, and the log stays unread."""

    def __init__(self, sources: Sequence[LogAccess]) -> None:
        self._sources = sources

    async def __call__(self, state: ClusterState, missing: Sequence[LogKey], limits: LogLimits) -> dict[LogKey, str]:
        found: dict[LogKey, str] = {}
        for access in self._sources:
            wanted = [key for key in missing if key not in found]
            try:
                async with asyncio.timeout(limits.seconds), open_source(access) as client:
                    found |= await _read(source_of(client), state, wanted, limits)
            except (TimeoutError, ToolError) as error:
                _log.warning("log source %s not read: %s", access.name, error)
        return found


async def _read(
    source: LogSource, state: ClusterState, wanted: Sequence[LogKey], limits: LogLimits
) -> dict[LogKey, str]:
    spaces: dict[str, list[LogKey]] = defaultdict(list)
    for key in wanted:
        spaces[key.pod.namespace].append(key)
    whole = Span(start=state.now - _DAYS * 86_400, end=state.now + _LATE_SECONDS)
    pairs: list[tuple[LogKey, StoredLog]] = []
    for namespace, keys in spaces.items():
        pods = tuple(sorted({key.pod.name for key in keys}))
        logs = (await source.logs(LogSubject(namespace=namespace, pods=pods), whole)).logs
        pairs += [(key, log) for key in keys if (log := _log_of(state, key, logs)) is not None]
    # One after the other, so that only one response is in memory.
    texts: dict[LogKey, str] = {}
    for key, log in pairs:
        span = _span(state, key, whole)
        content = await _text(source, log, span, limits) if span is not None else ""
        if content:
            texts[key] = content
    return texts


def _log_of(state: ClusterState, key: LogKey, logs: Sequence[StoredLog]) -> StoredLog | None:
    """Return the log of the container. One without the name of a container is that of the only container of its pod."""
    pod = state.find(key.pod)
    names = ("", key.container) if pod is not None and len(containers_of(pod)) == 1 else (key.container,)
    return next((log for log in logs if log.pod == key.pod.name and log.container in names), None)


def _span(state: ClusterState, key: LogKey, whole: Span) -> Span | None:
    """Return the time in which the instance ran by the status of its pod, or None if that is not known.

    Lines of another instance would look like its last words.
    """
    pod = state.find(key.pod)
    container = next((each for each in containers_of(pod) if each.name == key.container), None) if pod else None
    if container is None or pod is None:
        return None
    if not key.previous:
        began = moment(text(container.status, "state", "running", "startedAt"))
        # A pod of a StatefulSet has the name of its predecessor.
        return Span(start=max(whole.start, began or pod.created), end=whole.end)
    started = moment(text(container.last_terminated, "startedAt"))
    finished = moment(text(container.last_terminated, "finishedAt"))
    if not finished:
        return None
    start, end = max(whole.start, started or 0.0), min(whole.end, finished + _LATE_SECONDS)
    return Span(start=start, end=end) if start < end else None


async def _text(source: LogSource, log: StoredLog, span: Span, limits: LogLimits) -> str:
    """Return the newest lines with their times, as a node writes them."""
    read = await source.lines(log, WantedLines(span=span, limit=limits.lines))
    kept: list[str] = []
    size = 0
    for line in reversed(read.lines):
        parts = "".join(f"{line.time} {part}\n" for part in line.text.split("\n"))
        size += len(parts)
        if size > limits.bytes:
            break
        kept.append(parts)
    return "".join(reversed(kept))
