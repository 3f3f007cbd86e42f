"""Determines how and why containers terminated, from exit codes, events, logs and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.changes import last_rollout
from holmes.diagnosis.facts.container_settings import blamed_setting
from holmes.diagnosis.facts.evidence import value
from holmes.diagnosis.facts.logs import last_words, wanted_logs
from holmes.diagnosis.facts.pods import container_field, container_words, containers_of, troubled_pods
from holmes.diagnosis.rule import Fault
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import at, integer, moment, text, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.changes import Difference
    from holmes.diagnosis.facts.container_settings import Blamed
    from holmes.diagnosis.facts.logs import LastWords
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, Severity
    from holmes.values.json_types import JsonObject


Ending: TypeAlias = Literal["memory", "liveness", "startup", "hook", "start", "lost", "application"]
_HEALED_SECONDS: Final = 3600.0
_MANY_RESTARTS: Final = 10
_CALM_STEPS: Final = 3
"""A container that restarts often has recovered after this number of its usual intervals between restarts."""
_OFTEN_SECONDS: Final = 12 * 3600.0
_HOOK_ERROR: Final = "PostStartHookError"
START_REASONS: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})
_KILL_SLACK_SECONDS: Final = 150.0
_SHORT_RUN_SECONDS: Final = 600.0
_LOST_EXIT_CODE: Final = 255
_FEWEST_RESTARTS: Final = 3
_MOST_OF: Final = 0.7
_PAUSE_SECONDS: Final = (10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
"""The pauses of the kubelet before the first restarts of a container. The last one repeats."""
_KILLED: Final = frozenset({137, 143})


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The termination of a container.

    `ended` is the terminated state, and `path` is its field in the container status. `again` means that the container
    fails repeatedly or is waiting to be restarted.
    """

    container: Container
    ended: JsonObject
    path: tuple[str, str]
    ending: Ending
    again: bool

    @property
    def pod(self) -> ClusterObject:
        return self.container.pod

    @property
    def exit_code(self) -> int:
        """The exit code, or -1 if it is unknown."""
        return integer(self.ended, "exitCode") if "exitCode" in self.ended else -1

    @property
    def finished(self) -> float | None:
        """The termination time of the container in seconds since the epoch, or None if the time is unknown."""
        return moment(text(self.ended, "finishedAt"))

    @property
    def ran_seconds(self) -> float:
        began = moment(text(self.ended, "startedAt"))
        return max(0.0, self.finished - began) if self.finished is not None and began else 0.0

    def evidence(self, *path: str) -> Evidence:
        return self.container.evidence(*self.path, *path)


@once_per_state
def crashes_of(state: ClusterState) -> tuple[Crash, ...]:
    """Return the terminations of containers in all pods that are not healthy, in the order of the pods.

    The result is cached for each state.
    """
    return tuple(_crashes(state))


def _crashes(state: ClusterState) -> Iterator[Crash]:
    for pod in troubled_pods(state):
        if pod.text("status", "reason"):
            continue
        for container in containers_of(pod):
            crash = crash_of(container, state)
            if crash is not None:
                yield crash


def crash_of(container: Container, state: ClusterState) -> Crash | None:
    """Return the termination of the container.

    Returns None if the container exited normally, or has recovered since: for an hour, or longer if it restarts often.
    """
    ended, path = container.terminated, ("state", "terminated")
    if not ended:
        ended, path = container.last_terminated, ("lastState", "terminated")
    looping = text(container.waiting, "reason") == "CrashLoopBackOff"
    if container.kind == "ephemeral" or not (ended or looping):
        return None
    ending = _ending(container, ended, state)
    again = _fails_again(container, ended, state)
    crash = Crash(container=container, ended=ended, path=path, ending=ending, again=again)
    if again:
        return crash
    if container.terminated:
        return None if crash.exit_code == 0 else crash
    recent = crash.finished is not None and state.now - crash.finished <= _healed_after(container, state)
    return crash if container.running and recent and container.restarts else None


def _healed_after(container: Container, state: ClusterState) -> float:
    """Return how long a container must run to have recovered: longer if it restarts again and again."""
    if container.restarts < _MANY_RESTARTS:
        return _HEALED_SECONDS
    interval = state.age_seconds(container.pod) / container.restarts
    return max(_HEALED_SECONDS, _CALM_STEPS * interval) if interval <= _OFTEN_SECONDS else _HEALED_SECONDS


def _fails_again(container: Container, ended: JsonObject, state: ClusterState) -> bool:
    reason = text(container.waiting, "reason")
    if reason:
        return reason in {"CrashLoopBackOff", _HOOK_ERROR, *START_REASONS}
    policy = text(container.spec, "restartPolicy") or container.pod.text("spec", "restartPolicy") or "Always"
    failed = integer(ended, "exitCode") != 0
    if container.terminated:
        once = container.kind == "init" and not container.sidecar
        return failed and policy != "Never" if once else policy == "Always" or (failed and policy == "OnFailure")
    return container.running and container.restarts >= 2 and _still_in_the_loop(container, ended, state)


def _still_in_the_loop(container: Container, ended: JsonObject, state: ClusterState) -> bool:
    """Return whether the container will probably crash again.

    This is likely if the container is not ready, or has not yet run for longer than it did before its last crash.
    """
    finished, began = moment(text(ended, "finishedAt")), moment(text(ended, "startedAt"))
    now_began = moment(text(container.status, "state", "running", "startedAt"))
    if finished is None or began is None or now_began is None:
        return False
    ran = finished - began
    if ran > _SHORT_RUN_SECONDS or state.now - finished > _SHORT_RUN_SECONDS:
        return False
    return not container.ready or state.now - now_began <= ran + 30


def _ending(container: Container, ended: JsonObject, state: ClusterState) -> Ending:
    reason, exit_code = text(ended, "reason"), integer(ended, "exitCode")
    if reason == "OOMKilled":
        return "memory"
    if reason in START_REASONS or text(container.waiting, "reason") in START_REASONS:
        return "start"
    # These reasons mean that the container did not survive a restart of the node.
    if reason == "ContainerStatusUnknown" or (reason == "Unknown" and exit_code == _LOST_EXIT_CODE):
        return "lost"
    finished = moment(text(ended, "finishedAt"))
    slack = _KILL_SLACK_SECONDS + container.pod.integer("spec", "terminationGracePeriodSeconds")
    # The kubelet drops events under load. For a killed container, an older Killing event is therefore accepted.
    recent = 0.0 if finished is None else finished - slack
    killed = _killed_by(container, 0.0 if exit_code in _KILLED else recent, recent, state)
    if killed is not None or exit_code not in _KILLED:
        return killed or "application"
    probes = [event.message.lower() for event in unhealthy(container, state)]
    if any("liveness probe failed" in message for message in probes):
        return "liveness"
    never_started = at(container.status, "started") is False
    startup = never_started and any("startup probe" in message for message in probes)
    return "startup" if startup else "application"


def _killed_by(container: Container, earliest: float, recent: float, state: ClusterState) -> Ending | None:
    if text(container.waiting, "reason") == _HOOK_ERROR:
        return "hook"
    for event in reversed(state.events_of(container.pod, "Killing", "FailedPostStartHook")):
        since = earliest if event.reason == "Killing" else recent
        if not about_container(event, container) or event.last < since:
            continue
        message = event.message.lower()
        if "liveness probe" in message:
            return "liveness"
        if "startup probe" in message:
            return "startup"
        if "poststarthook" in message:
            return "hook"
    return None


def about_container(event: ClusterEvent, container: Container) -> bool:
    """Return whether an event of the pod concerns this container.

    An event without a container name concerns all containers.
    """
    return not event.field_path or event.field_path.endswith(f"{{{container.name}}}")


def unhealthy(container: Container, state: ClusterState) -> tuple[ClusterEvent, ...]:
    """Return the events that report failed probes of the container, oldest first."""
    events = state.events_of(container.pod, "Unhealthy", "ProbeError")
    return tuple(event for event in events if about_container(event, container))


def began(crash: Crash, state: ClusterState) -> float | None:
    """Return the earliest known time of the failure in seconds since the epoch, or None if no time is known.

    Considers events in addition to the last termination, because events can be older, and the number of restarts: a
    container whose restarts and the pauses between them fill most of the time of its pod has failed since it started.
    """
    events = state.events_of(crash.pod, "BackOff", "Unhealthy", "FailedPostStartHook")
    times = [event.first for event in events if about_container(event, crash.container) and event.first]
    if _fails_always(crash):
        times.append(crash.pod.created + crash.ran_seconds)
    return min((*times, *((crash.finished,) if crash.finished else ())), default=None)


def _fails_always(crash: Crash) -> bool:
    """Return whether the runs of a container and the pauses of the kubelet between them fill the time of its pod."""
    restarts = crash.container.restarts
    short = crash.ran_seconds < _SHORT_RUN_SECONDS  # after a longer run, the pauses start again
    if not (short and crash.again and crash.finished and crash.pod.created) or restarts < _FEWEST_RESTARTS:
        return False
    pauses = sum(_PAUSE_SECONDS[:restarts]) + _PAUSE_SECONDS[-1] * max(0, restarts - len(_PAUSE_SECONDS))
    return pauses + restarts * crash.ran_seconds >= _MOST_OF * (crash.finished - crash.pod.created)


EXIT_CODES: Final[dict[int, str]] = {
    1: "because of an application error",
    2: "because of an application error or wrong arguments",
    126: "because the command cannot be executed",
    127: "because the command was not found",
    128: "because of an invalid exit argument",
    134: "because it aborted (SIGABRT)",
    137: "because it was killed (SIGKILL)",
    139: "because of a segmentation fault (SIGSEGV)",
    143: "because it was terminated (SIGTERM)",
    255: "because of an application error",
}
_TITLES: Final = {
    "access forbidden": "Application crashes: access to the API is forbidden",
    "wrong architecture": "Application crashes: the image is built for another architecture",
    "address in use": "Application crashes: its port is already in use",
    "disk full": "Application crashes: the disk has no space left",
    "too many open files": "Application crashes: it opens too many files",
    "certificate": "Application crashes: a certificate is rejected",
    "authentication": "Application crashes: authentication fails",
    "unknown host": "Application crashes: a host name is unknown",
    "unreachable": "Application crashes: it cannot reach a service",
    "bad argument": "Application crashes: an argument is unknown",
    "missing configuration": "Application crashes: its configuration is wrong or missing",
    "permission denied": "Application crashes: it lacks a permission",
    "out of memory": "Application crashes: it runs out of memory",
    "rate limited": "Application crashes: its requests are rate limited",
    "pool exhausted": "Application crashes: a connection pool is exhausted",
    "queue full": "Application crashes: a queue is full",
    "lock": "Application crashes: it cannot get a lock",
    "schema missing": "Application crashes: a table, index or topic is missing",
    "module missing": "Application crashes: a module or library is missing",
}
_FEW_CHANGES: Final = 3
_BLAMED_KINDS: Final = frozenset(
    {"bad argument", "missing configuration", "crash", "last words", "permission denied", "unknown host"}
)


def severity_of_end(crash: Crash, state: ClusterState) -> Severity:
    """Return the severity for a container that is not restarted: critical for an hour, then warning.

    The severity falls because an older pod may be a leftover.
    """
    recent = crash.finished is not None and state.now - crash.finished <= _HEALED_SECONDS
    return "critical" if recent else "warning"


def crash_fault(crash: Crash, state: ClusterState, severity: Severity) -> Fault:
    """Build the fault for a container that exited."""
    container, words = crash.container, last_words(crash.container, state)
    blamed = _blamed(crash, words, state)
    changes = () if blamed else _rolled_out(crash, state)
    return Fault(
        subject=crash.pod.ref,
        culprit=blamed.culprit if blamed else None,
        title=_title(crash, words),
        severity=severity,
        role="symptom" if words is not None and words.first.kind == "access forbidden" else "cause",
        cause=_cause(crash, words, blamed, state) + _changed(changes),
        evidence=(*_evidence_of(changes, crash, state), *_crash_evidence(crash, words, blamed, state)),
        next_check=log_command(container),
        because=words.blamed if words else (),
        since=began(crash, state),
        logs=wanted_logs(container),
        fix=(blamed.fix if blamed else None,),
    )


def _rolled_out(crash: Crash, state: ClusterState) -> tuple[Difference, ...]:
    """Return the changes in the last rollout that concern this container.

    The result is empty unless this rollout created the pod and changed at most three values.
    """
    workload, owner = state.workload_of(crash.pod), crash.pod.owner
    rollout = last_rollout(state, workload) if workload.kind == "Deployment" else None
    if rollout is None or owner is None or rollout[0].uid != owner.uid or len(rollout[2]) > _FEW_CHANGES:
        return ()
    name = crash.container.name
    return tuple(each for each in rollout[2] if not each.name.startswith("container ") or name in each.name.split())


def _changed(changes: tuple[Difference, ...]) -> str:
    return f"; the last rollout changed {', '.join(map(str, changes))}" if changes else ""


def _evidence_of(changes: tuple[Difference, ...], crash: Crash, state: ClusterState) -> Iterator[Evidence]:
    workload = state.workload_of(crash.pod)
    for change in changes:
        yield value(workload, change.path, f"{change.new} (before: {change.old})")


def _title(crash: Crash, words: LastWords | None) -> str:
    if crash.exit_code == 0 and crash.ending == "application":
        return "Application exits normally and is restarted"
    by_code = {126: "Command cannot be executed", 127: "Command not found"}.get(crash.exit_code)
    return by_code or (_TITLES.get(words.first.kind) if words else None) or "Application crashes"


def _blamed(crash: Crash, words: LastWords | None, state: ClusterState) -> Blamed | None:
    if words is None or words.first.kind not in _BLAMED_KINDS or crash.exit_code == 0:
        return None
    return blamed_setting(words.first, crash.container, state)


def _cause(crash: Crash, words: LastWords | None, blamed: Blamed | None, state: ClusterState) -> str:
    who, times = container_words(crash.container, state), restarts(crash.container)
    if crash.exit_code == 0 and crash.ending == "application":
        return (
            f"The {who} exits with code 0{times}: its command finishes, but a container of this kind must keep "
            f"running{said(words)}"
        )
    meaning = EXIT_CODES.get(crash.exit_code, EXIT_CODES[1])
    if crash.ending == "lost":
        meaning = "because its state was lost, usually in a restart of the node or the container runtime"
    because = f"; {blamed.words}" if blamed else ""
    if crash.exit_code < 0:
        return f"The {who} exits repeatedly{times}{said(words)}{because}"
    return f"The {who} exits with code {crash.exit_code} {meaning}{times}{said(words)}{because}"


def said(words: LastWords | None) -> str:
    """Return the clause `; its log contains: ...`, or an empty string if `words` is None."""
    return f"; its log contains: {words.quote}" if words else ""


def restarts(container: Container) -> str:
    """Return the number of restarts as a phrase, for example ` (3 restarts so far)`, or an empty string."""
    noun = "restart" if container.restarts == 1 else "restarts"
    return f" ({container.restarts} {noun} so far)" if container.restarts else ""


def _crash_evidence(
    crash: Crash, words: LastWords | None, blamed: Blamed | None, state: ClusterState
) -> Iterator[Evidence]:
    container = crash.container
    if blamed:
        yield blamed.evidence
    elif words is None or words.first.kind == "last words" or crash.exit_code in {0, 126, 127}:
        yield from command_evidence(container, state)
    yield from words.evidence if words else ()
    if crash.ended:
        yield crash.evidence("exitCode")
    if container.waiting:
        yield container.evidence("state", "waiting", "reason")
    yield container.evidence("restartCount")


def command_evidence(container: Container, state: ClusterState) -> Iterator[Evidence]:
    """Yield the command and arguments of the container as evidence, if they are set."""
    for field in ("command", "args"):
        if texts(container.spec, field):
            yield container_field(container, state, field)


def log_command(container: Container) -> str:
    """Return the kubectl command that shows the log of the terminated container."""
    pod = container.pod
    previous = " --previous" if container.last_terminated and not container.terminated else ""
    return f"kubectl -n {pod.namespace} logs {pod.name} -c {container.name}{previous} --tail=50"
