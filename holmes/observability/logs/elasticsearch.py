"""Reads Elasticsearch and OpenSearch over their common search API, with queries in Lucene's syntax or as JSON."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from holmes.observability.access import QueryRejectedError
from holmes.observability.logs.fields import KNOWN_FIELDS, MESSAGES, found_fields, merged_lines, merged_logs
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
    with_details,
)
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.observability.access import SourceClient
    from holmes.observability.logs.source import LogAccess, LogFields, LogSubject, Span, WantedLines
    from holmes.values.json_types import JsonObject, JsonValue

_REJECTED: Final = frozenset({400})
_PAGE_LINES: Final = 500
_WINDOW: Final = 10_000
"""The hits that an index gives out by default, which limits the lines of one reading."""
_MOST_PODS: Final = 500
_MOST_CONTAINERS: Final = 20
_KEYWORDS: Final = (".keyword", ".raw")
_STORED_BESIDE: Final = frozenset({"_index", "_id"})


class ElasticsearchSource:
    """A source of logs. Every method raises `ToolError` if the source does not answer as the API requires."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client
        self._known: tuple[tuple[LogFields, ...], Mapping[str, str]] | None = None

    @property
    def access(self) -> LogAccess:
        return log_access(self._client)

    async def version(self) -> str:
        """Return for example `OpenSearch 2.19.6`. A login that may only search does not see the version."""
        answered = await self._client.read("/", accepts=frozenset({403, 404}))
        if answered.status != 200:
            await self._search({"size": 0})
            return "Elasticsearch API"
        told = json_object(self.access, answered.body, "/").get("version")
        if not isinstance(told, dict):
            raise ToolError(f"{self.access.name}: / did not return a version; check the type and path of its URL")
        product = "OpenSearch" if told.get("distribution") == "opensearch" else "Elasticsearch"
        return f"{product} {told.get('number', '')}".strip()

    async def field_names(self, span: Span) -> tuple[tuple[str, int], ...]:  # noqa: ARG002  all fields of the index
        known = await self._capabilities("*")
        return tuple((name, 0) for name in sorted(known) if not name.startswith("_"))

    async def field_values(self, field: str, span: Span) -> FieldValues:
        capabilities = await self._capabilities(*_with_keywords([field]))
        exact = _exact(field, capabilities)
        if not capabilities.get(exact):
            raise ToolError(f"{field!r} is not a field of which values can be listed; log_fields lists the fields")
        (fields, *_), known = await self._fields()
        values: JsonObject = {"terms": {"field": exact, "size": _MOST_PODS}}
        found = await self._search(
            {
                "size": 0,
                "query": {"bool": {"filter": [_within(fields, span), *self._limits(known)]}},
                "aggs": {"values": values},
            }
        )
        aggregations = found.get("aggregations")
        listed = tuple(key for key, _ in _buckets(aggregations, "values"))
        return FieldValues(values=listed, is_cut=_has_others(aggregations, "values"))

    async def logs(self, subject: LogSubject, span: Span) -> FoundLogs:
        sets, exact = await self._fields()
        return merged_logs([await self._logs(fields, exact, subject, span) for fields in sets])

    async def _logs(self, fields: LogFields, exact: Mapping[str, str], subject: LogSubject, span: Span) -> FoundLogs:
        """Return the logs that one collector stored."""
        by: JsonObject = {"terms": {"field": exact[fields.pod], "size": _MOST_PODS}}
        if fields.container:
            inner: JsonObject = {"terms": {"field": exact[fields.container], "size": _MOST_CONTAINERS}}
            by = {**by, "aggs": {"containers": inner}}
        pods: list[JsonValue] = [{"terms": {exact[fields.pod]: list(subject.pods)}}] if subject.pods else []
        pods += [{"prefix": {exact[fields.pod]: subject.prefix}}] if subject.prefix else []
        filters: list[JsonValue] = [
            {"term": {exact[fields.namespace]: subject.namespace}},
            {"bool": {"should": pods, "minimum_should_match": 1}},
            _within(fields, span),
            *self._limits(exact),
        ]
        if subject.container and fields.container:
            filters.append({"term": {exact[fields.container]: subject.container}})
        found = await self._search({"size": 0, "query": {"bool": {"filter": filters}}, "aggs": {"pods": by}})
        buckets = tuple(_buckets(found.get("aggregations"), "pods"))
        logs = tuple(
            StoredLog(namespace=subject.namespace, pod=pod, container=container, lines=count, fields=(fields,))
            for pod, bucket in buckets
            for container, count in _containers(bucket, has_containers=bool(fields.container))
        )
        is_cut = any(_has_others(bucket, "containers") for _, bucket in buckets)
        return FoundLogs(logs=logs, is_cut=is_cut or _has_others(found.get("aggregations"), "pods"))

    async def lines(self, log: StoredLog, wanted: WantedLines) -> ReadLines:
        """Read lines of a log. `wanted.pattern` is not sent: an index knows words, and not the text of a line."""
        sets, exact = await self._fields()
        return merged_lines([await self._lines(fields, exact, log, wanted) for fields in log.fields or sets], wanted)

    async def _lines(
        self, fields: LogFields, exact: Mapping[str, str], log: StoredLog, wanted: WantedLines
    ) -> ReadLines:
        """Read the lines that one collector stored."""
        filters: list[JsonValue] = [
            {"term": {exact[fields.namespace]: log.namespace}},
            {"term": {exact[fields.pod]: log.pod}},
            _within(fields, wanted.span),
            *self._limits(exact),
        ]
        filters += [{"term": {exact[fields.container]: log.container}}] if log.container and fields.container else []
        names = list(dict.fromkeys((fields.message, *MESSAGES, fields.namespace, fields.pod, *DETAIL_FIELDS)))
        body: JsonObject = {
            "query": {"bool": {"filter": filters}},
            "_source": False,
            "fields": [*names, {"field": fields.time, "format": "strict_date_optional_time_nanos"}],
            "sort": _order(fields, wanted),
        }
        found: list[LogLine] = []
        limit, size = min(wanted.limit, _WINDOW), 0
        while len(found) < limit:
            page = min(_PAGE_LINES, limit - len(found))
            hits = _hits(await self._search({**body, "size": page, "from": len(found)}))
            records = [_first_values(hit.get("fields")) for hit in hits]
            for record in records:
                check_place(self.access, log, fields, record)
            found += [_line(record, fields) for record in records]
            size += sum(len(line.text) for line in found[-len(hits) :]) if hits else 0
            if len(hits) < page:
                break
            if size > self.access.response_bytes:
                limit = len(found)
        is_cut = limit < wanted.limit and len(found) >= limit
        return ReadLines(lines=tuple(found if wanted.oldest else reversed(found)), is_cut=is_cut)

    async def query(self, query: str, wanted: WantedLines) -> QueryRows:
        (fields, *_), exact = await self._fields()
        clause = _clause(query)
        body: JsonObject = {
            "query": {"bool": {"must": [clause], "filter": [_within(fields, wanted.span), *self._limits(exact)]}},
            "size": wanted.limit,
            "sort": _order(fields, wanted),
            "track_total_hits": True,
        }
        found = await self._search(body, partial=True)
        rows = [_row(hit, fields) for hit in _hits(found)]
        return QueryRows(rows=tuple(rows), total=_total(found), notes=_failures(found))

    async def _fields(self) -> tuple[tuple[LogFields, ...], Mapping[str, str]]:
        """Return the names of fields of each collector, and for each name the field in which whole values are found."""
        if self._known is None:
            own = self.access.fields
            named = {own.namespace, own.pod, own.container, own.message, own.time, *self.access.labels}
            named -= {"", *KNOWN_FIELDS}
            capabilities = await self._capabilities(*_with_keywords(KNOWN_FIELDS))
            if named:
                # A request of its own, because the line of a request has a limit of 4 KiB.
                capabilities |= await self._capabilities(*_with_keywords(sorted(named)))
            sets = found_fields(self.access, dict.fromkeys(capabilities, 0))
            if not sets[0].time or not sets[0].message:
                raise ToolError(
                    f"{self.access.name}: no field with the time or the text of a line is known; set fields.time and "
                    "fields.message of the source"
                )
            used = [name for each in sets for name in (each.namespace, each.pod, each.container)]
            used += self.access.labels
            exact = {name: _exact(name, capabilities) for name in used if name}
            # A text matches each of its words, so that another cluster's lines would pass.
            if inexact := [name for name in self.access.labels if not capabilities.get(exact[name])]:
                raise ToolError(
                    f"{self.access.name}: labels: {inexact[0]!r} is not a field with whole values; name a keyword field"
                )
            self._known = sets, exact
        return self._known

    def _limits(self, exact: Mapping[str, str]) -> list[JsonValue]:
        """Return the filters for the labels to which the source is limited."""
        return [{"term": {exact[name]: value}} for name, value in self.access.labels.items()]

    async def _capabilities(self, *names: str) -> dict[str, bool]:
        """Return the fields of the index, and whether whole values can be found in them."""
        place = f"{self._index()}/_field_caps"
        sent = [("fields", ",".join(names)), ("ignore_unavailable", "true"), ("allow_no_indices", "true")]
        answered = await self._client.read(place, sent)
        fields = json_object(self.access, answered.body, place).get("fields")
        known = fields.items() if isinstance(fields, dict) else ()
        return {name: _can_aggregate(types) for name, types in known}

    async def _search(self, body: JsonObject, *, partial: bool = False) -> JsonObject:
        """Search. Without `partial`, a search that failed in a part of the index is an error of the source."""
        place = f"{self._index()}/_search"
        seconds = max(1, int(self.access.timeout_seconds))
        # The same copies of the data answer each page, so that lines of the same time keep their order.
        sent = [("ignore_unavailable", "true"), ("preference", "holmes")]
        answered = await self._client.read(place, sent, json={**body, "timeout": f"{seconds}s"}, accepts=_REJECTED)
        found = await asyncio.to_thread(json_object, self.access, answered.body, place)
        if answered.status in _REJECTED:
            raise QueryRejectedError(_reason(found))
        if not partial and (missing := _failures(found)):
            raise ToolError(f"{self.access.name}: {'; '.join(missing)}; try again, or shorten the range")
        return found

    def _index(self) -> str:
        return f"/{quote(self.access.index, safe='*,-')}" if self.access.index else ""


def _can_aggregate(types: JsonValue) -> bool:
    kinds = types.values() if isinstance(types, dict) else ()
    return all(isinstance(each, dict) and bool(each.get("aggregatable")) for each in kinds)


def _with_keywords(names: Sequence[str]) -> tuple[str, ...]:
    return (*names, *(f"{name}{each}" for name in names for each in _KEYWORDS))


def _exact(name: str, capabilities: Mapping[str, bool]) -> str:
    """Return the field with whole values: the field itself, or the one that a dynamic mapping adds to a text."""
    names = (name, *(f"{name}{each}" for each in _KEYWORDS))
    return next((each for each in names if capabilities.get(each)), name)


def _within(fields: LogFields, span: Span) -> JsonObject:
    bounds: JsonObject = {"gte": span.start_ns // 1_000_000, "lt": span.end_ns // 1_000_000, "format": "epoch_millis"}
    return {"range": {fields.time: bounds}}


def _order(fields: LogFields, wanted: WantedLines) -> list[JsonValue]:
    direction = "asc" if wanted.oldest else "desc"
    return [{fields.time: direction}, {"_doc": direction}]


def _clause(query: str) -> JsonObject:
    """Return the clause for a query in Lucene's syntax, or as JSON. Scripts are rejected: they are programs."""
    if not query.lstrip().startswith("{"):
        return {"query_string": {"query": query, "lenient": True}}
    try:
        clause = json.loads(query)
    except ValueError as error:
        raise QueryRejectedError(f"not valid JSON: {error}") from error
    clause = clause.get("query", clause)
    if not isinstance(clause, dict) or _reads_more(clause):
        raise QueryRejectedError("expected one query clause as JSON, without scripts and look-ups of documents")
    return clause


def _reads_more(value: JsonValue) -> bool:
    """Return whether a clause has a script, or looks up a document, to which the filters of a search do not apply."""
    if isinstance(value, dict):
        looks_up = "_index" in value or {"index", "id"} <= value.keys()
        return looks_up or any("script" in name or _reads_more(each) for name, each in value.items())
    return isinstance(value, list) and any(map(_reads_more, value))


def _hits(found: JsonObject) -> list[JsonObject]:
    outer = found.get("hits")
    hits = outer.get("hits") if isinstance(outer, dict) else None
    return [each for each in hits if isinstance(each, dict)] if isinstance(hits, list) else []


def _total(found: JsonObject) -> int | None:
    outer = found.get("hits")
    total = outer.get("total") if isinstance(outer, dict) else None
    value = total.get("value") if isinstance(total, dict) else total
    return value if isinstance(value, int) else None


def _failures(found: JsonObject) -> tuple[str, ...]:
    shards = found.get("_shards")
    failed = shards.get("failed") if isinstance(shards, dict) else 0
    notes = [f"{failed} of {shards.get('total')} shards failed"] if isinstance(shards, dict) and failed else []
    return (*notes, "the source stopped at its time limit; rows are missing") if found.get("timed_out") else (*notes,)


def _buckets(aggregations: JsonValue, name: str) -> Iterator[tuple[str, JsonObject]]:
    inner = aggregations.get(name) if isinstance(aggregations, dict) else None
    buckets = inner.get("buckets") if isinstance(inner, dict) else None
    for each in buckets if isinstance(buckets, list) else ():
        if isinstance(each, dict):
            yield str(each.get("key", "")), each


def _has_others(aggregations: JsonValue, name: str) -> bool:
    """Return whether documents have other values than those in the buckets."""
    inner = aggregations.get(name) if isinstance(aggregations, dict) else None
    return isinstance(inner, dict) and bool(inner.get("sum_other_doc_count"))


def _containers(bucket: JsonObject, *, has_containers: bool) -> Iterator[tuple[str, int]]:
    if not has_containers:
        yield "", _count(bucket)
    for name, inner in _buckets(bucket, "containers"):
        yield name, _count(inner)


def _count(bucket: JsonObject) -> int:
    count = bucket.get("doc_count")
    return count if isinstance(count, int) else 0


def _first_values(fields: JsonValue) -> dict[str, str]:
    """Return the first value of each field of a hit, which the API gives as lists."""
    pairs = fields.items() if isinstance(fields, dict) else ()
    return {name: str(values[0]) for name, values in pairs if isinstance(values, list) and values}


def _line(record: Mapping[str, str], fields: LogFields) -> LogLine:
    # Documents of one index can have their text in different fields.
    written = next((record[name] for name in (fields.message, *MESSAGES) if record.get(name)), "")
    return LogLine(time=record.get(fields.time, ""), text=with_details(written, record))


def _row(hit: JsonObject, fields: LogFields) -> QueryRow:
    flat = dict(_flat("", hit.get("_source")))
    time, written = (
        flat.pop(fields.time, ""),
        next((name for name in (fields.message, *MESSAGES) if flat.get(name)), ""),
    )
    text = flat.pop(written, "")
    return QueryRow(time=time, text=text, fields=tuple(flat.items()))


def _flat(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(f"{name}.{key}" if name else key, each)
    elif value not in (None, "", []):
        yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _reason(found: JsonObject) -> str:
    """Return the innermost cause of an error, which has the place in the query."""
    error = found.get("error")
    told: list[str] = []
    roots = error.get("root_cause") if isinstance(error, dict) else None
    pending: list[JsonValue] = [*(roots if isinstance(roots, list) else []), error]
    while pending:
        each = pending.pop(0)
        if isinstance(each, dict):
            told += [str(each["reason"])] if isinstance(each.get("reason"), str) else []
            shards = each.get("failed_shards")
            inner = (
                [shard.get("reason") for shard in shards if isinstance(shard, dict)] if isinstance(shards, list) else []
            )
            pending += [each.get("caused_by"), *inner]
    placed = [each for each in told if "line " in each] or told
    cause = (placed[0] if placed else json.dumps(error)).partition("Was expecting")[0]
    return " ".join(cause.split())[:600]
