"""Attaches readers to an event stream. `observed` counts the events, and `traced` creates spans.

The readers do not change the stream. This module imports neither the Prometheus client nor OpenTelemetry.
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
    """Reads the events of one run. The context exits when the run ends."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Handle the end of the run. The run may be complete, closed, cancelled or failed."""
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
    """Return a stream with the same events, and count these events.

    If `source` is set, the end of the stream is counted as a finished investigation of this source. Otherwise,
    another component calls `Metrics.investigation_finished`, because another process can continue a durable
    investigation. `model` is the first model of the chain.
    """
    return _read_along(stream, metrics.run(source=source, model=model, replays=replays))


def traced(
    stream: AsyncGenerator[AgentEvent, None],
    tracer: InvestigationTracer | None,
    attributes: RunAttributes,
    *,
    replays: ReplayNotes | None = None,
) -> AsyncGenerator[AgentEvent, None]:
    """Return a stream with the same events, and trace these events. If `tracer` is None, return `stream` itself."""
    return stream if tracer is None else _read_along(stream, tracer.reader(attributes, replays))


async def _read_along(stream: AsyncGenerator[AgentEvent, None], reader: Reader) -> AsyncGenerator[AgentEvent, None]:
    async with aclosing(stream):
        with reader:
            async for event in stream:
                reader.note(event)
                yield event
