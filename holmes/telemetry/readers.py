"""Lets somebody read along a stream of events: `observed` counts, `traced` makes spans.

The stream goes through unchanged. Costs nothing when tracing is off, and imports neither Prometheus' client nor
OpenTelemetry.
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
    """Reads one run; is told how it ended by leaving the context."""

    def __enter__(self) -> Self:
        """The run begins."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The run is over, or was closed or cancelled."""
        ...

    def note(self, event: AgentEvent) -> None:
        """The next event."""
        ...


def observed(
    stream: AsyncGenerator[AgentEvent, None],
    metrics: Metrics,
    *,
    source: str | None,
    model: str | None = None,
    replays: ReplayNotes | None = None,
) -> AsyncGenerator[AgentEvent, None]:
    """The same stream, counted. With a `source` its end is counted as a finished investigation of this source.

    Without one somebody else knows when it is finished and says so by `Metrics.investigation_finished`: a durable
    investigation goes on elsewhere when it is closed here. `model` is the one that is asked first.
    """
    return _read_along(stream, metrics.run(source=source, model=model, replays=replays))


def traced(
    stream: AsyncGenerator[AgentEvent, None],
    tracer: InvestigationTracer | None,
    attributes: RunAttributes,
    *,
    replays: ReplayNotes | None = None,
) -> AsyncGenerator[AgentEvent, None]:
    """The same stream, traced; the stream itself without a tracer."""
    return stream if tracer is None else _read_along(stream, tracer.reader(attributes, replays))


async def _read_along(stream: AsyncGenerator[AgentEvent, None], reader: Reader) -> AsyncGenerator[AgentEvent, None]:
    async with aclosing(stream):
        with reader:
            async for event in stream:
                reader.note(event)
                yield event
