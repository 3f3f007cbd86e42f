"""Implements `holmes toolset list|refresh|login` and `holmes rules list|explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holmes.cli.commands.command import config_option, read_settings, toolset_option, verbose_option
from holmes.cli.render.terminal import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holmes.app.toolsets import ToolsetReport
    from holmes.toolsets.registry import ToolsetStatus


def report_lines(report: ToolsetReport) -> str:
    """Return one line for each warning, then one line for each toolset."""
    warnings = (f"warning: {one_line(warning, limit=1_000)}" for warning in report.warnings)
    return "\n".join((*warnings, _toolset_lines(report.statuses)))


def _toolset_lines(states: Sequence[ToolsetStatus]) -> str:
    """Return one line for each toolset, in columns, sorted by name."""
    if not states:
        return "no toolsets found"
    rows = sorted(states, key=lambda status: status.name)
    width = max(len(status.name) for status in rows)
    return "\n".join(_line(status, width) for status in rows)


def _line(status: ToolsetStatus, width: int) -> str:
    about = status.reason or ""
    if status.state == "enabled":
        about = ", ".join(filter(None, (counted(status.tool_count, "tool"), status.detail)))
    return f"{one_line(status.name):<{width}}  {status.state:<8}  {one_line(about)}".rstrip()


@click.group()
def toolset() -> None:
    """List and check the toolsets."""


@toolset.command(name="list")
@config_option
@toolset_option
@verbose_option
def list_toolsets(config: Path | None, custom_toolsets: tuple[str, ...]) -> None:
    """List all toolsets with the state of their last check."""
    _print_toolsets(config, custom_toolsets, refresh=False)


@toolset.command()
@config_option
@toolset_option
@verbose_option
def refresh(config: Path | None, custom_toolsets: tuple[str, ...]) -> None:
    """Check all toolsets again and list them."""
    _print_toolsets(config, custom_toolsets, refresh=True)


@toolset.command()
@click.argument("server")
@click.option("--browser/--no-browser", default=True, help="Open the login page in the browser of this machine.")
@config_option
@toolset_option
@verbose_option
def login(server: str, browser: bool, config: Path | None, custom_toolsets: tuple[str, ...]) -> None:  # noqa: FBT001
    """Log in to the MCP server SERVER with OAuth.

    The tokens are stored in ~/.holmes/mcp_tokens, and refreshed without another login.
    """
    import asyncio

    from holmes.app.toolsets import log_in_to_server

    settings = read_settings(config, {"custom_toolsets": custom_toolsets})

    def say(text: str) -> None:
        click.echo(text, err=True)

    click.echo(asyncio.run(log_in_to_server(settings, server, say=say, opens_browser=browser)))


def _print_toolsets(config: Path | None, custom_toolsets: tuple[str, ...], *, refresh: bool) -> None:
    import asyncio

    from holmes.app.toolsets import toolset_report

    settings = read_settings(config, {"custom_toolsets": custom_toolsets})
    report = asyncio.run(toolset_report(settings, refresh=refresh))
    for warning in report.warnings:
        click.echo(f"holmes: warning: {one_line(warning, limit=1_000)}", err=True)
    click.echo(_toolset_lines(report.statuses))


@click.group()
def rules() -> None:
    """List and explain the rules of `holmes scan`."""


@rules.command(name="list")
def list_rules() -> None:
    """List all rules."""
    # Imported here, because `holmes rules --help` does not need this module.
    from holmes.diagnosis.engine import all_rules

    found = all_rules()
    width = max(len(rule.id) for rule in found)
    for rule in found:
        click.echo(f"{rule.id:{width}}  {rule.row.severity:8}  {rule.row.title}")


@rules.command()
@click.argument("rule_id")
def explain(rule_id: str) -> None:
    """Explain the rule RULE_ID: its meaning, its inputs, and how it differs from similar rules."""
    import textwrap

    from holmes.diagnosis.engine import chosen_rules

    for rule in chosen_rules((rule_id,)):
        row = rule.row
        click.echo(f"{row.id}  {row.title}  ({row.severity})\n")
        click.echo(textwrap.fill(row.explanation, 100))
        click.echo(f"\nChecks: {', '.join(row.kinds)}")
        if row.needs:
            click.echo(f"Needs:  {', '.join(row.needs)}")
        click.echo("Reads:")
        for field in row.reads:
            click.echo(f"  {field}")
