"""Rules for Jobs and CronJobs that failed, are suspended or did not start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.crashes import crash_fault, crash_of, said
from holmes.diagnosis.facts.edges import newest_lines
from holmes.diagnosis.facts.fixes import changed
from holmes.diagnosis.facts.log_groups import progresses
from holmes.diagnosis.facts.logs import last_words, wanted_logs
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.schedules import longest_rest_seconds
from holmes.diagnosis.rule import Fault, Row
from holmes.diagnosis.rules.workloads_rollout import ROLLOUT_GRACES, sick_pods
from holmes.kubernetes.fields import duration, integer, moment, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.crashes import Crash
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef, Severity
    from holmes.values.json_types import JsonObject

_HOUR: Final = 3_600
_RECENT_SECONDS: Final = _HOUR
_OLD_SECONDS: Final = 7 * 86_400
_LIMITS: Final = {
    "BackoffLimitExceeded": ("spec", "backoffLimit"),
    "DeadlineExceeded": ("spec", "activeDeadlineSeconds"),
    "PodFailurePolicy": ("spec", "podFailurePolicy"),
    "FailedIndexes": ("spec", "backoffLimitPerIndex"),
    "MaxFailedIndexesExceeded": ("spec", "maxFailedIndexes"),
}
_BROKEN_SCHEDULE: Final = {
    "UnparseableSchedule": "schedule",
    "InvalidSchedule": "schedule",
    "UnparsableSchedule": "schedule",
    "UnknownTimeZone": "timeZone",
}
_SKIPPED_RUNS: Final = 3
_MISSED: Final = ("MissSchedule", "TooManyMissedTimes", "FailedNeedsStart")


@Row(
    id="W10",
    title="Job has failed",
    severity="critical",
    kinds=("Job", "CronJob", "Pod"),
    reads=("status.conditions[Failed]", *(".".join(path) for path in _LIMITS.values())),
    explanation="A Job failed permanently. Too many of its pods failed (backoffLimit), it exceeded "
    "activeDeadlineSeconds, or its podFailurePolicy makes the failure final. The rule quotes the last log line of the "
    "failed container. The cause is the setting or Service that appears in this line, or the object that the pods "
    "wait for. For a CronJob, only the newest finished Job is reported. The severity falls to warning one hour after "
    "the failure. For a Job without a CronJob, it falls to info after one week. For a CronJob that has never "
    "succeeded, it stays critical.",
)
def failed(state: ClusterState) -> Iterator[Fault]:
    for job in state.of("Job"):
        condition = _failure(job)
        if condition and job.deleted is None and not _made_good(state, job):
            yield _failed(state, job, condition)


def _failure(job: ClusterObject) -> JsonObject:
    for kind in ("Failed", "FailureTarget"):
        condition = job.condition(kind)
        if text(condition, "status") == "True":
            return condition
    return {}


def _failed(state: ClusterState, job: ClusterObject, condition: JsonObject) -> Fault:
    reason, message = text(condition, "reason"), text(condition, "message").rstrip(".")
    limit = _LIMITS.get(reason)
    crash = _last_failed(state, job)
    since = moment(text(condition, "lastTransitionTime")) or job.created
    told = f"; {'.'.join(limit)} is {evidence.shown(job.at(*limit))}" if limit else ""
    words = last_words(crash.container, state) if crash is not None else None
    how = f"; container {crash.container.name} exited with code {crash.exit_code}{said(words)}" if crash else ""
    return Fault(
        subject=job.ref,
        severity=_urgency(state, job, since),
        cause=f"{job.ref} failed permanently ({reason}): {message}{told}{how}",
        evidence=(
            *((evidence.field(job, *limit),) if limit else ()),
            evidence.value(job, "status.conditions[type=Failed].reason", reason),
            *(words.evidence if words is not None else ()),
            *((crash.evidence("exitCode"), crash.evidence("reason")) if crash is not None else ()),
            *((evidence.field(job, "status", "failedIndexes"),) if job.text("status", "failedIndexes") else ()),
        ),
        next_check=f"kubectl -n {job.namespace} logs job/{job.name} --all-containers --tail=50",
        because=_because(state, job, crash),
        since=since,
        logs=wanted_logs(crash.container) if crash is not None else (),
    )


def _because(state: ClusterState, job: ClusterObject, crash: Crash | None) -> tuple[ObjectRef, ...]:
    """Return the objects that explain the failure: pods that are not ready, or the objects that explain the crash.

    The crash itself is excluded, because the crash and the failed Job are two findings with one culprit.
    """
    if crash is None or crash.pod.text("status", "reason"):
        return sick_pods(state, job)
    if crash.ending not in {"application", "lost"}:
        return ()
    fault = crash_fault(crash, state, "critical")
    return (*((fault.culprit,) if fault.culprit is not None else ()), *fault.because)


def _urgency(state: ClusterState, job: ClusterObject, since: float) -> Severity:
    """Return the severity, which is lower for an old failure unless its CronJob has never succeeded."""
    parent = state.by_uid(job.owner.uid) if job.owner is not None else None
    if state.now - since <= _RECENT_SECONDS:
        return "critical"
    if parent is not None:
        return "warning" if parent.text("status", "lastSuccessfulTime") else "critical"
    return "warning" if state.now - since <= _OLD_SECONDS else "info"


def _made_good(state: ClusterState, job: ClusterObject) -> bool:
    """Return whether a later Job of the same CronJob has completed or failed."""
    parent = state.by_uid(job.owner.uid) if job.owner is not None else None
    later = state.owned_by(parent, "Job") if parent is not None else ()
    return any(
        each.created > job.created and (text(each.condition("Complete"), "status") == "True" or _failure(each))
        for each in later
    )


def _last_failed(state: ClusterState, job: ClusterObject) -> Crash | None:
    """Return the latest crash of a container in the Job's pods, or None."""
    ends = (crash_of(container, state) for pod in state.pods_of(job) for container in containers_of(pod))
    failed = [crash for crash in ends if crash is not None and crash.exit_code > 0]
    return max(failed, key=lambda crash: crash.finished or 0.0, default=None)


@Row(
    id="W10b",
    title="Job does not complete because another container keeps running",
    severity="warning",
    kinds=("Job", "Pod"),
    reads=("Pod status.containerStatuses[].state", "status.active"),
    explanation="The main container exited with code 0, but another container of the pod is still running, so the Job "
    "never completes. Make the other container a native sidecar, which is an init container with restartPolicy Always.",
)
def held_up_by_sidecar(state: ClusterState) -> Iterator[Fault]:
    for job in state.of("Job"):
        if not job.integer("status", "active") or job.deleted is not None:
            continue
        for pod in state.pods_of(job):
            main = [container for container in containers_of(pod) if container.kind == "main"]
            running = [container for container in main if container.running]
            ended = [moment(text(each.terminated, "finishedAt")) for each in main if _succeeded(each)]
            finished = [time for time in ended if time is not None]
            if not running or not finished or state.now - max(finished) < ROLLOUT_GRACES * state.patience_seconds:
                continue
            done = next(each for each in main if _succeeded(each))
            yield Fault(
                subject=pod.ref,
                culprit=state.workload_of(job).ref,
                cause=f"{job.ref} does not complete because container {running[0].name} is still running although "
                f"container {done.name} has finished; a sidecar belongs in initContainers with restartPolicy Always",
                evidence=(
                    running[0].evidence("name", of="spec"),
                    running[0].evidence("state"),
                    done.evidence("state", "terminated", "exitCode"),
                ),
                next_check=f"kubectl -n {pod.namespace} logs {pod.name} -c {running[0].name} --tail=20",
                since=max(finished),
            )
            break


def _succeeded(container: Container) -> bool:
    return bool(container.terminated) and integer(container.terminated, "exitCode") == 0


@Row(
    id="W10c",
    title="Job or CronJob is suspended",
    severity="info",
    kinds=("Job", "CronJob"),
    reads=("spec.suspend", "logs of the namespace"),
    explanation="While spec.suspend is true, a Job starts no pods and a CronJob starts no Jobs. This is usually "
    "intended, so the severity is info. It is critical if the log of a workload in the namespace says again and again "
    "that it waits for the Job, or that it lacks what the CronJob makes.",
)
def suspended(state: ClusterState) -> Iterator[Fault]:
    for kind in ("Job", "CronJob"):
        for each in state.of(kind):
            if each.boolean("spec", "suspend") and each.deleted is None and not _failure(each):
                if kind == "Job" and _QUEUE in each.labels:
                    yield _queued(state, each)
                    continue
                missed = _missed_by(state, each)
                who = state.workload_of(missed[0]).ref if missed is not None else None
                yield Fault(
                    subject=each.ref,
                    title=f"{kind} is suspended",
                    severity="critical" if missed is not None else None,
                    cause=f"{each.ref} starts no {'pods' if kind == 'Job' else 'Jobs'} because spec.suspend is true"
                    + (f", and the log of {who} says: {missed[1].value}" if missed is not None else ""),
                    evidence=(
                        evidence.field(each, "spec", "suspend"),
                        *((missed[1],) if missed is not None else ()),
                    ),
                    next_check=f"kubectl -n {each.namespace} get {kind.lower()} {each.name}",
                    fix=(changed(each.ref, "spec.suspend", right=False),),
                )


_QUEUE: Final = "kueue.x-k8s.io/queue-name"


def _queued(state: ClusterState, job: ClusterObject) -> Fault:
    """Return that a Job waits for Kueue, which suspends it until its queue has quota. A person must not resume it."""
    made = next(iter(state.owned_by(job, "Workload")), None)
    reserved = made.condition("QuotaReserved") if made is not None else {}
    waits = made is not None and text(reserved, "status") == "False"
    told = f": {text(reserved, 'message')}" if waits and text(reserved, "message") else ""
    proof = (
        (evidence.value(made, "status.conditions[QuotaReserved].message", text(reserved, "message")),) if made else ()
    )
    return Fault(
        subject=job.ref,
        culprit=made.ref if made is not None and waits else None,
        title="Job waits in the queue of Kueue",
        severity="warning" if waits else "info",
        cause=f"{job.ref} is suspended by Kueue until LocalQueue {job.labels[_QUEUE]} admits it{told}"
        if waits
        else f"{job.ref} starts no pods because spec.suspend is true; Kueue manages it",
        evidence=(*proof, evidence.field(job, "spec", "suspend")),
        next_check=f"kubectl -n {job.namespace} get workloads.kueue.x-k8s.io",
    )


_MISSED_WORDS: Final = expression(
    r"(?i)\bwait|\bneeds?\b|\bmissing\b|\bstale\b|\bold(?:er)?\b|\bout ?dated\b|\bbehind\b"
    r"|\blast (?:run|update|success)|\bno (?:new|fresh|recent)\b|\bsince\b"
    r"|\bnot (?:yet )?(?:ready|available|refreshed|updated|done|run)\b"
)
_LEAST_LINES: Final = 3


def _missed_by(state: ClusterState, job: ClusterObject) -> tuple[ClusterObject, Evidence] | None:
    """Return a pod of the namespace whose newest lines say again and again that it misses the Job, with a line."""
    word = re.compile(rf"(?<![\w./-]){re.escape(job.name)}(?![\w/-])")
    for key, log in state.timed_logs.items():
        pod = state.find(key.pod) if key.pod.namespace == job.namespace and job.name in log else None
        if pod is None or state.workload_of(pod) is state.workload_of(job) or key.previous:
            continue
        lines = [line for line in newest_lines(log, state.now) if word.search(line) and _MISSED_WORDS.search(line)]
        if len(lines) >= _LEAST_LINES:
            return pod, evidence.log_line(pod, key.container, lines[0].strip(), previous=False)
    return None


@Row(
    id="W11",
    title="CronJob does not start Jobs",
    severity="warning",
    kinds=("CronJob", "Job"),
    reads=(
        "spec.schedule", "spec.timeZone", "spec.concurrencyPolicy", "spec.startingDeadlineSeconds",
        "status.lastScheduleTime", "status.active",
        "events MissSchedule, TooManyMissedTimes, FailedNeedsStart, JobAlreadyActive",
        "events UnknownTimeZone, UnparseableSchedule, InvalidSchedule",
    ),
    explanation="A CronJob misses its runs. Its schedule or time zone cannot be parsed, or its last run has not "
    "finished and concurrencyPolicy is Forbid. A run may also have missed its deadline (startingDeadlineSeconds), or "
    "the CronJob starts no Jobs for an unknown reason. The rule does not compute calendar dates. It treats a run as "
    "overdue after twice the longest interval of the schedule. A suspended CronJob is not a fault.",
)  # fmt: skip
def does_not_start(state: ClusterState) -> Iterator[Fault]:
    for cron in state.of("CronJob"):
        if cron.boolean("spec", "suspend") or cron.deleted is not None:
            continue
        fault = _unreadable(state, cron) or _blocked(state, cron) or _missed(state, cron) or _overdue(state, cron)
        if fault is not None:
            yield fault


def _check(cron: ClusterObject) -> str:
    return f"kubectl -n {cron.namespace} describe cronjob {cron.name}"


def _unreadable(state: ClusterState, cron: ClusterObject) -> Fault | None:
    events = [event for event in state.events_of(cron, *_BROKEN_SCHEDULE) if event.last > _last_run(cron)]
    if not events:
        return None
    key = _BROKEN_SCHEDULE[events[-1].reason]
    return Fault(
        subject=cron.ref,
        title="Schedule of the CronJob cannot be parsed",
        severity="critical",
        cause=f"{cron.ref} starts no Jobs because spec.{key} {cron.text('spec', key)!r} is not valid: "
        f"{events[-1].message}",
        evidence=(evidence.field(cron, "spec", key), evidence.event(events[-1])),
        next_check=_check(cron),
    )


def _blocked(state: ClusterState, cron: ClusterObject) -> Fault | None:
    """Report a CronJob whose last run has not finished and whose concurrencyPolicy forbids another run."""
    policy = cron.text("spec", "concurrencyPolicy")
    events = [event for event in state.events_of(cron, "JobAlreadyActive") if event.last > _last_run(cron)]
    active = [job for job in state.owned_by(cron, "Job") if job.integer("status", "active")]
    if policy != "Forbid" or not active:
        return None
    job = min(active, key=lambda each: each.created)
    rest = longest_rest_seconds(cron.text("spec", "schedule"))
    # Events are kept for an hour, so the age of an older run tells how many it has skipped.
    rests = _SKIPPED_RUNS - 1 if events and not progresses(state, job) else _SKIPPED_RUNS + 1
    hangs = rest is not None and state.age_seconds(job) > max(2 * _HOUR, rests * rest)
    if not hangs and sum(event.count for event in events) < _SKIPPED_RUNS:
        return None
    missed = [event.first for event in events[:1]] + ([job.created + rest] if rest is not None else [])
    return Fault(
        subject=cron.ref,
        title="CronJob waits for its last run to finish",
        cause=f"{cron.ref} starts no Jobs because its concurrencyPolicy is Forbid, and {job.ref} is still "
        f"running after {duration(state.age_seconds(job))}",
        evidence=(
            evidence.field(cron, "spec", "concurrencyPolicy"),
            evidence.value(cron, "status.active[0].name", job.name),
            *map(evidence.event, events[-1:]),
        ),
        next_check=f"kubectl -n {cron.namespace} logs job/{job.name} --all-containers --tail=50",
        because=tuple(pod.ref for pod in state.pods_of(job)),
        since=min(filter(None, missed), default=job.created),
    )


def _missed(state: ClusterState, cron: ClusterObject) -> Fault | None:
    events = [event for event in state.events_of(cron, *_MISSED) if event.last > _last_run(cron)]
    if not events:
        return None
    deadline = cron.at("spec", "startingDeadlineSeconds")
    first = ("spec", "startingDeadlineSeconds") if deadline is not None else ("spec", "schedule")
    return Fault(
        subject=cron.ref,
        title="CronJob misses its runs",
        cause=f"{cron.ref} missed a run: {events[-1].message}; {'.'.join(first)} is {cron.at(*first)}",
        evidence=(evidence.field(cron, *first), evidence.event(events[-1])),
        next_check=_check(cron),
        since=events[0].first,
    )


def _overdue(state: ClusterState, cron: ClusterObject) -> Fault | None:
    rest = longest_rest_seconds(cron.text("spec", "schedule"))
    began = max([_last_run(cron), cron.created, *_edits(cron)])
    if rest is None or state.now - began < 2 * rest + ROLLOUT_GRACES * state.patience_seconds:
        return None
    running = any(job.integer("status", "active") for job in state.owned_by(cron, "Job"))
    if running or cron.children("status", "active") or not state.covers("Job", cron.namespace):
        return None
    return Fault(
        subject=cron.ref,
        title="CronJob is overdue",
        cause=f"{cron.ref} has started no Job for {duration(state.now - began)}, although its schedule is "
        f"{cron.text('spec', 'schedule')!r}",
        evidence=(evidence.field(cron, "spec", "schedule"), evidence.field(cron, "status", "lastScheduleTime")),
        next_check=_check(cron),
        since=began + rest,
    )


def _last_run(cron: ClusterObject) -> float:
    return moment(cron.text("status", "lastScheduleTime")) or 0.0


def _edits(cron: ClusterObject) -> list[float]:
    """Return the times of edits to the CronJob.

    An edit may have resumed the CronJob, so runs before the edit are not treated as missed.
    """
    entries = cron.children("metadata", "managedFields")
    return [moment(text(entry, "time")) or 0.0 for entry in entries if text(entry, "subresource") != "status"]
