"""Implements `holmes snapshot create|serve|show`, which record clusters to files, and serve or show recordings.

Text from recordings is sanitised for the terminal.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
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
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from holmes.app.cluster import ClusterChoice
    from holmes.cli.commands.interrupts import Interrupts
    from holmes.observability.metrics.recorded import RecordedMetrics
    from holmes.settings.settings import Settings
    from holmes.snapshot.metrics_recording import MetricsLimits
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
    metrics: str | None
    config: Path | None
    limits: MetricsLimits | None = None


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
@click.option(
    "--metrics",
    metavar="AGE",
    help="Record metrics of this time until now, for example 6h, from the configured sources.",
)
@click.option("--openapi", is_flag=True, help="Record the schemas for `kubectl explain` (a few megabytes).")
@config_option
@verbose_option
@click.pass_context
def create(
    context: click.Context,
    /,
    folder: Path,
    cluster: ClusterChoice,
    kubeconfig: Path | None,
    kube_context: str | None,
    **given: object,
) -> None:
    """Record a cluster to FOLDER: objects, events, logs and, with --metrics, metrics.

    Values of Secrets are never recorded, and other secrets are masked. Objects without a namespace, such as nodes and
    volumes, are always recorded.

    Exit codes: 0 recorded, with unreadable objects listed in the summary; 1 not written; 2 wrong usage; 3 cluster
    unreachable, or nothing could be read. After an error, an older recording in FOLDER is unchanged.
    """
    options = CreateOptions(**given)  # type: ignore[arg-type]  # checked by click
    overrides: dict[str, object] = {"kubeconfig": kubeconfig, "kube_context": kube_context}
    context.exit(_create(folder, options, overrides, cluster))


@snapshot.command()
@click.argument("path", type=PATH)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. Default: a free port.")
@verbose_option
@click.pass_context
def serve(context: click.Context, path: Path, port: int) -> None:
    """Serve PATH as a read-only Kubernetes API on this machine, until Ctrl-C.

    PATH is a recording, a support bundle, a must-gather, a cluster dump, output of `kubectl get -o yaml`, manifests or
    logs, as a folder or archive. Prints an `export` line that points kubectl and other programs to this API.
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
    import shutil

    from holmes.cli.render.terminal import tolerate_narrow_encodings
    from holmes.snapshot.private_folder import private_folder
    from holmes.snapshot.sources import load_snapshot

    tolerate_narrow_encodings()
    scratch = private_folder()
    try:
        click.echo(_contents_lines(load_snapshot(path, scratch=scratch)))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _create(folder: Path, options: CreateOptions, overrides: dict[str, object], cluster: ClusterChoice) -> int:
    """Record the cluster, show a summary, and return the exit code."""
    if options.all_namespaces and options.namespaces:
        message = "-A and -n are mutually exclusive"
        raise click.UsageError(message)
    seconds = _metrics_seconds(options.metrics)
    settings = read_settings(options.config, overrides)

    async def work(interrupts: Interrupts) -> int:
        from holmes.app.cluster import chosen_cluster

        async with chosen_cluster(settings, cluster) as chosen:
            limits = _metrics_limits(chosen, seconds)
            summary = await _record(folder, replace(options, limits=limits), chosen, interrupts)
        click.echo(_summary_lines(summary))
        return 0

    return run_until_signal(work, "interrupted; nothing was written")


_LEAST_SECONDS, _MOST_SECONDS = 600, 7 * 86_400


def _metrics_seconds(written: str | None) -> float | None:
    """Parse --metrics. Raises `click.UsageError`."""
    if written is None:
        return None
    from holmes.observability.metrics.queries import promql_seconds

    seconds = promql_seconds(written)
    if seconds is None or not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        message = f"--metrics {written!r} is not an age from 10m to 7d, for example 6h"
        raise click.UsageError(message)
    return seconds


def _metrics_limits(settings: Settings, seconds: float | None) -> MetricsLimits | None:
    if seconds is None:
        return None
    from holmes.app.toolsets import metric_sources
    from holmes.snapshot.metrics_recording import MetricsLimits

    return MetricsLimits(sources=metric_sources(settings), seconds=seconds)


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
        metrics=options.limits,
    )
    with interrupts:
        async with await ClusterClient.connect(cluster_environment(settings)) as client:
            await client.probe()
            redactor = make_redactor(settings)
            return await record_cluster(client, folder, wanted, redactor, lambda text: write_line(sys.stderr, text))


async def _serve(path: Path, port: int, interrupts: Interrupts) -> None:
    import asyncio

    from holmes.app.redaction import make_redactor
    from holmes.cli.render.terminal import write_line
    from holmes.kubernetes.fields import timestamp
    from holmes.snapshot.server.serving import serve_snapshot

    with interrupts:
        redactor = make_redactor(read_settings(None, {}))
        async with serve_snapshot(path, port=port, redactor=redactor) as server:
            write_line(sys.stdout, f"export KUBECONFIG={shlex.quote(str(server.kubeconfig))}")
            write_line(
                sys.stderr,
                f"serving {path} (recorded {timestamp(server.recorded_at)}, read-only) at {server.url}; "
                "press Ctrl-C to stop",
            )
            await asyncio.Event().wait()


_SHOWN_NOTES = 20
_SHOWN_KINDS = 4
_USUAL = frozenset({"pods", "events", "nodes", "secrets", "configmaps", "services", "deployments.apps"})
"""Kinds that most questions need. They are named first."""


def _summary_lines(summary: RecordSummary) -> str:
    """Return the summary of a new recording."""
    size = f"{summary.size_bytes / 1_000_000:.1f} MB"
    lines = [
        f"recorded at {timestamp(summary.recorded_at)} to {summary.folder}, {size}",
        *_counts(summary.objects, summary.logs),
        *_metrics(summary.metrics),
        *_notes(summary.unread, (), has_warnings=False),
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
        *_metrics(recording.metrics),
        *_notes(recording.unread, _others(recording), has_warnings=bool(recording.notes)),
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


def _metrics(metrics: Mapping[str, RecordedMetrics]) -> list[str]:
    """Return one line for each source of metrics."""
    return [
        f"metrics of {name}: {_number(each.series, 'series')} of {_number(len(each.answers), 'query')}, "
        f"every {each.step_seconds:g} s from {_moment(each.start)} to {_moment(each.end)}"
        for name, each in metrics.items()
    ]


def _moment(seconds: float) -> str:
    return timestamp(datetime.fromtimestamp(seconds, UTC))


def _number(count: int, noun: str) -> str:
    several = {"query": "queries", "series": "series"}.get(noun, f"{noun}s")
    return f"{count:,} {noun if count == 1 else several}"


def _notes(unread: Sequence[Unread], others: Sequence[str], *, has_warnings: bool) -> list[str]:
    """Return lines about what is missing. `others` are kinds of which nothing was recorded."""
    if not unread and not others:
        return [] if has_warnings else ["everything was recorded"]
    shown = [f"  {_note(each)}" for each in unread[:_SHOWN_NOTES]]
    more = [f"  and {len(unread) - _SHOWN_NOTES} more"] if len(unread) > _SHOWN_NOTES else []
    listed = ", ".join(others[:_SHOWN_KINDS]) + (" and more" if len(others) > _SHOWN_KINDS else "")
    kinds = [f"  {_number(len(others), 'other kind')}: {listed}"] if others else []
    return ["not recorded:", *shown, *more, *kinds]


def _others(recording: Recording) -> tuple[str, ...]:
    """Return the kinds that the cluster has, but that are not part of the recording."""
    known = {each.resource for each in recording.unread} | {"events.events.k8s.io"}
    listable = (each for each in recording.discovery.listable() if (each.group, each.plural) not in recording.objects)
    missing = sorted(each.qualified for each in listable if each.qualified not in known)
    return tuple(sorted(missing, key=lambda name: name not in _USUAL))


def _note(unread: Unread) -> str:
    where = f" in {unread.namespace}" if unread.namespace else ""
    why = "forbidden: " if unread.forbidden else ""
    return f"{unread.resource}{where}: {why}{unread.reason}"
