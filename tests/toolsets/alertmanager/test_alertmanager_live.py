"""The tools of `alertmanager/alerts` against a real Alertmanager with silences and inhibition."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import httpx
import pytest

from holmes.toolsets.alertmanager.toolset import KIND, AlertmanagerFactory, AlertmanagerToolset
from holmes.toolsets.instances import instances_of
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.support.command_line import Home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holmes.values.tools import ToolResult
    from tests.services.fixtures import RunMonitor
    from tests.services.monitoring import Monitor

CONFIG: Final = {
    "route": {
        "receiver": "team-shop",
        "group_by": ["alertname"],
        "routes": [{"matchers": ['severity="page"'], "receiver": "pager"}],
    },
    "receivers": [{"name": "team-shop"}, {"name": "pager"}, {"name": "unused"}],
    "inhibit_rules": [
        {"source_matchers": ['alertname="NodeDown"'], "target_matchers": ['alertname="PodDown"'], "equal": ["node"]}
    ],
}


@pytest.fixture(scope="module")
def manager(alertmanager: RunMonitor) -> Iterator[Monitor]:
    with alertmanager(CONFIG) as monitor:
        now = datetime.now(UTC)
        alerts = [
            {
                "labels": {"alertname": "NodeDown", "node": "n1", "severity": "page"},
                "annotations": {"summary": "n1 is\ndown"},
            },
            {"labels": {"alertname": "PodDown", "node": "n1", "namespace": "shop", "pod": "web-1"}},
            {"labels": {"alertname": "SlowCheckout", "namespace": "shop", "severity": "warning"}},
            {"labels": {"alertname": "SlowCheckout", "namespace": "bank", "severity": "warning"}},
        ]
        silence = {
            "matchers": [
                {"name": "alertname", "value": "SlowCheckout", "isRegex": False, "isEqual": True},
                {"name": "namespace", "value": "ba.*", "isRegex": True, "isEqual": True},
            ],
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(hours=2)).isoformat(),
            "createdBy": "night shift",
            "comment": "load test until 4",
        }
        for path, body in (("alerts", alerts), ("silences", silence)):
            httpx.post(f"{monitor.url}/api/v2/{path}", json=body, timeout=10).raise_for_status()
        _wait_for(monitor, {"active": 2, "suppressed": 2})
        yield monitor


def _wait_for(monitor: Monitor, states: dict[str, int]) -> None:
    deadline, found = time.monotonic() + 20, dict[str, int]()
    while found != states:
        assert time.monotonic() < deadline, found
        listed = httpx.get(f"{monitor.url}/api/v2/alerts", timeout=10).json()
        known = [alert["status"]["state"] for alert in listed]
        found = {state: known.count(state) for state in states}
        time.sleep(0.1)


def _call(monitor: Monitor, tool_name: str, **arguments: str) -> ToolResult:
    toolset = AlertmanagerToolset(instances_of({"url": monitor.url}, KIND))
    tool = next(each for each in toolset.tools if each.name == tool_name)
    return asyncio.run(toolset.call(ToolInvocation(call_id=ToolCallId("1"), tool=tool, arguments=arguments)))


def test_alerts_say_who_gets_them_and_what_mutes_them(manager: Monitor) -> None:
    lines = _call(manager, "list_alerts").data.splitlines()
    assert lines[0] == "4 alerts (2 active, 1 inhibited, 1 silenced), the newest first"
    (node,) = [line for line in lines if line.startswith("NodeDown ")]
    assert node.endswith('→ pager {node="n1", severity="page"}')
    assert lines[lines.index(node) + 1] == "  n1 is down"
    (pod,) = [line for line in lines if line.startswith("PodDown ")]
    assert "inhibited by 1 other alerts → team-shop" in pod
    (bank,) = [line for line in lines if 'namespace="bank"' in line]
    assert " silenced by " in bank


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        ({"labels": 'namespace="shop"'}, "2 alerts (1 active, 1 inhibited)"),
        ({"labels": '{namespace=~"shop|bank", alertname!="PodDown"}'}, "2 alerts (1 active, 1 silenced)"),
        ({"labels": "namespace=shop", "state": "active"}, "1 alert (1 active)"),
    ],
)
def test_alerts_are_chosen_by_labels_and_state(manager: Monitor, arguments: dict[str, str], first: str) -> None:
    assert _call(manager, "list_alerts", **arguments).data.startswith(f"{first}, ")


def test_silences_and_receivers(manager: Monitor) -> None:
    lines = _call(manager, "list_silences").data.splitlines()
    assert lines[0] == "1 silence"
    assert '{alertname="SlowCheckout", namespace=~"ba.*"} by night shift: load test until 4' in lines[1]
    assert " active until 20" in lines[1]
    assert _call(manager, "list_receivers").data.splitlines() == [
        "3 receivers",
        "team-shop: 1 active alert",
        "pager: 1 active alert",
        "unused: 0 active alerts",
    ]


def test_nothing_found_and_labels_that_are_not_valid(manager: Monitor) -> None:
    assert _call(manager, "list_alerts", labels='namespace="gone"').status == "no_data"
    with pytest.raises(ToolError, match="are not valid; expected for example"):
        _call(manager, "list_alerts", labels="the shop")


async def test_a_check_tells_the_version_or_what_is_wrong(manager: Monitor) -> None:
    def context(url: str) -> ToolsetContext:
        return ToolsetContext(environment=Environment.of({}), config={"url": url})

    assert (await AlertmanagerFactory().check(context(manager.url))).startswith("alertmanager: Alertmanager 0.")
    with pytest.raises(ToolError, match=r"the connection is refused; check the address, and start the source"):
        await AlertmanagerFactory().check(context("http://127.0.0.1:9"))
    with pytest.raises(ToolError, match="HTTP 404"):
        await AlertmanagerFactory().check(context(f"{manager.url}/other"))


def test_the_address_of_alerts_enables_the_toolset(manager: Monitor, tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", config=f"alertmanager_url: {manager.url}\n")
    (line,) = [each for each in home.run("toolset", "list").stdout.splitlines() if each.startswith("alertmanager")]
    assert " enabled   3 tools, alertmanager: Alertmanager 0." in line
