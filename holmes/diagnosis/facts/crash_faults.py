"""Words the fault of a container that ended by itself: exit code, log, and the setting that the log names.

Called by the rules about crashes and init containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.blamed_settings import blamed_setting
from holmes.diagnosis.facts.crashes import HEALED_SECONDS, began
from holmes.diagnosis.facts.evidence import value
from holmes.diagnosis.facts.last_words import last_words, wanted_logs
from holmes.diagnosis.facts.rollouts import last_rollout
from holmes.diagnosis.facts.spec_places import container_field, container_words
from holmes.diagnosis.rule import Fault
from holmes.kubernetes.fields import texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.blamed_settings import Blamed
    from holmes.diagnosis.facts.crashes import Crash
    from holmes.diagnosis.facts.last_words import LastWords
    from holmes.diagnosis.facts.pods import Container
    from holmes.diagnosis.facts.rollouts import Difference
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, Severity

EXIT_CODES: Final[dict[int, str]] = {
    1: "an error of the application",
    2: "an error of the application or wrong arguments",
    126: "the command cannot be executed",
    127: "the command was not found",
    128: "an invalid exit argument",
    134: "it aborted itself (SIGABRT)",
    137: "it was killed (SIGKILL)",
    139: "a segmentation fault (SIGSEGV)",
    143: "it was asked to end (SIGTERM)",
    255: "an error of the application",
}
_TITLES: Final = {
    "access forbidden": "Application crashes: access to the API is forbidden",
    "wrong architecture": "Application crashes: the image is for another architecture",
    "address in use": "Application crashes: its port is already in use",
    "disk full": "Application crashes: no space left on a disk",
    "too many open files": "Application crashes: too many open files",
    "certificate": "Application crashes: a certificate is not accepted",
    "authentication": "Application crashes: authentication fails",
    "unknown host": "Application crashes: a host name is unknown",
    "unreachable": "Application crashes: it cannot reach a service",
    "bad argument": "Application crashes: it does not know an argument",
    "missing configuration": "Application crashes: its configuration is wrong or missing",
    "permission denied": "Application crashes: permission denied",
    "out of memory": "Application crashes: it is out of memory",
}
_FEW_CHANGES: Final = 3
_BLAMED_KINDS: Final = frozenset({"bad argument", "missing configuration", "crash", "last words", "permission denied"})


def severity_of_end(crash: Crash, state: ClusterState) -> Severity:
    """A pod that is not started again is urgent for an hour; an old one may be a leftover."""
    recent = crash.finished is not None and state.now - crash.finished <= HEALED_SECONDS
    return "critical" if recent else "warning"


def crash_fault(crash: Crash, state: ClusterState, severity: Severity) -> Fault:
    """What a rule says about a container that ended by itself."""
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
    )


def _rolled_out(crash: Crash, state: ClusterState) -> tuple[Difference, ...]:
    """What the last rollout changed for this container, when it made this pod and changed little."""
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
        return "Application ends by itself and is restarted"
    by_code = {126: "Command cannot be executed", 127: "Command is not found"}.get(crash.exit_code)
    return by_code or (_TITLES.get(words.first.kind) if words else None) or "Application crashes"


def _blamed(crash: Crash, words: LastWords | None, state: ClusterState) -> Blamed | None:
    if words is None or words.first.kind not in _BLAMED_KINDS or crash.exit_code == 0:
        return None
    return blamed_setting(words.first, crash.container, state)


def _cause(crash: Crash, words: LastWords | None, blamed: Blamed | None, state: ClusterState) -> str:
    who, times = container_words(crash.container, state), restarts(crash.container)
    if crash.exit_code == 0 and crash.ending == "application":
        return (
            f"The {who} ends with exit code 0{times}: its command finishes its work, but a container of this kind has "
            f"to keep running{said(words)}"
        )
    meaning = EXIT_CODES.get(crash.exit_code, "an error of the application")
    if crash.ending == "lost":
        meaning = "its state was lost, usually because the node or the container runtime was restarted"
    because = f"; {blamed.words}" if blamed else ""
    if crash.exit_code < 0:
        return f"The {who} ends again and again{times}{said(words)}{because}"
    return f"The {who} ends with exit code {crash.exit_code}, {meaning}{times}{said(words)}{because}"


def said(words: LastWords | None) -> str:
    """The end of a sentence that quotes the log."""
    return f"; its log says: {words.quote}" if words else ""


def restarts(container: Container) -> str:
    """How often it was restarted, in brackets."""
    return f" ({container.restarts} restarts so far)" if container.restarts else ""


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
    """Command and arguments, as far as they are given."""
    for field in ("command", "args"):
        if texts(container.spec, field):
            yield container_field(container, state, field)


def log_command(container: Container) -> str:
    """The kubectl command that shows the log of the instance that ended."""
    pod = container.pod
    previous = " --previous" if container.last_terminated and not container.terminated else ""
    return f"kubectl -n {pod.namespace} logs {pod.name} -c {container.name}{previous} --tail=50"
