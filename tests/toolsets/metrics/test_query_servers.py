"""Thanos and Mimir are named, are read below a prefix and for a tenant, and an incomplete answer is never hidden.

They stand in for the real ones, see `query_servers.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.toolsets.metrics.toolset import MetricsFactory
from holmes.toolsets.registry import ToolsetContext
from holmes.triage.metric_readings import SeenMetrics, SeenReading, measured_lines
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from tests.observability.logs.serving import Reply, serving
from tests.toolsets.metrics.calling import call
from tests.toolsets.metrics.query_servers import TENANT, WARNING, mimir, thanos

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue

TOLD = f"incomplete: the source warns that data is missing: {WARNING}"
CALLS: list[tuple[str, dict[str, JsonValue]]] = [
    ("query_metrics", {"query": "up"}),
    ("query_metrics_range", {"query": "up", "since": "1h"}),
    ("find_metrics", {"words": "up"}),
    ("metric_labels", {"metric": "up"}),
    ("alert_rules", {}),
    ("read_alert", {"name": "Down"}),
    ("scrape_targets", {}),
]


async def checked(url: str, **keys: JsonValue) -> str:
    context = ToolsetContext(environment=Environment.of({}), config={"prometheus_url": url, **keys})
    return await MetricsFactory().check(context)


async def test_the_check_names_thanos() -> None:
    with thanos() as url:
        assert (await checked(url)).startswith("prometheus: Thanos 0.35.1, ")


async def test_the_check_names_mimir_below_its_prefix_and_for_its_tenant() -> None:
    with mimir() as url:
        assert (await checked(url, headers={"X-Scope-OrgID": TENANT})).startswith("prometheus: Grafana Mimir 2.16.0, ")
        with pytest.raises(ToolError, match=r"HTTP 401\); check the token, user name or tenant header"):
            await checked(url)
        with pytest.raises(ToolError, match="check the path of the configured URL"):
            await checked(url.removesuffix("/prometheus"), headers={"X-Scope-OrgID": TENANT})


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_a_partial_response_of_thanos_is_incomplete_in_every_tool(tool: str, arguments: dict[str, JsonValue]) -> None:
    with thanos(is_partial=True) as url:
        partial = call(tool, {"prometheus_url": url}, **arguments)
    assert str(partial.data).splitlines().count(TOLD) == 1
    with thanos() as url:
        assert "incomplete" not in str(call(tool, {"prometheus_url": url}, **arguments).data)


def test_nothing_found_in_a_partial_response_is_not_called_absent() -> None:
    with thanos(is_partial=True) as url:
        assert str(call("query_metrics", {"prometheus_url": url}, query="missing").data) == f"no data\n{TOLD}"
        with pytest.raises(ToolError) as raised:
            call("query_metrics", {"prometheus_url": url}, query="missing_as_well")
        with pytest.raises(ToolError) as unread:
            call("workload_signals", {"prometheus_url": url}, namespace="shop", pods="a")
    assert str(raised.value).endswith(TOLD)
    assert str(unread.value).endswith(TOLD)


@pytest.mark.parametrize(("tool", "arguments"), CALLS[:-1])
def test_mimir_answers_below_its_prefix_and_for_its_tenant(tool: str, arguments: dict[str, JsonValue]) -> None:
    with mimir() as url:
        assert (
            call(tool, {"prometheus_url": url, "headers": {"X-Scope-OrgID": TENANT}}, **arguments).status == "success"
        )


def test_mimir_has_no_scrape_targets_and_says_what_to_ask_instead() -> None:
    with mimir() as url, pytest.raises(ToolError, match="does not list scrape targets; query `up` instead"):
        call("scrape_targets", {"prometheus_url": url, "headers": {"X-Scope-OrgID": TENANT}})


def test_an_answer_without_an_llm_says_that_metrics_are_incomplete() -> None:
    reading = SeenReading(text=f"a: no series differs from normal\nread: restarts\n{TOLD}", result_id="tool-1")
    lines = measured_lines(SeenMetrics(signals=reading))
    assert [line for line in lines if "Metrics are incomplete: the source warns" in line and "[[tool-1:3]]" in line]
    failed = SeenReading(text=f"Error: a has none of the known metrics of these pods; {TOLD}", failed=True)
    (line,) = measured_lines(SeenMetrics(signals=failed))
    assert line.startswith("Not checked: metrics (")


def test_a_partial_response_of_a_cluster_of_victoria_metrics_is_incomplete() -> None:
    answers = {
        "/api/v1/query": b'{"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]}}',
        "/api/v1/label/__name__/values": b'{"status":"success","isPartial":false,"data":["up"]}',
    }
    with serving(lambda path, _: Reply(body=answers[path.partition("?")[0]])) as url:
        found = call("query_metrics", {"prometheus_url": url}, query="up").data
    assert str(found).splitlines()[1:] == [
        "incomplete: the source warns that data is missing: a part of its storage did not answer (isPartial)"
    ]
