"""`query_logs` and `log_fields` with VictoriaLogs: what the model reads, and errors that say what to change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest

from holmes.toolsets.instances import instances_of
from holmes.toolsets.logs.config import KIND
from holmes.toolsets.logs.toolset import LogSourcesToolset
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tool_arguments import coerce_arguments
from holmes.values.tools import ToolInvocation
from tests.observability.logs.records import Line, send_to_victoria_logs

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult

DAY: Final = 40 * 86_400
RANGE: Final = {"since": "2026-02-11T10:00:00Z", "until": "2026-02-11T11:00:00Z"}


@pytest.fixture(scope="module")
def url(victoria_logs_url: str) -> str:
    lines = [
        Line(at=DAY + each, text=f"GET /pay {each}", pod=f"pay-{each % 2}", namespace="query") for each in range(90)
    ]
    lines += [
        Line(at=DAY + 90 + each, text="ERROR upstream ledger:8080: i/o timeout", pod="pay-0", namespace="query")
        for each in range(30)
    ]
    send_to_victoria_logs(victoria_logs_url, lines, "vector")
    return victoria_logs_url


def call(url: str, tool_name: str = "query_logs", **arguments: JsonValue) -> ToolResult:
    toolset = LogSourcesToolset(instances_of({"type": "victorialogs", "url": url}, KIND))
    tool = next(each for each in toolset.tools if each.name == tool_name)
    given = coerce_arguments(tool, {**RANGE, **arguments})
    return asyncio.run(toolset.call(ToolInvocation(call_id=ToolCallId("1"), tool=tool, arguments=given)))


def test_rows_are_shown_with_what_differs_and_with_the_trouble_in_them(url: str) -> None:
    result = call(url, query="kubernetes.pod_namespace:=query", limit=110)
    lines = result.data.splitlines()
    assert lines[0] == (
        "logs: showing 110 of 120 rows, the newest first, from 2026-02-11T10:00:00Z to 2026-02-11T11:00:00Z; to see "
        "other rows, narrow the query or the range"
    )
    assert lines[1] == "In all rows: kubernetes.container_name=app, kubernetes.pod_namespace=query"
    assert lines[2].startswith("Trouble in the last lines of these logs")
    assert "these rows, 30 times from 2026-02-11T10:01:30Z" in lines[3]
    assert lines[-1] == "2026-02-11T10:00:10Z {kubernetes.pod_name=pay-0} GET /pay 10"
    assert result.invocation == "logs: Query logs of the last 2026-02-11T10:00:00Z: kubernetes.pod_namespace:=query"


def test_the_oldest_rows_can_be_asked_for(url: str) -> None:
    lines = call(url, query="kubernetes.pod_namespace:=query", limit=2, order="oldest").data.splitlines()
    assert "showing 2 of 120 rows, the oldest first" in lines[0]
    assert [line.rpartition(" ")[2] for line in lines[-2:]] == ["0", "1"]


def test_fields_and_values_are_listed_with_their_lines(url: str) -> None:
    lines = call(url, "log_fields").data.splitlines()
    assert "kubernetes.pod_name (120 lines)" in lines
    assert set(call(url, "log_fields", field="kubernetes.pod_name").data.splitlines()[1:]) == {"pay-0", "pay-1"}
    assert call(url, query="nothing-of-this").status == "no_data"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": " "}, "query is empty; log_fields lists the fields"),
        ({"query": "*", "limit": 5_000}, "limit is 5000; expected a number between 1 and 1,000"),
        ({"query": "*", "since": "2026-02-12"}, "is not before until"),
        ({"query": "*", "since": "2025-02-12"}, "the range is longer than 31 days"),
        ({"query": "*", "since": "soon"}, "is neither a duration"),
        ({"query": "a | badpipe"}, "logs: the query 'a | badpipe' is rejected: cannot parse"),
    ],
)
def test_a_call_that_cannot_run_says_what_to_change(url: str, arguments: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(ToolError) as raised:
        call(url, "query_logs", **arguments)
    assert message in str(raised.value)
