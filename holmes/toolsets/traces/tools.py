"""The tools of `tracing/traces`. Descriptions are short, because all of them are part of every request."""

from __future__ import annotations

from typing import Final

from holmes.values.tools import Parameter, ParameterSchema, Tool

DEFAULT_LIMIT: Final = 10
MOST_LISTED: Final = 50


def _text(name: str, description: str, *, required: bool = False) -> Parameter:
    return Parameter(name=name, schema=ParameterSchema(types=("string",), description=description), required=required)


_SINCE: Final = _text("since", "Start: an age such as 1h or 2d, or an RFC 3339 time. Default: 1h")
_UNTIL: Final = _text("until", "End, in the same formats. Default: now")
_TAGS: Final = _text("tags", "Only spans with these attributes, e.g. http.status_code=500, k8s.namespace.name=shop")

SEARCH: Final = Tool(
    name="search_traces",
    description="Search traces by a service and properties of one of its spans. Returns ids and durations.",
    parameters=(
        _text("service", "Name of the service in the traces. Jaeger requires it"),
        _text("operation", "Name of the operation, e.g. GET /checkout"),
        _text("min_duration", "Only spans that took at least this long, e.g. 500ms"),
        Parameter(
            name="only_errors",
            schema=ParameterSchema(types=("boolean",), description="Only failed spans"),
            required=False,
        ),
        _TAGS,
        _SINCE,
        _UNTIL,
        Parameter(
            name="order",
            schema=ParameterSchema(types=("string",), enum=("newest", "slowest"), description="Default: newest"),
            required=False,
        ),
        Parameter(
            name="limit",
            schema=ParameterSchema(types=("integer",), description=f"Default: {DEFAULT_LIMIT}"),
            required=False,
        ),
    ),
)
READ: Final = Tool(
    name="read_trace",
    description=(
        "Read one trace as a tree. Spans on the critical path have a *: they decide its duration. Repeated spans are "
        "counted, errors have their messages."
    ),
    parameters=(
        _text("trace_id", "Id of the trace", required=True),
        Parameter(
            name="complete",
            schema=ParameterSchema(types=("boolean",), description="Every span with its attributes, can be large"),
            required=False,
        ),
    ),
)
COMPARE: Final = Tool(
    name="compare_traces",
    description=(
        "Compare slow with fast traces of an operation: which span differs in time, count, errors or attributes."
    ),
    parameters=(
        _text("service", "Name of the service in the traces", required=True),
        _text("operation", "Name of the operation. Default: the longest span of the service"),
        _text("slower_than", "Traces count as slow from this duration, e.g. 1s. Default: the slowest quarter"),
        _TAGS,
        _SINCE,
        _UNTIL,
    ),
)
TOOLS: Final = (SEARCH, READ, COMPARE)
