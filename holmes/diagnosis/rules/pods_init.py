"""Rule for init containers that fail or do not finish."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.awaited import awaited_objects, awaited_services, cannot_come
from holmes.diagnosis.facts.crashes import (
    command_evidence,
    crash_fault,
    crashes_of,
    log_command,
    said,
    severity_of_end,
)
from holmes.diagnosis.facts.evidence import owner_words
from holmes.diagnosis.facts.job_runs import job_recovered
from holmes.diagnosis.facts.logs import last_words, wanted_logs
from holmes.diagnosis.facts.pods import container_words, containers_of, troubled_pods
from holmes.diagnosis.facts.typos import meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import duration, moment, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.crashes import Crash
    from holmes.diagnosis.facts.logs import LastWords
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef

_STUCK: Final = frozenset({"unknown host", "unreachable", "authentication", "certificate", "permission denied"})
_LONG_INIT_SECONDS: Final = 300.0


@Row(
    id="P09",
    title="Init container fails",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "status.initContainerStatuses[].state",
        "status.initContainerStatuses[].lastState.terminated",
        "spec.initContainers[].command",
        "logs of the init container",
    ),
    explanation="An init container fails or runs for more than five minutes, so the containers after it do not start "
    "(Init:CrashLoopBackOff, Init:0/1). A hanging init container usually waits for a host that appears in its command "
    "or log. If this host is a Service that does not exist or has no ready pods, the init container is reported "
    "earlier. Sidecars (init containers with restartPolicy Always) do not have to finish and are checked like main "
    "containers.",
)
def init_failing(state: ClusterState) -> Iterator[Fault]:
    for crash in crashes_of(state):
        container = crash.container
        if container.kind == "init" and not container.sidecar and crash.ending in {"application", "lost"}:
            over = bool(container.terminated) and not crash.again
            if (crash.again or over) and not job_recovered(crash.pod, state):
                yield _init_fault(crash, state)
    for pod in troubled_pods(state):
        running = _running(pod, state)
        if running is not None:
            yield from _hanging(running, state)


def _init_fault(crash: Crash, state: ClusterState) -> Fault:
    fault = crash_fault(crash, state, severity_of_end(crash, state) if not crash.again else "critical")
    waiting = [each.name for each in containers_of(crash.pod) if each.kind == "main"]
    verb = "does" if len(waiting) == 1 else "do"
    awaited = awaited_objects(crash.container, last_words(crash.container, state), state)
    return replace(
        fault,
        because=(*fault.because, *awaited),
        title="Init container fails",
        cause=f"{fault.cause}; until the init container succeeds, {', '.join(waiting)} {verb} not start",
    )


def _running(pod: ClusterObject, state: ClusterState) -> Container | None:
    """Return the init container that has been running for longer than the grace period, or None."""
    for container in containers_of(pod):
        if container.kind == "init" and not container.sidecar and container.running:
            return container if _ran_seconds(container, state) > state.patience_seconds else None
    return None


def _ran_seconds(container: Container, state: ClusterState) -> float:
    began = moment(text(container.status, "state", "running", "startedAt"))
    return state.now - began if began is not None else 0.0


def _hanging(container: Container, state: ClusterState) -> Iterator[Fault]:
    """Report an init container that runs too long or waits for an unavailable Service.

    If the log was not read, report any running init container with severity info. The scan then reads its log, which
    may mention a Service.
    """
    words = last_words(container, state)
    hangs = _ran_seconds(container, state) >= min(_LONG_INIT_SECONDS, 5 * state.patience_seconds)
    services = awaited_services(container, words, state, certain=not hangs)
    running = _running_job(container, words, state)
    if hangs or running is not None or any(cannot_come(each, container, state) for each in services):
        yield _hanging_fault(container, words, services, state)
    elif state.log_of(container.pod, container.name, previous=False) is None:
        fault = _hanging_fault(container, words, services, state)
        yield replace(fault, severity="info", title="Init container is still running")


def _running_job(container: Container, words: LastWords | None, state: ClusterState) -> ObjectRef | None:
    """Return the Job that the container waits for if it has not finished yet, or None."""
    jobs = (each for each in awaited_objects(container, words, state) if each.kind == "Job")
    found = ((each, state.find(each)) for each in jobs)
    return next((ref for ref, job in found if job is not None and job.integer("status", "active")), None)


def _hanging_fault(
    container: Container, words: LastWords | None, services: tuple[ObjectRef, ...], state: ClusterState
) -> Fault:
    pod, ran_seconds = container.pod, _ran_seconds(container, state)
    others = awaited_objects(container, words, state)
    absent = next((each for each in services if state.is_missing("Service", each.namespace, each.name)), None)
    near = meant(absent.name, (each.name for each in state.of("Service", absent.namespace))) if absent else None
    named = f"; it waits for {', '.join(map(str, (*services, *others)))}" if services or others else ""
    if absent is not None:
        named = f"; it waits for {absent}, which does not exist" + (f"; did you mean Service {near}?" if near else "")
    return Fault(
        subject=pod.ref,
        culprit=absent if absent is not None and near is None else _running_job(container, words, state),
        title="Init container does not finish",
        severity="critical" if services or (words and words.first.kind in _STUCK) else "warning",
        cause=(
            f"The {container_words(container, state)} has been running for {duration(ran_seconds)} and does not "
            f"finish, so the containers of {owner_words(pod, state)} do not start{named}{said(words)}"
        ),
        evidence=(
            *command_evidence(container, state),
            *(words.evidence if words else ()),
            container.evidence("state", "running", "startedAt"),
        ),
        next_check=log_command(container),
        because=(*services, *others),
        since=state.now - ran_seconds,
        logs=wanted_logs(container),
    )
