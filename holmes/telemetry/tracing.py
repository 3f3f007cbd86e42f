"""Creates OpenTelemetry spans from an event stream, according to the GenAI conventions.

This module is imported only if tracing is enabled. Each run has one span, with child spans for model calls, tool calls
and compactions. Attributes contain only names, ids, sizes and numbers. They never contain questions, answers,
arguments, results or error messages. A thread exports the spans with OTLP over HTTP. If the collector is slow or
unreachable, spans are lost, but the run is not delayed. A failure is logged in one line, at most once every 5 minutes.
The SDK reads its standard variables for headers, timeout, certificates, compression, sampler, batches and resource.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final, Self, TypeAlias, assert_never

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from holmes import __version__
from holmes.telemetry.runs import BUILTIN_PROVIDER, ModelIdentity, incoming_trace
from holmes.telemetry.timeline import CANCELLED, Compaction, ModelCall, Timeline, ToolRun
from holmes.values.events import AnswerFinished, HistoryReplaced, RunFailed
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from opentelemetry.trace import Tracer

    from holmes.telemetry.runs import ReplayNotes, RunAttributes
    from holmes.telemetry.timeline import Operation
    from holmes.values.events import AgentEvent
    from holmes.values.stats import RequestStats

Attributes: TypeAlias = dict[str, str | int | float | bool]

_AGENT: Final = "holmes"
_ROOT: Final = f"invoke_agent {_AGENT}"
_NANOSECONDS: Final = 1_000_000_000
_RUN_FAILED: Final = "run_failed"
_UNKNOWN: Final = "unknown"
_OTHER: Final = ModelIdentity(provider="_OTHER", model=_UNKNOWN)


class InvestigationTracer:
    """Creates traces for any number of runs. `models` maps each model name in events to the model's identity."""

    def __init__(self, tracer: trace.Tracer, models: Mapping[str, ModelIdentity]) -> None:
        self._tracer = tracer
        self._models = models

    def reader(self, attributes: RunAttributes, replays: ReplayNotes | None = None) -> InvestigationTrace:
        """Create a reader for one run. The run joins the trace of the current HTTP request, if any."""
        return InvestigationTrace(self, attributes, replays)

    def start(self, parent: Context) -> trace.Span:
        """Start the span of the run."""
        return self._tracer.start_span(_ROOT, context=parent, kind=SpanKind.INTERNAL)

    def identity(self, model: str | None) -> ModelIdentity:
        return self._models.get(model, _OTHER) if model else _OTHER

    def add(self, context: Context, operation: Operation, attributes: Attributes, name: str, kind: SpanKind) -> None:
        """Add the span of a finished operation."""
        span = self._tracer.start_span(
            name, context=context, kind=kind, attributes=attributes, start_time=operation.started_ns
        )
        if isinstance(operation, ModelCall):
            for retry in operation.retries:
                waited: Attributes = {"holmes.retry_in_seconds": retry.wait_seconds}
                span.add_event("holmes.attempt_discarded", waited, timestamp=retry.at_ns)
        if operation.error_type is not None:
            fail(span, operation.error_type)
        span.end(end_time=max(operation.started_ns, operation.ended_ns))


class InvestigationTrace:
    def __init__(self, tracer: InvestigationTracer, attributes: RunAttributes, replays: ReplayNotes | None) -> None:
        self._tracer = tracer
        self._run = attributes
        self._timeline = Timeline(model=attributes.model, replays=replays)
        self._parent = TraceContextTextMapPropagator().extract(incoming_trace.get(), Context())
        self._root: trace.Span = trace.INVALID_SPAN
        self._context = self._parent
        self._ended: AnswerFinished | HistoryReplaced | RunFailed | None = None
        self._compacted = False

    def __enter__(self) -> Self:
        self._root = self._tracer.start(self._parent)
        self._context = trace.set_span_in_context(self._root, self._parent)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all open spans."""
        closed = kind is None or not issubclass(kind, Exception)  # closed by the consumer, a cancellation or a signal
        interrupted = CANCELLED if closed else kind.__name__ if kind is not None else _UNKNOWN
        for operation in self._timeline.close(interrupted):
            self._add(operation)
        self._root.set_attributes(self._run_attributes())
        if isinstance(self._ended, RunFailed):
            fail(self._root, _RUN_FAILED)
        elif self._ended is None:
            fail(self._root, interrupted)
        self._root.end(end_time=time.time_ns())

    def note(self, event: AgentEvent) -> None:
        for operation in self._timeline.note(event):
            self._add(operation)
        if isinstance(event, AnswerFinished | HistoryReplaced | RunFailed):
            self._ended = event

    def _add(self, operation: Operation) -> None:
        match operation:
            case ModelCall():
                identity = self._tracer.identity(operation.model)
                attributes = self._call_attributes(operation, identity)
                kind = SpanKind.CLIENT if identity.is_remote else SpanKind.INTERNAL
                self._tracer.add(self._context, operation, attributes, f"chat {identity.model}", kind)
            case ToolRun():
                name = f"execute_tool {operation.tool or _UNKNOWN}"
                self._tracer.add(self._context, operation, self._tool_attributes(operation), name, SpanKind.INTERNAL)
            case Compaction():
                self._compacted = self._compacted or operation.strategy not in {None, "mask"}
                attributes = self._compaction_attributes(operation)
                self._tracer.add(self._context, operation, attributes, "compact_history", SpanKind.INTERNAL)
            case _:
                assert_never(operation)

    def _common(self, operation_name: str) -> Attributes:
        common: Attributes = {"gen_ai.operation.name": operation_name}
        if self._run.conversation_id:
            common["gen_ai.conversation.id"] = self._run.conversation_id
        return common

    def _call_attributes(self, call: ModelCall, identity: ModelIdentity) -> Attributes:
        attributes = self._common("chat") | _identified(identity)
        attributes |= {"gen_ai.request.stream": True, "holmes.step": call.step}
        if self._compacted:
            attributes["gen_ai.conversation.compacted"] = True
        if call.first_text_ns is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = (call.first_text_ns - call.started_ns) / _NANOSECONDS
        if call.error_type is None:
            attributes |= usage(call.stats) | {"holmes.tool_calls": call.tool_calls}
        return attributes

    def _tool_attributes(self, run: ToolRun) -> Attributes:
        attributes = self._common("execute_tool") | {
            "gen_ai.tool.name": run.tool or _UNKNOWN,
            "gen_ai.tool.call.id": run.call_id,
            "gen_ai.tool.type": "function",
            "holmes.step": run.step,
        }
        if run.toolset is not None:
            attributes["holmes.toolset"] = run.toolset
        if run.status is not None:
            attributes |= {
                "holmes.tool.status": run.status,
                "holmes.tool.result_characters": run.result_characters,
                "holmes.tool.spilled": run.spilled,
            }
        return attributes

    def _compaction_attributes(self, compaction: Compaction) -> Attributes:
        attributes: Attributes = {"holmes.step": compaction.step, "holmes.compaction.masked": compaction.masked_results}
        if compaction.stats.calls:
            attributes |= usage(compaction.stats)
        for name, value in (
            ("strategy", compaction.strategy),
            ("tokens_before", compaction.tokens_before),
            ("tokens_after", compaction.tokens_after),
        ):
            if value is not None:
                attributes[f"holmes.compaction.{name}"] = value
        return attributes

    def _run_attributes(self) -> Attributes:
        attributes = self._common("invoke_agent") | {
            "gen_ai.agent.name": _AGENT,
            "gen_ai.agent.version": __version__,
            "holmes.source": self._run.source,
            "holmes.steps": self._timeline.step,
        }
        ended = self._ended
        model = ended.model if isinstance(ended, AnswerFinished) else self._run.model
        if model:
            attributes |= _identified(self._tracer.identity(model))
        else:
            attributes["gen_ai.provider.name"] = BUILTIN_PROVIDER
        return attributes | usage(ended.stats) if ended is not None else attributes


def usage(stats: RequestStats) -> Attributes:
    """Return the tokens and the cost. Input tokens include cached tokens, and output tokens include reasoning."""
    attributes: Attributes = {
        "gen_ai.usage.input_tokens": stats.prompt_tokens,
        "gen_ai.usage.output_tokens": stats.completion_tokens,
        "holmes.cost_dollars": stats.cost,
    }
    for name, count in (
        ("gen_ai.usage.cache_read.input_tokens", stats.cached_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", stats.cache_creation_tokens),
        ("gen_ai.usage.reasoning.output_tokens", stats.reasoning_tokens),
    ):
        if count:
            attributes[name] = count
    return attributes


def fail(span: trace.Span, error_type: str) -> None:
    """Mark `span` as failed, without a description, because error messages can contain confidential text."""
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))


def _identified(identity: ModelIdentity) -> Attributes:
    return {"gen_ai.provider.name": identity.provider, "gen_ai.request.model": identity.model}


FLUSH_SECONDS: Final = 3.0
_REPEAT_SECONDS: Final = 300.0
_LINE_CHARACTERS: Final = 300
_LIBRARY: Final = "opentelemetry"
_log = logging.getLogger(__name__)


class SpanExport:
    """A running export of spans. `close` sends the remaining spans within a limited time."""

    def __init__(self, address: str) -> None:
        self._address = address
        _SDK_LOG.listen()
        self._exporter = OTLPSpanExporter(endpoint=address)
        own = Resource({"service.name": "holmes", "service.version": __version__})
        resource = Resource.create().merge(own).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))

    @property
    def tracer(self) -> Tracer:
        return self._provider.get_tracer("holmes", __version__)

    def close(self) -> None:
        """Send the remaining spans, for at most `FLUSH_SECONDS`. Call this method in a thread, because it blocks."""
        # A daemon thread can be abandoned. The SDK itself would wait 30 seconds.
        closing = threading.Thread(target=self._provider.shutdown, name="holmes-spans", daemon=True)
        closing.start()
        closing.join(FLUSH_SECONDS)
        if closing.is_alive():
            _log.warning("traces: %s did not accept all spans within %.0f s", self._address, FLUSH_SECONDS)
            _SDK_LOG.mute()  # the thread would repeat the same warning
            self._exporter.shutdown()  # type: ignore[no-untyped-call]


class _SparingLog(logging.Handler):
    """Forwards SDK warnings as single lines to Holmes' log, which masks secrets.

    Each warning is logged at most once every 5 minutes.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: dict[str, float] = {}
        self._muted = False

    def listen(self) -> None:
        """Receive all log messages of the SDK, even after `close`, because SDK threads may log later."""
        self._said.clear()
        self._muted = False
        library = logging.getLogger(_LIBRARY)
        library.handlers[:] = [self]
        library.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if self._muted or now - self._said.get(str(record.msg), -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return
        self._said[str(record.msg)] = now
        _log.warning("traces: %s", excerpt(" ".join(record.getMessage().split()), _LINE_CHARACTERS))

    def mute(self) -> None:
        """Discard all later messages."""
        self._muted = True


_SDK_LOG: Final = _SparingLog()
