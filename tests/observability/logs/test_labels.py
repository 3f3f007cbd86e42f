"""A source with logs of several clusters: `labels` limit every query, also those that a model writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from holmes.observability.access import QueryRejectedError
from holmes.observability.logs.loki import limited
from holmes.observability.logs.source import LogAccess, LogSubject, Span, WantedLines
from holmes.values.errors import ToolError
from tests.observability.logs.loki import loki
from tests.observability.logs.records import BEGIN, Line, entries, send_to_victoria_logs
from tests.observability.logs.serving import Reply, serving
from tests.observability.logs.stores import PRODUCTS, Product, opensearch_sources
from tests.observability.logs.test_sources import asked

Source: TypeAlias = Callable[[Product], LogAccess]
RECORDING: Final = Path(__file__).with_name("labels.json")
NAMESPACE: Final = "limited"
POD: Final = "web-0"
DAY: Final = 60 * 86_400
SPAN: Final = Span(start=BEGIN + DAY, end=BEGIN + DAY + 3_600)
LINES: Final = [
    Line(at=DAY + each, text=f"{cluster} {each}", pod=POD, namespace=NAMESPACE, container=cluster, cluster=cluster)
    for each in range(3)
    for cluster in ("eu", "us")
]


@pytest.fixture(scope="module")
def source(victoria_logs_url: str) -> Iterator[Source]:
    send_to_victoria_logs(victoria_logs_url, LINES, "promtail")
    with (
        loki(entries(LINES, "promtail")) as loki_url,
        opensearch_sources(RECORDING, {"promtail": LINES}) as opensearch_url,
    ):
        urls = {"victorialogs": victoria_logs_url, "loki": loki_url, "opensearch": opensearch_url}

        def access(product: Product) -> LogAccess:
            index = "logs-promtail" if product == "opensearch" else ""
            return LogAccess(name="prod", url=urls[product], product=product, index=index, labels={"cluster": "eu"})

        yield access


@pytest.mark.parametrize("product", PRODUCTS)
def test_logs_and_lines_are_those_of_the_cluster(source: Source, product: Product) -> None:
    subject = LogSubject(namespace=NAMESPACE, pods=(POD,))
    (log,) = asked(source(product), lambda found: found.logs(subject, SPAN)).logs
    assert (log.container, log.lines) == ("eu", 3)
    read = asked(
        source(product), lambda found: found.lines(replace(log, container=""), WantedLines(span=SPAN, limit=9))
    )
    assert [each.text for each in read.lines] == ["eu 0", "eu 1", "eu 2"]
    assert asked(source(product), lambda found: found.field_values("container", SPAN)).values == ("eu",)


QUERIES: Final = {
    "victorialogs": ("namespace:=limited", "namespace:=limited cluster:=us or pod:in(pod:=web-0 | fields pod)"),
    "loki": ('{namespace="limited"}', '{namespace="limited"} |~ `{|"` or {cluster="us"} # {'),
    "opensearch": ("namespace:limited", '{"bool": {"should": [{"match_all": {}}, {"term": {"cluster": "us"}}]}}'),
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_query_of_a_model_does_not_leave_the_cluster(source: Source, product: Product) -> None:
    plain, hostile = QUERIES[product]
    wanted = WantedLines(span=SPAN, limit=9)
    found = asked(source(product), lambda each: each.query(plain, wanted))
    assert sorted(row.text for row in found.rows) == ["eu 0", "eu 1", "eu 2"]
    try:
        rows = asked(source(product), lambda each: each.query(hostile, wanted)).rows
    except QueryRejectedError:
        rows = ()
    assert not [row for row in rows if "us" in row.text]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("{}", '{cluster="eu"}'),
        ('{a="b"} |= "{"', '{cluster="eu", a="b"} |= "{"'),
        (
            'sum(rate({a="\\"{"}[5m])) / sum(rate({b=`"`}[5m]))',
            'sum(rate({cluster="eu", a="\\"{"}[5m])) / sum(rate({cluster="eu", b=`"`}[5m]))',
        ),
        ('{a="b"} # {c="d"} "\n | json', '{cluster="eu", a="b"} # {c="d"} "\n | json'),
    ],
)
def test_each_selector_of_a_query_in_logql_is_limited(query: str, expected: str) -> None:
    assert limited(query, {"cluster": "eu"}) == expected


@pytest.mark.parametrize("query", ['/* " */ {a="b"} /* " */', '// "\n{a="b"}', "'\"' {a=\"b\"} '\"'", '{a="b', "{a=`b"])
def test_a_query_that_can_be_read_in_two_ways_is_rejected(query: str) -> None:
    with pytest.raises(QueryRejectedError, match="at column"):
        limited(query, {"cluster": "eu"})


def test_a_query_is_refused_where_the_label_is_not_that_of_a_stream(source: Source) -> None:
    access = replace(source("loki"), labels={"region": "eu"})
    with pytest.raises(ToolError, match="no line in the range has the label 'region' of its key labels"):
        asked(access, lambda found: found.query("{}", WantedLines(span=SPAN, limit=9)))


def test_a_version_that_may_ignore_the_limits_gets_no_query_of_a_model() -> None:
    row = json.dumps({"_time": "2026-01-02T10:00:00Z", "_msg": "us"}).encode()

    def respond(path: str, _: bytes) -> Reply:
        return Reply(status=404) if path.endswith("/buildinfo") else Reply(body=row)

    with serving(respond) as url:
        access = LogAccess(name="prod", url=url, product="victorialogs", labels={"cluster": "eu"})
        with pytest.raises(ToolError, match="this version cannot limit a query to the key labels of the source"):
            asked(access, lambda found: found.query("*", WantedLines(span=SPAN, limit=9)))


@pytest.mark.parametrize("label", ["cluster", "clustr"])
def test_a_label_of_a_search_engine_must_be_a_field_with_whole_values(label: str) -> None:
    words = {"text": {"type": "text", "aggregatable": False}}
    whole = {"keyword": {"type": "keyword", "aggregatable": True}}
    names = {"@timestamp": {"date": {"type": "date", "aggregatable": True}}, "message": words, "cluster": words}
    fields = {**names, "namespace": whole, "pod": whole, "container": whole}
    with serving(lambda *_: Reply(body=json.dumps({"fields": fields}).encode())) as url:
        access = LogAccess(name="prod", url=url, product="opensearch", index="logs", labels={label: "prod"})
        with pytest.raises(ToolError, match=f"labels: '{label}' is not a field with whole values"):
            asked(access, lambda found: found.query("*", WantedLines(span=SPAN, limit=9)))
