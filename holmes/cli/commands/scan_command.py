"""`holmes scan`: finds what is broken without a model, for people, for pipelines and for programs.

The report goes to standard output, progress to standard error: on a terminal one line, which disappears at the end.
Never imports a model's library.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TextIO

import click

from holmes.cli.commands.options import cluster_options, verbose_option
from holmes.cli.render.terminal import is_terminal, one_line

if TYPE_CHECKING:
    from types import TracebackType

    from holmes.app.cluster import ClusterChoice
    from holmes.cli.commands.interrupts import Interrupts
    from holmes.diagnosis.scan import ScanRequest
    from holmes.settings.settings import Settings
    from holmes.values.findings import DiagnosisReport, Severity

Format = Literal["table", "json", "yaml", "markdown"]
EXIT_FOUND = 1
EXIT_UNREAD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """What the command was told, except for which cluster."""

    namespaces: tuple[str, ...]
    all_namespaces: bool
    selector: str | None
    kinds: tuple[str, ...]
    severity: Severity
    rules: tuple[str, ...]
    output: Format
    fail_on: Severity | None
    baseline: Path | None
    grace: float
    timeout: float
    logs: int
    config: Path | None


class Seconds(click.FloatRange):
    """A finite number; a range alone lets `nan` through."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or wrong usage."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return number


@click.command()
@click.option("-n", "--namespace", "namespaces", multiple=True, help="Only this namespace; may be repeated.")
@click.option("-A", "--all-namespaces", is_flag=True, help="The whole cluster, also when a namespace is configured.")
@click.option("-l", "--selector", help="Only incidents of objects with these labels, for example app=web,tier=front.")
@click.option("--kind", "kinds", multiple=True, help="Only incidents that concern this kind; may be repeated.")
@click.option(
    "--severity",
    type=click.Choice(["critical", "warning", "info"]),
    default="warning",
    show_default=True,
    help="The mildest incidents to show.",
)
@click.option("--rule", "rules", multiple=True, help="Only this rule of `holmes rules list`; may be repeated.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "yaml", "markdown"]), default="table", show_default=True
)
@click.option(
    "--fail-on",
    type=click.Choice(["critical", "warning", "info"]),
    help="Exit with 1 when there is an incident of this severity or worse; with --baseline, a new one.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="An earlier report (-o json): says what is new, what remains and what is gone.",
)
@click.option(
    "--grace", type=Seconds(min=0), default=60, show_default=True, help="Seconds that a pod may take to start."
)
@click.option("--timeout", type=Seconds(min=1), default=60, show_default=True, help="Seconds that all lists may take.")
@click.option("--logs", type=click.IntRange(min=0), default=20, show_default=True, help="The most logs to read.")
@click.option("--config", type=click.Path(path_type=Path), help="The config file. Default: ~/.holmes/config.yaml.")
@cluster_options
@verbose_option
@click.pass_context
def scan(
    context: click.Context,
    /,
    cluster: ClusterChoice,
    kubeconfig: Path | None,
    kube_context: str | None,
    **given: object,
) -> None:
    """Find what is broken in the cluster and why, without a model.

    Exit codes: 0 scanned (also when something is broken), 1 something at or above --fail-on was found, 2 wrong usage,
    3 no cluster, or with --fail-on nothing found although the pods could not be read.
    """
    options = ScanOptions(**given)  # type: ignore[arg-type]  # click has checked them
    context.exit(_run(options, cluster, {"kubeconfig": kubeconfig, "kube_context": kube_context}))


def _run(options: ScanOptions, cluster: ClusterChoice, overrides: dict[str, object]) -> int:
    """Scan, show, and return the exit code."""
    # Imported here: `holmes scan --help` does not need them.
    import asyncio

    from holmes.cli.commands.interrupts import Interrupts
    from holmes.cli.commands.options import read_settings
    from holmes.cli.render.scan_text import shown_report
    from holmes.cli.render.terminal import is_terminal, tolerate_narrow_encodings
    from holmes.settings.process import process_environment

    tolerate_narrow_encodings()
    environment = process_environment()
    settings = read_settings(environment, options.config, overrides)
    baseline = _baseline(options.baseline) if options.baseline else None
    request = _request(options, settings)
    interrupts = Interrupts()
    try:
        report = asyncio.run(_scan(settings, cluster, request, interrupts))
    except asyncio.CancelledError:
        click.echo("holmes: interrupted", err=True)
        return interrupts.exit_code
    colours = is_terminal(sys.stdout) and not environment.get("NO_COLOR")
    narrowed = bool(options.rules or options.kinds or options.selector or options.severity == "critical")
    text = shown_report(report, options.output, baseline=baseline, narrowed=narrowed, colours=colours)
    click.echo(text, color=colours)
    if options.fail_on and _fails(report, baseline, options.fail_on):
        return EXIT_FOUND
    if options.fail_on and any("Pod" in each.kinds for each in report.not_checked):
        click.echo("holmes: the pods could not be read, so nothing can be promised about --fail-on", err=True)
        return EXIT_UNREAD
    return 0


async def _scan(
    settings: Settings, cluster: ClusterChoice, request: ScanRequest, interrupts: Interrupts
) -> DiagnosisReport:
    from holmes.app.cluster import chosen_cluster, scan_cluster, with_demo_hint
    from holmes.cli.render.terminal import write_line
    from holmes.values.errors import ClusterUnreachable

    with interrupts:
        async with chosen_cluster(settings, cluster) as chosen:
            if cluster.notice:
                write_line(sys.stderr, f"holmes: {cluster.notice}")
            with ListProgress(sys.stderr) as progress:
                try:
                    return await scan_cluster(chosen, request, progress.show)
                except ClusterUnreachable as error:
                    raise with_demo_hint(error) from error


def _request(options: ScanOptions, settings: Settings) -> ScanRequest:
    from holmes.diagnosis.engine import chosen_rules
    from holmes.diagnosis.reports import IncidentFilter
    from holmes.diagnosis.scan import ScanRequest
    from holmes.kubernetes.log_reader import LogLimits
    from holmes.kubernetes.state_reader import ReadLimits

    if options.all_namespaces and options.namespaces:
        message = "-A and -n exclude each other"
        raise click.UsageError(message)
    chosen_rules(options.rules)  # a typo is told before a cluster is asked
    configured = (settings.investigation.namespace,) if settings.investigation.namespace else ()
    return ScanRequest(
        namespaces=() if options.all_namespaces else options.namespaces or configured,
        rules=options.rules,
        wanted=IncidentFilter(severity=options.severity, kinds=options.kinds, labels=_labels(options.selector)),
        read_limits=ReadLimits(seconds=options.timeout),
        log_limits=LogLimits(logs=options.logs),
        grace_seconds=options.grace,
    )


def _labels(selector: str | None) -> tuple[tuple[str, str], ...]:
    labels = []
    for term in (selector or "").split(","):
        key, equals, value = term.replace("==", "=").partition("=")
        if term and (not equals or not key.strip() or key.endswith("!")):
            message = f"-l {selector!r}: write labels as key=value, separated by commas"
            raise click.UsageError(message)
        if term:
            labels.append((key.strip(), value.strip()))
    return tuple(labels)


def _baseline(file: Path) -> DiagnosisReport:
    from holmes.cli.commands.inputs import read_text_file
    from holmes.values.errors import ConfigError
    from holmes.values.findings_json import report_from_json

    try:
        return report_from_json(read_text_file(file))
    except ValueError as error:
        message = f"--baseline {str(file)!r}: {error}; write one with `holmes scan -o json > FILE`"
        raise ConfigError(message) from error


def _fails(report: DiagnosisReport, baseline: DiagnosisReport | None, fail_on: Severity) -> bool:
    from holmes.diagnosis.reports import compare
    from holmes.values.findings import SEVERITIES

    incidents = report.incidents if baseline is None else compare(baseline, report).new
    worst = SEVERITIES.index(fail_on)
    return any(SEVERITIES.index(incident.severity) <= worst for incident in incidents)


_ERASE = "\r\x1b[2K"
_LONGEST_NAME = 40


class ListProgress:
    """Shows nothing when the stream is not a terminal."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and is_terminal(stream) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write(_ERASE)

    def show(self, what: str, done: int, planned: int) -> None:
        """`what` was just read, which makes `done` of `planned`."""
        self._write(f"{_ERASE}reading the cluster: {done}/{planned} {one_line(what, _LONGEST_NAME)}")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()
