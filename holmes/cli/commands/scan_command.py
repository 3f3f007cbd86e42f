"""Implements `holmes scan`, which finds problems in a cluster without an LLM.

The report goes to standard output. Progress goes to standard error if standard error is a terminal. litellm is never
imported.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, replace
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Literal, Self, TextIO, get_args

import click

from holmes.cli.commands.command import (
    PATH,
    cluster_options,
    config_option,
    read_settings,
    run_until_signal,
    verbose_option,
)
from holmes.cli.render.terminal import counted, is_terminal, one_line, write_line

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from holmes.app.cluster import ClusterChoice
    from holmes.cli.commands.interrupts import Interrupts
    from holmes.diagnosis.scan import ScanRequest
    from holmes.settings.settings import Settings
    from holmes.values.findings import DiagnosisReport, Severity

Format = Literal["table", "wide", "json", "yaml", "markdown", "sarif", "junit"]
_EXIT_FOUND = 1
_EXIT_UNREAD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """The options of `holmes scan`, except for those that choose the cluster."""

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
    """Option type for a finite number of seconds, because `click.FloatRange` also accepts `nan`."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return `value` as a finite number. Raises a usage error for any other value."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a valid number of seconds", param, ctx)
        return number


@click.command()
@click.option("-n", "--namespace", "namespaces", multiple=True, help="Scan only this namespace; may be repeated.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Scan the whole cluster, even if a namespace is configured.")
@click.option(
    "-l", "--selector", help="Show only incidents about objects with these labels, for example app=web,tier=front."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="Show only incidents about objects of this kind, for example Pod; may be repeated.",
)
@click.option(
    "--severity",
    type=click.Choice(["critical", "warning", "info"]),
    default="warning",
    show_default=True,
    help="Lowest severity to show.",
)
@click.option("--rule", "rules", multiple=True, help="Apply only this rule from `holmes rules list`; may be repeated.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(get_args(Format)),
    default="table",
    show_default=True,
    help="Print the report in this format. `table` has one line for each incident, `wide` all details.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["critical", "warning", "info"]),
    help="Exit with code 1 if incidents of this severity or higher exist, even if --severity hides them; with "
    "--baseline, only if they are new.",
)
@click.option(
    "--baseline",
    type=PATH,
    help="Compare with this earlier report (-o json), and mark new and resolved incidents.",
)
@click.option(
    "--grace", type=Seconds(min=0), default=60, show_default=True, help="Time that a pod may take to start, in seconds."
)
@click.option(
    "--timeout",
    type=Seconds(min=1),
    default=60,
    show_default=True,
    help="Time limit for reading the cluster, in seconds.",
)
@click.option(
    "--logs",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Maximum number of container logs to read.",
)
@config_option
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
    """Find problems in the cluster and their causes, without an LLM.

    Exit codes: 0 scan finished, with or without incidents; 1 incidents at or above --fail-on; 2 wrong usage; 3 cluster
    unreachable, or --fail-on not evaluated because pods could not be read.
    """
    options = ScanOptions(**given)  # type: ignore[arg-type]  # checked by click
    context.exit(_run(options, cluster, {"kubeconfig": kubeconfig, "kube_context": kube_context}))


def _run(options: ScanOptions, cluster: ClusterChoice, overrides: dict[str, object]) -> int:
    """Scan, show the report, and return the exit code."""
    settings = read_settings(options.config, overrides)
    baseline = _baseline(options.baseline) if options.baseline else None
    request = _request(options, settings)

    async def work(interrupts: Interrupts) -> int:
        report = await _scan(settings, cluster, request, interrupts)
        _check_kinds(options.kinds, report)
        _check_cluster(baseline, report)
        return _show(report, options, baseline)

    return run_until_signal(work)


def _show(report: DiagnosisReport, options: ScanOptions, baseline: DiagnosisReport | None) -> int:
    """Show the incidents that `--severity` selects, and return the exit code. `--fail-on` judges all incidents."""
    from holmes.cli.render.scan_text import shown_report
    from holmes.diagnosis.reports import at_least
    from holmes.settings.process import process_environment

    colours = is_terminal(sys.stdout) and not process_environment().get("NO_COLOR")
    narrowed = bool(options.rules or options.kinds or options.selector or options.severity == "critical")
    width = get_terminal_size().columns if is_terminal(sys.stdout) else 0
    shown = at_least(options.severity, report)
    before = at_least(options.severity, baseline) if baseline else None
    text = shown_report(shown, options.output, baseline=before, narrowed=narrowed, colours=colours, width=width)
    click.echo(text, color=colours)
    failing = _failing(report, baseline, options.fail_on) if options.fail_on else ()
    if hidden := len(set(failing) - {each.id for each in shown.incidents}):
        write_line(
            sys.stderr, f"holmes: --severity {options.severity} hides {counted(hidden, 'incident')} of --fail-on"
        )
    if failing:
        return _EXIT_FOUND
    if options.fail_on and any("Pod" in each.kinds for each in report.not_checked):
        write_line(sys.stderr, "holmes: --fail-on cannot be evaluated, because pods could not be read")
        return _EXIT_UNREAD
    return 0


async def _scan(
    settings: Settings, cluster: ClusterChoice, request: ScanRequest, interrupts: Interrupts
) -> DiagnosisReport:
    from holmes.app.cluster import chosen_cluster, scan_cluster, with_demo_hint
    from holmes.values.errors import ClusterUnreachable

    with interrupts:
        async with chosen_cluster(settings, cluster) as chosen:
            if cluster.notice:
                write_line(sys.stderr, f"holmes: {cluster.notice}")
            with ListProgress(sys.stderr) as progress:
                try:
                    return await scan_cluster(chosen, request, progress.show)
                except ClusterUnreachable as error:
                    raise with_demo_hint(error, chosen.cluster) from error


def _request(options: ScanOptions, settings: Settings) -> ScanRequest:
    from holmes.diagnosis.engine import chosen_rules
    from holmes.diagnosis.reports import IncidentFilter
    from holmes.diagnosis.scan import ScanRequest
    from holmes.kubernetes.log_reader import LogLimits
    from holmes.kubernetes.state_reader import ReadLimits

    if options.all_namespaces and options.namespaces:
        message = "-A and -n are mutually exclusive"
        raise click.UsageError(message)
    chosen_rules(options.rules)  # rejects a misspelled rule before the cluster is read
    configured = (settings.investigation.namespace,) if settings.investigation.namespace else ()
    return ScanRequest(
        namespaces=() if options.all_namespaces else options.namespaces or configured,
        rules=options.rules,
        wanted=IncidentFilter(
            severity=_lowest(options.severity, options.fail_on), kinds=options.kinds, labels=_labels(options.selector)
        ),
        read_limits=ReadLimits(seconds=options.timeout),
        log_limits=LogLimits(logs=options.logs),
        grace_seconds=options.grace,
    )


def _lowest(shown: Severity, failing: Severity | None) -> Severity:
    from holmes.values.findings import SEVERITIES

    return max(shown, failing or shown, key=SEVERITIES.index)


def _check_kinds(kinds: tuple[str, ...], report: DiagnosisReport) -> None:
    """Reject a misspelled kind, which no incident could match. The scan knows the custom kinds of the cluster."""
    from holmes.diagnosis.reports import plain_kind
    from holmes.kubernetes.kinds import KINDS

    known = {plain_kind(each) for each in (*(kind.name for kind in KINDS), *(count.kind for count in report.checked))}
    for kind in kinds:
        if plain_kind(kind) not in known:
            message = f"--kind {kind!r}: the cluster has no such kind; use for example Pod, Deployment or Service"
            raise click.UsageError(message)


def _check_cluster(baseline: DiagnosisReport | None, report: DiagnosisReport) -> None:
    """Reject a baseline of another cluster, because every difference would look like a change."""
    if baseline is not None and baseline.cluster and report.cluster and baseline.cluster != report.cluster:
        message = f"--baseline: this report is about cluster {baseline.cluster!r}, not {report.cluster!r}"
        raise click.UsageError(message)


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
    """Read an earlier report. Raises `ConfigError` if it is damaged, because its incidents would count as new."""
    from holmes.cli.commands.inputs import read_text_file
    from holmes.values.errors import ConfigError

    try:
        return _whole_report(read_text_file(file))
    except ValueError as error:
        message = f"--baseline {str(file)!r}: {error}; create it with `holmes scan -o json > FILE`"
        raise ConfigError(message) from error


def _whole_report(text: str) -> DiagnosisReport:
    from holmes.values.findings_json import report_from_json

    try:
        written = json.loads(text)
    except (ValueError, RecursionError) as error:
        message = "not valid JSON"
        raise ValueError(message) from error
    report = report_from_json(text)
    incidents = written["incidents"]
    whole = isinstance(incidents, list) and len(incidents) == len(report.incidents)
    if not whole or not all(each.id and each.findings for each in report.incidents):
        message = "the diagnosis is damaged: an incident has no id or no findings"
        raise ValueError(message)
    return report


def _failing(report: DiagnosisReport, baseline: DiagnosisReport | None, fail_on: Severity) -> tuple[str, ...]:
    """Return the ids of the incidents because of which the command fails."""
    from holmes.diagnosis.reports import at_least, compare

    incidents = report.incidents if baseline is None else compare(baseline, report).new
    return tuple(each.id for each in at_least(fail_on, replace(report, incidents=incidents)).incidents)


_ERASE = "\r\x1b[2K"
_LONGEST_NAME = 40


class ListProgress:
    """Shows how much of the cluster has been read, if the stream is a terminal."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and is_terminal(stream) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write(_ERASE)

    def show(self, what: str, done: int, planned: int) -> None:
        """Show that `what` was read, and that `done` of `planned` items have been read."""
        self._write(f"{_ERASE}reading the cluster: {done}/{planned} {one_line(what, _LONGEST_NAME)}")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()
