"""Chooses the source for the product of an access. A further product is one more case here, and its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.observability.logs.source import log_access

if TYPE_CHECKING:
    from holmes.observability.access import SourceClient
    from holmes.observability.logs.source import LogSource


def source_of(client: SourceClient) -> LogSource:
    """Return the source that a client of a `LogAccess` reads."""
    match log_access(client).product:
        case "victorialogs":
            from holmes.observability.logs.victoria_logs import VictoriaLogsSource

            return VictoriaLogsSource(client)
        case "loki":
            from holmes.observability.logs.loki import LokiSource

            return LokiSource(client)
        case "elasticsearch" | "opensearch":
            from holmes.observability.logs.elasticsearch import ElasticsearchSource

            return ElasticsearchSource(client)
