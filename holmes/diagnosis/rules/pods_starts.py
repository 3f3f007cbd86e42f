"""The rule about containers that the runtime cannot start: P06."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.crash_faults import command_evidence, restarts
from holmes.diagnosis.facts.crashes import START_REASONS, about_container, began, crash_of
from holmes.diagnosis.facts.evidence import event
from holmes.diagnosis.facts.pods import containers_of, troubled_pods
from holmes.diagnosis.facts.spec_places import container_field, container_words
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import child, children, text, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_WAITING: Final = frozenset({"CreateContainerError", *START_REASONS})
_PROGRAM: Final = re.compile(r"exec: \\?\"([^\"\\]{1,1000})\\?\"")
_BORING: Final = re.compile(
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
    explanation=(
        "The runtime cannot create or start the container (CreateContainerError, RunContainerError, StartError): the "
        "program in command or args is not in the image or may not be executed, the working directory or a mount does "
        "not fit, the memory limit is too low to start at all; or the postStart hook fails, which ends the container. "
        "The application itself has not said anything yet."
    ),
)
def not_started(state: ClusterState) -> Iterator[Fault]:
    """Containers that the runtime refuses to start, or that a hook ends."""
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
    """Title, words and the wrong field of a runtime's message."""
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
        return "Memory limit is too low to start", f"its memory limit {limit.value} is too low: {message}", (limit,)
    return "Container cannot be started", message or "the runtime gives no reason", command


def _about_program(program: str, message: str) -> tuple[str, str]:
    """Title and words for a program that cannot be executed."""
    if "permission denied" in message:
        return "Command cannot be executed", f"its program {program} may not be executed"
    if "exec format" in message:
        return "Command cannot be executed", f"its program {program} is for another architecture"
    where = "in the image's PATH" if "$path" in message else "in the image"
    return "Command is not found", f"its program {program} does not exist {where}"


def _mount(container: Container, message: str) -> str | None:
    """The mount that the message is about: by its path in the container, or by the name of its volume."""
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
    return Fault(
        subject=container.pod.ref,
        title="postStart hook fails",
        cause=(
            f"The postStart hook{said} of the {container_words(container, state)} fails, which ends the container "
            f"every time{restarts(container)}"
        ),
        evidence=(container_field(container, state, "lifecycle.postStart"), *(event(each) for each in events[-1:])),
        next_check=_look(container.pod),
        since=events[0].first if events else container.pod.created,
    )


def _look(pod: ClusterObject) -> str:
    return f"kubectl -n {pod.namespace} describe pod {pod.name}"
