"""Reads from sources of logs what the nodes no longer have: logs of deleted pods, and lines before the log of a node.

A source that cannot be read costs one note. The other logs are still shown.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.errors import NotFound
from holmes.kubernetes.fields import moment
from holmes.kubernetes.kinds import api_path
from holmes.kubernetes.workloads import ContainerState, ContainerView, FoundPods, PodView
from holmes.observability.access import open_source
from holmes.observability.logs.products import source_of
from holmes.observability.logs.source import LogSubject, Span, WantedLines, portable_pattern
from holmes.toolsets.kubernetes_logs.reader import Section
from holmes.toolsets.kubernetes_logs.request import line_filter
from holmes.toolsets.kubernetes_logs.window import LineWindow
from holmes.values.errors import HolmesError, ToolError
from holmes.values.pod_names import is_pod_name_of, owners_of_pod
from holmes.values.steps import concurrently

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from holmes.kubernetes.client import ClusterClient
    from holmes.observability.logs.source import LogAccess, LogSource, StoredLog
    from holmes.toolsets.kubernetes_logs.reader import ReadLimits
    from holmes.toolsets.kubernetes_logs.request import LogRequest

_GONE_DAYS: Final = 7
"""How far back logs of deleted pods are searched if the request has no beginning."""
_ANALYSED_LINES: Final = 2_000
_SEARCHED_LINES: Final = 20_000
_AT_ONCE: Final = 2
_SOON: Final = timedelta(seconds=1)
_LOOK_UP_SECONDS: Final = 3.0
"""The time in which the API server must tell if a pod exists."""
_UNVERIFIED: Final = "Unknown"
"""The phase of a pod of which it is not known that it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """A log to read from a source. `blank` has the pod and container. `whole` is true for the range of the request."""

    blank: Section
    log: StoredLog
    span: Span
    tail_lines: int
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The pods and sections with those from sources, oldest first for each container.

    `added` are the pods that only the source `source` named.
    """

    found: FoundPods
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    source: str = ""


class StoredLogs:
    """Completes the logs of one tool call from the first source that has lines of its pods.

    `client` is asked if a pod that only a source names exists. It must be open as long as this is used.
    """

    def __init__(
        self,
        sources: Sequence[LogAccess],
        client: ClusterClient,
        request: LogRequest,
        limits: ReadLimits,
        now: datetime,
    ) -> None:
        self._sources = sources
        self._client = client
        self._request = request
        self._limits = limits
        begin = request.since_time or (now - timedelta(seconds=request.since_seconds or _GONE_DAYS * 86_400))
        self._span = Span(start=begin.timestamp(), end=((request.until_time or now) + _SOON).timestamp())
        self._filter = line_filter(request)

    def is_needed(self, sections: Sequence[Section]) -> bool:
        """Return whether a source can have lines that the nodes do not have."""
        return bool(self._sources) and (bool(self._begins_earlier) or not sections or any(map(_is_lost, sections)))

    @property
    def _begins_earlier(self) -> bool:
        return self._request.since_seconds is not None or self._request.since_time is not None

    async def gone(self, namespace: str, error: Exception) -> Completed:
        """Return the logs of pods that no longer exist. Raises `error` if no source has any."""
        name = self._request.name.rpartition("/")[2]
        missing = FoundPods(kind=self._request.kind or "Pod", name=name, namespace=namespace, pods=())
        completed = await self.completed(missing, ())
        if completed.sections:
            return completed
        raise ToolError("; ".join([str(error), *completed.notes])) if completed.notes else error

    async def completed(self, found: FoundPods, sections: tuple[Section, ...]) -> Completed:
        notes: list[str] = []
        for access in self._sources:
            try:
                async with asyncio.timeout(self._limits.timeout_seconds), open_source(access) as client:
                    completed = await self._from(source_of(client), found, sections)
            except TimeoutError:
                seconds = self._limits.timeout_seconds
                notes.append(f"Log source {access.name} not read: it needs more than {seconds:g} s; shorten the range")
            except ToolError as error:
                notes.append(f"Log source not read: {error}")
            except _NothingStoredError as error:
                notes.append(str(error))
            else:
                verified = await self._verified(completed)
                return replace(verified, notes=(*notes, *verified.notes))
        return Completed(found=found, sections=sections, notes=tuple(notes))

    async def _from(self, source: LogSource, found: FoundPods, sections: tuple[Section, ...]) -> Completed:
        name = source.access.name
        known = {pod.name for pod in found.pods}
        exact = () if found.kind == "Pod" and found.pods else (found.name,)
        subject = LogSubject(
            namespace=found.namespace,
            pods=tuple(sorted({*known, *exact})),
            prefix="" if found.kind == "Pod" and found.pods else f"{found.name}-",
            container=self._request.container,
        )
        stored = await source.logs(subject, self._span)
        logs = [each for each in stored.logs if _is_asked(each.pod, found, known)]
        sizes = Counter({each.pod: each.lines for each in logs if each.pod not in known})
        gone = sorted(sizes, key=lambda pod: (-sizes[pod], pod))
        if not logs:
            raise _NothingStoredError(f"Log source {name} has no lines of these pods in the range.")
        room = max(0, self._request.max_pods - len({each.pod.name for each in sections}))
        gaps = [*self._lost(logs, sections), *self._deleted(logs, found, gone[:room])]
        read = await self._read(source, gaps)
        kept = [each for each in sections if not any(_replaces(one, each) for one in read)]
        pods = {each.pod.name: each.pod for each in read if each.pod.name in gone}
        more = len(gone) - len(pods)
        notes = []
        if stored.is_cut:
            listed = f"the first {len(stored.logs):,} logs of pods whose names begin alike"
            notes.append(f"Log source {name} lists only {listed}; name one pod, or shorten the range")
        if more:
            least = "at least " if stored.is_cut else ""
            counted = f"{len(pods)} of {least}{len(gone)} other pods"
            notes.append(f"From log source {name}, {counted} are read; raise max_pods to read the others")
        return Completed(
            found=replace(found, pods=(*found.pods, *pods.values())),
            sections=tuple(sorted([*read, *kept], key=_place)),
            notes=tuple(notes),
            added=tuple(sorted(pods)),
            source=name,
        )

    async def _verified(self, completed: Completed) -> Completed:
        """Tell which of the added pods are gone. Only a pod that the API server does not find is called so."""
        namespace = completed.found.namespace
        looked_up = await concurrently(self._looked_up(namespace, pod) for pod in completed.added)
        told: dict[str, list[str]] = {}
        for pod, state in zip(completed.added, looked_up, strict=True):
            told.setdefault(state, []).append(pod)
        notes = [f"From log source {completed.source}, {state}: {', '.join(pods)}" for state, pods in told.items()]
        kept = {pod for state, pods in told.items() if state != _GONE for pod in pods}

        def view(pod: PodView) -> PodView:
            return replace(pod, phase=_UNVERIFIED) if pod.name in kept else pod

        return replace(
            completed,
            found=replace(completed.found, pods=tuple(map(view, completed.found.pods))),
            sections=tuple(replace(each, pod=view(each.pod)) for each in completed.sections),
            notes=(*notes, *completed.notes),
        )

    async def _looked_up(self, namespace: str, pod: str) -> str:
        """Return where a pod is, in words."""
        try:
            async with asyncio.timeout(min(_LOOK_UP_SECONDS, self._limits.timeout_seconds)):
                await self._client.get(api_path("v1", "pods", namespace=namespace, name=pod))
        except NotFound:
            return _GONE
        except (HolmesError, TimeoutError):
            return "not known if still in the cluster, because the API server did not answer about them"
        return "still in the cluster, but not found as pods of this workload"

    def _lost(self, logs: Sequence[StoredLog], sections: Sequence[Section]) -> Iterator[_Gap]:
        """Yield the logs of existing pods that nodes lost, and the lines before the log of a node."""
        stored = {(each.pod, each.container): each for each in logs}
        without_names = {each.pod: each for each in logs if not each.container}
        for section in sections:
            place = section.pod.name, section.container.name
            # Without names of containers, the log of a pod with several ones has lines of all of them.
            is_alone = len(section.pod.containers) == 1
            log = stored.get(place) or (without_names.get(section.pod.name) if is_alone else None)
            if log is None:
                continue
            if _is_lost(section):
                lost = self._instance(section)
                if lost is not None:
                    whole, tail = lost == self._span, self._request.tail_lines
                    yield _Gap(blank=section, log=log, span=lost, tail_lines=tail, whole=whole)
            elif self._misses_lines(section, log) and not section.unread:
                begins = section.begins.timestamp() if section.begins else self._span.end
                tail = self._request.tail_lines - len(section.lines)
                span = Span(start=self._span.start, end=begins)
                yield _Gap(blank=section, log=log, span=span, tail_lines=tail, whole=False)

    def _misses_lines(self, section: Section, log: StoredLog) -> bool:
        begins = section.begins.timestamp() if section.begins else self._span.end
        is_late = self._begins_earlier and begins > self._span.start + 1
        room = self._request.tail_lines - len(section.lines)
        return is_late and room > 0 and log.lines > section.total_lines and self._request.previous is None

    def _instance(self, section: Section) -> Span | None:
        """Return the part of the range in which the instance of a section ran, or None if that is not known.

        Lines of another instance would look like its last words.
        """
        last = section.container.last
        if not section.previous or last is None:
            return self._span
        started, finished = moment(last.started_at), moment(last.finished_at)
        if not finished:
            return None
        start, end = max(self._span.start, started or 0.0), min(self._span.end, finished + 1)
        return Span(start=start, end=end) if start < end else None

    def _deleted(self, logs: Sequence[StoredLog], found: FoundPods, pods: Sequence[str]) -> Iterator[_Gap]:
        for log in logs:
            if log.pod in pods:
                pod = _gone_pod(log, found.namespace)
                blank = Section(pod=pod, container=pod.containers[0])
                yield _Gap(blank=blank, log=log, span=self._span, tail_lines=self._request.tail_lines, whole=True)

    async def _read(self, source: LogSource, gaps: Sequence[_Gap]) -> tuple[Section, ...]:
        kept_bytes = max(65_536, self._limits.kept_bytes // max(1, len(gaps)))
        # Each reading holds one response, whose lines are dropped except for those to show.
        limit = asyncio.Semaphore(_AT_ONCE)

        async def section(gap: _Gap) -> Section:
            async with limit:
                return await self._section(source, gap, kept_bytes)

        sections = await concurrently(map(section, gaps))
        return tuple(each for each in sections if each.total_lines)

    async def _section(self, source: LogSource, gap: _Gap, kept_bytes: int) -> Section:
        every = self._filter.include is None and self._filter.exclude is None
        pattern = portable_pattern(self._request.include) if self._request.include else ""
        limit = max(gap.tail_lines, _ANALYSED_LINES) if every else _SEARCHED_LINES
        read = await source.lines(gap.log, WantedLines(span=gap.span, limit=limit, pattern=pattern))
        window = LineWindow(tail_lines=gap.tail_lines, kept_limit_bytes=kept_bytes, line_filter=self._filter)
        block = "".join(f"{line.time} {part}\n" for line in read.lines for part in line.text.split("\n"))
        await asyncio.to_thread(window.feed, block.encode())
        complete = len(read.lines) < limit and not read.is_cut
        # Lines that several collectors stored are counted more than once by the source.
        is_counted = every and gap.whole and len(gap.log.fields) < 2
        total = max(window.total_lines, gap.log.lines) if gap.whole else window.total_lines
        return replace(
            gap.blank,
            lines=window.kept,
            recent=window.recent,
            matching_lines=total if every else window.matching_lines,
            total_lines=total if read.is_searched else window.total_lines,
            exact=complete or is_counted,
            notes=("the source cut the lines at a limit of size; older lines are missing",) if read.is_cut else (),
            unread="",
            failure=None,
            begins=window.begins,
            source=source.access.name,
        )


_GONE: Final = "no longer in the cluster"


class _NothingStoredError(Exception):
    """A source has no lines of the pods."""


def _is_lost(section: Section) -> bool:
    """Return whether a container ran whose log the node does not give."""
    return bool(section.unread) and (section.failure is not None or section.container.last is not None)


def _is_asked(pod: str, found: FoundPods, known: set[str]) -> bool:
    if pod in known or pod == found.name:
        return True
    if found.kind == "Pod":
        return any(owner == found.name for owner, _ in owners_of_pod(pod))
    return is_pod_name_of(pod, found.kind, found.name)


def _replaces(read: Section, section: Section) -> bool:
    """Return whether a section from a source takes the place of one that could not be read."""
    same = read.pod.name == section.pod.name and read.container.name == section.container.name
    return same and bool(section.unread) and read.previous == section.previous


def _place(section: Section) -> tuple[str, str, float]:
    return section.pod.name, section.container.name, section.begins.timestamp() if section.begins else 0.0


def _gone_pod(log: StoredLog, namespace: str) -> PodView:
    container = ContainerView(
        name=log.container or "(unknown)",
        role="container",
        image="",
        ready=False,
        restarts=0,
        state=ContainerState(status="unknown"),
        last=None,
    )
    return PodView(name=log.pod, namespace=namespace, phase="", node="", problem="", containers=(container,))
