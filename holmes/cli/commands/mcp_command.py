"""Implements `holmes mcp`, an MCP server over standard input and output for editors and other agents."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from holmes.cli.commands.command import (
    cluster_options,
    config_option,
    read_settings,
    run_until_signal,
    toolset_option,
    verbose_option,
)
from holmes.cli.render.terminal import one_line, write_line

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.app.cluster import ClusterChoice
    from holmes.cli.commands.interrupts import Interrupts
    from holmes.settings.settings import Settings


@click.command()
@click.option("--model", help="Use this model for `ask_holmes`. `builtin/triage` needs no LLM.")
@config_option
@toolset_option
@cluster_options
@verbose_option
@click.pass_context
def mcp(context: click.Context, /, cluster: ClusterChoice, config: Path | None, **overrides: object) -> None:
    """Offer Holmes to editors and other agents as an MCP server.

    It speaks over standard input and output, until the input ends. `holmes serve` offers the same tools over HTTP at
    /mcp.
    """
    settings = read_settings(config, overrides)
    context.exit(run_until_signal(lambda interrupts: _serve(settings, cluster, interrupts)))


async def _serve(settings: Settings, cluster: ClusterChoice, interrupts: Interrupts) -> int:
    from holmes.app.cluster import chosen_cluster, with_demo_hint
    from holmes.app.investigator import open_investigator
    from holmes.app.redaction import make_redactor
    from holmes.mcp_server.protocol import serve_standard_streams
    from holmes.mcp_server.served import ServedTools, asker_of
    from holmes.values.errors import ClusterUnreachable

    with interrupts:
        async with chosen_cluster(settings, cluster) as chosen:
            try:
                async with open_investigator(chosen, redactor=make_redactor(chosen), asks_llm=True) as investigator:
                    for warning in investigator.warnings:
                        write_line(sys.stderr, f"holmes: warning: {one_line(warning, limit=1_000)}")
                    served = ServedTools(investigator.single_calls(), asker_of(investigator))
                    await serve_standard_streams(served)
            except ClusterUnreachable as error:
                raise with_demo_hint(error, chosen.cluster) from error
    return 0
