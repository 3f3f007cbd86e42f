"""The toolset `logs/sources` and its factory. Each call opens its own connection.

The tool `kubernetes_logs` reads the same sources, for logs that a node no longer has.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from holmes.observability.logs.products import source_of
from holmes.observability.logs.source import LogAccess, Span, WantedLines
from holmes.toolsets.instances import Instances, SourceFactory
from holmes.toolsets.logs.config import KIND
from holmes.toolsets.times import age_or_time
from holmes.values.errors import ToolError
from holmes.values.tool_arguments import text_argument
from holmes.values.tools import Parameter, ParameterSchema, Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.access import SourceClient
    from holmes.observability.logs.source import LogSource
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.tools import JsonType, ToolInvocation, Toolset

_LANGUAGES: Final = {
    "loki": "LogQL",
    "victorialogs": "LogsQL",
    "elasticsearch": "Lucene syntax, or a query clause as JSON",
    "opensearch": "Lucene syntax, or a query clause as JSON",
}
_DEFAULT_ROWS: Final = 100
_MOST_ROWS: Final = 1_000
_LONGEST_DAYS: Final = 31


def _optional(name: str, kind: JsonType, description: str, default: JsonValue = None) -> Parameter:
    schema = ParameterSchema(types=(kind,), description=description)
    return Parameter(name=name, schema=schema, required=False, default=default)


_RANGE: Final = (
    _optional("since", "string", "Start of the range: an age such as 10m, 2d, or an RFC 3339 time. Default: 1h"),
    _optional("until", "string", "End of the range, in the same formats. Default: now"),
)


def _tools(languages: str) -> tuple[Tool, Tool]:
    query = ParameterSchema(types=("string",), description=languages)
    order = ParameterSchema(types=("string",), enum=("newest", "oldest"), description="Which rows. Default: newest")
    return (
        Tool(
            name="query_logs",
            description=(
                "Search stored logs of the cluster, also of pods that no longer exist, in the language of the source. "
                "For the logs of one pod or workload, use kubernetes_logs, which reads the same source if necessary."
            ),
            parameters=(
                Parameter(name="query", schema=query),
                *_RANGE,
                _optional("limit", "integer", f"Maximum number of rows, at most {_MOST_ROWS}", _DEFAULT_ROWS),
                Parameter(name="order", schema=order, required=False),
            ),
        ),
        Tool(
            name="log_fields",
            description="List the fields or labels of stored logs for query_logs, or the values of one of them.",
            parameters=(_optional("field", "string", "List the values of this field"), *_RANGE),
        ),
    )


class LogSourcesToolset:
    def __init__(self, instances: Sequence[LogAccess]) -> None:
        self._instances = Instances(instances)
        languages = dict.fromkeys(_LANGUAGES[each.product] for each in instances)
        told = [f"{each.name}: {_LANGUAGES[each.product]}" for each in instances]
        self._tools = _tools("; ".join(told if len(languages) > 1 else languages))

    @property
    def name(self) -> str:
        return KIND.toolset

    @property
    def instructions(self) -> str:
        return ""

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._instances.offered(self._tools)

    def describe(self, invocation: ToolInvocation) -> str:
        """Return one line for the user, for example `Query logs of the last 1h: error`."""
        given = invocation.arguments
        if invocation.tool.name == "log_fields":
            field = text_argument(given, "field")
            return f"List values of log field {field}" if field else "List log fields"
        return f"Query logs of the last {text_argument(given, 'since') or '1h'}: {text_argument(given, 'query')}"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Run one query. Raises `ToolError` with the source, the reason and the next step."""
        from holmes.observability.access import open_source

        arguments = invocation.arguments
        access, span = self._instances.chosen(arguments), _span(arguments, time.time())
        async with open_source(access) as client:
            run = _fields if invocation.tool.name == "log_fields" else _query
            text = await run(source_of(client), arguments, span)
        described = f"{access.name}: {self.describe(invocation)}"
        return ToolResult(status="success" if text else "no_data", data=text, invocation=described)


async def _query(source: LogSource, arguments: JsonObject, span: Span) -> str:
    from holmes.observability.access import QueryRejectedError
    from holmes.toolsets.logs.texts import rows_text

    query = text_argument(arguments, "query").strip()
    if not query:
        raise ToolError("query is empty; log_fields lists the fields for a query")
    limit = arguments.get("limit")
    number = limit if isinstance(limit, int) and not isinstance(limit, bool) else _DEFAULT_ROWS
    if not 1 <= number <= _MOST_ROWS:
        raise ToolError(f"limit is {number}; expected a number between 1 and {_MOST_ROWS:,}")
    wanted = WantedLines(span=span, limit=number, oldest=text_argument(arguments, "order") == "oldest")
    try:
        found = await source.query(query, wanted)
    except QueryRejectedError as error:
        raise ToolError(f"{source.access.name}: the query {query!r} is rejected: {error}") from error
    return await asyncio.to_thread(rows_text, source.access.shown, found, wanted) if found.rows else ""


async def _fields(source: LogSource, arguments: JsonObject, span: Span) -> str:
    from holmes.toolsets.logs.texts import names_text

    field = text_argument(arguments, "field")
    if field:
        found = await source.field_values(field, span)
        return names_text(f"value of {field}", [(name, 0) for name in found.values], is_cut=found.is_cut)
    return names_text("field", await source.field_names(span))


def _span(arguments: JsonObject, now: float) -> Span:
    """Parse the range of a call. Raises `ToolError` for a range that is empty or too long."""
    since, until = text_argument(arguments, "since") or "1h", text_argument(arguments, "until")
    (begin_age, begin), (end_age, end) = age_or_time("since", since), age_or_time("until", until)
    last = end.timestamp() if end else now - (end_age.total_seconds() if end_age else 0.0)
    before = last if not until else now
    first = begin.timestamp() if begin else before - (begin_age.total_seconds() if begin_age else 0.0)
    if first >= last:
        raise ToolError(f"since {since!r} is not before until {until or 'now'!r}; swap the times or widen the range")
    if last - first > _LONGEST_DAYS * 86_400:
        raise ToolError(f"the range is longer than {_LONGEST_DAYS} days; choose a shorter range")
    return Span(start=first, end=last)


class LogSourcesFactory(SourceFactory[LogAccess]):
    kind = KIND
    description = "Searches stored logs in Loki, VictoriaLogs, Elasticsearch or OpenSearch"
    reads_all = "queries of logs"

    async def version(self, client: SourceClient) -> str:
        return await source_of(client).version()

    def toolset(self, instances: Sequence[LogAccess]) -> Toolset:
        return LogSourcesToolset(instances)
