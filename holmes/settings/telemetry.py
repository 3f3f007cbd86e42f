"""Whether and where traces of investigations are sent.

Only what decides whether OpenTelemetry is on is read here. All other variables of the standard (`OTEL_SERVICE_NAME`,
`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, ...) are read by its SDK. Values that make no sense switch nothing
on and are never an error: the variables are shared with other programs.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from holmes.settings.setting import Setting, SettingsGroup

_TRACES_PATH = "v1/traces"


class TelemetrySettings(SettingsGroup):
    """Traces."""

    section: ClassVar[str] = "telemetry"
    flat_aliases: ClassVar[bool] = False

    otlp_endpoint: Annotated[str | None, Setting("OTEL_EXPORTER_OTLP_ENDPOINT")] = None
    """The OpenTelemetry collector that gets traces, for example `http://collector:4318`. Unset: no traces. The other
    `OTEL_*` variables are honoured, too.
    """

    otlp_traces_endpoint: Annotated[str | None, Setting("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")] = None
    """The whole address for traces, when it is not `v1/traces` below `telemetry.otlp_endpoint`."""

    otlp_protocol: Annotated[str, Setting("OTEL_EXPORTER_OTLP_PROTOCOL")] = "http/protobuf"
    """How traces are sent. Only `http/protobuf` is supported; with another value there are no traces."""

    traces_exporter: Annotated[str, Setting("OTEL_TRACES_EXPORTER")] = "otlp"
    """`none` switches traces off."""

    sdk_disabled: Annotated[str, Setting("OTEL_SDK_DISABLED")] = "false"
    """`true` switches OpenTelemetry off."""

    def traces_address(self) -> str | None:
        """Where to send traces; None when nobody asked for them, or somebody switched them off."""
        if self.sdk_disabled.strip().lower() == "true" or self.traces_exporter.strip().lower() == "none":
            return None
        if self.otlp_traces_endpoint:
            return self.otlp_traces_endpoint
        return f"{self.otlp_endpoint.rstrip('/')}/{_TRACES_PATH}" if self.otlp_endpoint else None
