"""Queries are bounded before they are sent, and hints name existing metrics."""

from __future__ import annotations

import pytest

from holmes.observability.metrics.queries import check_query, nearest_metrics, promql_seconds
from holmes.values.errors import ToolError


def test_the_metrics_of_all_selectors_are_known() -> None:
    query = 'sum by (pod) (rate(http_requests_total{code=~"5.."}[5m])) / on (pod) {__name__="up"} > count(up)'
    checked = check_query(query)
    assert (checked.metrics, checked.problem) == (("http_requests_total", "up"), None)


@pytest.mark.parametrize("query", ["rate(foo", "sum(rate(foo[5m])) by", 'foo{a="b}', "median(foo)"])
def test_a_problem_of_the_parser_is_kept_and_not_raised(query: str) -> None:
    assert check_query(query).problem is not None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "query is empty"),
        ("rate(foo[$__rate_interval])", r"variable '\$__rate_interval' of a dashboard"),
        ('foo{job=~"$job"} > $limit', r"variable '\$limit'"),
        ("rate(foo[32d])", r"range \[32d\] is too long; use at most 31d"),
        ("max_over_time(foo[1y:5m])", r"range \[1y\] is too long"),
        ("(" * 60 + "a" + ")" * 60, "query is too large"),
        ("-" * 3_000 + "a", "query is too large"),
        ("a" + "+a" * 500, "query is too large"),
        ("a" * 3_000, "query is too large"),
    ],
)  # fmt: skip
def test_a_query_that_must_not_be_sent_is_refused_at_once(query: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        check_query(query)


def test_brackets_operators_and_ranges_in_strings_do_not_count() -> None:
    assert check_query(f'foo{{path="{"(" * 100}[90d]{"+" * 300}"}}').metrics == ("foo",)


@pytest.mark.parametrize(
    ("written", "seconds"), [("5m", 300), ("1h30m", 5_400), ("1d", 86_400), ("500ms", 0.5), ("", None), ("soon", None)]
)
def test_durations_of_queries(written: str, seconds: float | None) -> None:
    assert promql_seconds(written) == seconds


def test_hints_name_the_nearest_metrics_by_letters_or_by_words() -> None:
    known = ("http_requests_total", "container_memory_working_set_bytes", "up")
    assert nearest_metrics(["up"], known) == ""
    assert nearest_metrics(["http_request_total"], known).endswith("did you mean http_requests_total?")
    assert "container_memory_working_set_bytes" in nearest_metrics(["memory_working_set"], known)
    assert "find_metrics searches by words" in nearest_metrics(["zzz"], known)
