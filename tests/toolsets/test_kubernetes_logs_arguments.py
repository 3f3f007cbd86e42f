"""What may be asked of `kubernetes_logs`, how it is configured, and what it costs to offer it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from holmes.toolsets.kubernetes_logs.request import line_filter, log_request
from holmes.toolsets.kubernetes_logs.toolset import KUBERNETES_LOGS, MAX_TIMEOUT_SECONDS, KubernetesLogsFactory
from holmes.toolsets.registry import ToolsetContext
from holmes.toolsets.times import duration
from holmes.values.environment import Environment
from holmes.values.errors import HolmesError, ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.support.kubernetes_api import KubernetesApi, document, kubernetes_api, log, pod, write_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holmes.values.json_types import JsonValue


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with kubernetes_api() as server:
        yield server


@pytest.fixture
def environment(api: KubernetesApi, tmp_path: Path) -> Environment:
    return Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, api.url))})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": " "}, "name is empty"),
        ({"name": "cart", "since": "yesterday"}, "since 'yesterday' is neither a duration such as '10m' nor a time"),
        ({"name": "cart", "since": "5m", "until": "1h"}, "since '5m' is not before until '1h'"),
        ({"name": "cart", "include": "(["}, r"include '\(\[' is not a valid regular expression"),
        ({"name": "cart", "exclude": "x" * 2001}, "exclude is longer than 2,000 characters"),
        ({"name": "cart", "tail": 0}, "tail is 0; expected at least 1"),
    ],
)
def test_wrong_arguments_are_one_clear_line(arguments: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        line_filter(log_request(arguments, now=datetime.now(UTC)))


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("10m", 600),
        ("1h30m", 5_400),
        ("90", 90),
        ("15 minutes", 900),
        ("2d ago", 172_800),
        ("1 hour", 3_600),
        ("1.5h", 5_400),
    ],
)
def test_durations_are_read_as_people_write_them(written: str, seconds: int) -> None:
    assert duration(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize("written", ["", "m", "10x", "1h!", "h10", "10mm", "2025-01-31"])
def test_what_is_not_a_duration_is_not_taken_for_one(written: str) -> None:
    assert duration(written) is None


def test_times_without_a_zone_are_utc() -> None:
    request = log_request({"name": "cart", "since": "2025-01-31T10:00:00"}, now=datetime(2025, 2, 1, tzinfo=UTC))

    assert request.since_time == datetime(2025, 1, 31, 10, tzinfo=UTC)


def test_the_schema_is_small() -> None:
    """About 3.2 characters are a token in compact JSON, so this is below 450 tokens."""
    schema = json.dumps(KUBERNETES_LOGS.parameters_json_schema())

    assert len(schema) + len(KUBERNETES_LOGS.description) < 450 * 3.2


async def test_the_factory_takes_the_timeout_and_says_what_is_wrong(environment: Environment, tmp_path: Path) -> None:
    factory = KubernetesLogsFactory()

    def context(variables: dict[str, str], **config: JsonValue) -> ToolsetContext:
        return ToolsetContext(environment=environment.with_variables(variables), config=config)

    assert await factory.check(context({}, timeout_seconds=MAX_TIMEOUT_SECONDS)) == ""
    for wrong in ("30", "soon", True, 0, -1, MAX_TIMEOUT_SECONDS + 1):
        with pytest.raises(HolmesError, match=f"timeout_seconds is {wrong!r}; expected a number above 0"):
            await factory.check(context({}, timeout_seconds=wrong))
    with pytest.raises(HolmesError, match="unknown key 'timeout'"):
        await factory.check(context({}, timeout=3))
    with pytest.raises(HolmesError, match="No cluster is configured"):
        await factory.check(context({"KUBECONFIG": str(tmp_path / "nowhere")}))


async def test_the_configured_number_of_lines_is_the_default_and_the_most(
    api: KubernetesApi, environment: Environment
) -> None:
    context = ToolsetContext(environment=environment, config={"default_tail_lines": 3, "max_tail_lines": 5})
    api.on("/api/v1/namespaces/shop/pods/cart", document(pod("cart")))
    api.on("/api/v1/namespaces/shop/pods/cart/log", log([f"line-{number}" for number in range(9)]))
    toolset = KubernetesLogsFactory().create(context)
    (tool,) = toolset.tools
    assert [parameter.default for parameter in tool.parameters if parameter.name == "tail"] == [3]

    async def shown(**arguments: JsonValue) -> int:
        asked: dict[str, JsonValue] = {"name": "cart", "namespace": "shop", **arguments}
        answer = await toolset.call(ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=asked))
        return answer.data.count("line-")

    assert (await shown(), await shown(tail=4), await shown(tail=9)) == (3, 4, 5)


async def test_the_context_and_namespace_of_the_command_line_win(api: KubernetesApi, environment: Environment) -> None:
    context = ToolsetContext(environment=environment.with_variables({"HOLMES_KUBE_NAMESPACE": "other"}))
    api.on("/api/v1/namespaces/other/pods/cart", document(pod("cart", namespace="other")))
    api.on("/api/v1/namespaces/other/pods/cart/log", log(["hello"]))
    toolset = KubernetesLogsFactory().create(context)

    invocation = ToolInvocation(call_id=ToolCallId("c"), tool=KUBERNETES_LOGS, arguments={"name": "cart"})

    assert (await toolset.call(invocation)).status == "success"
    assert toolset.describe(invocation) == "Read logs of cart"


def test_offering_the_tool_imports_nothing_heavy() -> None:
    """The kubernetes package and httpx cost as much as a whole start; they are imported by the first call."""
    heavy = ("kubernetes", "httpx", "yaml", "regex", "pydantic")
    script = (
        "import sys; import holmes.kubernetes.client, holmes.toolsets.kubernetes_logs.toolset; "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )

    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert found.stdout.strip() == "[]"
