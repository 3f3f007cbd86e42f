"""A source of traces that lies, floods, hangs or redirects costs one clear line; damaged spans are left out."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pytest

from holmes.observability.access import SourceAccess, SourceClient, open_source
from holmes.observability.traces.jaeger import JaegerSource
from holmes.observability.traces.source import Trace, TraceQuery, TraceSource, TraceSummary
from holmes.observability.traces.tempo import TempoSource, traceql
from holmes.observability.traces.tree import span_tree
from holmes.toolsets.traces.tree_texts import TraceText
from holmes.values.errors import ToolError
from tests.observability.test_access import serving
from tests.observability.traces.shapes import START
from tests.support.long_form import count

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue

SOURCES: Final[dict[str, Callable[[SourceClient], TraceSource]]] = {"jaeger": JaegerSource, "tempo": TempoSource}
QUERY: Final = TraceQuery(start_us=START, end_us=START + 1_000_000, limit=5, service="shop")
NANOSECONDS: Final = START * 1_000
OTLP: Final[JsonObject] = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "0a" * 16,
                            "spanId": "0b" * 8,
                            "name": "GET /",
                            "kind": 2,
                            "startTimeUnixNano": str(NANOSECONDS),
                            "endTimeUnixNano": str(NANOSECONDS + 5_000_000),
                            "status": {"code": 2},
                            "events": [{"attributes": [{"key": "exception.message", "value": {"stringValue": "no"}}]}],
                        },
                        {
                            "traceId": "0a" * 16,
                            "spanId": "0c" * 8,
                            "parentSpanId": "0b" * 8,
                            "name": "SELECT",
                            "startTimeUnixNano": str(NANOSECONDS + 1_000_000),
                            "endTimeUnixNano": str(NANOSECONDS + 3_000_000),
                        },
                    ]
                }
            ],
        }
    ]
}
JAEGER: Final[JsonObject] = {
    "data": [
        {
            "traceID": "abc",
            "spans": [
                {
                    "traceID": "abc",
                    "spanID": "1",
                    "operationName": "GET /",
                    "references": [],
                    "startTime": START,
                    "duration": 5_000,
                    "processID": "p1",
                    "tags": [{"key": "error", "type": "bool", "value": True}],
                    "logs": [{"fields": [{"key": "message", "value": "no"}]}],
                },
                {
                    "traceID": "abc",
                    "spanID": "2",
                    "operationName": "SELECT",
                    "references": [{"refType": "CHILD_OF", "traceID": "abc", "spanID": "1"}],
                    "startTime": START + 1_000,
                    "duration": 2_000,
                    "processID": "p1",
                },
            ],
            "processes": {"p1": {"serviceName": "shop", "tags": []}},
        }
    ],
    "errors": None,
}
GOOD: Final = {"jaeger": ("/api/traces/abc", JAEGER), "tempo": ("/api/v2/traces/abc", {"trace": OTLP})}
JUNK: Final[tuple[JsonValue, ...]] = (
    None, True, -1, 0, 10**30, 1.5, "", "x" * 50, "-5", [], {}, [[]], {"spans": []}, [None], "\ud800",
)  # fmt: skip


def read(kind: str, url: str, seconds: float = 10) -> Trace:
    async def run() -> Trace:
        async with open_source(SourceAccess(name="traces", url=url, timeout_seconds=seconds)) as client:
            return await SOURCES[kind](client).trace("abc")

    return asyncio.run(run())


def search(kind: str, url: str) -> tuple[TraceSummary, ...]:
    async def run() -> tuple[TraceSummary, ...]:
        async with open_source(SourceAccess(name="traces", url=url)) as client:
            return await SOURCES[kind](client).search(QUERY)

    return asyncio.run(run())


@pytest.mark.parametrize("kind", ["jaeger", "tempo"])
@pytest.mark.parametrize("way", ["hang", "flood", "redirect", "cut"])
def test_a_source_that_misbehaves_costs_one_line(kind: str, way: str) -> None:
    messages = {
        "hang": "no complete response within 0.5 s",
        "flood": "the response is larger than 16 MiB",
        "redirect": "redirects to 'http://169.254.169.254/latest/meta-data', which is not followed",
        "cut": "the connection failed",
    }
    with serving() as (url, _), pytest.raises(ToolError, match=messages[way]) as raised:
        read(kind, f"{url}/{way}", seconds=0.5 if way == "hang" else 20)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["jaeger", "tempo"])
@pytest.mark.parametrize("body", [b"<html>login</html>", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_is_not_json_of_the_api(kind: str, body: bytes) -> None:
    answers = {GOOD[kind][0]: (200, body), "/api/traces": (200, body), "/api/search": (200, body)}
    with serving(answers) as (url, _):
        for call in (read, search):
            with pytest.raises(ToolError, match=r"did not return (a JSON object|JSON); check the url of the source"):
                call(kind, url)


@pytest.mark.parametrize("kind", ["jaeger", "tempo"])
def test_the_other_product_at_the_address(kind: str) -> None:
    answers = dict.fromkeys(("/api/traces", "/api/search"), (200, b'{"status": "success"}'))
    with serving(answers) as (url, _), pytest.raises(ToolError, match=f"data of the {kind.title()} API"):
        search(kind, url)


def test_an_error_of_jaeger_inside_a_good_status() -> None:
    answers = {"/api/traces": (200, b'{"data": null, "errors": [{"code": 500, "msg": "storage is\\ndown"}]}')}
    with serving(answers) as (url, _), pytest.raises(ToolError, match="traces: storage is down; change the search"):
        search("jaeger", url)


@pytest.mark.parametrize("kind", ["jaeger", "tempo"])
def test_spans_with_impossible_times_are_counted_as_damaged(kind: str) -> None:
    path, good = GOOD[kind]
    bad = json.dumps(good).replace("5000,", "-5000,").replace(str(NANOSECONDS + 5_000_000), str(NANOSECONDS - 1))
    with serving({path: (200, bad.encode())}) as (url, _):
        trace = read(kind, url)
    assert (len(trace.spans), trace.damaged) == (1, 1)
    text = TraceText(trace, span_tree(trace)).short()
    assert "1 spans could not be read" in text
    assert "1 spans have a parent that the trace lacks" in text


@pytest.mark.parametrize("kind", ["jaeger", "tempo"])
def test_any_value_in_any_place_is_read_or_refused(kind: str) -> None:
    """Nothing but `ToolError` leaves a source, whatever a single value of an answer is replaced with."""
    path, good = GOOD[kind]
    bodies = [json.dumps(_with_junk(good, seed)).encode() for seed in range(count(long=2_000, short=100))]
    answers = {f"/{seed}{path}": (200, body) for seed, body in enumerate(bodies)}
    read_whole = 0
    with serving(answers) as (url, _):
        for seed in range(len(bodies)):
            try:
                trace = read(kind, f"{url}/{seed}")
            except ToolError:
                continue
            if trace.spans:
                text = TraceText(trace, span_tree(trace))
                assert text.short()
                assert text.complete()
                read_whole += 1
    assert read_whole > len(bodies) // 4


def _with_junk(good: JsonObject, seed: int) -> JsonObject:
    """Return a copy with one value, at a place that the seed chooses, replaced by junk."""
    generator = random.Random(seed)  # noqa: S311
    changed = copy.deepcopy(good)
    holders: list[tuple[dict[str, JsonValue] | list[JsonValue], str | int]] = []
    pending: list[JsonValue] = [changed]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            holders += [(each, key) for key in each]
            pending += each.values()
        elif isinstance(each, list):
            holders += [(each, place) for place in range(len(each))]
            pending += each
    holder, key = generator.choice(holders)
    holder[key] = generator.choice(JUNK)  # type: ignore[index]
    return changed


def test_names_and_values_cannot_leave_their_place_in_traceql() -> None:
    query = TraceQuery(
        start_us=0, end_us=1, limit=1, service='a" } || { true', tags=(("x.y", "5"), ('k" = 1 || .z', "v\\"))
    )
    assert traceql(query) == (
        '{ resource.service.name = "a\\" } || { true" && (.x.y = "5" || .x.y = 5) && ."k\\" = 1 || .z" = "v\\\\" }'
    )
