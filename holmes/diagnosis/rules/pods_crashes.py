"""Rules for containers that crash or do not start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.crashes import (
    EXIT_CODES,
    START_REASONS,
    about_container,
    began,
    command_evidence,
    crash_fault,
    crash_of,
    crashes_of,
    log_command,
    restarts,
    said,
    severity_of_end,
)
from holmes.diagnosis.facts.evidence import event
from holmes.diagnosis.facts.fixes import instruction
from holmes.diagnosis.facts.job_runs import job_recovered
from holmes.diagnosis.facts.logs import last_words, wanted_logs
from holmes.diagnosis.facts.pods import container_field, container_words, containers_of, troubled_pods
from holmes.diagnosis.facts.resources import defaulted_by, vertical_scaler_of
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import child, children, duration, text, texts
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.crashes import Crash
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, FixStep


@Row(
    id="P01",
    title="Application crashes",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "status.containerStatuses[].state.waiting.reason",
        "status.containerStatuses[].lastState.terminated",
        "status.containerStatuses[].restartCount",
        "logs of the terminated instance",
    ),
    explanation="A container exits repeatedly (CrashLoopBackOff), or a pod that should keep running has failed. Exit "
    "codes 1 and 2 mean an application error. Code 126 means that the command cannot be executed, and code 127 means "
    "that it was not found. Codes 134 and 139 mean a crash, and code 137 means that the process was killed. Code 0 "
    "means that the program finished. The log of the terminated container shows the cause. As evidence, the rule "
    "quotes the variables, arguments and mounted files that appear in the log. Rule P02 reports containers that run "
    "out of memory, and rules P11 and P12 report failing probes. Rule P06 reports containers that cannot be started, "
    "and rule P09 reports init containers.",
)
def crashing(state: ClusterState) -> Iterator[Fault]:
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
        "metadata.annotations.vpaUpdates",
        "VerticalPodAutoscaler spec.targetRef",
        "events SystemOOM, OOMKilling of the node",
    ),
    explanation="The kernel killed a container (reason OOMKilled) because it exceeded its memory limit. A container "
    "without a limit is killed when the node has no memory left. The fault is reported while the pod is not ready, and "
    "for one hour after the container is running again. Raise spec.containers[].resources.limits.memory, or find out "
    "what uses the memory. If the limit of the live pod differs from the template, rule W07 shows which component "
    "changed the limit.",
)
def out_of_memory(state: ClusterState) -> Iterator[Fault]:
    for crash in crashes_of(state):
        if crash.ending != "memory" or job_recovered(crash.pod, state):
            continue
        container = crash.container
        limit = text(container.spec, "resources", "limits", "memory")
        limits = defaulted_by(container, state, "memory") if limit else None
        limits = limits or (vertical_scaler_of(container, state, "memory") if limit else None)
        healed = not crash.again and not container.terminated and container.ready and container.restarts < 2
        events = _node_events(crash, state) if not limit else ()
        yield Fault(
            subject=crash.pod.ref,
            culprit=limits.ref if limits is not None else None,
            severity="warning" if healed else "critical",
            cause=_memory_cause(crash, limit, limits, state),
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
            fix=(_more_memory(crash, limit, limits, state) if limit else None,),
        )


def _memory_cause(crash: Crash, limit: str, limits: ClusterObject | None, state: ClusterState) -> str:
    who = container_words(crash.container, state)
    ran = f" after {duration(crash.ran_seconds)}" if crash.ran_seconds else ""
    times = restarts(crash.container)
    if limit:
        return (
            f"The {who} was killed{ran} because it exceeded its memory limit resources.limits.memory = {limit} "
            f"(OOMKilled){times}{_setter_words(limits)}"
        )
    node = crash.pod.text("spec", "nodeName") or "its node"
    return f"The {who} has no memory limit and was killed{ran} because node {node} ran out of memory (OOMKilled){times}"


def _setter_words(limits: ClusterObject | None) -> str:
    """Return a clause with the object that sets the limit instead of the template."""
    if limits is None:
        return ""
    how = "sets this limit as a default" if limits.kind == "LimitRange" else "sets this limit, not the template"
    return f"; {limits.ref} {how}"


def _more_memory(crash: Crash, limit: str, limits: ClusterObject | None, state: ClusterState) -> FixStep:
    """How much memory the container needs is unknown. A default of a LimitRange is overridden in the workload."""
    if limits is not None and limits.kind != "LimitRange":
        fields = "minAllowed.memory and maxAllowed.memory in spec.resourcePolicy.containerPolicies[]"
        return instruction(limits.ref, f"Raise {fields} of {limits.ref}, or set its updateMode to Off.")
    workload = state.workload_of(crash.pod).ref
    verb = "Set" if limits is not None else "Raise"
    sentence = f"{verb} resources.limits.memory of container {crash.container.name} in {workload} to more than {limit}"
    return instruction(workload, f"{sentence}, or find out what uses the memory.")


def _node_events(crash: Crash, state: ClusterState) -> tuple[Evidence, ...]:
    node = state.get("Node", "", crash.pod.text("spec", "nodeName"))
    return tuple(event(each) for each in state.events_of(node, "SystemOOM", "OOMKilling")[-1:]) if node else ()


@Row(
    id="P03",
    title="Container was restarted and is running again",
    severity="warning",
    kinds=("Pod",),
    reads=("status.containerStatuses[].restartCount", "status.containerStatuses[].lastState.terminated"),
    explanation="A container terminated within the last hour and is running again. The pod looks healthy now, but "
    "requests may have been lost, and the container may terminate again. Rule P02 reports containers that run out of "
    "memory, and rules P11 and P12 report failing probes. Restarts that are more than one hour old are not reported.",
)
def restarted(state: ClusterState) -> Iterator[Fault]:
    for crash in crashes_of(state):
        container = crash.container
        if crash.again or not container.running or crash.ending not in {"application", "hook", "start", "lost"}:
            continue
        if container.kind == "init" and not container.sidecar:
            continue
        words = last_words(container, state)
        ago = duration(state.now - (crash.finished or state.now))
        meaning = EXIT_CODES.get(crash.exit_code, EXIT_CODES[1])
        why = " because its command had finished" if crash.exit_code == 0 else f" {meaning}"
        yield Fault(
            subject=crash.pod.ref,
            severity="info" if crash.ending == "lost" or crash.exit_code == 0 else "warning",
            cause=(
                f"The {container_words(container, state)} exited {ago} ago with code {crash.exit_code}{why} "
                f"and is running again{restarts(container)}{said(words)}"
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


_WAITING: Final = frozenset({"CreateContainerError", *START_REASONS})
_PROGRAM: Final = expression(r"exec: \\?\"([^\"\\]{1,1000})\\?\"")
_HOOK_CHARACTERS: Final = 300
_BORING: Final = expression(
    r"(?:failed to create (?:containerd |shim )?task|failed to create shim task|OCI runtime create failed"
    r"|runc create failed|failed to start container \"?[0-9a-f]{12,64}\"?|unable to start container process): "
)


@Row(
    id="P06",
    title="Container cannot be started",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "status.containerStatuses[].state.waiting",
        "status.containerStatuses[].lastState.terminated.message",
        "spec.containers[].command, args, workingDir, volumeMounts, lifecycle.postStart",
        "event FailedPostStartHook",
    ),
    explanation="The runtime cannot create or start the container (CreateContainerError, RunContainerError, "
    "StartError), so the application does not start. Possible causes are a missing or non-executable program, a wrong "
    "path or mount, or a memory limit that is too low. The rule also reports a failing postStart hook, which "
    "terminates the container.",
)
def not_started(state: ClusterState) -> Iterator[Fault]:
    for pod in troubled_pods(state):
        if pod.text("status", "reason"):
            continue
        for container in containers_of(pod):
            fault = _fault(container, state)
            if fault is not None:
                yield fault


def _fault(container: Container, state: ClusterState) -> Fault | None:
    waiting, message = text(container.waiting, "reason"), text(container.waiting, "message")
    crash = crash_of(container, state)
    if waiting not in _WAITING:
        if crash is None or crash.ending not in {"start", "hook"} or not (crash.again or container.terminated):
            return None
        if crash.ending == "hook":
            return _hook_fault(container, state)
        message = text(crash.ended, "message")
    short = _BORING.sub("", message).removesuffix(": unknown")
    title, words, evidence = _explained(container, short, state)
    status = ("state", "waiting", "message") if waiting in _WAITING or crash is None else (*crash.path, "message")
    return Fault(
        subject=container.pod.ref,
        title=title,
        cause=f"The {container_words(container, state)} cannot be started: {words}{restarts(container)}",
        evidence=(*evidence, container.evidence(*status), container.evidence("state", "waiting", "reason")),
        next_check=_look(container.pod),
        since=began(crash, state) if crash else container.pod.created,
    )


def _explained(container: Container, message: str, state: ClusterState) -> tuple[str, str, tuple[Evidence, ...]]:
    """Return the title, the explanation and the evidence for an error message of the runtime."""
    command = tuple(command_evidence(container, state)) or (container_field(container, state, "image"),)
    program = _PROGRAM.search(message)
    if program is not None:
        return *_about_program(program[1], message.lower()), command
    mount = _mount(container, message)
    if mount is not None:
        return "Volume cannot be mounted into the container", message, (container_field(container, state, mount),)
    folder = text(container.spec, "workingDir")
    if folder and folder in message:
        return "Working directory is wrong", message, (container_field(container, state, "workingDir"),)
    lower = message.lower()
    if "oom-killed" in lower or "memory limit too low" in lower:
        limit = container_field(container, state, "resources.limits.memory")
        return "Memory limit is too low", f"its memory limit {limit.value} is too low: {message}", (limit,)
    return "Container cannot be started", message or "the runtime gives no reason", command


def _about_program(program: str, message: str) -> tuple[str, str]:
    """Return the title and the explanation for a program that cannot be executed."""
    if "permission denied" in message:
        return "Command cannot be executed", f"its program {program} is not executable"
    if "exec format" in message:
        return "Command cannot be executed", f"its program {program} is built for another architecture"
    where = "in the image's PATH" if "$path" in message else "in the image"
    return "Command not found", f"its program {program} does not exist {where}"


def _mount(container: Container, message: str) -> str | None:
    """Return the field of the mount whose container path or volume appears in the message, or None."""
    if "mount" not in message.lower():
        return None
    for index, mount in enumerate(children(container.spec, "volumeMounts")):
        path, name = text(mount, "mountPath"), text(mount, "name")
        if path and (f'at "{path}"' in message or f'"{path}"' in message):
            return f"volumeMounts[{index}]"
        if "subpath" in message.lower() and f'"{name}"' in message:
            return f"volumeMounts[{index}]"
    return None


def _hook_fault(container: Container, state: ClusterState) -> Fault:
    hook = child(container.spec, "lifecycle", "postStart")
    events = [
        each for each in state.events_of(container.pod, "FailedPostStartHook") if about_container(each, container)
    ]
    command = " ".join(texts(hook, "exec", "command"))
    said = f" ({command})" if command else ""
    why = f": {excerpt(events[-1].message, _HOOK_CHARACTERS)}" if events and events[-1].message else ""
    return Fault(
        subject=container.pod.ref,
        title="postStart hook fails",
        cause=(
            f"The postStart hook{said} of the {container_words(container, state)} fails, so the kubelet "
            f"terminates the container after each start{restarts(container)}{why}"
        ),
        evidence=(container_field(container, state, "lifecycle.postStart"), *(event(each) for each in events[-1:])),
        next_check=_look(container.pod),
        since=events[0].first if events else container.pod.created,
    )


def _look(pod: ClusterObject) -> str:
    return f"kubectl -n {pod.namespace} describe pod {pod.name}"
