"""The toolset `tracing/traces` and its factory. Each call opens its own connection."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from holmes.toolsets.instances import Instances, SourceFactory
from holmes.toolsets.traces.arguments import limit_of, microseconds_of, query_of, trace_id_of
from holmes.toolsets.traces.sources import KIND, TraceAccess, source_of
from holmes.toolsets.traces.tools import COMPARE, READ, SEARCH, TOOLS
from holmes.values.errors import ToolError
from holmes.values.tool_arguments import text_argument
from holmes.values.tools import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holmes.observability.access import SourceClient
    from holmes.observability.traces.comparison import Profile
    from holmes.observability.traces.source import TraceQuery, TraceSource, TraceSummary
    from holmes.values.json_types import JsonObject
    from holmes.values.tools import Tool, ToolInvocation, Toolset

MOST_READ: Final = 100
"""Traces that are read to find the slowest, and to compare."""
_AT_ONCE: Final = 4
_FEWEST_COMPARED: Final = 4


class TracesToolset:
    def __init__(self, instances: Sequence[TraceAccess]) -> None:
        self._instances = Instances(instances)

    @property
    def name(self) -> str:
        return KIND.toolset

    @property
    def instructions(self) -> str:
        return (
            "For slow or failing requests between services, use compare_traces for what slow traces have in common, "
            "and search_traces with read_trace for one request. Spans tell where the time is, not why."
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._instances.offered(TOOLS)

    def describe(self, invocation: ToolInvocation) -> str:
        """Return one line for the user, for example `Search traces of checkout`."""
        given = invocation.arguments
        subject = " ".join(filter(None, (text_argument(given, name) for name in ("service", "operation"))))
        words = {
            SEARCH.name: f"Search traces of {subject or 'all services'}",
            READ.name: f"Read trace {text_argument(given, 'trace_id')}",
            COMPARE.name: f"Compare slow with fast traces of {subject}",
        }
        return words[invocation.tool.name]

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Read the source. Raises `ToolError` with the source, the reason and the next step."""
        from holmes.observability.access import open_source

        runs: dict[str, Callable[[TraceSource, JsonObject], Awaitable[str]]] = {
            SEARCH.name: _search,
            READ.name: _read,
            COMPARE.name: _compare,
        }
        access = self._instances.chosen(invocation.arguments)
        async with open_source(access) as client:
            text = await runs[invocation.tool.name](source_of(client), invocation.arguments)
        described = f"{access.name}: {self.describe(invocation)}"
        return ToolResult(status="success" if text else "no_data", data=text, invocation=described)


async def _search(source: TraceSource, arguments: JsonObject) -> str:
    from holmes.toolsets.traces.texts import summaries_text

    limit, order = limit_of(arguments), text_argument(arguments, "order") or "newest"
    query = query_of(arguments, time.time(), min(MOST_READ, 10 * limit) if order == "slowest" else limit)
    found = await source.search(query)
    if not found:
        await _refuse_unknown(source, query)
    return summaries_text(found, query, order, limit)


async def _refuse_unknown(source: TraceSource, query: TraceQuery) -> None:
    """Raise `ToolError` with the nearest names if the service or the operation of an empty search does not exist."""
    for kind, name in (("service", query.service), ("operation", query.operation)):
        if not name or (kind == "operation" and not query.service):
            continue
        known = await (source.services() if kind == "service" else source.operations(query.service))
        if name not in known:
            nearest = get_close_matches(name, known, n=3, cutoff=0.4)
            hint = f"did you mean {', '.join(map(repr, nearest))}?" if nearest else _available(kind, known)
            raise ToolError(f"{source.access.name} has no {kind} {name!r}; {hint}")


def _available(kind: str, known: Sequence[str]) -> str:
    listed = f"{', '.join(known[:20])}{', …' if len(known) > 20 else ''}"
    return f"available {kind}s: {listed}" if known else f"it has no {kind}s at all; check that traces are sent to it"


async def _read(source: TraceSource, arguments: JsonObject) -> str:
    trace = await source.trace(trace_id_of(arguments))
    if not trace.spans:
        raise ToolError(f"{source.access.name}: none of {trace.damaged:,} spans can be read; the trace is damaged")

    def written() -> str:
        from holmes.observability.traces.tree import span_tree
        from holmes.toolsets.traces.tree_texts import TraceText

        text = TraceText(trace, span_tree(trace))
        return text.complete() if arguments.get("complete") is True else text.short()

    return await asyncio.to_thread(written)


async def _compare(source: TraceSource, arguments: JsonObject) -> str:
    from holmes.observability.traces.comparison import compare, groups
    from holmes.toolsets.traces.texts import comparison_text, name_text

    query = query_of(arguments, time.time(), MOST_READ)
    slower_than_us = microseconds_of(arguments, "slower_than")
    found = list(await source.search(query))
    if slower_than_us:
        # Slow traces are rare, and a search need not return them first.
        known = {each.id for each in found}
        more = await source.search(replace(query, minimum_us=slower_than_us))
        found += [each for each in more if each.id not in known]
    if not found:
        await _refuse_unknown(source, query)
        return ""
    slow, fast = groups(found, slower_than_us)
    if len(found) < _FEWEST_COMPARED or not slow or not fast:
        raise ToolError(
            f"{len(found)} traces match, {len(slow)} of them slow: too few to compare; choose a longer range, or "
            "another slower_than"
        )
    slow_profiles, fast_profiles = await _profiles(source, slow, query), await _profiles(source, fast, query)
    if not slow_profiles or not fast_profiles:
        raise ToolError(f"{source.access.name} no longer has the traces that it found; search a newer range")
    compared = await asyncio.to_thread(compare, slow_profiles, fast_profiles)
    ids = [[each.trace_id for each in group] for group in (slow_profiles, fast_profiles)]
    read = f", of {len(found)} traces that match" + (" or more" if len(found) >= query.limit else "")
    return comparison_text(f"{name_text(query.service, query.operation)}{read}", compared, ids[0], ids[1])


async def _profiles(source: TraceSource, chosen: Sequence[TraceSummary], query: TraceQuery) -> list[Profile]:
    """Read traces, a few at once, and describe each. Those that the source no longer has are left out."""
    from holmes.observability.traces.comparison import profile
    from holmes.observability.traces.tree import span_tree

    waiting = asyncio.Semaphore(_AT_ONCE)

    async def read(summary: TraceSummary) -> Profile | ToolError | None:
        async with waiting:
            try:
                trace = await source.trace(summary.id)
            except ToolError as error:
                return error
            return await asyncio.to_thread(
                lambda: profile(summary.id, span_tree(trace), query.service, query.operation)
            )

    found = await asyncio.gather(*(read(each) for each in chosen))
    failures = [each for each in found if isinstance(each, ToolError)]
    if len(failures) == len(found):
        raise failures[0]
    return [each for each in found if each is not None and not isinstance(each, ToolError)]


class TracesFactory(SourceFactory[TraceAccess]):
    kind = KIND
    description = "Searches, reads and compares traces of Jaeger or Tempo"
    reads_all = "traces"

    async def version(self, client: SourceClient) -> str:
        return await source_of(client).version()

    def toolset(self, instances: Sequence[TraceAccess]) -> Toolset:
        return TracesToolset(instances)
