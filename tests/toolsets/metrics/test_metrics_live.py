"""The tools of `prometheus/metrics` against a real Prometheus that has a week of samples."""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING

import pytest

from holmes.tokens import TokenCounter
from holmes.toolsets.metrics.toolset import MetricsFactory
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from tests.toolsets.metrics.calling import call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult
    from tests.services.fixtures import RunMonitor
    from tests.services.monitoring import Monitor

pytestmark = pytest.mark.slow

STEP = 600
WEEK = 7 * 86_400
PODS = 200
RULES = {
    "groups": [
        {
            "name": "shop",
            "rules": [
                {"alert": "Quiet", "expr": "absent(up) == 0"},
                {"alert": "Loud", "expr": "vector(7) > 5", "labels": {"severity": "page"}},
                {"record": "shop:requests:rate", "expr": "sum(rate(http_requests_total[15m]))"},
            ],
        }
    ]
}


def week_of_samples() -> str:
    """Return 200 pods that serve two requests per second, one of them nine for a day, and a pod that leaks memory."""
    generator = random.Random(3)  # noqa: S311
    end = int(time.time()) // STEP * STEP  # of this moment: collecting the tests may be an hour ago
    times = range(end - WEEK, end, STEP)
    lines = ["# HELP http_requests Requests served.", "# TYPE http_requests counter"]
    for pod in range(PODS):
        total = 0.0
        for moment in times:
            rate = 9 if pod == 7 and moment >= end - 86_400 else 2
            total += rate * STEP * generator.uniform(0.9, 1.1)
            lines.append(f'http_requests_total{{namespace="shop",pod="checkout-{pod}"}} {total:.0f} {moment}')
    lines += ["# HELP process_resident_memory_bytes Resident memory.", "# TYPE process_resident_memory_bytes gauge"]
    for moment in times:
        if not end - 3 * 86_400 <= moment < end - 3 * 86_400 + 7_200:
            size = 200_000_000 + 1_000 * (moment - end + WEEK)
            lines.append(f'process_resident_memory_bytes{{pod="leaky"}} {size} {moment}')
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module", params=["Prometheus", "VictoriaMetrics"])
def server(request: pytest.FixtureRequest, prometheus: RunMonitor, victoria_metrics: RunMonitor) -> Iterator[Monitor]:
    if request.param == "VictoriaMetrics":
        with victoria_metrics(rules=RULES, history=week_of_samples()) as monitor:
            yield monitor
        return
    config = {
        "global": {"evaluation_interval": "1s", "scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "gone", "static_configs": [{"targets": ["127.0.0.1:9"]}]}],
    }
    with prometheus(config, rules=RULES, history=week_of_samples()) as monitor:
        yield monitor


@pytest.fixture
def ask(server: Monitor) -> Callable[..., ToolResult]:
    return lambda tool, **arguments: call(tool, {"prometheus_url": server.url}, **arguments)


async def test_the_check_tells_product_version_and_time(server: Monitor) -> None:
    context = ToolsetContext(environment=Environment.of({}), config={"prometheus_url": server.url})
    product = "API" if server.service.name == "victoria-metrics" else r"\d\S+"
    assert re.fullmatch(rf"prometheus: Prometheus {product}, \d+ ms", await MetricsFactory().check(context))


def test_metrics_are_found_by_words_and_by_labels(ask: Callable[..., ToolResult]) -> None:
    assert ask("find_metrics", words="resident memory").data.splitlines() == [
        "1 matching metric",
        "process_resident_memory_bytes",
    ]
    assert "http_requests_total" in ask("find_metrics", words="requests", labels='namespace="shop"').data
    assert ask("find_metrics", words="requests", labels='namespace="other"').status == "no_data"


def test_labels_have_examples_and_all_values_of_one(ask: Callable[..., ToolResult]) -> None:
    assert ask("metric_labels", metric="http_requests_total").data.splitlines() == [
        "http_requests_total: 2 labels",
        "namespace (1 value): shop",
        "pod (200 values): checkout-0, checkout-1, checkout-10, checkout-100, checkout-101, …",
    ]
    assert ask("metric_labels", metric="http_requests_total", label="pod").data.startswith("showing 90 of 200 values")
    with pytest.raises(ToolError, match="no label 'pods'; available labels: namespace, pod"):
        ask("metric_labels", metric="http_requests_total", label="pods")


def test_two_hundred_series_over_a_week_are_a_short_text_with_the_one_that_differs(
    ask: Callable[..., ToolResult],
) -> None:
    text = ask("query_metrics_range", query="rate(http_requests_total[30m])", since="7d").data
    lines = text.splitlines()
    assert "showing 6 of 200 series" in lines[0]
    assert lines[1] == 'all have {namespace="shop"}'
    assert lines[2].startswith('- {pod="checkout-7"} (differs from the others): first ')
    (changed,) = [part for part in lines[2].split("; ") if "→" in part]
    assert changed.startswith(("1.9", "2 →", "2.0"))
    assert "differs" not in "".join(lines[3:])
    assert lines[-1].startswith("means of all 200 series: ")
    assert TokenCounter().count_text(text) <= 600


def test_a_leak_rises_steadily_and_its_gap_is_shown(ask: Callable[..., ToolResult]) -> None:
    text = ask("query_metrics_range", query="process_resident_memory_bytes", since="7d").data
    # VictoriaMetrics answers with the value of ten minutes ago where the last step has no sample yet.
    assert re.search(r"rises steadily by 3,(?:600,[0-4]|599,[5-9])\d\d per hour", text)
    assert "; no samples " in text
    assert "→" not in text


def test_an_instant_result_is_sorted_and_says_how_many_are_left_out(ask: Callable[..., ToolResult]) -> None:
    lines = ask("query_metrics", query="rate(http_requests_total[1h])", time="30m").data.splitlines()
    assert "showing 30 of 200 series, highest first" in lines[0]
    assert lines[2].endswith('{pod="checkout-7"}')
    assert ask("query_metrics", query="scalar(vector(1))").status == "success"
    assert ask("query_metrics_range", query="1 + 1").status == "success"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("rate(http_requests_total[5m]", r"not valid PromQL: (?:1:29: parse error: )?unclosed left parenthesis"),
        ("sum(up) by", r"not valid PromQL: (?:1:\d+: parse error|invalid promql query)"),
        ("mean(up)", r"not valid PromQL: (?:1:1: parse error: )?unknown function with name .mean."),
        ("rate(http_request_total[5m])", "'http_request_total' does not exist; did you mean http_requests_total"),
        ("memory_bytes_resident", "did you mean process_resident_memory_bytes"),
    ],
)
def test_a_wrong_query_is_answered_with_its_place_or_the_nearest_metric(
    ask: Callable[..., ToolResult], query: str, message: str
) -> None:
    """Only Prometheus tells the place."""
    for tool in ("query_metrics", "query_metrics_range"):
        with pytest.raises(ToolError, match=message):
            ask(tool, query=query)


def test_labels_that_match_nothing_are_no_data(ask: Callable[..., ToolResult]) -> None:
    assert ask("query_metrics", query='http_requests_total{pod="x"}').status == "no_data"


def test_too_many_series_for_a_range_are_refused_with_advice(ask: Callable[..., ToolResult]) -> None:
    rates = "rate(http_requests_total[1h])"
    query = f'label_replace({rates}, "a", "1", "", "") or {rates}'
    with pytest.raises(
        ToolError, match=r"returns 400 series; at most (?:199|200) can be read for this range: aggregate"
    ):
        ask("query_metrics_range", query=query, since="7d", step="605s")


def test_firing_rules_come_first_with_their_alerts(ask: Callable[..., ToolResult]) -> None:
    deadline = time.monotonic() + 30
    while "(firing" not in (text := ask("alert_rules").data) and time.monotonic() < deadline:
        time.sleep(0.2)
    lines = text.splitlines()
    assert lines[:2] == ["3 rules", "Loud (firing, group shop): vector(7) > 5"]
    assert lines[2].startswith("  firing since ")
    assert re.search(r'value 7: \{(?:alertgroup="shop", )?severity="page"\}$', lines[2])
    assert ask("alert_rules", words="recording").status == "no_data"


def test_a_target_that_is_down_is_shown_with_the_error(ask: Callable[..., ToolResult], server: Monitor) -> None:
    if server.service.name == "victoria-metrics":
        assert ask("scrape_targets").status == "no_data"  # another program scrapes for it
        return
    deadline = time.monotonic() + 30
    while "refused" not in (text := ask("scrape_targets").data) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert text.splitlines()[1].startswith("down  gone 127.0.0.1:9: ")


def test_one_of_two_sources_is_chosen_by_its_name(server: Monitor) -> None:
    config: dict[str, JsonValue] = {"instances": {"prod": {"url": server.url}, "eu": {"url": "http://127.0.0.1:9"}}}
    assert call("query_metrics", config, query="count(last_over_time(http_requests_total[1h]))", instance="prod").data
    with pytest.raises(ToolError, match=r"^eu \(http://127.0.0.1:9\): the connection is refused; check the address"):
        call("query_metrics", config, query="up", instance="eu")
    with pytest.raises(ToolError, match="instance"):
        call("query_metrics", config, query="up")
