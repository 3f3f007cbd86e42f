"""Reads VictoriaLogs over its HTTP API, with queries in LogsQL."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.observability.access import QueryRejectedError
from holmes.observability.logs.fields import found_fields, merged_lines, merged_logs
from holmes.observability.logs.source import (
    DETAIL_FIELDS,
    FieldValues,
    FoundLogs,
    LogLine,
    QueryRow,
    QueryRows,
    ReadLines,
    StoredLog,
    check_place,
    json_object,
    log_access,
    rfc3339,
    with_details,
)
from holmes.values.errors import ToolError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.access import SourceClient
    from holmes.observability.logs.source import LogAccess, LogFields, LogSubject, Span, WantedLines
    from holmes.values.json_types import JsonObject

_API: Final = "/select/logsql"
_REJECTED: Final = 400
_MOST_LOGS: Final = 1_000
_MOST_VALUES: Final = 1_000
_SPANNING: Final = expression(r"=|\.[*+{]|\\s")
"""Parts of a pattern that can match beyond one field."""


class VictoriaLogsSource:
    """A source of logs. Every method raises `ToolError` if the source does not answer as the API requires."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client
        self._fields: tuple[LogFields, ...] | None = None

    @property
    def access(self) -> LogAccess:
        return log_access(self._client)

    async def version(self) -> str:
        """Return for example `VictoriaLogs v1.52.1`. Older versions do not tell theirs."""
        answered = await self._client.read("/select/buildinfo", accepts=frozenset({400, 404}))
        if answered.status != 200:
            await self._rows("* | limit 1", None, 1)
            return "VictoriaLogs"
        data = json_object(self.access, answered.body, "/select/buildinfo").get("data")
        return f"VictoriaLogs {data.get('version', '') if isinstance(data, dict) else ''}".strip()

    async def field_names(self, span: Span) -> tuple[tuple[str, int], ...]:
        return await self._counted("field_names", span)

    async def field_values(self, field: str, span: Span) -> FieldValues:
        values = await self._counted("field_values", span, ("field", field), ("limit", str(_MOST_VALUES)))
        return FieldValues(values=tuple(name for name, _ in values), is_cut=len(values) >= _MOST_VALUES)

    async def logs(self, subject: LogSubject, span: Span) -> FoundLogs:
        sets = await self._known(span)
        return merged_logs([await self._logs(fields, subject, span) for fields in sets])

    async def _logs(self, fields: LogFields, subject: LogSubject, span: Span) -> FoundLogs:
        """Return the logs that one collector stored."""
        terms = [*self._limits(), _is(fields.namespace, subject.namespace), _is_pod(fields.pod, subject)]
        terms += [_is(fields.container, subject.container)] if subject.container and fields.container else []
        by = [name for name in (fields.pod, fields.container) if name]
        query = f"{' '.join(terms)} | stats by ({', '.join(map(_quoted, by))}) count() holmes_lines"
        rows, is_cut = await self._rows(query, span, _MOST_LOGS)
        logs = tuple(
            StoredLog(
                namespace=subject.namespace,
                pod=row.get(fields.pod, ""),
                container=row.get(fields.container, ""),
                lines=_number(row.get("holmes_lines", "")),
                fields=(fields,),
            )
            for row in rows
            if row.get(fields.pod)
        )
        return FoundLogs(logs=logs, is_cut=is_cut or len(rows) >= _MOST_LOGS)

    async def lines(self, log: StoredLog, wanted: WantedLines) -> ReadLines:
        sets = log.fields or await self._known(wanted.span)
        return merged_lines([await self._lines(fields, log, wanted) for fields in sets], wanted)

    async def _lines(self, fields: LogFields, log: StoredLog, wanted: WantedLines) -> ReadLines:
        """Read the lines that one collector stored."""
        terms = [*self._limits(), _is(fields.namespace, log.namespace), _is(fields.pod, log.pod)]
        terms += [_is(fields.container, log.container)] if log.container and fields.container else []
        # A pattern that can span two fields can match only the joined text.
        is_searched = bool(wanted.pattern) and _SPANNING.search(wanted.pattern) is None
        terms += [_matches((fields.message, *DETAIL_FIELDS), wanted.pattern)] if is_searched else []
        kept = ", ".join(
            map(_quoted, dict.fromkeys(("_time", fields.message, fields.namespace, fields.pod, *DETAIL_FIELDS)))
        )
        query = f"{' '.join(terms)} | fields {kept}{_order(wanted)}"
        rows, is_cut = await self._rows(query, wanted.span, wanted.limit)
        for row in rows:
            check_place(self.access, log, fields, row)
        lines = [
            LogLine(time=row.get("_time", ""), text=with_details(row.get(fields.message, ""), row)) for row in rows
        ]
        # The source leaves out zeros at the end of a fraction, so `Z` would sort after the digits of a longer one.
        ordered = sorted(lines, key=lambda line: line.time.removesuffix("Z"))
        return ReadLines(lines=tuple(ordered), is_cut=is_cut, is_searched=is_searched)

    def _limits(self) -> list[str]:
        return [_is(name, value) for name, value in self.access.labels.items()]

    async def _refuse_without_limits(self) -> None:
        """Raise `ToolError` if the version may not know `extra_filters`, which limit a query and those inside it."""
        answered = await self._client.read("/select/buildinfo", accepts=frozenset({400, 404}))
        if answered.status != 200:
            raise ToolError(
                f"{self.access.name}: this version cannot limit a query to the key labels of the source; use "
                "kubernetes_logs, or update VictoriaLogs"
            )

    async def query(self, query: str, wanted: WantedLines) -> QueryRows:
        if self.access.labels:
            await self._refuse_without_limits()
        # A line of its own, because a query can end with a comment.
        rows, is_cut = await self._rows(f"{query}\n{_order(wanted)}", wanted.span, wanted.limit)
        total: int | None = len(rows)
        if is_cut or len(rows) >= wanted.limit:
            counted, _ = await self._rows(f"{query}\n| count() holmes_lines", wanted.span, 1)
            total = _number(counted[0].get("holmes_lines", "")) if counted else None
        return QueryRows(rows=tuple(map(_query_row, rows)), total=total)

    async def _known(self, span: Span) -> tuple[LogFields, ...]:
        if self._fields is None:
            found = found_fields(self.access, dict(await self.field_names(span)))
            message = self.access.fields.message or "_msg"
            self._fields = tuple(replace(each, message=message, time="_time") for each in found)
        return self._fields

    async def _counted(self, path: str, span: Span, *others: tuple[str, str]) -> tuple[tuple[str, int], ...]:
        place = f"{_API}/{path}"
        answered = await self._client.read(
            place, [("query", " ".join(self._limits()) or "*"), *_times(span), *others], method="POST"
        )
        values = json_object(self.access, answered.body, place).get("values")
        found = [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
        return tuple((str(each.get("value", "")), _number(str(each.get("hits", "")))) for each in found)

    async def _rows(self, query: str, span: Span | None, limit: int) -> tuple[list[dict[str, str]], bool]:
        """Return the rows of a query in the order of the source, and whether its response was too large."""
        seconds = max(1, int(self.access.timeout_seconds))
        sent = [("query", query), ("limit", str(limit)), ("timeout", f"{seconds}s"), *(_times(span) if span else [])]
        sent += [("extra_filters", " ".join(self._limits()))] if self.access.labels else []
        rows: list[dict[str, str]] = []
        async with self._client.read_lines(f"{_API}/query", sent, accepts=frozenset({_REJECTED})) as lines:
            if lines.status == _REJECTED:
                raise QueryRejectedError(_reason([line async for line in lines]))
            async for line in lines:
                rows.append(self._row(line))
                if len(rows) >= limit:
                    break
                if not len(rows) % 1_000:
                    await asyncio.sleep(0)
        return rows, lines.is_cut

    def _row(self, line: bytes) -> dict[str, str]:
        return {name: str(value) for name, value in json_object(self.access, line, f"{_API}/query").items()}


def _times(span: Span) -> list[tuple[str, str]]:
    """Return the range, whose end the API includes."""
    return [("start", rfc3339(span.start_ns)), ("end", rfc3339(span.end_ns - 1))]


def _order(wanted: WantedLines) -> str:
    return f" | sort by (_time) limit {wanted.limit}" if wanted.oldest else ""


def _is_pod(field: str, subject: LogSubject) -> str:
    terms = [f"{_quoted(field)}:in({', '.join(map(_quoted, subject.pods))})"] if subject.pods else []
    terms += [f"{_quoted(field)}:={_quoted(subject.prefix)}*"] if subject.prefix else []
    return f"({' or '.join(terms)})"


def _matches(names: Sequence[str], pattern: str) -> str:
    """Return a filter for lines of which one of the fields matches."""
    written = _quoted(f"(?i)(?:{pattern})")
    return f"({' or '.join(f'{_quoted(name)}:~{written}' for name in names)})"


def _is(field: str, value: str) -> str:
    return f"{_quoted(field)}:={_quoted(value)}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(written: str) -> int:
    return int(written) if written.isdecimal() and len(written) < 16 else 0


def _reason(lines: Sequence[bytes]) -> str:
    return " ".join(b" ".join(lines).decode("utf-8", "replace").split())[:600]


def _query_row(row: JsonObject) -> QueryRow:
    others = tuple(
        (name, str(value))
        for name, value in row.items()
        if name not in {"_time", "_msg", "_stream", "_stream_id"} and value != ""
    )
    return QueryRow(time=str(row.get("_time", "")), text=str(row.get("_msg", "")), fields=others)
