"""The protocol of a source of logs, and the values that it returns. A further backend is one more file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

from holmes.observability.access import SourceAccess
from holmes.values.errors import ToolError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.observability.access import SourceClient
    from holmes.values.json_types import JsonObject

LogProduct: TypeAlias = Literal["loki", "victorialogs", "elasticsearch", "opensearch"]
_PORTABLE: Final = expression(
    r"(?:[\w ,:;=/@#%&'<>~!-]|\\[.\[\](){}*+?^$|/-]|[.|]|[)\w.][*+?]|\((?:\?:)?(?=[^?*+])|\))*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFields:
    """The names of fields that Kubernetes knows. An empty name is unknown. `message` and `time` hold the line."""

    namespace: str = ""
    pod: str = ""
    container: str = ""
    message: str = ""
    time: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAccess(SourceAccess):
    """A source of logs. `index` is for search engines. `fields` are the configured names, which win over found ones.

    `labels` are fields and values to which every query is limited, for a source with logs of several clusters.
    """

    product: LogProduct
    index: str = ""
    fields: LogFields = LogFields()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The name for results, with what the source is limited to."""
        limits = ", ".join(f"{name}={value}" for name, value in self.labels.items())
        return f"{self.name} (only {limits})" if limits else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of time in seconds since 1970. The end is not part of it."""

    start: float
    end: float

    @property
    def start_ns(self) -> int:
        return round(self.start * 1_000_000) * 1_000

    @property
    def end_ns(self) -> int:
        return round(self.end * 1_000_000) * 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSubject:
    """The wanted pods: those in `pods`, and those whose names begin with `prefix` if it is not empty."""

    namespace: str
    pods: tuple[str, ...] = ()
    prefix: str = ""
    container: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLog:
    """The log of a container that the source has, with the number of its lines in the range.

    `fields` are the names of each collector that stored lines of it, or empty if they are not known. With several of
    them, `lines` is a minimum.
    """

    namespace: str
    pod: str
    container: str
    lines: int
    fields: tuple[LogFields, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLogs:
    """The logs of a subject. `is_cut` is true if the source has more than it lists."""

    logs: tuple[StoredLog, ...]
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValues:
    """Values of a field. `is_cut` is true if the source has more than it lists."""

    values: tuple[str, ...]
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedLines:
    """How much to read of a log: at most `limit` lines, the newest unless `oldest`.

    `pattern` is a regular expression of `portable_pattern`. A source that cannot search with it returns all lines.
    """

    span: Span
    limit: int
    oldest: bool = False
    pattern: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line with its time in RFC 3339."""

    time: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLines:
    """Lines, oldest first. `is_cut` is true if a limit of size or of the source came before the limit of lines.

    `is_searched` is true if the source searched with the pattern. Otherwise the lines are all of the log.
    """

    lines: tuple[LogLine, ...]
    is_cut: bool = False
    is_searched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """A row of a query: a line with the fields beside it, or only fields if the query calculates something."""

    time: str = ""
    text: str = ""
    fields: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRows:
    """Rows in the order of the source. `total` is the number of rows without a limit, or None if it is unknown."""

    rows: tuple[QueryRow, ...]
    total: int | None
    notes: tuple[str, ...] = ()


class LogSource(Protocol):
    """A source of logs. Every method raises `ToolError` with one line."""

    @property
    def access(self) -> LogAccess: ...

    async def version(self) -> str:
        """Return the product and version."""
        ...

    async def field_names(self, span: Span) -> tuple[tuple[str, int], ...]:
        """Return the fields that queries can use, with the number of their lines, or 0 if the source does not count."""
        ...

    async def field_values(self, field: str, span: Span) -> FieldValues: ...

    async def logs(self, subject: LogSubject, span: Span) -> FoundLogs:
        """Return the logs of a subject that have lines in the range."""
        ...

    async def lines(self, log: StoredLog, wanted: WantedLines) -> ReadLines: ...

    async def query(self, query: str, wanted: WantedLines) -> QueryRows:
        """Run a query in the language of the source. Raises `QueryRejectedError`."""
        ...


def log_access(client: SourceClient) -> LogAccess:
    return cast("LogAccess", client.access)


def portable_pattern(written: str) -> str:
    """Return a pattern that all products and Python read alike, or an empty string if it has other syntax."""
    return written if _PORTABLE.fullmatch(written) else ""


def json_object(access: SourceAccess, content: bytes, place: str) -> JsonObject:
    """Parse the object that a source returned. Raises `ToolError` for anything else."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ToolError(f"{access.name}: {place} did not return JSON of its API; check the type and path of its URL")
    return cast("JsonObject", found)


def check_place(access: LogAccess, log: StoredLog, fields: LogFields, record: Mapping[str, str]) -> None:
    """Raise `ToolError` if a line is of another pod than the one in the query, so that no other pod is blamed."""
    place = f"{record.get(fields.namespace, '')}/{record.get(fields.pod, '')}"
    if place != f"{log.namespace}/{log.pod}":
        raise ToolError(
            f"{access.name}: returned a line of pod {place!r} for a query about {log.namespace}/{log.pod}; check the "
            "fields of the source, and proxies before it"
        )


def rfc3339(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


_DETAILS: Final = (
    *("level", "severity", "severity_text", "log.level", "error", "err", "error.message", "exception"),
    *("stack_trace", "error.stack_trace", "exception.stacktrace", "attributes.exception.stacktrace"),
)


def with_details(text: str, record: Mapping[str, str]) -> str:
    """Return a line with what collectors move from it into fields: its level and its error."""
    moved = [(name, record[name]) for name in _DETAILS if record.get(name) and record[name] not in text]
    return " ".join([*(f"{name}={value}" for name, value in moved if "\n" not in value), text]) + "".join(
        f"\n{value}" for _, value in moved if "\n" in value
    )


DETAIL_FIELDS: Final = _DETAILS
