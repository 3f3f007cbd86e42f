"""Rules for NetworkPolicies that block required connections or select no pods."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import consumer_logs, edges, failures
from holmes.diagnosis.facts.evidence import field, shown, value
from holmes.diagnosis.facts.fixes import instruction
from holmes.diagnosis.facts.network import (
    Connection,
    allows,
    applies,
    container_ports,
    is_blocked,
    matches,
    peer_matches,
    policies_of,
    rules_of,
    selected_by,
    service_ports,
)
from holmes.diagnosis.facts.pods import is_sick
from holmes.diagnosis.facts.services import edited_at, has_ready_endpoints, is_headless, pods_behind, was_edited
from holmes.diagnosis.facts.templates import labels_of
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, child, children, text, text_map, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.network import Direction
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, FixStep, ObjectRef
    from holmes.values.json_types import JsonObject

_DIRECTIONS: Final[tuple[Direction, ...]] = ("Ingress", "Egress")
_DNS_PORT: Final = 53
_MOST_PROOFS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """A workload that uses a Service.

    `named` is the setting or log line that refers to the Service. `proofs` contains log lines that report failed calls.
    `explains` is true if the Service has ready pods, so that only the blocked connection explains a failure.
    """

    consumer: ClusterObject
    service: ClusterObject
    port: int | None
    named: Evidence
    proofs: tuple[Evidence, ...]
    explains: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blame:
    """A policy that may block a connection, with its decisive field. The policy with the best `score` is reported."""

    policy: ClusterObject
    path: str
    why: str
    score: float

    @property
    def decisive(self) -> Evidence:
        found: object = self.policy.child("spec")
        for part in self.path.removeprefix("spec.").split("."):
            key, _, index = part.removesuffix("]").partition("[")
            found = found.get(key) if isinstance(found, dict) else None
            found = found[int(index)] if index and isinstance(found, list) and int(index) < len(found) else found
        return value(self.policy, self.path, found)


@Row(
    id="NP1a",
    title="NetworkPolicy blocks a connection that a workload needs",
    severity="warning",
    kinds=("NetworkPolicy", "Service", "Pod"),
    needs=("Namespace", "ConfigMap"),
    reads=("spec of all policies", "settings and logs of clients", "spec.ports of Services", "labels of pods"),
    explanation=(
        "A workload names a Service, but the egress policies of its pods or the ingress policies of the Service's pods "
        "do not allow the connection. The culprit is the policy that nearly allows the connection, for example with a "
        "wrong port or a selector that matches no pods. If no policy nearly allows it, the culprit is the policy that "
        "denies by default. The severity is critical if the client's log shows the failure. Otherwise it is warning, "
        "because not every network plugin enforces policies."
    ),
)
def connection_is_blocked(state: ClusterState) -> Iterator[Fault]:
    if not state.of("NetworkPolicy"):
        return
    for uses in _uses(state):
        blocked = [
            (use, connections[0], direction)
            for use in uses
            for connections in [_connections(state, use)]
            for direction in _DIRECTIONS
            if connections and all(is_blocked(state, each, direction) for each in connections)
        ]
        cut_off = {use.consumer.uid for use, *_ in blocked}
        others_fail = any(use.proofs and use.consumer.uid not in cut_off for use in uses)
        for use, connection, direction in blocked:
            yield _blocked(state, replace(use, explains=use.explains and not others_fail), connection, direction)


def _uses(state: ClusterState) -> Iterator[list[_Use]]:
    """Yield the uses of each Service, one for every workload whose settings or logs refer to the Service."""
    for ref in sorted({*edges(state), *failures(state)}):
        service = state.find(ref)
        if service is None or not state.covers("NetworkPolicy", ref.namespace):
            continue
        failed = [each for each in failures(state).get(ref, ()) if each.kind != "unresolved"]
        named = [(each.consumer, each.use.port, each.named) for each in edges(state).get(ref, ())]
        named += [(each.consumer, each.use.port, each.line) for each in failed]
        serves, seen = has_ready_endpoints(state, service), set[str]()
        uses: list[_Use] = []
        for consumer, port, evidence in named:
            if consumer.uid in seen:
                continue
            seen.add(consumer.uid)
            proofs = tuple(each.line for each in failed if each.consumer is consumer)[:_MOST_PROOFS]
            # If the Service has no ready pods, calls fail even without a NetworkPolicy.
            uses.append(
                _Use(
                    consumer=consumer,
                    service=service,
                    port=port,
                    named=evidence,
                    proofs=proofs if serves else (),
                    explains=serves,
                )
            )
        yield uses


def _connections(state: ClusterState, use: _Use) -> list[Connection]:
    """Return the connections from one client pod to the ports of one pod of each workload behind the Service."""
    clients = [
        pod
        for pod in state.pods_of(use.consumer)
        if pod.deleted is None and pod.text("status", "phase") in {"Running", "Pending"}
    ]
    servers = {state.workload_of(pod): pod for pod in pods_behind(state, use.service)}
    if not clients or use.consumer in servers:
        return []
    newest = max(clients, key=lambda pod: (pod.created, pod.name))
    return [
        Connection(client=newest, server=server, port=port, protocol=protocol)
        for server in servers.values()
        for port, protocol in _ports_at(use, server)
    ]


def _ports_at(use: _Use, server: ClusterObject) -> list[tuple[int, str]]:
    if is_headless(use.service) and use.port:
        return [(use.port, "TCP")]
    numbers = {port.name: port.number for port in container_ports(server.child("spec")) if port.name}
    wanted = [port for port in service_ports(use.service) if use.port in {None, port.port}]
    found = [
        (numbers.get(port.target, 0) if isinstance(port.target, str) else port.target, port.protocol) for port in wanted
    ]
    return [(number, protocol) for number, protocol in found if number]


def _blocked(state: ClusterState, use: _Use, connection: Connection, direction: Direction) -> Fault:
    blame = max(_blames(state, connection, direction), key=lambda each: (each.score, edited_at(each.policy)))
    policy = blame.policy
    consumer, service = use.consumer.ref, use.service.ref
    ends = f"{consumer} to the pods of {service}" if direction == "Ingress" else f"the pods of {consumer} to {service}"
    return Fault(
        subject=use.service.ref if use.explains else use.consumer.ref,
        culprit=policy.ref,
        title=f"NetworkPolicy blocks connections to Service {use.service.name}",
        cause=(
            f"{policy.ref} blocks connections from {ends} (port {connection.port}/{connection.protocol}) because "
            f"{blame.why}"
        ),
        evidence=(
            blame.decisive,
            *(field(policy, "spec", key) for key in ("podSelector", "policyTypes") if blame.path != f"spec.{key}"),
            use.named,
            *use.proofs,
        ),
        next_check=f"kubectl -n {policy.namespace} describe networkpolicies",
        severity="critical" if use.proofs else "warning",
        fix=(_allowing(blame, connection, direction, consumer),),
        logs=consumer_logs(state, [use.consumer]),
    )


def _allowing(blame: _Blame, connection: Connection, direction: Direction, consumer: ObjectRef) -> FixStep | None:
    """Say which labels a peer must select. Whether the connection should be allowed is for a person to decide."""
    key = "from" if direction == "Ingress" else "to"
    pod = connection.client if direction == "Ingress" else connection.server
    labels = {name: each for name, each in pod.labels.items() if not name.endswith("-hash")}
    if not blame.path.endswith(f".{key}") or not labels:
        return None
    sentence = f"If {consumer} may connect, add a peer to {blame.path} of {blame.policy.ref} that selects "
    return instruction(blame.policy.ref, f"{sentence}{shown(labels)}.")


def _blames(state: ClusterState, connection: Connection, direction: Direction) -> Iterator[_Blame]:
    """Yield each policy that may block the connection, with the most likely explanation."""
    here = connection.here(direction)
    for policy in policies_of(state).idle[here.namespace]:
        if applies(policy, direction) and allows(state, policy, connection, direction):
            why = (
                "its podSelector matches no pod; otherwise it would allow this connection for "
                f"{state.workload_of(here).ref}"
            )
            yield _Blame(policy=policy, path="spec.podSelector", why=why, score=5)
    for policy in policies_of(state).restricting(here, direction):
        newer = 1.5 if was_edited(policy) else 0.0
        if not rules_of(policy, direction):
            why = f"it selects the pods and allows no {direction.lower()} traffic"
            yield _Blame(policy=policy, path="spec.policyTypes", why=why, score=2)
        else:
            best = max(
                (
                    _nearly(state, policy, connection, direction, index)
                    for index in range(len(rules_of(policy, direction)))
                ),
                key=lambda each: each.score,
            )
            yield replace(best, score=best.score + newer)


def _nearly(
    state: ClusterState, policy: ClusterObject, connection: Connection, direction: Direction, index: int
) -> _Blame:
    """Rate how close one rule of a policy is to allowing the connection."""
    match = matches(state, policy, connection, direction)[index]
    key = "from" if direction == "Ingress" else "to"
    peers = children(rules_of(policy, direction)[index], key)
    if match.peer:
        why = f"its rule for this peer lacks port {connection.port}/{connection.protocol}"
        return _Blame(policy=policy, path=f"{match.path}.ports", why=why, score=4)
    nobody = not any(_means_somebody(state, policy, peer) for peer in peers)
    why = "its rule for this port " if match.port else "its rule "
    why += "has no peer that matches a pod" if nobody else "allows only other peers"
    why += _labels_words(peers, connection.peer(direction)) or _namespace_words(
        state, peers, connection.peer(direction)
    )
    return _Blame(policy=policy, path=f"{match.path}.{key}", why=why, score=3 if nobody and match.port else 1)


def _labels_words(peers: tuple[JsonObject, ...], other: ClusterObject) -> str:
    """Describe the labels that the peers select and the labels of the pod."""
    wanted = {key: label for peer in peers for key, label in text_map(peer, "podSelector", "matchLabels").items()}
    if not wanted:
        return ""
    has = ", ".join(f"{key}={other.labels[key]}" for key in sorted(wanted) if key in other.labels)
    asked = ", ".join(f"{key}={label}" for key, label in sorted(wanted.items()))
    return f" (the rule selects {asked}; the pods have {has or 'none of these labels'})"


def _namespace_words(state: ClusterState, peers: tuple[JsonObject, ...], other: ClusterObject) -> str:
    """Describe the labels of namespaces that the peers select, and those that the namespace of the pod lacks."""
    wanted = {key: label for peer in peers for key, label in text_map(peer, "namespaceSelector", "matchLabels").items()}
    home = state.get("Namespace", "", other.namespace)
    if not wanted or home is None:
        return ""
    lacks = ", ".join(f"{key}={label}" for key, label in sorted(wanted.items()) if home.labels.get(key) != label)
    edited = f", which was last changed at {written(edited_at(home))}" if was_edited(home) else ""
    return (
        f" (the rule selects namespaces with {lacks}, a label that {home.ref} does not have{edited})" if lacks else ""
    )


def _means_somebody(state: ClusterState, policy: ClusterObject, peer: JsonObject) -> bool:
    if child(peer, "ipBlock"):
        return True
    if isinstance(at(peer, "namespaceSelector"), dict):
        return any(peer_matches(state, policy.namespace, peer, pod) for pod in state.of("Pod"))
    wanted = text_map(peer, "podSelector", "matchLabels")
    pods = labels_of(state).pods
    candidates = pods.selected(policy.namespace, wanted) if wanted else pods.of(policy.namespace)
    return any(peer_matches(state, policy.namespace, peer, pod) for pod in candidates)


@Row(
    id="NP1b",
    title="NetworkPolicy does not allow DNS",
    severity="warning",
    kinds=("NetworkPolicy", "Pod"),
    needs=("Service", "ConfigMap"),
    reads=("spec.egress of all policies", "settings of clients", "pods with k8s-app=kube-dns"),
    explanation=(
        "The policies that restrict the egress of the pods do not allow traffic to the cluster DNS on port 53, "
        "although the workload uses Service names. The pods cannot resolve any name. Usually you must add a rule for "
        "UDP and TCP port 53."
    ),
)
def dns_is_blocked(state: ClusterState) -> Iterator[Fault]:
    if not state.of("NetworkPolicy"):
        return
    servers = [pod for pod in state.of("Pod") if pod.labels.get("k8s-app") in {"kube-dns", "node-local-dns"}]
    consumers = {edge.consumer.uid: edge for group in edges(state).values() for edge in group if edge.use.form != "ip"}
    for edge in consumers.values():
        client = next((pod for pod in state.pods_of(edge.consumer) if pod.text("status", "phase") == "Running"), None)
        policies = policies_of(state).restricting(client, "Egress") if client is not None else ()
        if not policies or any(_allows_dns(state, policy, servers) for policy in policies):
            continue
        lines = [
            each.line
            for group in failures(state).values()
            for each in group
            if each.consumer is edge.consumer and each.kind == "unresolved"
        ]
        culprit = max(policies, key=lambda each: (not rules_of(each, "Egress"), edited_at(each)))
        yield Fault(
            subject=edge.consumer.ref,
            culprit=culprit.ref,
            cause=(
                f"{culprit.ref} restricts the egress of {edge.consumer.ref}, and no policy allows traffic on port 53, "
                f"so the pods cannot resolve names such as {edge.use.host!r}"
            ),
            evidence=(
                field(culprit, "spec", "egress"),
                field(culprit, "spec", "podSelector"),
                edge.named,
                *lines[:_MOST_PROOFS],
            ),
            next_check=f"kubectl -n {culprit.namespace} describe networkpolicies",
            severity="critical" if lines and is_sick(state, edge.consumer) else "warning",
            logs=consumer_logs(state, [edge.consumer]),
        )


def _allows_dns(state: ClusterState, policy: ClusterObject, servers: list[ClusterObject]) -> bool:
    """Return whether a rule allows traffic on port 53 to the DNS servers, or to any peer if they are unknown."""
    for rule in rules_of(policy, "Egress"):
        ports, peers = children(rule, "ports"), children(rule, "to")
        if ports and not any(_is_dns(port) for port in ports):
            continue
        if not peers or not servers or any(child(peer, "ipBlock") for peer in peers):
            return True
        if any(peer_matches(state, policy.namespace, peer, pod) for peer in peers for pod in servers):
            return True
    return False


def _is_dns(port: JsonObject) -> bool:
    wanted, last = at(port, "port"), at(port, "endPort")
    if isinstance(wanted, str):
        return wanted in {"dns", "dns-tcp", "53"}
    in_range = isinstance(wanted, int) and wanted <= _DNS_PORT <= (last if isinstance(last, int) else wanted)
    return text(port, "protocol") != "SCTP" and (wanted is None or in_range)


@Row(
    id="NP1c",
    title="NetworkPolicy selects no pods",
    severity="info",
    kinds=("NetworkPolicy", "Pod"),
    reads=("spec.podSelector",),
    explanation=(
        "The selector of the policy matches no pod in its namespace, so the policy has no effect. This is normal while "
        "the intended workload has no pods."
    ),
)
def policy_selects_nothing(state: ClusterState) -> Iterator[Fault]:
    for policy in state.of("NetworkPolicy"):
        if not state.covers("Pod", policy.namespace) or not policy.child("spec", "podSelector"):
            continue
        if policy.deleted is None and not selected_by(state, policy):
            yield Fault(
                subject=policy.ref,
                cause=(f"The podSelector of {policy.ref} matches no pod in its namespace, so the policy has no effect"),
                evidence=(field(policy, "spec", "podSelector"),),
                next_check=f"kubectl -n {policy.namespace} get pods --show-labels",
            )
