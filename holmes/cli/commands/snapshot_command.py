"""Implements `holmes snapshot create|serve|show`, which record clusters to files, and serve or show recordings.

Text from recordings is sanitised for the terminal.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from holmes.cli.commands.command import (
    PATH,
    config_option,
    live_cluster_options,
    read_settings,
    run_until_signal,
    verbose_option,
)
from holmes.cli.render.terminal import sanitized
from holmes.kubernetes.fields import timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holmes.cli.commands.interrupts import Interrupts
    from holmes.settings.settings import Settings
    from holmes.snapshot.recorder import RecordSummary
    from holmes.snapshot.recording import Recording, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOptions:
    """The options of `create` that are not settings."""

    namespaces: tuple[str, ...]
    all_namespaces: bool
    logs: bool
    tail_lines: int
    openapi: bool
    config: Path | None


@click.group()
def snapshot() -> None:
    """Record a cluster to files, and serve or show a recording."""


@snapshot.command()
@click.argument("folder", type=PATH)
@click.option("-n", "--namespace", "namespaces", multiple=True, help="Record only this namespace; may be repeated.")
@click.option(
    "-A", "--all-namespaces", is_flag=True, help="Record the whole cluster, even if a namespace is configured."
)
@live_cluster_options
@click.option("--logs/--no-logs", default=True, help="Record pod logs (default: yes).")
@click.option(
    "--tail-lines",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Number of lines to record from the end of each log.",
)
@click.option("--openapi", is_flag=True, help="Record the schemas for `kubectl explain` (a few megabytes).")
@config_option
@verbose_option
@click.pass_context
def create(
    context: click.Context, /, folder: Path, kubeconfig: Path | None, kube_context: str | None, **given: object
) -> None:
    """Record a cluster to FOLDER: objects, events and logs.

    Values of Secrets are never recorded, and other secrets are masked. Objects without a namespace, such as nodes and
    volumes, are always recorded.

    Exit codes: 0 recorded, with unreadable objects listed in the summary; 1 not written; 2 wrong usage; 3 cluster
    unreachable, or nothing could be read. After an error, an older recording in FOLDER is unchanged.
    """
    options = CreateOptions(**given)  # type: ignore[arg-type]  # checked by click
    context.exit(_create(folder, options, {"kubeconfig": kubeconfig, "kube_context": kube_context}))


@snapshot.command()
@click.argument("path", type=PATH)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. Default: a free port.")
@verbose_option
@click.pass_context
def serve(context: click.Context, path: Path, port: int) -> None:
    """Serve PATH as a read-only Kubernetes API on this machine, until Ctrl-C.

    PATH is a recording, a folder of `kubectl cluster-info dump --output-directory`, or manifests. Prints an `export`
    line that points kubectl and other programs to this API.
    """
    # Imported here and below, because `holmes snapshot --help` does not need these modules.
    import asyncio

    from holmes.cli.commands.interrupts import Interrupts

    interrupts = Interrupts()
    try:
        asyncio.run(_serve(path, port, interrupts))
    except asyncio.CancelledError:
        context.exit(0)


@snapshot.command()
@click.argument("path", type=PATH)
@verbose_option
def show(path: Path) -> None:
    """Show the content of PATH, and the objects that could not be recorded or used."""
    from holmes.cli.render.terminal import tolerate_narrow_encodings
    from holmes.snapshot.sources import load_snapshot

    tolerate_narrow_encodings()
    click.echo(_contents_lines(load_snapshot(path)))


def _create(folder: Path, options: CreateOptions, overrides: dict[str, object]) -> int:
    """Record the cluster, show a summary, and return the exit code."""
    if options.all_namespaces and options.namespaces:
        message = "-A and -n are mutually exclusive"
        raise click.UsageError(message)
    settings = read_settings(options.config, overrides)

    async def work(interrupts: Interrupts) -> int:
        click.echo(_summary_lines(await _record(folder, options, settings, interrupts)))
        return 0

    return run_until_signal(work, "interrupted; nothing was written")


async def _record(folder: Path, options: CreateOptions, settings: Settings, interrupts: Interrupts) -> RecordSummary:
    from holmes.app.cluster import cluster_environment
    from holmes.app.redaction import make_redactor
    from holmes.cli.render.terminal import write_line
    from holmes.kubernetes.client import ClusterClient
    from holmes.snapshot.log_recording import LogLimits
    from holmes.snapshot.recorder import RecordOptions, record_cluster

    configured = (settings.investigation.namespace,) if settings.investigation.namespace else ()
    wanted = RecordOptions(
        namespaces=() if options.all_namespaces else tuple(dict.fromkeys(options.namespaces)) or configured,
        logs=LogLimits(tail_lines=options.tail_lines) if options.logs else None,
        openapi=options.openapi,
    )
    with interrupts:
        async with await ClusterClient.connect(cluster_environment(settings)) as client:
            await client.probe()
            redactor = make_redactor(settings)
            return await record_cluster(client, folder, wanted, redactor, lambda text: write_line(sys.stderr, text))


async def _serve(path: Path, port: int, interrupts: Interrupts) -> None:
    import asyncio

    from holmes.cli.render.terminal import write_line
    from holmes.kubernetes.fields import timestamp
    from holmes.snapshot.server.serving import serve_snapshot

    with interrupts:
        async with serve_snapshot(path, port=port) as server:
            write_line(sys.stdout, f"export KUBECONFIG={shlex.quote(str(server.kubeconfig))}")
            write_line(
                sys.stderr,
                f"serving {path} (recorded {timestamp(server.recorded_at)}, read-only) at {server.url}; "
                "press Ctrl-C to stop",
            )
            await asyncio.Event().wait()


_SHOWN_NOTES = 20


def _summary_lines(summary: RecordSummary) -> str:
    """Return the summary of a new recording."""
    size = f"{summary.size_bytes / 1_000_000:.1f} MB"
    lines = [
        f"recorded at {timestamp(summary.recorded_at)} to {summary.folder}, {size}",
        *_counts(summary.objects, summary.logs),
        *_notes(summary.unread),
        f"serve it with: holmes snapshot serve {summary.folder}",
    ]
    return _shown(lines)


def _contents_lines(recording: Recording) -> str:
    """Return a description of a recording's content."""
    counts = [(recorded.type.qualified, len(recorded.items)) for recorded in recording.objects.values()]
    scope = ", ".join(recording.namespaces) or "all namespaces"
    lines = [
        f"recorded at {timestamp(recording.recorded_at)}, context {recording.context or 'unknown'}, {scope}",
        *_counts(sorted((name, count) for name, count in counts if count), len(recording.logs)),
        *(_notes(recording.unread) if recording.unread or not recording.notes else ()),
        *(f"warning: {note}" for note in recording.notes),
    ]
    return _shown(lines)


def _shown(lines: Sequence[str]) -> str:
    """Join lines from an untrusted recording. Removes line breaks and terminal sequences within each line."""
    return "\n".join(sanitized(" ".join(line.split("\n"))) for line in lines)


def _counts(objects: Sequence[tuple[str, int]], logs: int) -> list[str]:
    total = sum(count for _, count in objects)
    listed = ", ".join(f"{count} {name}" for name, count in objects)
    return [f"{_number(total, 'object')} of {_number(len(objects), 'kind')}: {listed}", _number(logs, "log")]


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _notes(unread: Sequence[Unread]) -> list[str]:
    if not unread:
        return ["everything was recorded"]
    shown = [f"  {_note(each)}" for each in unread[:_SHOWN_NOTES]]
    more = [f"  and {len(unread) - _SHOWN_NOTES} more; see recording.json"] if len(unread) > _SHOWN_NOTES else []
    return ["not recorded:", *shown, *more]


def _note(unread: Unread) -> str:
    where = f" in {unread.namespace}" if unread.namespace else ""
    why = "forbidden: " if unread.forbidden else ""
    return f"{unread.resource}{where}: {why}{unread.reason}"
