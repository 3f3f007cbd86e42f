"""Implements `holmes toolset list|show|refresh|login` and `holmes rules list|explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from holmes.cli.commands.command import config_option, read_settings, toolset_option, verbose_option
from holmes.cli.render.terminal import counted, one_line
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holmes.app.toolsets import ToolsetReport
    from holmes.toolsets.discovery import FoundSource
    from holmes.toolsets.registry import ToolsetStatus

_LOCAL_PORT: Final = 8080


def report_lines(report: ToolsetReport) -> str:
    """Return one line for each warning, then one line for each toolset, without those whose software is absent."""
    warnings = (f"warning: {one_line(warning, limit=1_000)}" for warning in report.warnings)
    return "\n".join((*warnings, _toolset_lines([each for each in report.statuses if each.state != "absent"])))


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


_all_option = click.option(
    "--all", "is_complete", is_flag=True, help="Also list toolsets for software that this cluster does not have."
)


@toolset.command(name="list")
@_all_option
@config_option
@toolset_option
@verbose_option
def list_toolsets(config: Path | None, custom_toolsets: tuple[str, ...], is_complete: bool) -> None:  # noqa: FBT001
    """List toolsets with the state of their last check."""
    _print_toolsets(config, custom_toolsets, refresh=False, is_complete=is_complete)


@toolset.command()
@click.argument("name")
@config_option
@toolset_option
@verbose_option
def show(name: str, config: Path | None, custom_toolsets: tuple[str, ...]) -> None:
    """Show the state of the toolset NAME, and how to configure the sources that are in the cluster."""
    import asyncio

    from holmes.app.toolsets import toolset_report

    settings = read_settings(config, {"custom_toolsets": custom_toolsets})
    report = asyncio.run(toolset_report(settings, refresh=False))
    status = next((each for each in report.statuses if each.name == name), None)
    if status is None:
        known = ", ".join(each.name for each in report.statuses if each.state != "absent")
        raise ConfigError(f"unknown toolset {name!r}; available toolsets: {known}")
    click.echo(_line(status, len(name)))
    click.echo(one_line(status.description))
    for source in report.found:
        if source.toolset == name:
            click.echo("\n".join(("", *_found_lines(source))))


def _found_lines(source: FoundSource) -> Sequence[str]:
    place = f"Service {source.service} in namespace {source.namespace}"
    forward = f"kubectl port-forward -n {source.namespace} service/{source.service} {_LOCAL_PORT}:{source.port}"
    local = source.url.replace(f"{source.service}.{source.namespace}.svc:{source.port}", f"127.0.0.1:{_LOCAL_PORT}")
    return (
        f"found {source.product}: {place}, port {source.port}",
        *source.lines,
        f"This address is inside the cluster. Elsewhere, run `{forward}`, and use {local}.",
    )


@toolset.command()
@_all_option
@config_option
@toolset_option
@verbose_option
def refresh(config: Path | None, custom_toolsets: tuple[str, ...], is_complete: bool) -> None:  # noqa: FBT001
    """Check all toolsets again and list them."""
    _print_toolsets(config, custom_toolsets, refresh=True, is_complete=is_complete)


@toolset.command()
@click.argument("server")
@click.option("--browser/--no-browser", default=True, help="Open the login page in the browser of this machine.")
@click.option("--scope", "scopes", multiple=True, help="Also request this scope; may be repeated.")
@config_option
@toolset_option
@verbose_option
def login(
    server: str,
    browser: bool,  # noqa: FBT001
    scopes: tuple[str, ...],
    config: Path | None,
    custom_toolsets: tuple[str, ...],
) -> None:
    """Log in to the MCP server SERVER with OAuth.

    The tokens are stored in ~/.holmes/mcp_tokens, and refreshed without another login.
    """
    import asyncio

    from holmes.app.toolsets import log_in_to_server

    settings = read_settings(config, {"custom_toolsets": custom_toolsets})

    def say(text: str) -> None:
        click.echo(text, err=True)

    click.echo(asyncio.run(log_in_to_server(settings, server, say=say, opens_browser=browser, scopes=scopes)))


def _print_toolsets(config: Path | None, custom_toolsets: tuple[str, ...], *, refresh: bool, is_complete: bool) -> None:
    import asyncio

    from holmes.app.toolsets import toolset_report

    settings = read_settings(config, {"custom_toolsets": custom_toolsets})
    report = asyncio.run(toolset_report(settings, refresh=refresh))
    for warning in report.warnings:
        click.echo(f"holmes: warning: {one_line(warning, limit=1_000)}", err=True)
    shown = [status for status in report.statuses if is_complete or status.state != "absent"]
    click.echo(_toolset_lines(shown))
    hidden = len(report.statuses) - len(shown)
    if hidden:
        more = counted(hidden, "toolset")
        click.echo(f"{more} for software that is not here: holmes toolset list --all", err=True)


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
