"""Starts metrics and traces.

OpenTelemetry is imported only if traces are configured, and the Prometheus client only for the server. If the extra
`otel` is not installed, Holmes logs one warning and continues without traces.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.settings.model import BUILTIN_MODEL
from holmes.telemetry.runs import identity_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from holmes.settings.model_list import ModelEntry
    from holmes.settings.settings import Settings
    from holmes.telemetry.metrics import Metrics
    from holmes.telemetry.tracing import InvestigationTracer

_SUPPORTED_PROTOCOL = "http/protobuf"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """The metrics and the tracer of the server. `tracer` is None if traces are disabled."""

    metrics: Metrics
    tracer: InvestigationTracer | None


@asynccontextmanager
async def open_telemetry(settings: Settings, *, warn: bool = True) -> AsyncIterator[Telemetry]:
    """Start metrics and traces for one process of the server. Leaving the context sends the last spans.

    If `warn` is true and traces are configured but cannot be sent, a warning states the cause.
    """
    async with open_tracer(settings, warn=warn) as tracer:
        yield Telemetry(metrics=_make_metrics(settings), tracer=tracer)


def _make_metrics(settings: Settings) -> Metrics:
    """Create the metrics. Their labels can contain the names of the configured models."""
    from holmes.telemetry.metrics import Metrics

    models = tuple(_models(settings))
    return Metrics(
        models=[entry.name for entry in models],
        models_without_llm=[entry.name for entry in models if entry.model == BUILTIN_MODEL],
    )


@asynccontextmanager
async def open_tracer(settings: Settings, *, warn: bool = True) -> AsyncIterator[InvestigationTracer | None]:
    """Open the tracer, or yield None if traces are disabled. See `open_telemetry`."""
    level = logging.WARNING if warn else logging.DEBUG
    address = settings.telemetry.traces_address()
    problem = _problem(address, settings.telemetry.otlp_protocol)
    if address is None or problem is not None:
        if problem is not None:
            _log.log(level, "traces are disabled: %s", problem)
        yield None
        return
    try:
        from holmes.telemetry.tracing import InvestigationTracer, SpanExport
    except ImportError as error:
        _log.log(
            level,
            "traces are disabled: OTEL_EXPORTER_OTLP_ENDPOINT is set, but %r is missing: pip install 'holmes[otel]'",
            error.name,
        )
        yield None
        return
    export = SpanExport(address)
    try:
        models = {entry.name: identity_of(entry.model) for entry in _models(settings)}
        yield InvestigationTracer(export.tracer, models)
    finally:
        await asyncio.to_thread(export.close)


def _problem(address: str | None, protocol: str) -> str | None:
    if address is None:
        return None
    if not address.startswith(("http://", "https://")):
        return f"the endpoint {address!r} is not a valid URL; expected http://… or https://…"
    if protocol != _SUPPORTED_PROTOCOL:
        return f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol!r} is not supported; supported: {_SUPPORTED_PROTOCOL!r}"
    return None


def _models(settings: Settings) -> Iterator[ModelEntry]:
    """Yield all models that an event can name, including the models for summaries."""
    yield from settings.model_chain()
    yield from settings.model_list
    for entry in (*settings.model_chain(), *settings.model_list):
        summary = settings.summary_model(entry)
        if summary is not None:
            yield summary
