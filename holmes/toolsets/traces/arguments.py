"""Parses the arguments of the tools: ids, durations, attributes and the range of time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.queries import promql_seconds
from holmes.observability.traces.source import TraceQuery
from holmes.toolsets.metrics.ranges import moment
from holmes.toolsets.pairs import pairs_argument
from holmes.toolsets.traces.tools import DEFAULT_LIMIT, MOST_LISTED
from holmes.values.errors import ToolError
from holmes.values.tool_arguments import text_argument

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject

_ID: Final = re.compile(r"[0-9a-fA-F]{1,32}")
_LONGEST_RANGE_SECONDS: Final = 31 * 86_400


def trace_id_of(arguments: JsonObject) -> str:
    """Return the id of a trace. Raises `ToolError` for text that no source accepts."""
    written = text_argument(arguments, "trace_id")
    if not _ID.fullmatch(written):
        raise ToolError(f"trace_id {written[:80]!r} is not valid; expected 32 hexadecimal digits from search_traces")
    return written.lower()


def limit_of(arguments: JsonObject) -> int:
    limit = arguments.get("limit")
    if limit is None:
        return DEFAULT_LIMIT
    if not isinstance(limit, int) or not 1 <= limit <= MOST_LISTED:
        raise ToolError(f"limit {limit!r} is not valid; expected a number from 1 to {MOST_LISTED}")
    return limit


def query_of(arguments: JsonObject, now: float, limit: int) -> TraceQuery:
    """Return the search of a call that reads at most `limit` traces. Raises `ToolError` with the argument."""
    until = text_argument(arguments, "until")
    end = moment("until", until, now)
    start = moment("since", text_argument(arguments, "since") or "1h", now if until else end)
    if not 0 < end - start <= _LONGEST_RANGE_SECONDS or start < 0:
        raise ToolError("since must be before until, and the range at most 31 days; change one of them")
    return TraceQuery(
        service=text_argument(arguments, "service"),
        operation=text_argument(arguments, "operation"),
        minimum_us=microseconds_of(arguments, "min_duration"),
        only_errors=arguments.get("only_errors") is True,
        tags=pairs_argument(arguments, "tags", 'http.status_code=500, user="a b"'),
        start_us=int(start * 1_000_000),
        end_us=int(end * 1_000_000),
        limit=limit,
    )


def microseconds_of(arguments: JsonObject, name: str) -> int:
    """Return a duration, or 0 if the argument is missing."""
    written = text_argument(arguments, name)
    if not written:
        return 0
    seconds = promql_seconds(written.replace(" ", ""))
    if not seconds:
        raise ToolError(f"{name} {written[:80]!r} is not a valid duration; expected for example 500ms or 2s")
    return max(1, int(seconds * 1_000_000))
