"""What the composition root tells about toolsets, and what it hands to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.app.toolsets import open_toolsets, toolset_report
from holmes.settings.load import load_settings
from holmes.toolsets.mcp.session import McpSessions
from holmes.toolsets.stored_results import TOOL_NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.settings.settings import Settings

_MINE = """\
toolsets:
  mine:
    description: d
    tools:
      - name: look
        description: d
        command: echo '{{ what }}'
"""


def _settings(home: Path, config: str = "", toolset: str = _MINE) -> Settings:
    (home / "config.yaml").write_text(f"model: m\n{config}")
    (home / "mine.yaml").write_text(toolset)
    return load_settings(
        {"HOME": str(home)}, home / "config.yaml", {"custom_toolsets": (str(home / "mine.yaml"),), "namespace": "shop"}
    )


async def test_all_warnings_come_together_and_what_only_holmesgpt_has_is_one_of_them(tmp_path: Path) -> None:
    config = (
        "opsgenie_query: x\njira_url: y\ntoolsets:\n  slack: {enabled: true}\n  datadog/metrics: {config: {u: v}}\n"
    )
    settings = _settings(tmp_path, config, f"{_MINE}mcp_servers: {{one: {{enabled: false, url: x}}}}\n")
    opened = await open_toolsets(settings, McpSessions(tmp_path))
    toolsets = "toolset datadog/metrics, toolset slack"
    assert opened.warnings == (
        f"Holmes does not support these settings and ignores them: opsgenie_query, jira_url, {toolsets}",
        f"{tmp_path / 'mine.yaml'}:8: 'url' of MCP server 'one' belongs below 'config'",
    )
    report = await toolset_report(settings, refresh=False)
    place = f"{tmp_path / 'mine.yaml'}:7"
    assert report.warnings[:-1] == opened.warnings
    assert report.warnings[-1].startswith(f"{place}: tool 'look': {{{{ what }}}} is inside quotes: ")
    assert "mine" in {status.name for status in report.statuses}


@pytest.mark.parametrize("command", ["'{{ 1 | nofilter }}'", "'echo'\n        timeout: soon"])
async def test_a_broken_toolset_of_the_user_is_told_before_the_question(tmp_path: Path, command: str) -> None:
    settings = _settings(tmp_path, toolset=_MINE.replace("echo '{{ what }}'", command))
    (line,) = (await open_toolsets(settings, McpSessions(tmp_path))).broken
    assert line.startswith(f"toolset 'mine' cannot be used: {tmp_path / 'mine.yaml'}:")


async def test_a_configuration_that_works_warns_of_nothing(tmp_path: Path) -> None:
    settings = _settings(tmp_path, toolset=_MINE.replace("'{{ what }}'", "{{ what }}"))
    assert (await toolset_report(settings, refresh=False)).warnings == ()


@pytest.mark.parametrize("name", TOOL_NAMES)
async def test_a_tool_named_like_one_that_reads_results_costs_its_toolset_and_not_the_run(
    tmp_path: Path, name: str
) -> None:
    report = await toolset_report(_settings(tmp_path, toolset=_MINE.replace("look", name)), refresh=False)
    (status,) = (status for status in report.statuses if status.name == "mine")
    assert (status.state, status.reason) == (
        "failed",
        f"the toolset 'holmes/results' already has a tool {name!r}; rename the tool",
    )


async def test_checks_are_remembered_where_the_settings_say(tmp_path: Path) -> None:
    text = _MINE.replace("description: d\n", 'description: d\n    prerequisites: [{command: "true"}]\n', 1)
    settings = _settings(tmp_path, f"cache_path: {tmp_path / 'elsewhere'}\n", text)
    await open_toolsets(settings, McpSessions(tmp_path))
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["toolset_checks.json"]
    assert not (tmp_path / ".holmes").exists()


async def test_the_timeout_of_the_logs_comes_from_the_settings_unless_the_toolset_says_otherwise(
    tmp_path: Path,
) -> None:
    async def reason(config: str) -> str:
        report = await toolset_report(_settings(tmp_path, config), refresh=False)
        return next(status.reason or "" for status in report.statuses if status.name == "kubernetes/logs")

    own = "toolsets: {kubernetes/logs: {config: {timeout_seconds: 0}}}\n"
    assert "timeout_seconds is 0" in await reason(f"kubernetes_logs_timeout_seconds: 30\n{own}")
    assert "timeout_seconds" not in await reason("kubernetes_logs_timeout_seconds: 30\n")
