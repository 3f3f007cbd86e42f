"""Rules for readiness probes, liveness probes, startup probes and readiness gates that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.awaited import cannot_come
from holmes.diagnosis.facts.crashes import began, crashes_of, restarts, said, unhealthy
from holmes.diagnosis.facts.edges import consumer_logs, host_uses
from holmes.diagnosis.facts.evidence import event, owner_words, spec_field, value
from holmes.diagnosis.facts.fixes import corrected, instruction
from holmes.diagnosis.facts.logs import last_words
from holmes.diagnosis.facts.object_mentions import existing_in
from holmes.diagnosis.facts.pods import container_words, containers_of, judged_pods, troubled_pods
from holmes.diagnosis.facts.probes import STARTING_GRACES, WORDS, failures, probe_of, verdict
from holmes.diagnosis.facts.references import account_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import gate_setters
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import at, child, children, duration, integer, moment, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.crashes import Crash
    from holmes.diagnosis.facts.logs import LastWords
    from holmes.diagnosis.facts.pods import Container
    from holmes.diagnosis.facts.probes import Probe, ProbeField, ProbeVerdict
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, FixStep, ObjectRef

_MANY_FAILURES: Final = 10
_STILL_SECONDS: Final = 180.0
_SETTLED_SECONDS: Final = 1_800.0
_TITLES: Final[dict[ProbeField, str]] = {
    "readinessProbe": "Readiness probe fails",
    "livenessProbe": "Liveness probe kills the container",
    "startupProbe": "Startup probe kills the container",
}


@Row(
    id="P10",
    title="Pod does not become ready",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "status.conditions Ready, ContainersReady",
        "status.containerStatuses[].ready",
        "spec.containers[].readinessProbe",
        "spec.containers[].ports",
        "spec.readinessGates",
        "event Unhealthy: Readiness probe failed",
        "Node status.conditions Ready",
    ),
    explanation=(
        "The containers are running, but the pod is not ready, so Services send no requests to it. The rule compares "
        "the message of the failed probe with the definition of the container. Typical causes are a port without a "
        "listener, a path that returns 404, a missing program, or a timeout. When the application returns an error, "
        "the rule checks the log and the Services that appear in it. If its node became not ready before, the node is "
        "the cause. A pod is ignored until the grace period and the time that its probe allows have passed. A pod that "
        "is ready is reported as a warning if its probe has failed many times and still fails."
    ),
)
def not_ready(state: ClusterState) -> Iterator[Fault]:
    for pod in troubled_pods(state):
        young = state.age_seconds(pod) < state.grace_seconds
        if young or pod.text("status", "phase") != "Running" or pod.text("status", "reason"):
            continue
        found = False
        for container in containers_of(pod):
            probe = probe_of(container, "readinessProbe")
            if _unready(container, probe, state, starting_graces=STARTING_GRACES):
                found = True
                yield _readiness_fault(probe, state)
            elif _unready(container, probe, state, starting_graces=1):
                yield from _waits_for_others(probe, state)
        if not found:
            yield from _gates(pod, state)
    for pod in judged_pods(state):
        yield from _flapping(pod, state)


def _flapping(pod: ClusterObject, state: ClusterState) -> Iterator[Fault]:
    """Report a ready pod whose readiness probe has failed many times since it started, and still fails."""
    for container in containers_of(pod) if state.events_of(pod, "Unhealthy", "ProbeError") else ():
        probe = probe_of(container, "readinessProbe")
        events = failures(probe, unhealthy(container, state))
        started = moment(text(container.status, "state", "running", "startedAt")) or state.now
        settled = container.ready and state.now - started > _SETTLED_SECONDS
        lasting = events and state.now - events[-1].last <= _STILL_SECONDS
        count = sum(each.count for each in events)
        if settled and lasting and count >= _MANY_FAILURES:
            why = verdict(probe, events[-1].message)
            yield Fault(
                subject=pod.ref,
                title="Readiness probe fails again and again",
                severity="warning",
                cause=(
                    f"The {container_words(container, state)} is ready now, but its readiness probe has failed {count} "
                    f"times, the last time {duration(state.now - events[-1].last)} ago: {why.words}"
                ),
                evidence=tuple(_probe_evidence(probe, why, events, state)),
                next_check=f"kubectl -n {pod.namespace} describe pod {pod.name}",
                since=events[0].first or None,
            )


def _waits_for_others(probe: Probe, state: ClusterState) -> Iterator[Fault]:
    """Report a pod that may still be starting only if its log mentions a Service that cannot respond."""
    container, fault = probe.container, _readiness_fault(probe, state)
    services = [each for each in fault.because if each.kind == "Service"]
    if any(cannot_come(each, container, state) for each in services):
        yield fault


def _unready(container: Container, probe: Probe, state: ClusterState, *, starting_graces: int) -> bool:
    """Return whether the container has run for longer than allowed without becoming ready."""
    if container.kind == "ephemeral" or not container.running or container.ready:
        return False
    if container.kind == "init" and not container.sidecar:
        return False
    waits = bool(child(container.spec, "startupProbe") or child(container.spec, "lifecycle", "postStart"))
    if waits and at(container.status, "started") is False:
        return False
    started = moment(text(container.status, "state", "running", "startedAt"))
    since_seconds = state.now - started if started is not None else 0.0
    failed = failures(probe, unhealthy(container, state))
    if not probe.spec and not failed:
        return False
    starting = bool(failed) and verdict(probe, failed[-1].message).may_be_starting
    allowed = state.patience_seconds * starting_graces if starting else state.grace_seconds
    enough = integer(probe.spec, "initialDelaySeconds") + allowed
    return since_seconds >= enough and (bool(failed) or since_seconds >= enough + probe.budget_seconds)


def _readiness_fault(probe: Probe, state: ClusterState) -> Fault:
    container, events = probe.container, failures(probe, unhealthy(probe.container, state))
    message = events[-1].message if events else ""
    why = verdict(probe, message)
    words = last_words(container, state) if why.depends else None
    current = LogKey(pod=container.pod.ref, container=container.name, previous=False)
    return Fault(
        subject=container.pod.ref,
        title=f"Readiness probe fails: {why.title}",
        cause=(
            f"The {container_words(container, state)} is running but not ready because its readiness probe fails: "
            f"{why.words}{said(words)}"
        ),
        evidence=(
            *_probe_evidence(probe, why, events, state),
            *(words.evidence if words else ()),
            container.evidence("ready"),
        ),
        next_check=f"kubectl -n {container.pod.namespace} describe pod {container.pod.name}",
        because=(*_dependencies(container, words, state), *_lost_node(container.pod, state)),
        since=moment(text(container.pod.condition("Ready"), "lastTransitionTime")),
        logs=(current,) if why.depends else (),
        fix=(_port_fix(probe, why, state),),
    )


def _dependencies(container: Container, words: LastWords | None, state: ClusterState) -> tuple[ObjectRef, ...]:
    """Return what the log blames, and the Services in its decisive lines that cannot respond, and other objects."""
    lines = [each.line for each in words.signatures] if words else []
    named = (use.service for line in lines for use in host_uses(line, container.pod.namespace, state))
    silent = (each for each in named if cannot_come(each, container, state))
    awaited = (ref for line in lines for ref in existing_in(line, container.pod.namespace, state))
    others = (ref for ref in awaited if ref.kind in ("Job", "CronJob", "ConfigMap", "Secret"))
    return tuple(dict.fromkeys((*(words.blamed if words else ()), *silent, *others)))


def _lost_node(pod: ClusterObject, state: ClusterState) -> Iterator[ObjectRef]:
    """Yield the node of a pod if it is not ready, unless the pod was not ready before it."""
    node = state.get("Node", "", pod.text("spec", "nodeName"))
    ready = node.condition("Ready") if node is not None else {}
    lost, since = (moment(text(each, "lastTransitionTime")) for each in (ready, pod.condition("Ready")))
    if (
        node is not None
        and text(ready, "status") in ("False", "Unknown")
        and lost
        and (not since or since >= lost - 60)
    ):
        yield node.ref


def _port_fix(probe: Probe, why: ProbeVerdict, state: ClusterState) -> FixStep | None:
    """Check the only port that the container declares, if the probe checks another one."""
    declared = [integer(each, "containerPort") for each in children(probe.container.spec, "ports")]
    wrong = any("port" in field for field in why.fields)
    if not (why.probe_is_wrong and wrong) or len(declared) != 1:
        return None
    return corrected(probe.evidence(state, *why.fields[0]), declared[0])


def _probe_evidence(
    probe: Probe, why: ProbeVerdict, events: tuple[ClusterEvent, ...], state: ClusterState
) -> Iterator[Evidence]:
    """Yield the decisive fields of the probe, then the newest failure that the kubelet reported."""
    for path in why.fields:
        yield probe.evidence(state, *path)
    if events:
        yield event(events[-1])


_SET_GATE_GRACES: Final = 2
_ABSENT_GATE_GRACES: Final = 1
"""A controller that works writes the condition first and makes it True later. An absent condition has no controller."""


def _gates(pod: ClusterObject, state: ClusterState) -> Iterator[Fault]:
    """Report readiness gates whose condition is not True although all containers are ready."""
    if text(pod.condition("ContainersReady"), "status") != "True" or pod_ready(pod):
        return
    since = moment(text(pod.condition("ContainersReady"), "lastTransitionTime")) or pod.created
    for index, gate in enumerate(pod.children("spec", "readinessGates")):
        kind = text(gate, "conditionType")
        condition = pod.condition(kind)
        graces = _SET_GATE_GRACES if condition else _ABSENT_GATE_GRACES
        if not kind or text(condition, "status") == "True" or state.now - since < graces * state.patience_seconds:
            continue
        status = text(condition, "status") or "missing"
        yield Fault(
            subject=pod.ref,
            title="Readiness gate is not met",
            cause=(
                f"All containers of {owner_words(pod, state)} are ready, but the pod is not: its readiness gate "
                f"{kind} is {status}, and no controller has set it to True"
            ),
            evidence=(
                spec_field(pod, state, f"readinessGates[{index}].conditionType"),
                value(pod, "status.conditions", f"{kind} is {status}"),
                value(pod, "status.conditions[Ready].message", text(pod.condition("Ready"), "message")),
            ),
            next_check=f"kubectl -n {pod.namespace} get pod {pod.name} -o jsonpath='{{.status.conditions}}'",
            because=tuple(ref for each in gate_setters(state, pod, kind) for ref in (each.ref, account_of(each))),
            logs=consumer_logs(state, gate_setters(state, pod, kind)),
            since=since,
        )


@Row(
    id="P11",
    title="Liveness probe kills the container",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "events Killing and Unhealthy: Liveness probe failed",
        "spec.containers[].livenessProbe",
        "spec.containers[].ports",
        "status.containerStatuses[].lastState.terminated",
    ),
    explanation=(
        "The kubelet kills and restarts a container because its liveness probe fails (often exit code 137 or 143). The "
        "probe may use a port or path that does not exist. The probe may also start before the application is ready. "
        "In this case, add a startup probe or increase initialDelaySeconds. If the container hangs, its log shows why."
    ),
)
def killed_by_liveness(state: ClusterState) -> Iterator[Fault]:
    yield from _killed("livenessProbe", state)


@Row(
    id="P12",
    title="Startup probe kills the container",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "events Killing and Unhealthy: Startup probe failed",
        "spec.containers[].startupProbe",
        "status.containerStatuses[].started",
    ),
    explanation=(
        "A container does not pass its startup probe within failureThreshold times periodSeconds, so the kubelet "
        "kills and restarts the container. Either the container needs more time, or the probe uses the wrong port, "
        "path or program."
    ),
)
def killed_at_startup(state: ClusterState) -> Iterator[Fault]:
    yield from _killed("startupProbe", state)


def _killed(field: ProbeField, state: ClusterState) -> Iterator[Fault]:
    ending = "liveness" if field == "livenessProbe" else "startup"
    told: set[tuple[str, str]] = set()
    for crash in crashes_of(state):
        if crash.ending == ending:
            told.add((crash.pod.uid, crash.container.name))
            yield _killed_fault(crash, probe_of(crash.container, field), state)
    for pod in troubled_pods(state):
        for container in containers_of(pod):
            probe = probe_of(container, field)
            fault = None if (pod.uid, container.name) in told else _failing_fault(probe, state)
            if fault is not None:
                yield fault


def _killed_fault(crash: Crash, probe: Probe, state: ClusterState) -> Fault:
    container, events = crash.container, failures(probe, unhealthy(crash.container, state))
    message = events[-1].message if events else ""
    why, ran = verdict(probe, message), crash.ran_seconds
    late = not why.probe_is_wrong and 0 < ran <= probe.budget_seconds + 2 * _period(probe) + 35
    words = last_words(container, state) if why.depends else None
    budget = f"; the probe allows {probe.budget_seconds} s ({_budget_words(probe)})" if late else ""
    started = moment(text(container.status, "state", "running", "startedAt"))
    fails_again = started is not None and any(each.last > started for each in events)
    healed = not crash.again and container.ready and not fails_again
    return Fault(
        subject=crash.pod.ref,
        title=f"{_TITLES[probe.field]}: {'the probe starts too early' if late else why.title}",
        severity="warning" if healed else "critical",
        cause=(
            f"The {container_words(container, state)} is killed by its {WORDS[probe.field]}{_after(ran)}: "
            f"{why.words}{budget}{restarts(container)}{said(words)}"
        ),
        evidence=(
            *(_budget_evidence(probe, state) if late else ()),
            *_probe_evidence(probe, why, events, state),
            crash.evidence("exitCode"),
            container.evidence("restartCount"),
            *(words.evidence if words else ()),
        ),
        next_check=f"kubectl -n {crash.pod.namespace} describe pod {crash.pod.name}",
        because=words.blamed if words else (),
        since=began(crash, state),
        fix=(_port_fix(probe, why, state), _startup_probe(probe, state) if late else None),
        logs=(LogKey(pod=crash.pod.ref, container=container.name, previous=bool(container.last_terminated)),),
    )


def _startup_probe(probe: Probe, state: ClusterState) -> FixStep | None:
    """A startup probe gives a slow start its time and leaves the liveness probe strict."""
    if probe.field != "livenessProbe" or at(probe.container.spec, "startupProbe") is not None:
        return None
    place = probe.evidence(state, "failureThreshold")
    where = place.path.removesuffix(".failureThreshold")
    sentence = (
        f"If the start takes longer than {probe.budget_seconds} s, add a startupProbe with the check of {where}, "
    )
    sentence += "and failureThreshold x periodSeconds above that time."
    return instruction(place.object, sentence)


def _after(ran_seconds: float) -> str:
    return f" after {duration(ran_seconds)}" if ran_seconds else ""


def _period(probe: Probe) -> int:
    return integer(probe.spec, "periodSeconds") or 10


def _budget_words(probe: Probe) -> str:
    delay = integer(probe.spec, "initialDelaySeconds")
    before = f"initialDelaySeconds {delay} + " if delay else ""
    return f"{before}periodSeconds {_period(probe)} x failureThreshold {integer(probe.spec, 'failureThreshold') or 3}"


def _budget_evidence(probe: Probe, state: ClusterState) -> Iterator[Evidence]:
    for name in ("initialDelaySeconds", "failureThreshold", "periodSeconds"):
        if at(probe.spec, name) is not None:
            yield probe.evidence(state, name)


def _may_pass(probe: Probe, ran_seconds: float) -> bool:
    """Return whether an application that answers may serve the path of its startup probe later, within the budget."""
    return probe.field == "startupProbe" and ran_seconds < probe.budget_seconds


def _failing_fault(probe: Probe, state: ClusterState) -> Fault | None:
    """Report a clearly wrong probe before it kills the container. Ignore other probes, which may still succeed."""
    container = probe.container
    if not probe.spec or not container.running or container.ready:
        return None
    events = failures(probe, unhealthy(container, state))
    started = moment(text(container.status, "state", "running", "startedAt")) or state.now
    recent = [each for each in events if state.now - each.last <= 3 * _period(probe) + state.patience_seconds]
    if not recent or state.now - started < state.grace_seconds or recent[-1].last < started:
        return None
    why = verdict(probe, recent[-1].message)
    answers = ("httpGet", "port") not in why.fields and probe.action == "httpGet"
    if not why.probe_is_wrong or (answers and _may_pass(probe, state.now - started)):
        return None
    return Fault(
        subject=container.pod.ref,
        title=f"{_TITLES[probe.field].replace('kills the container', 'fails')}: {why.title}",
        severity="warning",
        cause=f"The {WORDS[probe.field]} of the {container_words(container, state)} fails: {why.words}",
        evidence=tuple(_probe_evidence(probe, why, events, state)),
        next_check=f"kubectl -n {container.pod.namespace} describe pod {container.pod.name}",
        since=recent[0].first,
    )
