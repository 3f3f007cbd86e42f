"""The configuration of `prometheus/metrics`: the keys of HolmesGPT, several sources, and errors of one line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holmes.app.toolsets import open_toolsets
from holmes.settings.load import load_settings
from holmes.toolsets.alertmanager.toolset import AlertmanagerFactory
from holmes.toolsets.instances import instances_of
from holmes.toolsets.mcp.session import McpSessions
from holmes.toolsets.metrics.ranges import time_range
from holmes.toolsets.metrics.toolset import KIND, MetricsFactory, MetricsToolset
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError, ToolError

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue

URL = "http://127.0.0.1:9"
DAY = 86_400
NOW = 1_795_000_000.0


def test_the_keys_of_holmesgpt_are_read() -> None:
    (source,) = instances_of(
        {"prometheus_url": URL, "additional_headers": {"X-Scope-OrgID": "a"}, "prometheus_ssl_enabled": False}, KIND
    )
    assert (source.name, source.url, source.headers) == ("prometheus", URL, {"X-Scope-OrgID": "a"})
    assert source.tls.verify is False


def test_several_sources_have_names_and_the_tools_a_choice() -> None:
    sources = instances_of({"instances": {"prod": {"url": URL}, "eu": {"url": URL, "bearer_token": "t"}}}, KIND)
    assert [each.name for each in sources] == ["prod", "eu"]
    for tool in MetricsToolset(sources).tools:
        assert tool.parameters[-1].schema.enum == ("prod", "eu")
    assert all(tool.parameters[-1].name != "instance" for tool in MetricsToolset(sources[:1]).tools)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "instance 'prometheus': url: Field required"),
        ({"prometheus_url": "prometheus:9090"}, "does not begin with http"),
        ({"prometheus_url": URL, "tokn": "a"}, "tokn: Extra inputs are not permitted; valid keys: url, headers"),
        ({"prometheus_url": URL, "username": "a", "bearer_token": "b"}, "mutually exclusive"),
        ({"prometheus_url": URL, "client_key": "a"}, "client_certificate and client_key are required together"),
        ({"prometheus_url": URL, "timeout_seconds": 0}, "timeout_seconds: Input should be greater than 0"),
        ({"instances": {}}, "instances must map at least one name to its keys"),
        ({"instances": {"a": {"url": URL}}, "headers": {}}, "unknown key 'headers' beside 'instances'"),
        ({"instances": {"a": None}}, "instance 'a'"),
    ],
)
def test_a_wrong_key_is_an_error_with_its_place(config: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        instances_of(config, KIND)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


async def test_a_source_that_does_not_answer_fails_the_toolset_with_the_reason() -> None:
    context = ToolsetContext(environment=Environment.of({}), config={"prometheus_url": URL})
    with pytest.raises(ToolError) as raised:
        await MetricsFactory().check(context)
    refused = f"prometheus ({URL}): the connection is refused; check the address, and start the source"
    assert str(raised.value) == refused


@pytest.mark.parametrize(
    ("variables", "text", "state", "reason"),
    [
        ({}, "", "disabled", "not configured"),
        ({"PROMETHEUS_URL": URL}, "", "failed", "the connection is refused"),
        ({}, f"toolsets: {{prometheus/metrics: {{config: {{prometheus_url: '{URL}'}}}}}}", "failed", "is refused"),
        ({"PROMETHEUS_URL": URL}, "toolsets: {prometheus/metrics: {enabled: false}}", "disabled", "disabled in the"),
    ],
)
async def test_an_address_enables_the_toolset(
    tmp_path: Path, variables: dict[str, str], text: str, state: str, reason: str
) -> None:
    (tmp_path / "config.yaml").write_text(f"model: m\n{text}\n")
    settings = load_settings({"HOME": str(tmp_path), **variables}, tmp_path / "config.yaml", {})
    opened = await open_toolsets(settings, McpSessions(tmp_path))
    (status,) = [each for each in opened.readiness.statuses if each.name == "prometheus/metrics"]
    assert status.state == state
    assert reason in str(status.reason)
    assert opened.warnings == ()


def test_a_range_has_a_step_for_about_240_samples_and_aligned_ends() -> None:
    chosen = time_range(since="7d", until="", step="", now=NOW)
    assert (chosen.step_seconds, chosen.start % 3_600, chosen.end % 3_600) == (3_600, 0, 0)
    assert chosen.end - chosen.start == 7 * DAY
    assert time_range(since="", until="", step="", now=NOW).step_seconds == 15
    before = time_range(since="2h", until="1h", step="30s", now=NOW)
    assert before.end - before.start == 3_600


@pytest.mark.parametrize(
    ("since", "until", "step", "message"),
    [
        ("1h", "2h", "", "since '1h' is not before until '2h'"),
        ("60d", "", "", "longer than 31 days"),
        ("7d", "", "15s", "more than 1,000 samples per series; use at least 3600s"),
        ("soon", "", "", "neither a duration"),
        ("1h", "", "fast", "step 'fast' is not a valid duration"),
    ],
)
def test_a_range_that_cannot_be_read_is_an_error(since: str, until: str, step: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        time_range(since=since, until=until, step=step, now=NOW)


@pytest.mark.parametrize("factory", [MetricsFactory(), AlertmanagerFactory()])
async def test_sources_of_all_namespaces_are_refused_where_answers_must_stay_in_some(
    factory: MetricsFactory | AlertmanagerFactory,
) -> None:
    environment = Environment.of({"HOLMES_SCOPED_NAMESPACES": "shop"})
    context = ToolsetContext(environment=environment, config={"url": URL})
    with pytest.raises(ConfigError, match="can show all namespaces, which SCOPED_NAMESPACES forbids"):
        await factory.check(context)
