"""The tools of `grafana/dashboards` against a server that stands in for Grafana and asks a real Prometheus."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from holmes.observability.dashboards.dashboard import Dashboard, Variable, dashboard_of, with_values
from holmes.observability.dashboards.frames import result_of
from holmes.observability.dashboards.grafana import DataSource
from holmes.observability.dashboards.panel_queries import prepared
from holmes.observability.dashboards.variables import substituted
from holmes.toolsets.grafana.texts import dashboard_text
from holmes.toolsets.grafana.toolset import KIND, GrafanaFactory, GrafanaToolset
from holmes.toolsets.instances import instances_of
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tool_arguments import coerce_arguments
from holmes.values.tools import ToolInvocation
from tests.observability.test_access import serving
from tests.toolsets.grafana.grafana_server import REQUESTS, TOKEN, VERSION, Server, grafana

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.tools import ToolResult
    from tests.services.fixtures import RunMonitor

STEP: Final = 60


def history() -> str:
    """Return three hours of samples: two pods of the shop, one of which gets four times the requests at the end."""
    end = int(time.time()) // STEP * STEP
    lines = ["# TYPE http_requests counter"]
    for pod in ("web-1", "web-2"):
        total = 0
        for moment in range(end - 10_800, end, STEP):
            total += STEP * (8 if pod == "web-2" and moment >= end - 1_800 else 2)
            lines.append(f'http_requests_total{{namespace="shop",pod="{pod}"}} {total} {moment}')
    lines.append("# TYPE memory_bytes gauge")
    lines += [f'memory_bytes{{namespace="shop"}} 4096 {moment}' for moment in range(end - 600, end, STEP)]
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture(scope="module")
def server(prometheus: RunMonitor) -> Iterator[Server]:
    with prometheus({}, history=history()) as monitor, grafana(monitor.url) as running:
        yield running


def config(url: str) -> dict[str, JsonValue]:
    return {"url": url, "bearer_token": TOKEN, "headers": {"X-Grafana-Org-Id": "2"}}


def call(server: Server, tool: str, **arguments: JsonValue) -> ToolResult:
    toolset = GrafanaToolset(instances_of(config(server.url), KIND))
    found = next(each for each in toolset.tools if each.name == tool)
    return asyncio.run(
        toolset.call(ToolInvocation(call_id=ToolCallId("1"), tool=found, arguments=coerce_arguments(found, arguments)))
    )


def refusal(server: Server, tool: str, **arguments: JsonValue) -> str:
    with pytest.raises(ToolError) as raised:
        call(server, tool, **arguments)
    assert "\n" not in str(raised.value)
    return str(raised.value)


async def test_a_check_needs_valid_credentials_and_sends_the_organisation(server: Server) -> None:
    def context(keys: dict[str, JsonValue]) -> ToolsetContext:
        return ToolsetContext(environment=Environment.of({}), config=keys)

    found = await GrafanaFactory().check(context(config(server.url)))
    assert found.startswith(f"grafana: Grafana {VERSION}, ")
    assert server.headers[-1]["X-Grafana-Org-Id"] == "2"
    with pytest.raises(ToolError, match=r"the credentials are rejected \(HTTP 401\)"):
        await GrafanaFactory().check(context({"url": server.url, "bearer_token": "wrong"}))
    old = await GrafanaFactory().check(context({"api_url": server.url, "api_key": TOKEN}))
    assert old.startswith("grafana: Grafana ")


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"words": "checkout"}, ["1 dashboard", "checkout-1 'Checkout overview' in Shop tags: shop, sre"]),
        ({"words": "platform of kubernetes"}, ["2 dashboards", "nodes-1 'Nodes' in Platform tags: kubernetes"]),
        ({"tags": "kubernetes", "folder": "plat"}, ["1 dashboard", "nodes-1 'Nodes' in Platform tags: kubernetes"]),
        ({"folder": "General"}, ["1 dashboard", "pods-1 'Pods' in General tags: kubernetes"]),
        ({"words": "general"}, ["1 dashboard", "pods-1 'Pods' in General tags: kubernetes"]),
    ],
)
def test_dashboards_are_found_by_words_folder_and_tags(
    server: Server, arguments: dict[str, JsonValue], lines: list[str]
) -> None:
    assert call(server, "search_dashboards", **arguments).data.splitlines()[:2] == lines
    assert call(server, "search_dashboards", words="nothing like this").status == "no_data"


def test_a_dashboard_has_its_panels_with_values_instead_of_variables(server: Server) -> None:
    requests = REQUESTS.replace("$namespace", "shop").replace("$pod", ".*")
    assert call(server, "read_dashboard", dashboard="checkout-1").data.splitlines() == [
        "Checkout overview in Shop, 8 panels",
        "variable source = prom-1",
        "variable namespace = shop (of shop, bank)",
        "variable pod = All, as .*",
        "variable customer = no value",
        "- 1 'Requests' (timeseries; unit reqps; thresholds 8)",
        f"  A [Prometheus, prometheus]: {requests}",
        "  B [Prometheus, prometheus] (hidden): vector(1)",
        "row Memory:",
        "- 3 'Memory now' (stat; unit bytes)",
        '  A [Prometheus, prometheus]: sum(memory_bytes{namespace="shop"})',
        "row Storage:",
        "- 5 'Orders' (table)",
        "  A [Orders, postgres]: SELECT * FROM orders WHERE customer = '$customer'",
        "- 6 'Broken' (timeseries)",
        "  A [Prometheus, prometheus]: sum(memory_bytes",
        "- 7 'Per customer' (timeseries)",
        '  A [Prometheus, prometheus]: memory_bytes{customer="$customer"}',
        "- 8 'Shared errors' (timeseries; library panel)",
        "- 9 'Copy' (timeseries)",
        "  A [-- Dashboard --]: {}",
        "- 10 'Notes' (text)",
    ]


def test_panels_are_chosen_by_words_and_variables_get_given_values(server: Server) -> None:
    text = call(server, "read_dashboard", dashboard="checkout-1", words="requests", variables="pod=web-1|web-2").data
    assert text.splitlines()[0] == "Checkout overview in Shop, 1 of 8 panels"
    assert 'pod=~"(web-1|web-2)"' in text


def test_a_panel_runs_through_the_data_source_and_gives_numbers(server: Server) -> None:
    text = call(server, "run_panel", dashboard="checkout-1", panel="1", since="2h").data
    head, common, *series = text.splitlines()
    assert head.startswith("Requests (reqps) from ")
    assert head.endswith("step 30 s: 2 series")
    (busy,) = [line for line in [common, *series] if 'pod="web-2"' in line]
    assert "first 2, last 8" in busy
    assert re.search(r"; 2 → (7\.\d+|8) at ", busy)
    assert series[-2:] == ["thresholds of the panel: 8", "variable pod = All, as .*"]
    sent = server.queries[-1]["queries"][0]
    assert sent["expr"].endswith('{namespace="shop", pod=~".*"}[$__rate_interval]))')
    assert len(server.queries[-1]["queries"]) == 1


def test_given_variables_choose_what_is_queried(server: Server) -> None:
    one = {"dashboard": "checkout-1", "panel": "requests", "variables": "pod=web-1"}
    assert ": 1 series" in call(server, "run_panel", **one).data
    assert call(server, "run_panel", **{**one, "variables": "namespace=bank, pod=all"}).status == "no_data"


FILTERED: Final[JsonObject] = {"current": {"value": ["$__all"]}, "regex": "/^web-/"}


def variable(**written: JsonValue) -> Variable:
    listed: list[JsonValue] = [{"name": "pod", "type": "query", "multi": True, "includeAll": True, **written}]
    (found,) = dashboard_of({"dashboard": {"templating": {"list": listed}}}).variables
    return found


@pytest.mark.parametrize(
    ("found", "written"),
    [
        (variable(current={"value": ["$__all"]}), ".*"),
        (variable(current={"value": "All"}), ".*"),
        (variable(current={"text": "All"}), ".*"),
        (variable(current={"value": ["$__all"]}, allValue="web-.+"), "web-.+"),
        (variable(current={"text": "All", "value": "All"}, includeAll=False, allValue="web-.+"), "web-.+"),
        (variable(current={"value": "All"}, options=[{"value": "All"}, {"value": "b"}]), "All"),
        (variable(**FILTERED), "$pod"),
        (variable(**FILTERED, refresh=1, options=[{"value": "web-0"}]), "$pod"),
        (variable(**FILTERED, refresh=0, options=[{"value": "web-0"}, {"value": "web-1"}]), "(web-0|web-1)"),
        (variable(**FILTERED, allValue="web-.+"), "web-.+"),
        (variable(current={"value": "$__all"}, type="custom", options=[{"value": "a"}, {"value": "b"}]), "(a|b)"),
    ],
)
def test_all_values_are_those_that_the_dashboard_defines(found: Variable, written: str) -> None:
    assert substituted('up{pod=~"$pod"}', {"pod": found}, "prometheus") == f'up{{pod=~"{written}"}}'


def test_a_panel_is_not_run_with_more_values_than_grafana_would_use() -> None:
    target: JsonObject = {"refId": "A", "expr": 'up{pod=~"$pod"}', "datasource": {"type": "prometheus", "uid": "p"}}
    model: JsonObject = {"panels": [{"id": 1, "title": "Up", "type": "timeseries", "targets": [target]}]}
    (panel,) = dashboard_of({"dashboard": model}).panels
    sources = [DataSource(uid="p", name="P", kind="prometheus")]
    with pytest.raises(ToolError) as raised:
        prepared(panel, {"pod": variable(**FILTERED)}, sources)
    assert str(raised.value) == (
        "panel 1 is not run: All of variable 'pod' stands for the values that match '/^web-/', which only Grafana's "
        "page finds; give values with variables"
    )
    (query,) = prepared(panel, {"pod": replace(variable(**FILTERED), values=("web-0",))}, sources)
    assert query["expr"] == 'up{pod=~"web-0"}'
    text = dashboard_text(Dashboard(uid="x", title="X"), (), {"pod": variable(**FILTERED)}, ())
    assert "variable pod = All that match /^web-/" in text


def test_a_given_value_is_all_unless_it_is_an_option() -> None:
    either = (variable(options=[{"value": "all"}]), variable())
    assert [with_values((each,), {"pod": "all"})["pod"].values for each in either] == [("all",), ("$__all",)]


def test_the_options_of_a_variable_are_counted() -> None:
    many = variable(current={"value": "p1"}, options=[{"value": f"p{each}"} for each in range(12)])
    text = dashboard_text(Dashboard(uid="x", title="X", variables=(many,)), (), {"pod": many}, ())
    assert "variable pod = p1 (of p0, p1, p2, p3, p4, p5, p6, p7, … 8 of 12)" in text


def test_an_instant_query_gives_its_value(server: Server) -> None:
    lines = call(server, "run_panel", dashboard="checkout-1", panel="memory now").data.splitlines()
    assert lines[0].startswith("Memory now (bytes) at ")
    assert lines[1].startswith("4096 ")


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        ("5", "uses the data source type 'postgres', which is not run because its queries could change data"),
        ("6", "parse error: unclosed left parenthesis"),
        ("7", "variable 'customer' of the dashboard has no value; give one with variables"),
        ("8", "is a library panel, whose queries are stored elsewhere; choose another panel"),
        ("9", "the panel shows results of another panel or of Grafana itself"),
        ("10", "panel 10 'Notes' has no queries; choose another panel"),
        ("99", "unknown panel '99'; available panels: 1 'Requests', 3 'Memory now', 5 'Orders'"),
        ("e", "panels match 'e'; give the id of one: 1 'Requests', 3 'Memory now'"),
    ],
)
def test_a_panel_that_cannot_run_says_why(server: Server, panel: str, message: str) -> None:
    assert message in refusal(server, "run_panel", dashboard="checkout-1", panel=panel)


def test_names_that_do_not_exist(server: Server) -> None:
    unknown = refusal(server, "read_dashboard", dashboard="../../api/admin")
    assert unknown == "grafana has no dashboard with the uid '../../api/admin'; search_dashboards finds uids"
    message = refusal(server, "read_dashboard", dashboard="checkout-1", variables="cluster=eu")
    assert message == "dashboard has no variable 'cluster'; available variables: source, namespace, pod, customer"


def test_credentials_that_cannot_list_data_sources_run_panels_that_name_theirs(server: Server) -> None:
    server.lists_sources = False
    try:
        assert ": 2 series" in call(server, "run_panel", dashboard="checkout-1", panel="1").data
        message = refusal(server, "run_panel", dashboard="checkout-1", panel="3")
        assert message.endswith("is unknown; the token needs the right to list data sources")
    finally:
        server.lists_sources = True


@pytest.mark.parametrize(
    "body", [b"<html>login</html>", b"[[1], null, {}]", b"null", b'{"dashboard": 7}', b"[" * 90_000]
)
def test_answers_that_are_not_those_of_grafana(body: bytes) -> None:
    paths = ("/api/search", "/api/dashboards/uid/x", "/api/datasources")
    with serving(dict.fromkeys(paths, (200, body))) as (url, _):
        server = Server(url=url)
        for tool, arguments in (
            ("search_dashboards", {}),
            ("read_dashboard", {"dashboard": "x"}),
            ("run_panel", {"dashboard": "x", "panel": "1"}),
        ):
            try:
                assert "\n" not in call(server, tool, **arguments).data
            except ToolError as error:
                assert "\n" not in str(error)  # noqa: PT017  both outcomes are fine


def test_frames_with_impossible_times_and_values_keep_their_good_samples() -> None:
    fields: list[JsonValue] = [{"name": "Time", "type": "time"}, {"name": "Value", "type": "number", "labels": 7}]
    values: list[JsonValue] = [[10**400, -5, "x", None, 2_000, 1_000, 3_000], [1, 2, 3, 4, 10**400, 6.5, None]]
    frame: JsonValue = {"schema": {"fields": fields}, "data": {"values": values}}
    odd: list[JsonValue] = [frame, 7, {"schema": None}, {"schema": {"fields": fields}, "data": {"values": [1, 2]}}]
    result = result_of({"results": {"A": {"frames": odd}, "B": {"error": "no\nway"}, "C": None}})
    (series, empty) = result.series
    assert (series.times, series.values) == ((1.0,), (6.5,))
    assert (empty.values, result.tables, result.errors) == ((), (), {"B": "no way"})


def test_a_redirect_to_an_inner_address_is_not_followed() -> None:
    with serving() as (url, _):
        assert "which is not followed" in refusal(Server(url=f"{url}/redirect"), "search_dashboards")
