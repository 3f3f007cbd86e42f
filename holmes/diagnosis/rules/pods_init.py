"""The rule about init containers that fail or do not end: P09."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.core.findings import ObjectRef
from holmes.diagnosis.facts.crash_faults import command_evidence, crash_fault, log_command, said, severity_of_end
from holmes.diagnosis.facts.crashes import crashes_of, job_recovered
from holmes.diagnosis.facts.hosts import host_uses
from holmes.diagnosis.facts.last_words import last_words, wanted_logs
from holmes.diagnosis.facts.pods import containers_of, troubled_pods
from holmes.diagnosis.facts.spec_places import container_words, owner_words
from holmes.diagnosis.facts.typos import meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import children, text, texts
from holmes.kubernetes.moments import duration, moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.crashes import Crash
    from holmes.diagnosis.facts.last_words import LastWords
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_LOOKED_UP: Final = re.compile(
    r"(?:\bnslookup|\bgetent a?hosts|\bdig|\bping(?: -\S{1,9})*|\bnc(?: -\S{1,9}| \d{1,3}(?= ))*|\btelnet) "
    r"([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)(?![\w.-])"
)
_STUCK: Final = frozenset({"unknown host", "unreachable", "authentication", "certificate", "permission denied"})
_LONGEST_SCRIPT: Final = 10_000
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
    explanation=(
        "An init container fails, or runs for more than five minutes, so that the containers after it are not started "
        "(Init:CrashLoopBackOff, Init:0/1). One that hangs usually waits for something: the hosts in its command and "
        "log are looked up. Sidecars (restartPolicy: Always) only have to be started and are judged like main "
        "containers."
    ),
)
def init_failing(state: ClusterState) -> Iterator[Fault]:
    """Init containers that fail or hang."""
    for crash in crashes_of(state):
        container = crash.container
        if container.kind == "init" and not container.sidecar and crash.ending in {"application", "lost"}:
            over = bool(container.terminated) and not crash.again
            if (crash.again or over) and not job_recovered(crash.pod, state):
                yield _init_fault(crash, state)
    for pod in troubled_pods(state):
        hanging = _hanging(pod, state)
        if hanging is not None:
            yield _hanging_fault(hanging, state)


def _init_fault(crash: Crash, state: ClusterState) -> Fault:
    fault = crash_fault(crash, state, severity_of_end(crash, state) if not crash.again else "critical")
    waiting = [each.name for each in containers_of(crash.pod) if each.kind == "main"]
    return replace(
        fault,
        title="Init container fails",
        cause=f"{fault.cause}; until it succeeds, {', '.join(waiting)} is not started",
    )


def _hanging(pod: ClusterObject, state: ClusterState) -> Container | None:
    """The init container that has been running for five times the grace while others wait."""
    for container in containers_of(pod):
        if container.kind != "init" or container.sidecar or not container.running:
            continue
        began = moment(text(container.status, "state", "running", "startedAt"))
        if began is not None and state.now - began >= min(_LONG_INIT_SECONDS, 5 * state.grace_seconds):
            return container
    return None


def _hanging_fault(container: Container, state: ClusterState) -> Fault:
    words, pod = last_words(container, state), container.pod
    began = moment(text(container.status, "state", "running", "startedAt")) or state.now
    services = _awaited(container, words, state)
    absent = next((each for each in services if state.is_missing("Service", each.namespace, each.name)), None)
    near = meant(absent.name, (each.name for each in state.of("Service", absent.namespace))) if absent else None
    named = f"; it waits for {', '.join(map(str, services))}" if services else ""
    if absent is not None:
        named = f"; it waits for {absent}, which does not exist" + (f", but there is Service {near}" if near else "")
    return Fault(
        subject=pod.ref,
        culprit=absent if near is None else None,
        title="Init container does not end",
        severity="critical" if services or (words and words.first.kind in _STUCK) else "warning",
        cause=(
            f"The {container_words(container, state)} has been running for {duration(state.now - began)} and does not "
            f"end, so that the containers of {owner_words(pod, state)} are not started{named}{said(words)}"
        ),
        evidence=(
            *command_evidence(container, state),
            *(words.evidence if words else ()),
            container.evidence("state", "running", "startedAt"),
        ),
        next_check=log_command(container),
        because=services,
        since=began,
        logs=wanted_logs(container),
    )


def _awaited(container: Container, words: LastWords | None, state: ClusterState) -> tuple[ObjectRef, ...]:
    """The Services that the container's script, its variables and its log name."""
    namespace, script = container.pod.namespace, _script(container)
    services = {use.service: None for use in host_uses(script, namespace, state)}
    for name in _LOOKED_UP.findall(script[:_LONGEST_SCRIPT]):
        services[ObjectRef(kind="Service", namespace=namespace, name=name)] = None
    told = words.blamed if words else ()
    return tuple(services | dict.fromkeys(each for each in told if each.kind == "Service"))


def _script(container: Container) -> str:
    """Everything in the container's definition that may name a host."""
    variables = (f"{text(each, 'name')}={text(each, 'value')}" for each in children(container.spec, "env"))
    script = " ".join((*texts(container.spec, "command"), *texts(container.spec, "args")))
    return "\n".join((script, *variables))
