"""A stand-in for Loki: an HTTP server that parses LogQL and evaluates it on lines of the test.

Loki itself is not used, because of its licence. The server follows the public documentation of its HTTP API, version 1,
for the part that Holmes sends: selectors with all four operators, line filters, label filters, `count_over_time` and
`sum`. Anything else is a syntax error with its place, as Loki writes it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from tests.observability.logs.serving import Reply, serving

MOST_LINES: Final = 5_000
_TOKEN: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\|=|\|~|!=|!~|=~|[A-Za-z_]\w*|\d+[smhd]|[{}()\[\],=|])')
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line. `metadata` is structured metadata, which filters see and selectors do not."""

    at_ns: int
    text: str
    labels: dict[str, str]
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def all_labels(self) -> dict[str, str]:
        return {**self.labels, **self.metadata}


Test: TypeAlias = Callable[[Entry], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A parsed query. `by` is None if nothing is summed, and `seconds` is 0 if nothing is counted."""

    tests: tuple[Test, ...]
    seconds: int = 0
    by: tuple[str, ...] | None = None

    def of(self, entries: Sequence[Entry], start_ns: int, end_ns: int) -> list[Entry]:
        return [e for e in entries if start_ns <= e.at_ns < end_ns and all(test(e) for test in self.tests)]


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

    def peek(self) -> str:
        found = _TOKEN.match(self.text, self.position)
        return found[1] if found else ""

    def take(self, *expected: str) -> str:
        found = _TOKEN.match(self.text, self.position)
        token = found[1] if found else ""
        if not token or (expected and token not in expected):
            raise ValueError(self.error(token))
        assert found
        self.position = found.end()
        return token

    def error(self, token: str) -> str:
        before = self.text[: self.position].splitlines() or [""]
        shown = token or (self.text[self.position :].strip()[:1] or "$end")
        return f"parse error at line {len(before)}, col {len(before[-1]) + 1}: syntax error: unexpected {shown}"

    def query(self) -> Query:
        if self.peek() == "sum":
            self.take("sum")
            by = self.labels() if self.peek() == "by" else ()
            self.take("(")
            inner = self.query()
            self.take(")")
            return Query(tests=inner.tests, seconds=inner.seconds, by=by)
        if self.peek() == "count_over_time":
            self.take("count_over_time")
            self.take("(")
            inner = Query(tests=tuple(self.pipeline()))
            self.take("[")
            length = self.take()
            self.take("]")
            self.take(")")
            return Query(tests=inner.tests, seconds=int(length[:-1]) * _UNITS[length[-1]])
        return Query(tests=tuple(self.pipeline()))

    def labels(self) -> tuple[str, ...]:
        self.take("by")
        self.take("(")
        names = [self.take()]
        while self.peek() == ",":
            self.take(",")
            names.append(self.take())
        self.take(")")
        return tuple(names)

    def pipeline(self) -> Iterator[Test]:
        self.take("{")
        # As Loki: a selector with no matcher that excludes the empty value would read everything.
        yield self.matcher(only_labels=True)
        while self.peek() == ",":
            self.take(",")
            yield self.matcher(only_labels=True)
        self.take("}")
        while self.peek() in {"|=", "!=", "|~", "!~", "|"}:
            sign = self.take()
            yield self.matcher(only_labels=False) if sign == "|" else self.line_filter(sign)

    def matcher(self, *, only_labels: bool) -> Test:
        name, sign, value = self.take(), self.take("=", "!=", "=~", "!~"), json.loads(self.take())
        fits = re.compile(value if "~" in sign else re.escape(value)).fullmatch

        def test(entry: Entry) -> bool:
            known = entry.labels if only_labels else entry.all_labels
            return (fits(known.get(name, "")) is not None) != sign.startswith("!")

        return test

    def line_filter(self, sign: str) -> Test:
        value = json.loads(self.take())
        finds = re.compile(value if "~" in sign else re.escape(value)).search
        return lambda entry: (finds(entry.text) is not None) != sign.startswith("!")


def parsed(text: str) -> Query:
    """Parse a query. Raises `ValueError` with the place of an error."""
    parser = _Parser(text)
    query = parser.query()
    if parser.text[parser.position :].strip():
        raise ValueError(parser.error(parser.peek()))
    return query


@contextmanager
def loki(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the URL of a server with these lines."""

    def respond(target: str, _: bytes) -> Reply:
        parts = urlsplit(target)
        given = dict(parse_qsl(parts.query))
        path = parts.path.removeprefix("/loki/api/v1")
        if path == "/status/buildinfo":
            return _json({"version": "0.0.0-stand-in"})
        start, end = int(given.get("start", 0)), int(given.get("end", 1 << 62))
        if path == "/labels":
            names = {name for e in _selected(given, entries) if start <= e.at_ns < end for name in e.labels}
            return _json({"status": "success", "data": sorted(names)})
        if found := re.fullmatch(r"/label/(\w+)/values", path):
            values = {e.labels[found[1]] for e in _selected(given, entries) if found[1] in e.labels}
            return _json({"status": "success", "data": sorted(values)})
        try:
            query = parsed(given["query"])
        except ValueError as error:
            return Reply(status=400, body=str(error).encode())
        return _instant(query, entries, given) if path == "/query" else _range(query, entries, given)

    with serving(respond) as url:
        yield url


def _selected(given: dict[str, str], entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries of the streams to which a list of names is limited."""
    return parsed(given["query"]).of(entries, 0, 1 << 62) if "query" in given else list(entries)


def _instant(query: Query, entries: Sequence[Entry], given: dict[str, str]) -> Reply:
    end = int(given["time"])
    sums: dict[tuple[tuple[str, str], ...], int] = defaultdict(int)
    for entry in query.of(entries, end - query.seconds * 1_000_000_000, end):
        names = query.by if query.by is not None else tuple(entry.all_labels)
        sums[tuple((name, entry.all_labels[name]) for name in names if name in entry.all_labels)] += 1
    result = [{"metric": dict(labels), "value": [end / 1e9, str(count)]} for labels, count in sums.items()]
    return _json({"status": "success", "data": {"resultType": "vector", "result": result}})


def _range(query: Query, entries: Sequence[Entry], given: dict[str, str]) -> Reply:
    start, end, limit = int(given["start"]), int(given["end"]), int(given["limit"])
    if limit > MOST_LINES:
        return Reply(status=400, body=f"max entries limit per query exceeded, limit > {MOST_LINES}".encode())
    if query.seconds:
        step = int(given["step"]) * 1_000_000_000
        length = query.seconds * 1_000_000_000
        values = [[at / 1e9, str(len(query.of(entries, at - length, at)))] for at in range(start, end, step)]
        series = {"metric": {}, "values": [each for each in values if each[1] != "0"]}
        return _json({"status": "success", "data": {"resultType": "matrix", "result": [series]}})
    found = sorted(query.of(entries, start, end), key=lambda e: e.at_ns, reverse=given["direction"] == "backward")
    streams: dict[str, list[list[str]]] = defaultdict(list)
    for entry in found[:limit]:
        streams[json.dumps(entry.all_labels, sort_keys=True)].append([str(entry.at_ns), entry.text])
    result = [{"stream": json.loads(labels), "values": values} for labels, values in streams.items()]
    return _json({"status": "success", "data": {"resultType": "streams", "result": result}})


def _json(content: object) -> Reply:
    return Reply(body=json.dumps(content).encode())
