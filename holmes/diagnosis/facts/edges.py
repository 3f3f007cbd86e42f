"""Finds which workloads use which Services, and which of these connections fail according to the logs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar
from weakref import ref

from holmes.diagnosis.facts.evidence import log_line
from holmes.diagnosis.facts.host_mentions import Mention, mentions, settings_of
from holmes.diagnosis.facts.line_kinds import kind_of, reports_success
from holmes.diagnosis.facts.log_records import detail_of
from holmes.diagnosis.facts.network import target_ports
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.facts.typos import nearest
from holmes.kubernetes.cluster_state import LOG_TIME, LogKey, once_per_state
from holmes.kubernetes.fields import SERVICE_NAME, integer, moment, text, texts
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping

    from holmes.diagnosis.facts.host_mentions import Form
    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence


_DOMAINS: Final = (
    "com org net io dev app shop store cloud info biz co ai us eu de uk fr local internal example test invalid"
)
_TOP_LEVEL_DOMAINS: Final = frozenset(_DOMAINS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """A Service that is mentioned in a text.

    The Service might not exist. `host` and `port` are copied from the text. `doubtful` means that the host may be an
    ordinary word, so a missing Service is not evidence of a fault.
    """

    host: str
    port: int | None
    service: ObjectRef
    form: Form = "qualified"
    doubtful: bool = False


class _Places:
    """Index of the namespaces, Service addresses and pod addresses in a cluster state."""

    def __init__(self, state: ClusterState) -> None:
        self._state = ref(state)  # a strong reference would keep the state alive in the cache
        self.namespaces = {each.name for each in state.of("Namespace")} | state.reading.namespaces
        self.namespaces |= {each.namespace for each in state.of("Service")}
        self.services: dict[str, ClusterObject] = {}
        for service in state.of("Service"):
            addresses = (text(service.body, "spec", "clusterIP"), *texts(service.body, "spec", "clusterIPs"))
            self.services |= {address: service for address in addresses if address not in {"", "None"}}
        self.pods = {
            address: pod
            for pod in state.of("Pod")
            if not pod.boolean("spec", "hostNetwork") and pod.text("status", "phase") in {"Running", "Pending"}
            for address in [pod.text("status", "podIP")]
            if address
        }
        self.endpoints = {
            (address, integer(port, "port")): ObjectRef(kind="Service", namespace=each.namespace, name=name)
            for each in state.of("EndpointSlice")
            if (name := each.labels.get(SERVICE_NAME, ""))
            for endpoint in each.children("endpoints")
            for address in texts(endpoint, "addresses")
            for port in each.children("ports")
        }

    @property
    def state(self) -> ClusterState:
        """The cluster state of this index."""
        state = self._state()
        assert state is not None  # noqa: S101  the index is used only while its state exists
        return state

    def service_at(self, address: str, port: int | None) -> ObjectRef | None:
        """Return the Service with this cluster IP, or a Service that targets this port of the pod with this IP.

        An address that no pod has belongs to the Service whose endpoints have it. Returns None if neither exists.
        """
        service = self.services.get(address)
        if service is not None:
            return service.ref
        pod = self.pods.get(address)
        if port is None:
            return None
        if pod is None:
            return self.endpoints.get((address, port))
        return next((each.ref for each in self.state.services_of(pod) if port in target_ports(each, pod)), None)

    def service_named(self, mention: Mention, namespace: str) -> ObjectRef | None:
        """Return the Service to which the name resolves in a pod of the namespace.

        Returns None for a name outside the cluster.
        """
        labels = mention.host.split(".")
        if "svc" in labels[1:]:
            return self._qualified(labels[: labels.index("svc", 1)], labels[labels.index("svc", 1) + 1 :])
        if len(labels) == 1:
            return _service(namespace, labels[0])
        if len(labels) <= 3 and self.state.get("Service", labels[-1], labels[-2]) is not None:
            return _service(labels[-1], labels[-2])
        return self._in_other_namespace(*labels, mention=mention, namespace=namespace) if len(labels) == 2 else None

    def _in_other_namespace(self, name: str, place: str, *, mention: Mention, namespace: str) -> ObjectRef | None:
        if self.state.get("Service", namespace, place) is not None:
            return _service(namespace, place)
        if place in _TOP_LEVEL_DOMAINS and mention.form != "message" and mention.port in {None, 80, 443}:
            return None
        if place in self.namespaces:
            return _service(place, name)
        meant = nearest(place, self.namespaces)
        exists = meant is not None and self.state.get("Service", meant, name) is not None
        return _service(place, name) if exists and place not in _TOP_LEVEL_DOMAINS else None

    def _qualified(self, labels: list[str], domain: list[str]) -> ObjectRef | None:
        if len(labels) < 2:
            return None
        name, namespace = labels[-2:]
        within = not domain or domain == ["cluster", "local"] or namespace in self.namespaces
        return _service(namespace, name) if within else None


@once_per_state
def _places(state: ClusterState) -> _Places:
    return _Places(state)


def host_uses(text: str, namespace: str, state: ClusterState) -> tuple[HostUse, ...]:
    """Return the Services that are mentioned in a text. Host names are resolved in the namespace.

    The text is a log line, setting, argument or ConfigMap value. Pass a setting as `NAME=value`, because the name shows
    whether the value is a host. A `doubtful` Service is omitted unless it exists.
    """
    places = _places(state)
    uses = (_use(mention, namespace, places) for mention in mentions(text))
    return tuple(dict.fromkeys(use for use in uses if use is not None))


def _use(mention: Mention, namespace: str, places: _Places) -> HostUse | None:
    if mention.form == "ip":
        service = places.service_at(mention.host, mention.port)
    else:
        service = places.service_named(mention, namespace)
    if service is None or (mention.doubtful and places.state.find(service) is None):
        return None
    return HostUse(host=mention.host, port=mention.port, service=service, form=mention.form, doubtful=mention.doubtful)


def workload_hosts(state: ClusterState, workload: ClusterObject) -> tuple[tuple[HostUse, Evidence], ...]:
    """Return the Services to which a workload's pod template refers, each with the field that contains the reference.

    Reads commands, arguments, mounted ConfigMaps and environment variables, including variables from existing
    ConfigMaps. The evidence refers to the ConfigMap or the workload. A host variable such as `CART_HOST` is combined
    with its port variable `CART_PORT`.
    """
    found: list[tuple[HostUse, Evidence]] = []
    seen: set[ObjectRef] = set()
    for setting in settings_of(state, workload):
        uses = host_uses(setting.text, workload.namespace, state)
        new = [use for use in uses if not setting.whole or use.service not in seen]
        found += [(use, setting.place_of(use.host, use.port)) for use in new]
        seen |= {use.service for use in uses}
    return tuple(dict.fromkeys(found))


def _service(namespace: str, name: str) -> ObjectRef:
    return ObjectRef(kind="Service", namespace=namespace, name=name)


T = TypeVar("T")
FailureKind: TypeAlias = Literal["unresolved", "refused", "timeout", "failed"]

_MOST_LINES: Final = 500
_CALM_LINES: Final = 10
_CALM_GAPS: Final = 4
_OLD_SECONDS: Final = 1_800.0
_KINDS: Final[tuple[tuple[FailureKind, re.Pattern[str]], ...]] = (
    (
        "unresolved",
        expression(
            r"(?i)no such host|bad address|name or service not known|ENOTFOUND|EAI_AGAIN|EAI_NONAME|unknown ?host"
            r"|could(?: not|n't) (?:resolve|translate)|can(?:not|'t) (?:resolve|find)|not known|NXDOMAIN"
            r"|name resolution|host not found|failed to resolve|nodename nor servname|unknown .{0,12}server host"
        ),
    ),
    ("refused", expression(r"(?i)refused|ECONNREFUSED|reset by peer|ECONNRESET")),
    (
        "timeout",
        expression(
            r"(?i)time[d-]? ?out|ETIMEDOUT|deadline exceeded|unreachable|EHOSTUNREACH|ENETUNREACH|no route to host"
        ),
    ),
    (
        "refused",
        expression(r"(?i)max retries exceeded|can(?:'t|not) connect|(?:fail\w*|unable|error) .{0,20}connect"),
    ),
    (
        "failed",
        expression(
            r"(?i)\b(?:fail(?:ed|ure|s|ing)?|error|cannot|can't|could not|couldn't|unable|unavailable|50[234])\b"
        ),
    ),
)

_FAILURE_OF: Final[dict[LineKind, FailureKind]] = {
    "unknown host": "unresolved",
    "connection refused": "refused",
    "connection reset": "refused",
    "connection timeout": "timeout",
}
_WAITS: Final = expression(r"(?i)\bwait(?:ing|s)?[ -]for\b|\bnot (?:yet )?(?:ready|available|reachable)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A workload that refers to a Service, which might not exist. `named` is the field that contains the reference."""

    consumer: ClusterObject
    use: HostUse
    named: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A log line in which a pod reports that it cannot reach a Service.

    `kind` is `failed` if the line gives no detail. `blocks` means that the log belongs to an init container that has
    not finished.
    """

    pod: ClusterObject
    consumer: ClusterObject
    use: HostUse
    kind: FailureKind
    line: Evidence
    blocks: bool = False


@once_per_state
def edges(state: ClusterState) -> Mapping[ObjectRef, tuple[Edge, ...]]:
    """Return the workloads that refer to each Service, grouped by Service.

    Workloads with zero replicas are ignored. The result is cached for each state.
    """
    return _grouped(_edges(state))


def _edges(state: ClusterState) -> Iterator[tuple[ObjectRef, Edge]]:
    for template in pod_templates(state):
        if template.workload.at("spec", "replicas") == 0:
            continue
        for use, named in workload_hosts(state, template.workload):
            yield use.service, Edge(consumer=template.workload, use=use, named=named)


def failures(state: ClusterState) -> Mapping[ObjectRef, tuple[Failure, ...]]:
    """Return the failed connections that the logs report, grouped by Service.

    The newest line of each log comes first. The result is cached for each state.
    """
    # Read the logs even on a cache hit, so that the state records that the calling rule uses logs.
    _ = state.timed_logs
    return _all_failures(state)


@once_per_state
def _all_failures(state: ClusterState) -> Mapping[ObjectRef, tuple[Failure, ...]]:
    return _grouped(_failures(state, state.timed_logs))


def _failures(state: ClusterState, logs: Mapping[LogKey, str]) -> Iterator[tuple[ObjectRef, Failure]]:
    for key, log in sorted(logs.items(), key=lambda entry: (entry[0].pod, entry[0].container, entry[0].previous)):
        pod = state.find(key.pod)
        if pod is None or _answers_names(pod):
            continue
        waits = _still_waits(pod, key)
        found = _failed_lines(state, pod, (key, log), waits=waits)
        for service, lines in found.items():
            if key.previous or waits or not _is_over([later for later, _ in lines]):
                yield from ((service, failure) for _, failure in lines)


def _failed_lines(
    state: ClusterState, pod: ClusterObject, read: tuple[LogKey, str], *, waits: bool
) -> dict[ObjectRef, list[tuple[int, Failure]]]:
    """Return the failures in a log by Service, the newest first, each with the number of lines after it."""
    (key, log), consumer = read, state.workload_of(pod)
    found: dict[ObjectRef, list[tuple[int, Failure]]] = defaultdict(list)
    after = ""
    for later, line in enumerate(newest_lines(log, state.now)):
        kind, after, following = _failure_kind(line), line, after
        if kind is None and waits and _WAITS.search(line):
            kind = "failed"
        if kind is None:
            continue
        named = log_line(pod, key.container, line.strip(), previous=key.previous)
        uses = host_uses(line, pod.namespace, state)
        for use in uses or host_uses(detail_of(following), pod.namespace, state):
            if use.host == pod.name:  # many programs write the name of their pod into each line
                continue
            failure = Failure(pod=pod, consumer=consumer, use=use, kind=kind, line=named, blocks=waits)
            found[use.service].append((later, failure))
    return found


def _is_over(later: list[int]) -> bool:
    """Return whether a log continued without failures. The numbers count the lines after each failure."""
    gap = (later[-1] - later[0]) / max(1, len(later) - 1)
    return later[0] > max(_CALM_LINES, _CALM_GAPS * gap)


def newest_lines(log: str, now: float) -> Iterator[str]:
    """Yield the last lines of a log without their times, the newest first.

    Old lines are left out if the log continued after them, because what they report is over.
    """
    for later, line in enumerate(reversed(log.splitlines()[-_MOST_LINES:])):
        stamp = LOG_TIME.match(line)
        if later >= _CALM_LINES and stamp is not None and now - (moment(stamp[1]) or now) > _OLD_SECONDS:
            return
        yield line[stamp.end() :] if stamp is not None else line


def _answers_names(pod: ClusterObject) -> bool:
    """Return whether the pod is a DNS server. Its log names what others asked for, not what it needs."""
    return pod.labels.get("k8s-app") in _DNS_LABELS or pod.name.startswith(("coredns-", "kube-dns-", "node-local-dns-"))


_DNS_LABELS: Final = frozenset({"kube-dns", "coredns", "node-local-dns"})


def _failure_kind(line: str) -> FailureKind | None:
    """Return how a connection failed according to the line, or None. URLs decide only where no other words do."""
    if reports_success(line):
        return None
    known = kind_of(line)
    if known is not None and known in _FAILURE_OF:
        return _FAILURE_OF[known]
    return next((kind for kind, pattern in _KINDS if pattern.search(line)), None)


def _still_waits(pod: ClusterObject, key: LogKey) -> bool:
    """Return whether the log belongs to an init container that has not finished."""
    inits = (each for each in containers_of(pod) if each.name == key.container and is_blocking(each))
    return any(not (key.previous and each.running) for each in inits)


def is_blocking(container: Container) -> bool:
    """Return whether the container is an init container that is running or fails repeatedly.

    The other containers do not start until this container has finished.
    """
    crashing = container.waiting.get("reason") == "CrashLoopBackOff"
    return container.kind == "init" and not container.sidecar and (bool(container.running) or crashing)


def _grouped(found: Iterable[tuple[ObjectRef, T]]) -> dict[ObjectRef, tuple[T, ...]]:
    groups: dict[ObjectRef, list[T]] = defaultdict(list)
    for service, each in found:
        groups[service].append(each)
    return {service: tuple(group) for service, group in groups.items()}


def consumer_logs(state: ClusterState, consumers: Iterable[ClusterObject]) -> tuple[LogKey, ...]:
    """Return the logs that can show whether the consumers can connect to a Service.

    Selects the least healthy pod of each consumer.
    """
    keys: list[LogKey] = []
    for consumer in {each.uid: each for each in consumers}.values():
        pods = [pod for pod in state.pods_of(consumer) if pod.text("status", "phase") in {"Running", "Pending"}]
        for pod in sorted(pods, key=pod_ready)[:1]:
            for container in containers_of(pod):
                if container.running:
                    keys.append(LogKey(pod=pod.ref, container=container.name, previous=False))
                elif container.kind != "ephemeral" and container.last_terminated:
                    keys.append(LogKey(pod=pod.ref, container=container.name, previous=True))
    return tuple(keys)
