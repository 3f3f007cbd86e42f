"""Finds the error with which the log of a finished run ends, and the silence of one that is still active.

A shell script without `set -e` and a pipe hide the exit code of the command that failed, so that a run is complete
although it did not work.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.line_kinds import reports_success
from holmes.diagnosis.facts.log_groups import story_of
from holmes.diagnosis.facts.log_weights import is_retried
from holmes.diagnosis.facts.logs import quoted
from holmes.kubernetes.fields import duration, moment, text
from holmes.previews.severity import INFO, WARNING, level_of
from holmes.triage.asked import look_about
from holmes.triage.past import is_past, past_period
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.diagnosis.facts.log_groups import LogStory
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import LogKey
    from holmes.triage.asked import Asked
    from holmes.triage.subjects import Named
    from holmes.values.first_look import FirstLook

_AROUND_SECONDS: Final = 300.0
_LAST_RECORDS: Final = 3
_SILENT_SECONDS: Final = 2 * 3_600.0
_WORKED: Final = expression(
    r"(?i)(?<!nothing )(?<!nothing was )(?<!not )(?<!no )(?<!no rows )(?<!be )"
    r"\b(?:(?:up|down)loaded|stored|saved|written|wrote|sent|copied|(?:im|ex)ported|synced|recovered|succeeded|success\w*"
    r"|completed|processed|restored|published)\b"
)
"""Words of a later line that tells that the work was done anyway."""


def failed_run(asked: Asked, named: Named) -> FirstLook | None:
    """Return the error at the end of the last completed run of a Job or a CronJob, or of a failed one in the past."""
    for each in named.objects:
        job = _run_then(asked, each) if is_past(asked) else _last_run(asked, each)
        found = next(_errors(asked, job), None) if job is not None else None
        if job is not None and found is not None:
            key, group = found
            ended = "failed, and" if is_past(asked) else "exited with code 0, but"
            summary = f"{job.ref} {ended} its log reports {group.span}: {quoted(group.record)}"
            look = look_about(asked, named, "cause_found", summary)
            evidence = (f"{key.pod}, log of container {key.container}, {group.span}: {quoted(group.record)}",)
            return replace(look, severity="warning", culprit=str(each.ref), evidence=evidence)
    return None


def silent_run(asked: Asked, named: Named) -> str:
    """Return that a run of the subject is active although its log has been silent for long, or nothing.

    A program may also work without a word, so this proves no fault. But it does not prove health either.
    """
    for job in (each for one in named.objects for each in _runs(asked, one) if each.integer("status", "active")):
        pods = {pod.ref for pod in asked.state.pods_of(job)}
        logs = [
            story_of(log) for key, log in asked.state.timed_logs.items() if key.pod in pods and not key.previous and log
        ]
        story = max(logs, key=lambda each: each.time_of(each.last_number), default=None)
        last = story.time_of(story.last_number) if story is not None else 0.0
        if story is not None and last and asked.state.now - last > _SILENT_SECONDS:
            running, silent = (duration(each) for each in (asked.state.age_seconds(job), asked.state.now - last))
            return (
                f"{job.ref} is still running after {running}, and its log has been silent for {silent}. "
                f"Its last line is: {quoted(story.lines[-1])}"
            )
    return ""


def _run_then(asked: Asked, each: ClusterObject) -> ClusterObject | None:
    """Return the failed Job that ran in the time of a question about the past, or None if there is not exactly one."""
    start, end = past_period(asked) or (0.0, 0.0)
    found = [
        job for job in _runs(asked, each)
        if _failed_at(job) and job.created <= end + _AROUND_SECONDS and _failed_at(job) >= start - _AROUND_SECONDS
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _failed_at(job: ClusterObject) -> float:
    """Return the time at which a Job failed, or 0."""
    condition = job.condition("Failed")
    return (moment(text(condition, "lastTransitionTime")) or 0.0) if text(condition, "status") == "True" else 0.0


def _runs(asked: Asked, each: ClusterObject) -> Sequence[ClusterObject]:
    return (each,) if each.kind == "Job" else asked.state.owned_by(each, "Job") if each.kind == "CronJob" else ()


def _last_run(asked: Asked, each: ClusterObject) -> ClusterObject | None:
    """Return the newest Job of a CronJob, or the Job itself, if it completed."""
    newest = max(_runs(asked, each), key=lambda job: job.created, default=None)
    done = newest is not None and text(newest.condition("Complete"), "status") == "True"
    return newest if done else None


def _errors(asked: Asked, job: ClusterObject) -> Iterator[tuple[LogKey, LogGroup]]:
    phase = "Failed" if _failed_at(job) else "Succeeded"
    pods = {pod.ref for pod in asked.state.pods_of(job) if pod.text("status", "phase") == phase}
    for key, log in asked.state.timed_logs.items():
        if key.pod in pods and not key.previous:
            story = story_of(log)
            found = [each for each in story.groups if _is_at_end(story, each)]
            yield from ((key, each) for each in sorted(found, key=lambda each: each.rank))


def _is_at_end(story: LogStory, group: LogGroup) -> bool:
    """Return whether an error is among the last records of a log, and no later one tells of success."""
    last = max((number for each in story.patterns if each.text == group.template for number in each.numbers), default=0)
    later = [story.lines[number - 1] for number in story.heads if number > last]
    fatal = group.weight in ("kind", "error") and not is_retried(group.record)
    return fatal and len(later) < _LAST_RECORDS and not any(map(_tells_of_work, later))


def _tells_of_work(line: str) -> bool:
    return (level_of(line) or INFO) < WARNING and (reports_success(line) or _WORKED.search(line) is not None)
