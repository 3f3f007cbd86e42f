"""The protocol of a source of traces, and the values that it returns. A further backend is one more file.

All times are in microseconds: those of spans since 1970, and durations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from holmes.observability.access import SourceAccess

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Attributes of a span or its resource, sorted by name."""
SpanKind: TypeAlias = Literal["", "internal", "server", "client", "producer", "consumer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One operation of a service.

    `parent` is empty for a root, and can name a span that the trace lacks. `error` is the message of a failed span.
    `detached` is true if the span declares that its parent does not wait for it.
    """

    id: str
    parent: str
    service: str
    operation: str
    start_us: int
    duration_us: int
    kind: SpanKind = ""
    failed: bool = False
    error: str = ""
    detached: bool = False
    attributes: Pairs = ()

    @property
    def end_us(self) -> int:
        return self.start_us + self.duration_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace with its spans in any order. `damaged` counts spans that could not be read.

    `incomplete` is true if the source says that it does not have all spans.
    """

    id: str
    spans: tuple[Span, ...]
    damaged: int = 0
    incomplete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """A trace in a search result.

    `service` and `operation` are those of its root. `matched_us` is the duration of its longest span that matches the
    search. `spans`, `errors` and `services` are None or empty if the source does not return them.
    """

    id: str
    service: str
    operation: str
    start_us: int
    duration_us: int
    matched_us: int
    spans: int | None = None
    errors: int | None = None
    services: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuery:
    """Selects traces that have one span with all these properties, and began in the range.

    Empty and zero properties select all spans.
    """

    start_us: int
    end_us: int
    limit: int
    service: str = ""
    operation: str = ""
    minimum_us: int = 0
    only_errors: bool = False
    tags: Pairs = ()


class TraceSource(Protocol):
    """A source of traces. Every method raises `ToolError` with one line."""

    @property
    def access(self) -> SourceAccess: ...

    async def version(self) -> str:
        """Return the product and version. Raises `ToolError` if the source does not answer as its API requires."""
        ...

    async def services(self) -> tuple[str, ...]:
        """Return the names of all services, sorted."""
        ...

    async def operations(self, service: str) -> tuple[str, ...]:
        """Return the names of the operations of a service, sorted."""
        ...

    async def search(self, query: TraceQuery) -> tuple[TraceSummary, ...]:
        """Return at most `query.limit` traces, in the order of the source. There can be more that match."""
        ...

    async def trace(self, trace_id: str) -> Trace:
        """Return a trace. Raises `ToolError` if the source does not have it."""
        ...
