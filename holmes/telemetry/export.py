"""Sends spans to a collector (OTLP over HTTP), in a thread of its own. Imported only when tracing is on.

A collector that is slow or away costs spans, never time of an investigation, and says so in one line now and then. The
SDK reads the standard's variables itself: headers, timeout, certificates, compression, sampler, batches, resource.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from holmes import __version__
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

FLUSH_SECONDS: Final = 3.0
_REPEAT_SECONDS: Final = 300.0
_LINE_CHARACTERS: Final = 300
_LIBRARY: Final = "opentelemetry"
_log = logging.getLogger(__name__)


class SpanExport:
    """A running export; `close` sends what is left, within a bounded time."""

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
        """Makes spans."""
        return self._provider.get_tracer("holmes", __version__)

    def close(self) -> None:
        """Send what is left; give up after `FLUSH_SECONDS`. Blocks, so call it in a thread."""
        # A thread that may be left behind: the SDK itself would wait for half a minute.
        closing = threading.Thread(target=self._provider.shutdown, name="holmes-spans", daemon=True)
        closing.start()
        closing.join(FLUSH_SECONDS)
        if closing.is_alive():
            _log.warning("traces: %s did not take all spans within %.0f s", self._address, FLUSH_SECONDS)
            _SDK_LOG.mute()  # what the thread still says was just said
            self._exporter.shutdown()  # type: ignore[no-untyped-call]


class _SparingLog(logging.Handler):
    """Lets the SDK's warnings through as single lines of our own log, which masks them; each once in five minutes."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: dict[str, float] = {}
        self._muted = False

    def listen(self) -> None:
        """Stand in the way of everything that the SDK says. It stays so: its threads may speak after the end."""
        self._said.clear()
        self._muted = False
        library = logging.getLogger(_LIBRARY)
        library.handlers[:] = [self]
        library.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, unless it was said a moment ago."""
        now = time.monotonic()
        if self._muted or now - self._said.get(str(record.msg), -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return
        self._said[str(record.msg)] = now
        _log.warning("traces: %s", excerpt(" ".join(record.getMessage().split()), _LINE_CHARACTERS))

    def mute(self) -> None:
        """Swallow what comes from now on."""
        self._muted = True


_SDK_LOG: Final = _SparingLog()
