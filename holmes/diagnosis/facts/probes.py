"""Determines why the probes of containers fail, from the probe definitions and the kubelet's messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.network import port_number
from holmes.diagnosis.facts.pods import container_field, containers_of
from holmes.kubernetes.fields import at, child, children, integer, moment, text, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject

ProbeField: TypeAlias = Literal["readinessProbe", "livenessProbe", "startupProbe"]
WORDS: Final[dict[ProbeField, str]] = {
    "readinessProbe": "readiness probe",
    "livenessProbe": "liveness probe",
    "startupProbe": "startup probe",
}
STARTING_GRACES: Final = 3
"""After this time, a probe to which nothing listens is named, although the rollout may take longer."""
_ACTIONS: Final = ("httpGet", "tcpSocket", "grpc", "exec")
_STATUS_CODE: Final = expression(r"statuscode: ?(\d{3})")
_PORT_IN_COMMAND: Final = expression(r"(?<![\d.])(\d{2,5})(?![\d.])")
_REFUSED: Final = ("connection refused", "connect: no route", "connection reset", "eof")
_SLOW: Final = ("deadline exceeded", "timeout", "timed out", "canceled while")
_ABSENT_PROGRAM: Final = ("executable file not found", "no such file or directory", "not found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    container: Container
    field: ProbeField
    spec: JsonObject

    @property
    def action(self) -> str:
        """The probe's action (`httpGet`, `tcpSocket`, `grpc` or `exec`), or an empty string if no probe is defined."""
        return next((action for action in _ACTIONS if isinstance(at(self.spec, action), dict)), "")

    @property
    def port(self) -> int | str | None:
        port = at(self.spec, self.action, "port")
        return port if isinstance(port, (int, str)) and not isinstance(port, bool) else None

    @property
    def budget_seconds(self) -> int:
        """The time in seconds until the probe reaches its failure threshold."""
        delay, period = integer(self.spec, "initialDelaySeconds"), integer(self.spec, "periodSeconds") or 10
        return delay + period * (integer(self.spec, "failureThreshold") or 3)

    @property
    def words(self) -> str:
        """The probe as a phrase for messages, for example `GET /healthz on port 8081`."""
        if self.action == "exec":
            return " ".join(texts(self.spec, "exec", "command"))
        path = text(self.spec, "httpGet", "path") or "/"
        return f"GET {path} on port {self.port}" if self.action == "httpGet" else f"{self.action} on port {self.port}"

    def evidence(self, state: ClusterState, *path: str) -> Evidence:
        return container_field(self.container, state, ".".join((self.field, *path)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeVerdict:
    """The cause of a probe failure.

    `title` is the end of the finding's title, `words` explains the cause in a clause, and `fields` contains the
    decisive fields. `probe_is_wrong` means that the probe must be changed. `depends` means that the log and the
    dependencies of the application can explain the failure. `may_be_starting` means that the same failure occurs while
    an application starts.
    """

    title: str
    words: str
    fields: tuple[tuple[str, ...], ...]
    probe_is_wrong: bool = False
    depends: bool = False
    may_be_starting: bool = False


def probe_of(container: Container, field: ProbeField) -> Probe:
    """Return the probe of a container. Its `spec` is empty if the container does not define the probe."""
    return Probe(container=container, field=field, spec=child(container.spec, field))


def starting_until(state: ClusterState, pod: ClusterObject) -> float:
    """Return when the time ends that the probes allow for the start of the pod, in seconds since the epoch.

    Returns 0 if this time has passed, if a container failed, or if the pod is ready.
    """
    ends = [0.0]
    for container in containers_of(pod):
        needed = container.kind == "main" or container.sidecar
        if not needed or container.ready:
            continue
        if not container.running or container.restarts:
            return 0.0
        started = moment(text(container.status, "state", "running", "startedAt")) or 0.0
        startup, readiness = probe_of(container, "startupProbe"), probe_of(container, "readinessProbe")
        starts = bool(startup.spec) and at(container.status, "started") is False
        ends.append(started + (startup.budget_seconds if starts else integer(readiness.spec, "initialDelaySeconds")))
        if ends[-1] <= state.now:
            return 0.0
    return max(ends)


def failures(probe: Probe, events: tuple[ClusterEvent, ...]) -> tuple[ClusterEvent, ...]:
    """Return the events that report failures of this probe."""
    words = WORDS[probe.field]
    return tuple(event for event in events if words in event.message.lower())


def verdict(probe: Probe, message: str) -> ProbeVerdict:
    """Determine why the probe fails from the kubelet's message and the declared ports of the container."""
    lower = message.lower()
    code = _STATUS_CODE.search(lower)
    if not probe.spec:  # the pod was changed after it began, or is known in part only
        words = f"the application returns {code[1]}" if code is not None else message
        return ProbeVerdict(title="the application is not ready", words=words, fields=(), depends=True)
    if probe.action == "exec":
        return _exec_verdict(probe, lower)
    if _port_is_wrong(probe) and code is None:
        return ProbeVerdict(
            title="the port is wrong",
            words=f"it checks port {probe.port}, but the container {_listening(probe)}",
            fields=((probe.action, "port"),),
            probe_is_wrong=True,
        )
    if code is not None:
        return _status_verdict(probe, int(code[1]))
    return _connection_verdict(probe, lower)


def _exec_verdict(probe: Probe, lower: str) -> ProbeVerdict:
    command = texts(probe.spec, "exec", "command")
    program = command[0] if command else ""
    if any(each in lower for each in _ABSENT_PROGRAM) and ("unknown state" in lower or "not found" in lower):
        words = f"its command {' '.join(command)!r} requires a program that is not in the image"
        return ProbeVerdict(
            title="the command is not found", words=words, fields=(("exec", "command"),), probe_is_wrong=True
        )
    if any(each in lower for each in _SLOW):
        return _slow(probe, f"its command {program} takes longer than timeoutSeconds")
    words = f"its command {' '.join(command)!r} fails"
    return ProbeVerdict(title="the command fails", words=words, fields=(("exec", "command"),), depends=True)


def _status_verdict(probe: Probe, code: int) -> ProbeVerdict:
    path = text(probe.spec, "httpGet", "path") or "/"
    place = ("httpGet", "path")
    if code in {404, 405}:
        words = f"the application returns {code}, because it does not have the path {path}"
        return ProbeVerdict(title=f"the path returns {code}", words=words, fields=(place,), probe_is_wrong=True)
    if code in {401, 403}:
        words = f"the application returns {code}, because the path {path} requires a login"
        return ProbeVerdict(title=f"the path returns {code}", words=words, fields=(place,), probe_is_wrong=True)
    if code in {301, 302, 307, 308, 400}:
        words = f"the application returns {code} for {probe.words}; check path, scheme and host"
        return ProbeVerdict(title=f"the path returns {code}", words=words, fields=(place, ("httpGet", "scheme")))
    words = f"the application returns {code} for {probe.words}"
    return ProbeVerdict(title=f"the application returns {code}", words=words, fields=(place,), depends=True)


def _connection_verdict(probe: Probe, lower: str) -> ProbeVerdict:
    place = (probe.action, "port") if probe.action else ()
    if "strconv" in lower or "invalid syntax" in lower:
        words = f"no port of the container is named {probe.port!r}"
        return ProbeVerdict(title="the port is wrong", words=words, fields=(place,), probe_is_wrong=True)
    if "server gave http response to https client" in lower or "malformed http response" in lower:
        words = f"it uses the scheme {text(probe.spec, 'httpGet', 'scheme') or 'HTTP'}, which the port does not accept"
        return ProbeVerdict(
            title="the scheme is wrong", words=words, fields=(("httpGet", "scheme"), place), probe_is_wrong=True
        )
    if any(each in lower for each in _SLOW):
        return _slow(probe, f"{probe.words} does not respond within timeoutSeconds")
    if any(each in lower for each in _REFUSED):
        declared = children(probe.container.spec, "ports")
        words = f"nothing listens on port {probe.port}" + ("" if declared else f"; the container {_listening(probe)}")
        return ProbeVerdict(
            title="nothing listens on the port", words=words, fields=(place,), depends=True, may_be_starting=True
        )
    return ProbeVerdict(title="the cause is unknown", words=f"{probe.words} fails", fields=(place,), depends=True)


def _slow(probe: Probe, words: str) -> ProbeVerdict:
    seconds = integer(probe.spec, "timeoutSeconds") or 1
    return ProbeVerdict(
        title="the probe times out",
        words=f"{words} = {seconds}",
        fields=(("timeoutSeconds",), (probe.action,) if probe.action else ()),
        depends=True,
    )


def _port_is_wrong(probe: Probe) -> bool:
    """Return whether the port of the probe is neither declared by the container nor part of its command.

    Returns False if the container declares no ports and its command contains no ports.
    """
    declared, port = children(probe.container.spec, "ports"), port_number(probe.port)
    if port is None and probe.port is not None:
        return not any(text(each, "name") == probe.port for each in declared)
    numbers = {integer(each, "containerPort") for each in declared}
    if port is None or not numbers:
        return bool(_command_ports(probe)) and port is not None and port not in _command_ports(probe)
    return port not in numbers | _command_ports(probe)


def _command_ports(probe: Probe) -> set[int]:
    words = (*texts(probe.container.spec, "command"), *texts(probe.container.spec, "args"))
    found = {int(each) for word in words for each in _PORT_IN_COMMAND.findall(word[:4_000])}
    return {number for number in found if 80 <= number <= 65_535}


def _listening(probe: Probe) -> str:
    """Describe the ports that the container declares, or the ports in its command if it declares none."""
    declared = children(probe.container.spec, "ports")
    if not declared:
        found = sorted(_command_ports(probe))
        return f"has {_ports(map(str, found))} in its command" if found else "declares no ports"
    shown = [
        f"{integer(each, 'containerPort')}" + (f" ({text(each, 'name')})" if text(each, "name") else "")
        for each in declared
    ]
    return f"declares {_ports(shown)}"


def _ports(shown: Iterable[str]) -> str:
    words = list(shown)
    return f"{'port' if len(words) == 1 else 'ports'} {', '.join(words)}"
