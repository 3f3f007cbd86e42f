"""Reads the ports of Services and containers, the backends of Ingresses, and the rules of NetworkPolicies."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.templates import labels_of
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import at, child, children, integer, matches_selector, text, text_map, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePort:
    """A port of a Service.

    `target` is a number or the name of a container port. `index` is the position in `spec.ports`.
    """

    index: int
    name: str
    port: int
    protocol: str
    target: int | str


_MOST_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPort:
    container: str
    name: str
    number: int
    protocol: str


def service_ports(service: ClusterObject) -> tuple[ServicePort, ...]:
    """Return the ports of a Service. The target of a port without `targetPort` is its own number."""
    return tuple(_port(index, port) for index, port in enumerate(service.children("spec", "ports")))


def _port(index: int, port: JsonObject) -> ServicePort:
    target = at(port, "targetPort")
    number = integer(port, "port")
    written = port_number(target)
    return ServicePort(
        index=index,
        name=text(port, "name"),
        port=number,
        protocol=text(port, "protocol") or "TCP",
        target=written if written is not None else target if isinstance(target, str) else number,
    )


def port_number(written: object) -> int | None:
    """Return a port that is written as a number, or None for a name and for anything else."""
    if isinstance(written, str):
        return int(written) if written.isascii() and written.isdigit() and len(written) <= _MOST_DIGITS else None
    return written if isinstance(written, int) and not isinstance(written, bool) else None


def container_ports(spec: JsonObject) -> Iterator[ContainerPort]:
    """Yield the ports that the containers and sidecars of a pod declare. Other init containers are ignored."""
    containers = [each for each in children(spec, "initContainers") if text(each, "restartPolicy") == "Always"]
    for container in (*children(spec, "containers"), *containers):
        for port in children(container, "ports"):
            yield ContainerPort(
                container=text(container, "name"),
                name=text(port, "name"),
                number=integer(port, "containerPort"),
                protocol=text(port, "protocol") or "TCP",
            )


def target_ports(service: ClusterObject, pod: ClusterObject) -> frozenset[int]:
    """Return the port numbers of the pod to which the Service sends traffic."""
    declared = {port.name: port.number for port in container_ports(pod.child("spec")) if port.name}
    targets = (port.target for port in service_ports(service))
    return frozenset(declared.get(each, 0) if isinstance(each, str) else each for each in targets) - {0}


_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A Service to which an Ingress sends traffic.

    `port` is the number or name of the Service port. `path` is the field of the Ingress that refers to the Service.
    """

    ingress: ClusterObject
    service: str
    port: int | str
    path: str

    @property
    def port_path(self) -> str:
        return f"{self.path}.port.{'number' if isinstance(self.port, int) else 'name'}"


def backends_of(ingress: ClusterObject) -> Iterator[Backend]:
    """Yield the backends of an Ingress: the default backend, then the backends of the rules."""
    yield from _backend(ingress, ingress.child("spec", "defaultBackend"), "spec.defaultBackend")
    for index, rule in enumerate(ingress.children("spec", "rules")):
        for position, entry in enumerate(children(rule, "http", "paths")):
            place = f"spec.rules[{index}].http.paths[{position}].backend"
            yield from _backend(ingress, child(entry, "backend"), place)


def _backend(ingress: ClusterObject, backend: JsonObject, path: str) -> Iterator[Backend]:
    """Yield the backend unless it is a reference to an annotation (`use-annotation`) instead of a Service."""
    name = text(backend, "service", "name")
    port_name = text(backend, "service", "port", "name")
    if name and port_name != "use-annotation":
        port = integer(backend, "service", "port", "number") or port_name
        yield Backend(ingress=ingress, service=name, port=port, path=f"{path}.service")


def ingress_class(ingress: ClusterObject) -> str:
    """Return the class of an Ingress, from its field or the deprecated annotation.

    Returns an empty string if neither is set.
    """
    return ingress.text("spec", "ingressClassName") or ingress.annotations.get(_CLASS_ANNOTATION, "")


def has_address(ingress: ClusterObject) -> bool:
    """Return whether a controller has assigned an address to the Ingress."""
    return bool(ingress.children("status", "loadBalancer", "ingress"))


Direction: TypeAlias = Literal["Ingress", "Egress"]
_RULES: Final = {"Ingress": "ingress", "Egress": "egress"}
_PEERS: Final = {"Ingress": "from", "Egress": "to"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection from one pod to another. `port` is the port number of the server pod, not the Service port."""

    client: ClusterObject
    server: ClusterObject
    port: int
    protocol: str = "TCP"

    def here(self, direction: Direction) -> ClusterObject:
        """Return the pod to which policies for this direction apply."""
        return self.server if direction == "Ingress" else self.client

    def peer(self, direction: Direction) -> ClusterObject:
        return self.client if direction == "Ingress" else self.server


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMatch:
    """The result of matching a connection against a policy rule: whether its peers match, and whether its ports match.

    `path` is the field of the rule.
    """

    path: str
    peer: bool
    port: bool


def rules_of(policy: ClusterObject, direction: Direction) -> tuple[JsonObject, ...]:
    return policy.children("spec", _RULES[direction])


def applies(policy: ClusterObject, direction: Direction) -> bool:
    """Return whether the policy restricts traffic in this direction.

    If `policyTypes` is not set, a policy restricts ingress, and also egress if it has egress rules.
    """
    types = texts(policy.body, "spec", "policyTypes")
    if types:
        return direction in types
    return direction == "Ingress" or policy.at("spec", "egress") is not None


def _selects(policy: ClusterObject, pod: ClusterObject) -> bool:
    """Return whether the policy selects the pod. Policies do not apply to pods in the host network."""
    return (
        policy.namespace == pod.namespace
        and policy.deleted is None
        and not pod.boolean("spec", "hostNetwork")
        and matches_selector(policy.child("spec", "podSelector"), pod.labels)
    )


def selected_by(state: ClusterState, policy: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the unfinished pods that the policy selects."""
    pods = labels_of(state).pods
    wanted = text_map(policy.body, "spec", "podSelector", "matchLabels")
    candidates = pods.selected(policy.namespace, wanted) if wanted else pods.of(policy.namespace)
    return tuple(pod for pod in candidates if _selects(policy, pod))


class Policies:
    """Index of the policies in a cluster state, grouped by the pods that they select.

    `idle` contains the policies that select no pods.
    """

    def __init__(self, state: ClusterState) -> None:
        self.idle: dict[str, list[ClusterObject]] = defaultdict(list)
        self._by_pod: dict[str, list[ClusterObject]] = defaultdict(list)
        for policy in state.of("NetworkPolicy"):
            pods = selected_by(state, policy)
            if not pods:
                self.idle[policy.namespace].append(policy)
            for pod in pods:
                self._by_pod[pod.uid].append(policy)

    def restricting(self, pod: ClusterObject, direction: Direction) -> tuple[ClusterObject, ...]:
        """Return the policies that restrict the pod's traffic in this direction."""
        return tuple(each for each in self._by_pod.get(pod.uid, ()) if applies(each, direction))


@once_per_state
def policies_of(state: ClusterState) -> Policies:
    """Return the policy index of a state. The index is cached for each state."""
    return Policies(state)


def is_blocked(state: ClusterState, connection: Connection, direction: Direction) -> bool:
    """Return whether a policy restricts traffic in this direction and no policy allows the connection."""
    policies = policies_of(state).restricting(connection.here(direction), direction)
    return bool(policies) and not any(allows(state, each, connection, direction) for each in policies)


def allows(state: ClusterState, policy: ClusterObject, connection: Connection, direction: Direction) -> bool:
    """Return whether a rule of the policy allows the connection. Ignores the pod selector of the policy."""
    return any(match.peer and match.port for match in matches(state, policy, connection, direction))


def matches(
    state: ClusterState, policy: ClusterObject, connection: Connection, direction: Direction
) -> tuple[RuleMatch, ...]:
    """Match a connection against the peers and the ports of each rule of the policy."""
    found = []
    for index, rule in enumerate(rules_of(policy, direction)):
        peers, ports = children(rule, _PEERS[direction]), children(rule, "ports")
        other = connection.peer(direction)
        found.append(
            RuleMatch(
                path=f"spec.{_RULES[direction]}[{index}]",
                peer=not peers or any(peer_matches(state, policy.namespace, peer, other) for peer in peers),
                port=not ports or any(_port_matches(port, connection) for port in ports),
            )
        )
    return tuple(found)


def peer_matches(state: ClusterState, namespace: str, peer: JsonObject, pod: ClusterObject) -> bool:
    """Return whether an entry of `from` or `to` in a policy of `namespace` matches the pod."""
    block = child(peer, "ipBlock")
    if block:
        return _in_block(block, pod.text("status", "podIP"))
    if isinstance(at(peer, "namespaceSelector"), dict):
        home = state.get("Namespace", "", pod.namespace)
        selector = child(peer, "namespaceSelector")
        if selector and home is not None:
            labels = {"kubernetes.io/metadata.name": home.name, **home.labels}
            if not matches_selector(selector, labels):
                return False
    elif pod.namespace != namespace:
        return False
    return matches_selector(child(peer, "podSelector"), pod.labels)


def _in_block(block: JsonObject, address: str) -> bool:
    """Return whether the address is in the IP block. Returns True if the address is unknown."""
    try:
        found = ipaddress.ip_address(address)
        within = found in ipaddress.ip_network(text(block, "cidr"), strict=False)
        return within and not any(found in ipaddress.ip_network(each, strict=False) for each in texts(block, "except"))
    except ValueError:
        return not address


def _port_matches(port: JsonObject, connection: Connection) -> bool:
    if (text(port, "protocol") or "TCP") != connection.protocol:
        return False
    wanted = at(port, "port")
    if wanted is None:
        return True
    first = port_number(wanted)
    if first is None and isinstance(wanted, str):
        declared = container_ports(connection.server.child("spec"))
        return any(
            each.name == wanted and each.number == connection.port and each.protocol == connection.protocol
            for each in declared
        )
    return (first or 0) <= connection.port <= max(first or 0, integer(port, "endPort"))


_NEAR_BITS: Final = 24


def is_of_pods(state: ClusterState, address: str) -> bool:
    """Return whether an IPv4 address is in the pod range of a node, or next to the addresses of present pods."""
    if address.count(".") != 3 or not address.replace(".", "").isdigit():
        return False
    ranges = {node.text("spec", "podCIDR") for node in state.of("Node")}
    pods = (pod for pod in state.of("Pod") if not pod.boolean("spec", "hostNetwork"))
    near = {f"{found}/{_NEAR_BITS}" for pod in pods if "." in (found := pod.text("status", "podIP"))}
    return any(_in_block({"cidr": each}, address) for each in (ranges | near) - {""})
