"""Reads Loki over its HTTP API, with queries in LogQL. Grafana offers the same API below the path of a data source."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

from holmes.observability.access import QueryRejectedError
from holmes.observability.logs.fields import found_fields, merged_lines, merged_logs
from holmes.observability.logs.source import (
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
)
from holmes.values.errors import ToolError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.observability.access import SourceClient
    from holmes.observability.logs.source import LogAccess, LogFields, LogSubject, Span, WantedLines
    from holmes.values.json_types import JsonObject, JsonValue

_API: Final = "/loki/api/v1"
_REJECTED: Final = frozenset({400})
_PAGE_LINES: Final = 1_000
"""The lines of one request. Loki allows 5,000 by default, and a page of long lines must fit the limit of a response."""
_STEPS: Final = 60
_LABEL: Final = expression(r"[A-Za-z_]\w*")
_PIECE: Final = expression(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|#[^\n]*|/(?![/*])|[^"`#\'/{]+|\{')
"""A text, a comment, or other parts of a query, each `{` by itself. Single quotes and comments of Go are none."""


class LokiSource:
    """A source of logs. Every method raises `ToolError` if the source does not answer as the API requires."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client
        self._known: tuple[tuple[LogFields, ...], frozenset[str]] | None = None

    @property
    def access(self) -> LogAccess:
        return log_access(self._client)

    async def version(self) -> str:
        """Return for example `Loki 3.5.0`. A source that only speaks the API does not tell its version."""
        answered = await self._client.read(f"{_API}/status/buildinfo", accepts=frozenset({403, 404}))
        if answered.status != 200:
            await self._read("/labels")
            return "Loki API"
        version = json_object(self.access, answered.body, f"{_API}/status/buildinfo").get("version")
        return f"Loki {version if isinstance(version, str) else ''}".strip()

    async def field_names(self, span: Span) -> tuple[tuple[str, int], ...]:
        return tuple(
            (name, 0) for name in _texts((await self._read("/labels", *self._limits(), *_times(span))).get("data"))
        )

    async def field_values(self, field: str, span: Span) -> FieldValues:
        if not _LABEL.fullmatch(field):
            raise ToolError(f"{field!r} is not a valid label of Loki; log_fields without a field lists them")
        found = _texts((await self._read(f"/label/{field}/values", *self._limits(), *_times(span))).get("data"))
        return FieldValues(values=found)

    def _limits(self) -> list[tuple[str, str]]:
        """Return the parameter that limits a list of names."""
        terms = [f"{name}={_quoted(value)}" for name, value in self.access.labels.items()]
        return [("query", f"{{{', '.join(terms)}}}")] if terms else []

    def _labels(self) -> list[tuple[str, str, str]]:
        return [(name, "=", value) for name, value in self.access.labels.items()]

    async def logs(self, subject: LogSubject, span: Span) -> FoundLogs:
        sets, _ = await self._fields(span)
        return merged_logs([await self._logs(fields, subject, span) for fields in sets])

    async def _logs(self, fields: LogFields, subject: LogSubject, span: Span) -> FoundLogs:
        """Return the logs that one collector stored."""
        _, labels = await self._fields(span)
        patterns = [*map(_escaped, subject.pods), *([f"{_escaped(subject.prefix)}.*"] if subject.prefix else [])]
        terms = [(fields.namespace, "=", subject.namespace), (fields.pod, "=~", "|".join(patterns))]
        terms += [(fields.container, "=", subject.container)] if subject.container and fields.container else []
        terms += self._labels()
        by = ", ".join(name for name in (fields.pod, fields.container) if name)
        seconds = max(1, round(span.end - span.start))
        query = f"sum by ({by}) (count_over_time({_selection(terms, labels)} [{seconds}s]))"
        data = (await self._read("/query", ("query", query), ("time", str(span.end_ns)))).get("data")
        # Loki rejects a query with too many series, so nothing is left out.
        return FoundLogs(
            logs=tuple(
                StoredLog(
                    namespace=subject.namespace,
                    pod=labels_.get(fields.pod, ""),
                    container=labels_.get(fields.container, ""),
                    lines=int(values[-1][1]) if values else 0,
                    fields=(fields,),
                )
                for labels_, values in _series(data)
            )
        )

    async def lines(self, log: StoredLog, wanted: WantedLines) -> ReadLines:
        sets, _ = await self._fields(wanted.span)
        return merged_lines([await self._lines(fields, log, wanted) for fields in log.fields or sets], wanted)

    async def _lines(self, fields: LogFields, log: StoredLog, wanted: WantedLines) -> ReadLines:
        """Read the lines that one collector stored."""
        _, labels = await self._fields(wanted.span)
        terms = [(fields.namespace, "=", log.namespace), (fields.pod, "=", log.pod)]
        terms += [(fields.container, "=", log.container)] if log.container and fields.container else []
        terms += self._labels()
        query = _selection(terms, labels)
        query += f" |~ {_quoted(f'(?i)(?:{wanted.pattern})')}" if wanted.pattern else ""
        found, is_cut = await self._pages(query, wanted)
        for _, _, labels_ in found:
            check_place(self.access, log, fields, dict(labels_))
        return ReadLines(
            lines=tuple(LogLine(time=rfc3339(at), text=text) for at, text, _ in sorted(found, key=lambda row: row[0])),
            is_cut=is_cut,
            is_searched=bool(wanted.pattern),
        )

    async def query(self, query: str, wanted: WantedLines) -> QueryRows:
        if self.access.labels:
            known = {name for name, _ in await self.field_names(wanted.span)}
            if missing := sorted(self.access.labels.keys() - known):
                raise ToolError(
                    f"{self.access.name}: no line in the range has the label {missing[0]!r} of its key labels"
                )
            query = limited(query, self.access.labels)
        first = await self._range(query, wanted, wanted.span, min(_PAGE_LINES, wanted.limit))
        if first.get("resultType") != "streams":
            return _measured(first)
        found, _ = await self._pages(query, wanted, first)
        total: int | None = len(found)
        if len(found) >= wanted.limit:
            total = await self._total(query, wanted.span)
        rows = [QueryRow(time=rfc3339(at), text=text, fields=labels) for at, text, labels in found]
        return QueryRows(rows=tuple(rows), total=total)

    async def _total(self, query: str, span: Span) -> int | None:
        """Return the number of lines of a query, or None if Loki does not count them, for example too many series."""
        counting = f"sum(count_over_time({query}\n [{max(1, round(span.end - span.start))}s]))"
        try:
            data = (await self._read("/query", ("query", counting), ("time", str(span.end_ns)))).get("data")
        except ToolError:
            return None
        return next((int(values[-1][1]) for _, values in _series(data) if values), None)

    async def _fields(self, span: Span) -> tuple[tuple[LogFields, ...], frozenset[str]]:
        """Return the names of fields of each collector, and all labels. Other names are structured metadata."""
        if self._known is None:
            names = dict(await self.field_names(span))
            # OpenTelemetry stores these as structured metadata, which `/labels` does not list.
            more = ("k8s_pod_name", "k8s_container_name") if "k8s_namespace_name" in names else ()
            known = {**dict.fromkeys(more, 0), **names}
            self._known = found_fields(self.access, known), frozenset(names)
        return self._known

    async def _pages(
        self, query: str, wanted: WantedLines, page: JsonObject | None = None
    ) -> tuple[list[tuple[int, str, tuple[tuple[str, str], ...]]], bool]:
        """Read lines page by page, from the newest or the oldest. Lines at the border of two pages are read twice."""
        found: dict[tuple[int, str, tuple[tuple[str, str], ...]], None] = {}
        span, size = wanted.span, 0
        while True:
            data = page or await self._range(query, wanted, span, min(_PAGE_LINES, wanted.limit))
            page, rows = None, sorted(_stream_lines(data), key=lambda row: row[0], reverse=not wanted.oldest)
            fresh = [row for row in rows if row not in found]
            found.update(dict.fromkeys(fresh[: wanted.limit - len(found)]))
            size += sum(len(row[1]) for row in fresh)
            if len(found) >= wanted.limit or len(rows) < min(_PAGE_LINES, wanted.limit):
                return list(found), False
            if not fresh or size > self.access.response_bytes:
                return list(found), True
            edge = rows[-1][0]
            span = _narrowed(span, edge, oldest=wanted.oldest)
            await asyncio.sleep(0)

    async def _range(self, query: str, wanted: WantedLines, span: Span, limit: int) -> JsonObject:
        step = max(1, round((span.end - span.start) / _STEPS))
        direction = "forward" if wanted.oldest else "backward"
        data = (
            await self._read(
                "/query_range",
                ("query", query),
                ("limit", str(limit)),
                ("direction", direction),
                ("step", str(step)),
                *_times(span),
            )
        ).get("data")
        if not isinstance(data, dict):
            raise ToolError(f"{self.access.name}: {_API}/query_range did not return data; check the type of the source")
        return data

    async def _read(self, path: str, *parameters: tuple[str, str]) -> JsonObject:
        answered = await self._client.read(f"{_API}{path}", parameters, accepts=_REJECTED)
        if answered.status in _REJECTED:
            raise QueryRejectedError(" ".join(answered.body[:600].decode("utf-8", "replace").split()))
        return await asyncio.to_thread(json_object, self.access, answered.body, f"{_API}{path}")


def _narrowed(span: Span, edge_ns: int, *, oldest: bool) -> Span:
    """Return the rest of a range behind a page. Its last moment is read again, because more lines can have it."""
    edge = edge_ns / 1e9
    kind = type(span)
    return kind(start=edge, end=span.end) if oldest else kind(start=span.start, end=edge + 1e-6)


def _times(span: Span) -> tuple[tuple[str, str], ...]:
    return ("start", str(span.start_ns)), ("end", str(span.end_ns))


def _selection(terms: list[tuple[str, str, str]], labels: frozenset[str]) -> str:
    """Return a selector of streams by labels, with a filter for fields that are not labels."""
    written = [(name, f"{name}{sign}{_quoted(value)}") for name, sign, value in terms]
    filters = "".join(f" | {term}" for name, term in written if name not in labels)
    return f"{{{', '.join(term for name, term in written if name in labels)}}}{filters}"


def limited(query: str, labels: Mapping[str, str]) -> str:
    """Return a query whose selectors all require the labels. Raises `QueryRejectedError` if it cannot be limited.

    Outside of texts and comments, a `{` begins a selector. Quotes and comments that scanners can read in two ways are
    rejected.
    """
    terms = ", ".join(f"{name}={_quoted(value)}" for name, value in labels.items())
    written, position = list[str](), 0
    while position < len(query):
        found = _PIECE.match(query, position)
        if found is None:
            raise QueryRejectedError(f"unexpected {query[position]!r} at column {position + 1}")
        position = found.end()
        written.append(found[0])
        if found[0] == "{":
            written.append(terms if query[position:].lstrip().startswith("}") else f"{terms}, ")
    return "".join(written)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _escaped(name: str) -> str:
    return "".join(each if each.isalnum() or each in "-_" else f"\\{each}" for each in name)


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _results(data: JsonValue) -> Iterator[JsonObject]:
    result = data.get("result") if isinstance(data, dict) else None
    yield from (each for each in result if isinstance(each, dict)) if isinstance(result, list) else ()


def _labels(value: JsonValue) -> dict[str, str]:
    return {name: str(each) for name, each in sorted(value.items())} if isinstance(value, dict) else {}


def _pairs(value: JsonValue) -> Iterator[tuple[str, str]]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, list) and len(each) >= 2 and isinstance(each[1], str):
            yield str(each[0]), each[1]


def _stream_lines(data: JsonObject) -> Iterator[tuple[int, str, tuple[tuple[str, str], ...]]]:
    for stream in _results(data):
        labels = tuple(_labels(stream.get("stream")).items())
        for at, text in _pairs(stream.get("values")):
            if at.isdecimal() and len(at) < 20:
                yield int(at), text, labels


def _series(data: JsonValue) -> Iterator[tuple[dict[str, str], list[tuple[str, float]]]]:
    """Yield the labels and values of a vector or matrix. Values that are not numbers are left out."""
    for each in _results(data):
        pairs = _pairs(each.get("values") or [each.get("value")])
        numbers = [(at, float(text)) for at, text in pairs if text.replace(".", "", 1).lstrip("-").isdecimal()]
        yield _labels(each.get("metric")), numbers


def _measured(data: JsonObject) -> QueryRows:
    """Return a row for each series of a query that calculates numbers."""
    rows = []
    for labels, values in _series(data):
        numbers = [value for _, value in values]
        told = (
            [("last", numbers[-1]), ("min", min(numbers)), ("max", max(numbers)), ("mean", sum(numbers) / len(numbers))]
            if numbers
            else []
        )
        rows.append(QueryRow(fields=(*labels.items(), *((name, f"{number:g}") for name, number in told))))
    return QueryRows(rows=tuple(rows), total=len(rows))
