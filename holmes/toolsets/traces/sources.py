"""The keys of a source of traces."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.observability.access import SourceAccess
from holmes.toolsets.instances import InstanceKeys, SourceKind
from holmes.toolsets.old_sources import TRACES

if TYPE_CHECKING:
    from holmes.observability.access import SourceClient
    from holmes.observability.traces.source import TraceSource

TraceProduct: TypeAlias = Literal["jaeger", "tempo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAccess(SourceAccess):
    """The access to a source, and its product."""

    product: TraceProduct


class TraceKeys(InstanceKeys):
    """The keys of one source."""

    type: TraceProduct

    def access(self, name: str) -> TraceAccess:
        plain = super().access(name)
        return TraceAccess(**{each.name: getattr(plain, each.name) for each in fields(SourceAccess)}, product=self.type)


KIND: Final[SourceKind[TraceAccess]] = SourceKind(toolset=TRACES, single="traces", keys=TraceKeys)


def source_of(client: SourceClient) -> TraceSource:
    """Return the source that a client of a `TraceAccess` reads."""
    access = client.access
    assert isinstance(access, TraceAccess)  # noqa: S101  instances of this toolset have no other access
    if access.product == "jaeger":
        from holmes.observability.traces.jaeger import JaegerSource

        return JaegerSource(client)
    from holmes.observability.traces.tempo import TempoSource

    return TempoSource(client)
