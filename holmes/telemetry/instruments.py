"""Every figure of `/metrics`: its name, its labels, its meaning. Held by `metrics`; listed in the docs.

Nothing here knows what is counted when. Names end with their unit; a new figure is a new field.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics

_REQUEST_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_CALL_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)
_TOOL_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_SPENT_ON: Final = ("model", "purpose")
PROCESS_FIGURES: Final = ("process_",)


class Instruments:
    """The figures of one server, in a registry of their own."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody looks at
        registry = CollectorRegistry(auto_describe=True)
        self.registry = registry
        ProcessCollector(registry=registry)
        self.build_info = Gauge(
            "holmes_build_info", "Always 1; the labels say what runs.", ("version", "python"), registry=registry
        )
        self._make_http_instruments(registry)
        self._make_llm_instruments(registry)
        self._make_spending_instruments(registry)
        self._make_tool_instruments(registry)
        self._make_alert_instruments(registry)

    def _make_http_instruments(self, registry: CollectorRegistry) -> None:
        self.http_requests = Counter(
            "holmes_http_requests",
            "HTTP requests that were answered.",
            ("method", "route", "status"),
            registry=registry,
        )
        self.http_request_duration = Histogram(
            "holmes_http_request_duration_seconds",
            "Seconds until a request was answered; for an event stream until it began.",
            ("method", "route"),
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self.http_streams = Gauge("holmes_http_streams", "Event streams that are open.", registry=registry)

    def _make_alert_instruments(self, registry: CollectorRegistry) -> None:
        self.investigations_finished = Counter(
            "holmes_investigations_finished",
            "Investigations that came to an end in this replica, and who answered: llm, triage or nobody.",
            ("outcome", "source", "answered_by"),
            registry=registry,
        )
        self.alerts_received = Counter(
            "holmes_alerts_received", "Alerts that were stored, by their status.", ("status",), registry=registry
        )
        self.alerts_duplicates = Counter(
            "holmes_alerts_duplicates", "Alerts that were known already and started nothing.", registry=registry
        )
        self.deliveries = Counter(
            "holmes_deliveries",
            "Attempts to tell a destination: delivered, retried or gave_up.",
            ("destination", "outcome"),
            registry=registry,
        )

    def _make_llm_instruments(self, registry: CollectorRegistry) -> None:
        self.llm_calls = Counter(
            "holmes_llm_calls",
            "Requests to a model, failed attempts included. The purpose is investigation or compaction.",
            _SPENT_ON,
            registry=registry,
        )
        self.llm_call_duration = Histogram(
            "holmes_llm_call_duration_seconds",
            "Seconds that a model call took, with its retries: answered or failed.",
            ("model", "outcome"),
            buckets=_CALL_SECONDS,
            registry=registry,
        )
        self.llm_attempts_discarded = Counter(
            "holmes_llm_attempts_discarded", "Attempts that failed and were made again.", ("model",), registry=registry
        )
        self.llm_failovers = Counter(
            "holmes_llm_failovers", "Models that failed for good, so that the next one went on.", ("model",),
            registry=registry,
        )  # fmt: skip
        self.llm_context_overflows = Counter(
            "holmes_llm_context_overflows", "Requests that a provider refused as too long.", ("model",),
            registry=registry,
        )  # fmt: skip

    def _make_spending_instruments(self, registry: CollectorRegistry) -> None:
        self.llm_tokens = Counter(
            "holmes_llm_tokens",
            "Tokens. prompt includes cached and cache_creation, completion includes reasoning.",
            (*_SPENT_ON, "kind"),
            registry=registry,
        )
        self.llm_cost = Counter("holmes_llm_cost_dollars", "US dollars.", _SPENT_ON, registry=registry)
        self.llm_cache_hits = Counter(
            "holmes_llm_cache_hits",
            "Replies whose prompt the provider found in its cache, at least in part.",
            ("model",),
            registry=registry,
        )
        self.compactions = Counter(
            "holmes_compactions", "Conversations that were made shorter.", ("strategy",), registry=registry
        )
        self.compactions_failed = Counter(
            "holmes_compactions_failed", "Compactions that were not adopted.", registry=registry
        )

    def _make_tool_instruments(self, registry: CollectorRegistry) -> None:
        self.toolset_up = Gauge(
            "holmes_toolset_up",
            "Whether a toolset can be used: 1, or 0 when its check failed. Those switched off are left out.",
            ("toolset",),
            registry=registry,
        )
        self.tool_calls = Counter("holmes_tool_calls", "Tool calls.", ("toolset", "tool", "status"), registry=registry)
        self.tool_call_duration = Histogram(
            "holmes_tool_call_duration_seconds",
            "Seconds that a tool call took.",
            ("toolset", "tool"),
            buckets=_TOOL_SECONDS,
            registry=registry,
        )
        self.tool_results_spilled = Counter(
            "holmes_tool_results_spilled",
            "Results that were too large for the conversation; stored=false: they had to be dropped.",
            ("stored",),
            registry=registry,
        )
        self.tool_results_masked = Counter(
            "holmes_tool_results_masked", "Old results that were replaced by something shorter.", registry=registry
        )
