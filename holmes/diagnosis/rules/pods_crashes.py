"""Rules about containers that end when they should run: P01 crashes, P02 memory, P03 restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.diagnosis.facts.crash_faults import EXIT_CODES, crash_fault, log_command, restarts, said, severity_of_end
from holmes.diagnosis.facts.crashes import began, crashes_of, job_recovered
from holmes.diagnosis.facts.evidence import event
from holmes.diagnosis.facts.last_words import last_words, wanted_logs
from holmes.diagnosis.facts.spec_places import container_field, container_words
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import text
from holmes.kubernetes.moments import duration
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.crashes import Crash
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence


@Row(
    id="P01",
    title="Application crashes",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "status.containerStatuses[].state.waiting.reason",
        "status.containerStatuses[].lastState.terminated",
        "status.containerStatuses[].restartCount",
        "logs of the instance that ended",
    ),
    explanation=(
        "A container ends again and again (CrashLoopBackOff), or a pod that must not end has failed. The exit code "
        "says how: 1 and 2 are the application's own errors, 126 and 127 a command that cannot be run or does not "
        "exist, 134 and 139 crashes, 137 a kill, 0 a program that simply finishes. The log of the ended instance says "
        "why; a variable, argument or mounted file that it names is shown as evidence. Ends for want of memory are "
        "P02, kills by probes P11 and P12, containers that cannot be started P06, init containers P09."
    ),
)
def crashing(state: ClusterState) -> Iterator[Fault]:
    """Main containers and sidecars that end by themselves."""
    for crash in crashes_of(state):
        container = crash.container
        if crash.ending not in {"application", "lost"} or (container.kind == "init" and not container.sidecar):
            continue
        over = bool(container.terminated) and not crash.again
        if (not crash.again and not over) or (over and job_recovered(crash.pod, state)):
            continue
        yield crash_fault(crash, state, severity_of_end(crash, state) if over else "critical")


@Row(
    id="P02",
    title="Container runs out of memory",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "status.containerStatuses[].state.terminated.reason",
        "status.containerStatuses[].lastState.terminated.reason",
        "spec.containers[].resources.limits.memory",
        "events SystemOOM, OOMKilling of the node",
    ),
    explanation=(
        "The kernel killed a container because it took more memory than its limit (reason OOMKilled), or, without a "
        "limit, because the node had none left. It counts although the container runs again: within the last hour, or "
        "while the pod is not ready. Raise spec.containers[].resources.limits.memory, or find what the application "
        "keeps. When the limit of the live pod differs from the template, W07 says who changed it."
    ),
)
def out_of_memory(state: ClusterState) -> Iterator[Fault]:
    """Containers whose last end was OOMKilled."""
    for crash in crashes_of(state):
        if crash.ending != "memory" or job_recovered(crash.pod, state):
            continue
        container = crash.container
        limit = text(container.spec, "resources", "limits", "memory")
        healed = not crash.again and not container.terminated and container.ready and container.restarts < 2
        events = _node_events(crash, state) if not limit else ()
        yield Fault(
            subject=crash.pod.ref,
            severity="warning" if healed else "critical",
            cause=_memory_cause(crash, limit, state),
            evidence=(
                container_field(container, state, "resources.limits.memory"),
                crash.evidence("reason"),
                *events,
                crash.evidence("finishedAt"),
                container.evidence("restartCount"),
            ),
            next_check=f"kubectl -n {crash.pod.namespace} top pod {crash.pod.name} --containers",
            because=(ObjectRef(kind="Node", name=crash.pod.text("spec", "nodeName")),) if not limit else (),
            since=began(crash, state),
        )


def _memory_cause(crash: Crash, limit: str, state: ClusterState) -> str:
    who = container_words(crash.container, state)
    ran = f" after {duration(crash.ran_seconds)}" if crash.ran_seconds else ""
    times = restarts(crash.container)
    if limit:
        return (
            f"The {who} was killed{ran} because it needs more memory than its limit resources.limits.memory = {limit} "
            f"(OOMKilled){times}"
        )
    node = crash.pod.text("spec", "nodeName") or "its node"
    return f"The {who} has no memory limit and was killed{ran} because node {node} ran out of memory (OOMKilled){times}"


def _node_events(crash: Crash, state: ClusterState) -> tuple[Evidence, ...]:
    node = state.get("Node", "", crash.pod.text("spec", "nodeName"))
    return tuple(event(each) for each in state.events_of(node, "SystemOOM", "OOMKilling")[-1:]) if node else ()


@Row(
    id="P03",
    title="Container was restarted and runs again",
    severity="warning",
    kinds=("Pod",),
    reads=("status.containerStatuses[].restartCount", "status.containerStatuses[].lastState.terminated"),
    explanation=(
        "A container ended within the last hour and runs again. The pod looks healthy now, but requests were lost and "
        "it may happen again. Ends for want of memory are P02 and kills by probes P11 and P12. Restarts longer than an "
        "hour ago are not reported."
    ),
)
def restarted(state: ClusterState) -> Iterator[Fault]:
    """Running containers that ended within the hour."""
    for crash in crashes_of(state):
        container = crash.container
        if crash.again or not container.running or crash.ending not in {"application", "hook", "start", "lost"}:
            continue
        if container.kind == "init" and not container.sidecar:
            continue
        words = last_words(container, state)
        ago = duration(state.now - (crash.finished or state.now))
        usual = "its command had finished" if crash.exit_code == 0 else "an error of the application"
        meaning = EXIT_CODES.get(crash.exit_code, usual)
        yield Fault(
            subject=crash.pod.ref,
            severity="info" if crash.ending == "lost" or crash.exit_code == 0 else "warning",
            cause=(
                f"The {container_words(container, state)} ended {ago} ago with exit code {crash.exit_code}, {meaning}, "
                f"and runs again{restarts(container)}{said(words)}"
            ),
            evidence=(
                *(words.evidence if words else ()),
                crash.evidence("exitCode"),
                crash.evidence("finishedAt"),
                container.evidence("restartCount"),
            ),
            next_check=log_command(container),
            because=words.blamed if words else (),
            since=crash.finished,
            logs=wanted_logs(container),
        )
