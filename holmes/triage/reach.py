"""Answers who may connect to whom: the NetworkPolicies that restrict the pods of workloads decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import services_selecting
from holmes.diagnosis.facts.network import Connection, container_ports, is_blocked, policies_of, service_ports
from holmes.diagnosis.facts.templates import workloads_behind
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.facts import fact, table_of
from holmes.triage.ledger import unread
from holmes.triage.markdown import some_of
from holmes.triage.states import lives
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.network import Direction
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Named, Subject
    from holmes.values.first_look import FirstLook

_REACH: Final = (
    r"(?:talk|connect|access|reach|speak|call|open (?:a |any )?(?:network )?connections?|zugreifen|verbinden|erreichen"
    r"|sprechen|hablar|conectar\w*|acceder|alcanzar|parler|(?:se )?connecter|joindre)"
)
_MAY: Final = expression(
    r"\b(?:may|can|could|allowed|permitted|darf|durfen|kann|konnen|puede[n]?|peut|peuvent|autorise\w*)\b"
    rf".{{0,60}}\b{_REACH}\b"
)
_ALLOWED: Final = expression(r"\b(?:may|allowed|permitted|darf|durfen|autorise\w*|polic\w+|netpols?)\b")
_WHO: Final = expression(
    r"^(?:who|what|wer|was|quien(?:es)?|que|qui|(?:which|welche|que|quels?) (?:pods?|workloads?|services?|clients?"
    rf"|apps?|deployments?))(?: else)? (?:\w+ ){{1,4}}?{_REACH}\b"
    rf"|^(?:wer|was) (?:alles )?(?:darf|kann)\s+(?:\S+\s+){{0,4}}?{_REACH}\b"
)
"""Only questions for the clients: in "which services can web reach", the name is before the verb."""
_PORT: Final = expression(
    r"\b(?:(?:on|at|over|auf|uber|sur|en|por|per) )?(?:the |le |el |dem |den )?(?P<protocol>tcp |udp )?(?:port|puerto) "
    r"(?P<number>\d{2,5})\b|\b(?:on|over|auf|sur) :?(?P<bare>\d{2,5})(?=\W*$)"
)
_BY_POLICY: Final = expression(
    r"\b(?:over|through|by|via|in) (?:the |a |any )?(?:network(?: ?polic(?:y|ies))?|netpols?)\b"
    r"|\bstraight\b|\bdirectly\b"
    r"|\b(?:does|do|would|will) (?:a|any|the|some) (?:network ?)?polic(?:y|ies)\b|^is there anything that\b"
)
_LETS: Final = expression(r"\b(?:allow(?:s|ed)?|permit(?:s|ted)?|lets?)\b")
_PASSIVE: Final = expression(r"\b(?:can|may|could)\s+be (?:reached|accessed|called|contacted) (?:by|from)\b")
_STOPS: Final = expression(
    r"\b(?:stop|prevent|block|keep)(?:s|ped|ing)?\b.{1,60}\bfrom (?:reaching|connecting|talking|accessing|calling)\b"
)
_NO_PAIR: Final = expression(
    r"\b(?:or|and|both|oder|und|beide|o|y|ambos|ou|et|through|via|over|uber|from|von|desde|depuis|if|wenn|falls|si"
    r"|cannot|can't|not|no longer|nicht|never|internet|outside|ingress|namespaces?|users?|teams?|as|ports?|within)\b"
)
"""Words with which the question asks for more, or for less, than one connection."""
_POLICIES: Final = expression(
    r"\b(?:which|what|any|welche|was|que|cual\w*|quelles?) (?:network ?polic(?:y|ies)|netpols?|politicas? de red"
    r"|politiques? reseau|polic(?:y|ies))\b.{0,20}\b(?:protects?|restricts?|isolates?|guards?|schutz\w*|protege\w*)\b"
)
_DIRECTIONS: Final[tuple[Direction, ...]] = ("Ingress", "Egress")
_MOST_TOLD: Final = 4
_CAVEAT: Final = "Nothing but NetworkPolicies was examined, so it is not known if connections succeed."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ports:
    """The ports of a server that are open and closed for a client, and the policies that decide."""

    opened: tuple[int, ...]
    closed: tuple[int, ...]
    policies: tuple[str, ...]


def asks_reach(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if a workload may connect to another, who may, or which policies restrict one."""
    other = question.complains or question.asks("why", "trouble", "logs", "changes", "exec", "port_forward", "negation")
    run = _run(subject)
    if other or question.addresses or not run or len(run) < len(subject.named):
        return False
    if _POLICIES.search(question.text):
        return len(run) == 1
    text = _BY_POLICY.sub(" ", _PORT.sub(" ", subject.without_names(question.text), count=1))
    if len(run) > 1 and _PASSIVE.search(text) is not None:
        return _between_names(question.text, run)
    stops = len(run) > 1 and _STOPS.search(question.text) is not None
    if not stops and (_NO_PAIR.search(text) or not _asks_right(question.text)):
        return False
    who = _WHO.match(text) is not None
    return len(run) == 1 if who else len(run) == 2 and _between_names(question.text, run)


def _asks_right(text: str) -> bool:
    """Return whether a question asks what a workload may do to another, by a verb or by the policies that it names."""
    return _MAY.search(text) is not None or (_BY_POLICY.search(text) is not None and _LETS.search(text) is not None)


def _between_names(text: str, run: Sequence[Named]) -> bool:
    """Return whether the client comes before the server: "may web talk to db"."""
    return 0 <= text.find(run[0].name) < text.rfind(run[1].name)


def reach(asked: Asked) -> FirstLook:
    """Return whether NetworkPolicies allow the connection of the question, who may connect, or which of them apply."""
    gaps = unread(asked.state, ("NetworkPolicy", "Pod"), ())
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    run = _run(asked.subject)
    run = run[::-1] if len(run) > 1 and _PASSIVE.search(asked.subject.without_names(asked.question.text)) else run
    pods = [_pod(asked.state, each) for each in run]
    missing = next((each.name for each, pod in zip(run, pods, strict=True) if pod is None), "")
    found = [pod for pod in pods if pod is not None]
    if missing or any(pod.boolean("spec", "hostNetwork") for pod in found):
        why = f"`{missing}` has no running pods" if missing else "policies do not decide for pods in the host network"
        return fact(asked, f"No connection can be examined: {why}.", None, "inconclusive")
    if _POLICIES.search(asked.question.text):
        return _restricting(asked, run[0].name, found[0])
    names = " to ".join(f"`{each.name}`" for each in run)
    return _connection(asked, names, found[0], found[1]) if len(found) > 1 else _clients(asked, run[0].name, found[0])


def _run(subject: Subject) -> tuple[Named, ...]:
    """Return the named things that have pods, in the order of the question."""
    kinds = (*WORKLOADS, "Pod", "Service")
    return tuple(named for named in subject.named if any(each.kind in kinds for each in named.objects))


def _pod(state: ClusterState, named: Named) -> ClusterObject | None:
    """Return a running pod of a workload or behind a Service."""
    every = (
        each for one in named.objects for each in (workloads_behind(state, one) if one.kind == "Service" else (one,))
    )
    pods = (pod for each in every for pod in (state.pods_of(each) or (each,)))
    return next((pod for pod in pods if pod.kind == "Pod" and lives(pod)), None)


def _asked_port(asked: Asked) -> tuple[int, str]:
    """Return the port of the question, or 0 if it names none, and its protocol if it is named."""
    port = _PORT.search(asked.subject.without_names(asked.question.text))
    if port is None:
        return 0, ""
    return int(port["number"] or port["bare"]), (port["protocol"] or "").strip().upper()


def _examined(asked: Asked, client: ClusterObject, server: ClusterObject) -> _Ports:
    """Return the ports of a pod, by whether policies allow connections from another pod.

    The port of the question decides, or else those that the pod or its Services declare. A port of a Service leads to
    its target.
    """
    state, (port, protocol) = asked.state, _asked_port(asked)
    declared = {(each.number, each.protocol) for each in container_ports(server.child("spec"))}
    named = {each.name: each.number for each in container_ports(server.child("spec")) if each.name}
    served = set[int]()
    for service in services_selecting(state, server.namespace, server.labels):
        for each in service_ports(service):
            target = named.get(each.target, 0) if isinstance(each.target, str) else each.target
            declared |= {(target, each.protocol)} if target else set()
            served |= {target} if target and each.port == port else set()
    if port:
        numbers = served or {port}
        own = {(number, spoken) for number, spoken in declared if number in numbers and protocol in ("", spoken)}
        declared = own or {(number, protocol or "TCP") for number in numbers}
    opened: list[int] = []
    closed: list[int] = []
    for number, spoken in sorted(declared):
        connection = Connection(client=client, server=server, port=number, protocol=spoken)
        blocked = any(is_blocked(state, connection, each) for each in _DIRECTIONS)
        (closed if blocked else opened).append(number)
    found = (*policies_of(state).restricting(server, "Ingress"), *policies_of(state).restricting(client, "Egress"))
    return _Ports(
        opened=tuple(opened), closed=tuple(closed), policies=tuple(dict.fromkeys(str(each.ref) for each in found))
    )


def _connection(asked: Asked, names: str, client: ClusterObject, server: ClusterObject) -> FirstLook:
    ports = _examined(asked, client, server)
    if not ports.policies:
        yes = "Yes: no" if _ALLOWED.search(asked.question.text) else "No"
        return fact(asked, f"{yes} NetworkPolicy restricts connections from {names}. {_CAVEAT}")
    told = some_of(ports.policies, _MOST_TOLD)
    if not ports.opened and not ports.closed:
        text = f"{told} restricts connections from {names}, but the ports of the server are not known."
        return fact(asked, text, None, "inconclusive")
    if ports.opened and ports.closed:
        places = f"{_numbers(ports.opened)}, not on {_numbers(ports.closed)}"
        return fact(asked, f"Partly: {told} allows connections from {names} on {places}. {_CAVEAT}")
    verb, start = ("does not allow", "No: ") if ports.closed else ("allows", "Yes: ")
    start = start if ports.closed or _ALLOWED.search(asked.question.text) else ""
    text = f"{start}{told} {verb} connections from {names} on {_numbers(ports.opened or ports.closed)}."
    return fact(asked, f"{text} {_CAVEAT}")


def _numbers(ports: Sequence[int]) -> str:
    return f"port{'s' if len(ports) > 1 else ''} {', '.join(map(str, ports))}"


def _clients(asked: Asked, name: str, server: ClusterObject) -> FirstLook:
    """Answer which workloads may connect to the server."""
    policies = [str(each.ref) for each in policies_of(asked.state).restricting(server, "Ingress")]
    if not policies:
        return fact(asked, f"No NetworkPolicy restricts the ingress of `{name}`. {_CAVEAT}")
    rows, unknown = [], []
    for each in _workloads(asked.state):
        pod = next((pod for pod in asked.state.pods_of(each) if lives(pod)), None)
        if pod is None:
            unknown.append(str(each.ref))
        elif asked.state.workload_of(server) is not each and _examined(asked, pod, server).opened:
            rows.append((str(each.ref),))
    told = some_of([row[0] for row in rows], _MOST_TOLD) if rows else "no workload with running pods"
    summary = f"{told} may connect to `{name}`: {some_of(policies, _MOST_TOLD)} restricts its ingress. {_CAVEAT}"
    notes = (f"Not examined, because it has no running pods: {some_of(unknown, _MOST_TOLD)}.",) if unknown else ()
    return fact(asked, summary, table_of(("workload",), rows) if len(rows) > _MOST_TOLD else None, notes=notes)


def _workloads(state: ClusterState) -> Iterator[ClusterObject]:
    yield from (each for kind in ("Deployment", "StatefulSet", "DaemonSet", "CronJob") for each in state.of(kind))


def _restricting(asked: Asked, name: str, pod: ClusterObject) -> FirstLook:
    """Answer which NetworkPolicies restrict the pods of a workload."""
    found = {
        str(each.ref): direction
        for direction in _DIRECTIONS
        for each in policies_of(asked.state).restricting(pod, direction)
    }
    if not found:
        return fact(asked, f"No NetworkPolicy selects the pods of `{name}`.")
    told = ", ".join(f"{ref} ({direction.lower()})" for ref, direction in found.items())
    return fact(asked, f"{told} restricts the pods of `{name}`.")
