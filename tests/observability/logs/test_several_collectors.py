"""Several collectors fill one source: the logs of each are found, and a log that two of them stored is not repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from holmes.observability.logs.fields import merged_lines
from holmes.observability.logs.source import (
    LogAccess,
    LogFields,
    LogLine,
    LogSubject,
    ReadLines,
    Span,
    StoredLog,
    WantedLines,
)
from tests.observability.logs.loki import loki
from tests.observability.logs.records import BEGIN, Line, entries, send_to_victoria_logs
from tests.observability.logs.stores import PRODUCTS, Product, opensearch_sources
from tests.observability.logs.test_sources import asked

Source: TypeAlias = Callable[[Product], LogAccess]
RECORDING: Final = Path(__file__).with_name("several_collectors.json")
NAMESPACE: Final = "several"
DAY: Final = 20 * 86_400
SPAN: Final = Span(start=BEGIN + DAY, end=BEGIN + DAY + 3_600)


def line(at: float, text: str, pod: str) -> Line:
    return Line(at=DAY + at, text=text, pod=pod, namespace=NAMESPACE)


LINES: Final = {
    "promtail": [
        *(line(each, f"old {each}", "old-0") for each in range(30)),
        *(line(each, f"both {each}", "both-0") for each in range(20)),
        line(20, "twice", "both-0"),
        line(20, "twice", "both-0"),
    ],
    "opentelemetry": [
        *(line(each, f"new {each}", "new-0") for each in range(5)),
        *(line(each, f"both {each}", "both-0") for each in range(15, 20)),
        line(20, "twice", "both-0"),
        *(line(each, f"both {each}", "both-0") for each in range(21, 25)),
    ],
}


@pytest.fixture(scope="module")
def source(victoria_logs_url: str) -> Iterator[Source]:
    for collector, stored in LINES.items():
        send_to_victoria_logs(victoria_logs_url, stored, collector)
    with (
        loki([entry for collector, stored in LINES.items() for entry in entries(stored, collector)]) as loki_url,
        opensearch_sources(RECORDING, LINES) as opensearch_url,
    ):
        urls = {"victorialogs": victoria_logs_url, "loki": loki_url, "opensearch": opensearch_url}

        def access(product: Product) -> LogAccess:
            index = ",".join(f"logs-{collector}" for collector in LINES) if product == "opensearch" else ""
            return LogAccess(name="prod", url=urls[product], product=product, index=index)

        yield access


def logs(access: LogAccess) -> dict[str, StoredLog]:
    subject = LogSubject(namespace=NAMESPACE, pods=("old-0", "new-0"), prefix="both-")
    return {each.pod: each for each in asked(access, lambda found: found.logs(subject, SPAN)).logs}


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_logs_of_each_collector_are_found(source: Source, product: Product) -> None:
    found = logs(source(product))
    assert {pod: (each.container, each.lines) for pod, each in found.items()} == {
        "old-0": ("app", 30),
        "new-0": ("app", 5),
        "both-0": ("app", 22),
    }
    assert {pod: len(each.fields) for pod, each in found.items()} == {"old-0": 1, "new-0": 1, "both-0": 2}


@pytest.mark.parametrize("product", PRODUCTS)
def test_lines_of_two_collectors_are_one_log_without_repetition(source: Source, product: Product) -> None:
    access = source(product)
    both = logs(access)["both-0"]
    # Loki keeps one of several equal lines of a stream.
    twice = ["twice"] if product == "loki" else ["twice", "twice"]
    expected = [*(f"both {each}" for each in range(20)), *twice, *(f"both {each}" for each in range(21, 25))]
    every = asked(access, lambda found: found.lines(both, WantedLines(span=SPAN, limit=500)))
    assert [each.text for each in every.lines] == expected
    newest = asked(access, lambda found: found.lines(both, WantedLines(span=SPAN, limit=6)))
    assert [each.text for each in newest.lines] == expected[-6:]
    oldest = asked(access, lambda found: found.lines(both, WantedLines(span=SPAN, limit=6, oldest=True)))
    assert [each.text for each in oldest.lines] == expected[:6]


def test_only_lines_with_the_same_text_and_time_are_one_line() -> None:
    times = "2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.2Z"
    one, other = (ReadLines(lines=(LogLine(time=times[0], text="a"), LogLine(time=each, text="b"))) for each in times)
    merged = merged_lines([one, other], WantedLines(span=SPAN, limit=10))
    assert [(each.time, each.text) for each in merged.lines] == [(times[0], "a"), (times[0], "b"), (times[1], "b")]


@pytest.mark.parametrize("product", PRODUCTS)
def test_configured_names_are_the_only_ones(source: Source, product: Product) -> None:
    dotted = ("k8s.namespace.name", "k8s.pod.name", "k8s.container.name")
    names = [each.replace(".", "_") if product == "loki" else each for each in dotted]
    own = LogFields(namespace=names[0], pod=names[1], container=names[2])
    assert {pod: each.lines for pod, each in logs(replace(source(product), fields=own)).items()} == {
        "new-0": 5,
        "both-0": 10,
    }
