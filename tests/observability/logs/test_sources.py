"""All sources of logs give the same lines for the same questions, whatever collector stored them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import pytest

from holmes.observability.access import QueryRejectedError, open_source
from holmes.observability.logs.products import source_of
from holmes.observability.logs.source import (
    LogAccess,
    LogFields,
    LogSource,
    LogSubject,
    ReadLines,
    Span,
    StoredLog,
    WantedLines,
    portable_pattern,
)
from holmes.values.errors import ToolError
from tests.observability.logs.loki import loki
from tests.observability.logs.records import BEGIN, COLLECTORS, Line, entries, send_to_victoria_logs
from tests.observability.logs.stores import PRODUCTS, Product, opensearch_sources

T = TypeVar("T")
Sources: TypeAlias = Callable[[Product, str], LogAccess]
RECORDING: Final = Path(__file__).with_name("opensearch.json")
DAYS: Final = {collector: day * 86_400 for day, collector in enumerate(COLLECTORS)}
SPANS: Final = {name: Span(start=BEGIN + day, end=BEGIN + day + 3_600) for name, day in DAYS.items()}
POD: Final = "web-6b5d-x2k4p"


def lines_of(namespace: str, day: float) -> list[Line]:
    """Two pods of a Deployment, a pod of another one whose name begins alike, and another namespace."""
    lines = [Line(at=day + each, text=f"request {each} served", pod=POD, namespace=namespace) for each in range(1_200)]
    error = 'ERROR: "db" timeout (30s)'
    lines.append(Line(at=day + 700.5, text=error, pod=POD, namespace=namespace, level="fatal"))
    lines += [Line(at=day + 5, text="ready", pod="web-6b5d-9vvcz", namespace=namespace)]
    lines += [Line(at=day + 5, text="proxy", pod="web-6b5d-9vvcz", namespace=namespace, container="istio-proxy")]
    lines += [Line(at=day + 9, text="other", pod="web-admin-0", namespace=namespace)]
    lines += [Line(at=day + 9, text="other", pod=POD, namespace=f"{namespace}-2")]
    return sorted(lines, key=lambda line: line.at)


@pytest.fixture(scope="module")
def sources(victoria_logs_url: str) -> Iterator[Sources]:
    """Return the access of each product with lines of each collector, in a namespace and a day of the collector."""
    lines = {collector: lines_of(collector, day) for collector, day in DAYS.items()}
    for collector, stored in lines.items():
        send_to_victoria_logs(victoria_logs_url, stored, collector)
    with (
        loki([entry for collector, stored in lines.items() for entry in entries(stored, collector)]) as loki_url,
        opensearch_sources(RECORDING, lines) as opensearch_url,
    ):
        urls = {"victorialogs": victoria_logs_url, "loki": loki_url, "opensearch": opensearch_url}

        def access(product: Product, collector: str) -> LogAccess:
            fields = LogFields(namespace="ns", pod="podname", container="c") if collector == "own" else LogFields()
            index = f"logs-{collector}" if product == "opensearch" else ""
            return LogAccess(name="prod", url=urls[product], product=product, index=index, fields=fields)

        yield access


def asked(access: LogAccess, question: Callable[[LogSource], Coroutine[None, None, T]]) -> T:
    async def run() -> T:
        async with open_source(access) as client:
            return await question(source_of(client))

    return asyncio.run(run())


def read(access: LogAccess, wanted: WantedLines, collector: str = "vector") -> ReadLines:
    return lines_of_log(access, StoredLog(namespace=collector, pod=POD, container="app", lines=1_201), wanted)


def lines_of_log(access: LogAccess, log: StoredLog, wanted: WantedLines) -> ReadLines:
    return asked(access, lambda source: source.lines(log, wanted))


@pytest.mark.parametrize("collector", list(COLLECTORS))
@pytest.mark.parametrize("product", PRODUCTS)
def test_the_fields_of_each_collector_are_found(sources: Sources, product: Product, collector: str) -> None:
    subject = LogSubject(namespace=collector, pods=("web-6b5d-9vvcz",), prefix="web-6b5d-")
    found = asked(sources(product, collector), lambda source: source.logs(subject, SPANS[collector]))
    assert {(each.pod, each.container): each.lines for each in found.logs} == {
        (POD, "app"): 1_201,
        ("web-6b5d-9vvcz", "app"): 1,
        ("web-6b5d-9vvcz", "istio-proxy"): 1,
    }


@pytest.mark.parametrize("product", PRODUCTS)
def test_lines_are_read_from_both_ends_in_the_order_of_time(sources: Sources, product: Product) -> None:
    access, span = sources(product, "vector"), SPANS["vector"]
    newest = read(access, WantedLines(span=span, limit=3))
    assert [line.text for line in newest.lines] == [f"request {each} served" for each in (1197, 1198, 1199)]
    assert newest.lines[-1].time.startswith("2026-01-03T10:19:59")
    oldest = read(access, WantedLines(span=span, limit=2, oldest=True))
    assert [line.text for line in oldest.lines] == ["request 0 served", "request 1 served"]
    every = read(access, WantedLines(span=span, limit=5_000))
    assert len(every.lines) == 1_201
    assert not every.is_cut
    times = [line.time.removesuffix("Z") for line in every.lines]
    assert times == sorted(times)


def test_pages_of_loki_neither_repeat_nor_lose_lines_of_the_same_moment() -> None:
    stored = [Line(at=each // 700, text=f"line {each}", pod=POD) for each in range(2_600)]
    log, span = StoredLog(namespace="shop", pod=POD, container="app", lines=2_600), SPANS["fluent-bit"]
    with loki(entries(stored, "promtail")) as url:
        access = LogAccess(name="prod", url=url, product="loki")
        for oldest in (False, True):
            found = lines_of_log(access, log, WantedLines(span=span, limit=5_000, oldest=oldest))
            assert sorted(line.text for line in found.lines) == sorted(line.text for line in stored)
            assert not found.is_cut


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_end_of_a_range_is_not_part_of_it(sources: Sources, product: Product) -> None:
    start = SPANS["vector"].start
    found = read(sources(product, "vector"), WantedLines(span=Span(start=start + 2, end=start + 4), limit=9))
    assert [line.text for line in found.lines] == ["request 2 served", "request 3 served"]


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_level_that_the_collector_moved_is_part_of_the_line(sources: Sources, product: Product) -> None:
    start = SPANS["vector"].start + 700.4
    found = read(sources(product, "vector"), WantedLines(span=Span(start=start, end=start + 0.5), limit=9))
    told = "" if product == "loki" else "level=fatal "
    assert [line.text for line in found.lines] == [f'{told}ERROR: "db" timeout (30s)']


@pytest.mark.parametrize("product", ["victorialogs", "loki"])
def test_a_pattern_is_searched_by_the_source(sources: Sources, product: Product) -> None:
    wanted = WantedLines(span=SPANS["vector"], limit=9, pattern=r"\(30S\)|request 7 ")
    found = read(sources(product, "vector"), wanted)
    assert [line.text.rpartition("=fatal ")[2] for line in found.lines] == [
        "request 7 served",
        'ERROR: "db" timeout (30s)',
    ]


@pytest.mark.parametrize(
    ("written", "is_portable"),
    [
        (r"error|timeout \(30s\)", True),
        ("http.* 5..", True),
        ("a(b|c)+", True),
        (r"\bword\b", False),
        ("(?=x)", False),
        ("[a-z]", False),
        ("a++", False),
        ("a{2}", False),
        ("^x$", False),
        ("(a", True),
    ],
)
def test_only_patterns_that_all_read_alike_are_sent(written: str, *, is_portable: bool) -> None:
    assert portable_pattern(written) == (written if is_portable else "")


QUERIES: Final = {
    "victorialogs": ('"request 7" kubernetes.pod_namespace:=vector', '_msg:"served" kubernetes.pod_namespace:=vector'),
    "loki": ('{kubernetes_pod_namespace="vector"} |= "request 7 "', '{kubernetes_pod_namespace="vector"} |= "served"'),
    "opensearch": ('message:"request 7"', '{"match_phrase": {"message": "served"}}'),
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_queries_return_rows_with_fields_and_the_number_of_all(sources: Sources, product: Product) -> None:
    one, many = QUERIES[product]
    access, span = sources(product, "vector"), SPANS["vector"]
    found = asked(access, lambda source: source.query(one, WantedLines(span=span, limit=5)))
    assert [(row.text, found.total) for row in found.rows] == [("request 7 served", 1)]
    assert "web-6b5d-x2k4p" in dict(found.rows[0].fields).values()
    found = asked(access, lambda source: source.query(many, WantedLines(span=span, limit=5)))
    assert [row.text for row in found.rows] == [f"request {each} served" for each in range(1199, 1194, -1)]
    assert found.total == 1_200
    found = asked(access, lambda source: source.query(many, WantedLines(span=span, limit=5, oldest=True)))
    assert [row.text for row in found.rows] == [f"request {each} served" for each in range(5)]


CALCULATED: Final = {
    "victorialogs": "* | stats by (kubernetes.container_name) count() n | sort by (n) desc",
    "loki": 'sum(count_over_time({kubernetes_pod_namespace="vector"} [1h]))',
}


@pytest.mark.parametrize("product", ["victorialogs", "loki"])
def test_queries_can_calculate(sources: Sources, product: Product) -> None:
    wanted = WantedLines(span=SPANS["vector"], limit=5)
    found = asked(sources(product, "vector"), lambda source: source.query(CALCULATED[product], wanted))
    row = dict(found.rows[0].fields)
    assert row.get("n", row.get("last")) in {"1204", "1203"}


REJECTED: Final = {
    "victorialogs": ("_msg:served AND (", 'unexpected end of query after "("'),
    "loki": ('{pod="x"} |=', "parse error at line 1, col 13"),
    "opensearch": ("served AND (", "line 1, column 12"),
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_an_error_in_a_query_names_its_place(sources: Sources, product: Product) -> None:
    query, place = REJECTED[product]
    with pytest.raises(QueryRejectedError) as raised:
        asked(
            sources(product, "vector"),
            lambda source: source.query(query, WantedLines(span=SPANS["vector"], limit=5)),
        )
    assert place in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "clause",
    [
        '{"script": {"script": "1"}}',
        '{"bool": {"must": [{"script_score": {}}]}}',
        '{"terms": {"pod": {"index": "others", "id": "1", "path": "pod"}}}',
        '{"more_like_this": {"like": [{"_index": "others", "_id": "1"}]}}',
        "{1",
    ],
)
def test_programs_in_a_search_are_rejected_before_they_are_sent(sources: Sources, clause: str) -> None:
    with pytest.raises(QueryRejectedError, match=r"scripts|JSON"):
        asked(
            sources("opensearch", "vector"),
            lambda source: source.query(clause, WantedLines(span=SPANS["vector"], limit=5)),
        )


FIELD: Final = {
    "victorialogs": "kubernetes.container_name",
    "loki": "kubernetes_container_name",
    "opensearch": "kubernetes.container_name",
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_versions_fields_and_values_are_listed(sources: Sources, product: Product) -> None:
    access = sources(product, "vector")
    versions = {
        "victorialogs": "VictoriaLogs v1.52.1",
        "loki": "Loki 0.0.0-stand-in",
        "opensearch": "OpenSearch 2.19.6",
    }
    assert asked(access, lambda source: source.version()) == versions[product]
    known = dict(asked(access, lambda source: source.field_names(SPANS["vector"])))
    assert FIELD[product] in known
    values = asked(access, lambda source: source.field_values(FIELD[product], SPANS["vector"]))
    assert set(values.values) == {"app", "istio-proxy"}


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_source_without_known_fields_names_those_that_it_has(sources: Sources, product: Product) -> None:
    access = replace(sources(product, "own"), fields=LogFields())
    subject = LogSubject(namespace="own", prefix="web")
    with pytest.raises(ToolError, match=r"set fields\.namespace and fields\.pod") as raised:
        asked(access, lambda source: source.logs(subject, SPANS["own"]))
    if product != "opensearch":
        assert "podname" in str(raised.value)
