"""A list that a source cut at its limit says so, and is never taken for the whole."""

from __future__ import annotations

import json
from typing import Final

import pytest

from holmes.observability.logs.source import LogAccess, LogSubject, Span
from holmes.toolsets.kubernetes_logs.troubles import troubles
from holmes.toolsets.logs.texts import names_text
from tests.observability.logs.records import BEGIN, Line, send_to_victoria_logs
from tests.observability.logs.serving import Reply, serving
from tests.observability.logs.test_sources import asked

DAY: Final = 70 * 86_400
SPAN: Final = Span(start=BEGIN + DAY, end=BEGIN + DAY + 3_600)
SUBJECT: Final = LogSubject(namespace="cut", prefix="web-")


@pytest.mark.parametrize(("pods", "is_cut"), [(1_100, True), (3, False)])
def test_many_pods_in_victoria_logs(victoria_logs_url: str, pods: int, *, is_cut: bool) -> None:
    start = DAY + 86_400 * is_cut
    span = Span(start=BEGIN + start, end=BEGIN + start + 3_600)
    lines = [Line(at=start + each, text="x", pod=f"web-{each}", namespace="cut") for each in range(pods)]
    send_to_victoria_logs(victoria_logs_url, lines, "promtail")
    access = LogAccess(name="prod", url=victoria_logs_url, product="victorialogs")
    found = asked(access, lambda source: source.logs(SUBJECT, span))
    assert (len(found.logs), found.is_cut) == (min(pods, 1_000), is_cut)
    values = asked(access, lambda source: source.field_values("pod", span))
    assert values.is_cut is is_cut


@pytest.mark.parametrize(
    ("pods_left_out", "containers_left_out", "is_cut"), [(0, 0, False), (7, 0, True), (0, 7, True)]
)
def test_many_pods_or_containers_in_a_search_engine(
    pods_left_out: int, containers_left_out: int, *, is_cut: bool
) -> None:
    names = ("namespace", "pod", "container", "message", "@timestamp")
    fields = {name: {"keyword": {"aggregatable": True}} for name in names}
    inner = {"sum_other_doc_count": containers_left_out, "buckets": [{"key": "app", "doc_count": 3}]}
    bucket = {"key": "web-0", "doc_count": 3, "containers": inner}
    terms = {"sum_other_doc_count": pods_left_out, "buckets": [bucket]}
    found = {"aggregations": {"pods": terms, "values": terms}}

    def respond(path: str, _: bytes) -> Reply:
        return Reply(body=json.dumps({"fields": fields} if "_field_caps" in path else found).encode())

    with serving(respond) as url:
        access = LogAccess(name="prod", url=url, product="opensearch")
        assert asked(access, lambda source: source.logs(SUBJECT, SPAN)).is_cut is is_cut
        values = asked(access, lambda source: source.field_values("pod", SPAN))
        assert values.is_cut is (pods_left_out > 0)


def test_all_fields_of_a_large_index_are_counted() -> None:
    fields = {f"field_{each}": {"keyword": {"aggregatable": True}} for each in range(1_500)}
    with serving(lambda *_: Reply(body=json.dumps({"fields": fields}).encode())) as url:
        access = LogAccess(name="prod", url=url, product="opensearch")
        names = asked(access, lambda source: source.field_names(SPAN))
    assert names_text("field", names).startswith("showing 200 of 1,500 names of the kind: field\n")


def test_a_cut_list_of_values_has_no_exact_total() -> None:
    names = [(f"v{each}", 0) for each in range(500)]
    assert names_text("value of pod", names, is_cut=True).startswith("showing 200 of more than 500 names of the kind: ")


def test_groups_of_trouble_that_are_not_shown_are_counted() -> None:
    line = "2026-01-02T10:00:0{}Z ERROR could not connect to db-{}:5432: connection refused"
    logs = [(f"pod web-{each}", [line.format(second, each) for second in range(9)]) for each in range(7)]
    head, *shown = troubles(logs)
    assert head == "Trouble in the last lines of these logs, found by the built-in rules, 5 of 7 groups:"
    assert len(shown) == 5
