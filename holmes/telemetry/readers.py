"""Attaches readers to a stream of events: `observed` counts, `traced` creates spans.

The stream stays unchanged. Imports neither the Prometheus client nor OpenTelemetry.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from holmes.telemetry.metrics import Metrics
    from holmes.telemetry.runs import ReplayNotes, RunAttributes
    from holmes.telemetry.tracing import InvestigationTracer
    from holmes.values.events import AgentEvent


class Reader(Protocol):
    """Reads one run. The end of the run is the exit of the context."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The run ended, or was closed or cancelled."""
        ...

    def note(self, event: AgentEvent) -> None: ...


def observed(
    stream: AsyncGenerator[AgentEvent, None],
    metrics: Metrics,
    *,
    source: str | None,
    model: str | None = None,
    replays: ReplayNotes | None = None,
) -> AsyncGenerator[AgentEvent, None]:
    """The same stream, counted. With a `source`, its end counts as a finished investigation of this source.

    Without a `source`, another component calls `Metrics.investigation_finished`: a durable investigation continues
    elsewhere after it is closed here. `model` is the first model of the chain.
    """
    return _read_along(stream, metrics.run(source=source, model=model, replays=replays))


def traced(
    stream: AsyncGenerator[AgentEvent, None],
    tracer: InvestigationTracer | None,
    attributes: RunAttributes,
    *,
    replays: ReplayNotes | None = None,
) -> AsyncGenerator[AgentEvent, None]:
    """The same stream, traced. Without a tracer, the stream itself."""
    return stream if tracer is None else _read_along(stream, tracer.reader(attributes, replays))


async def _read_along(stream: AsyncGenerator[AgentEvent, None], reader: Reader) -> AsyncGenerator[AgentEvent, None]:
    async with aclosing(stream):
        with reader:
            async for event in stream:
                reader.note(event)
                yield event
