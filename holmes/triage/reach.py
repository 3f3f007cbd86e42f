"""Answers who may connect to whom: the NetworkPolicies that restrict the pods of workloads decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.diagnosis.facts.network import Connection, allows, container_ports, is_blocked, policies_of
from holmes.diagnosis.facts.templates import workloads_behind
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.facts import fact, table_of
from holmes.triage.ledger import unread
from holmes.triage.markdown import some_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.network import Direction
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_REACH: Final = (
    r"(?:talk|connect|access|reach|speak|call|zugreifen|verbinden|erreichen|sprechen|hablar|conectar\w*|acceder|alcanzar"
    r"|parler|(?:se )?connecter|joindre)"
)
_MAY: Final = expression(
    r"\b(?:may|can|could|allowed to|permitted to|darf|durfen|kann|konnen|puede[n]?|peut|peuvent|autorise\w* a)\b"
    rf".{{0,60}}\b{_REACH}\b"
)
_ALLOWED: Final = expression(r"\b(?:may|allowed|permitted|darf|durfen|autorise\w*|polic\w+|netpols?)\b")
_WHO: Final = expression(r"^(?:who|which \w+|what|wer|welche \w+|quien(?:es)?|que \w+|qui|quels? \w+) ")
_POLICIES: Final = expression(
    r"\b(?:which|what|any|welche|was|que|cual\w*|quelles?) (?:network ?)?(?:polic(?:y|ies)|netpols?|politicas? de red"
    r"|politiques? reseau)\b.{0,20}\b(?:protects?|restricts?|isolates?|appl(?:y|ies)|selects?|guards?|limits?"
    r"|schutz\w*|gilt|gelten|protege\w*|aplica\w*|s'applique\w*)\b"
)
_DIRECTIONS: Final[tuple[Direction, ...]] = ("Ingress", "Egress")
_MOST_TOLD: Final = 4
_Run: TypeAlias = "tuple[str, tuple[ClusterObject, ...]]"
"""A name of the question and its objects, which have pods."""


def asks_reach(question: Question, subject: Subject) -> bool:
    """Return whether a question asks who may connect to whom, or which policies restrict a workload."""
    other = question.complains or question.asks("why", "trouble", "logs", "changes", "exec", "port_forward")
    if other or question.addresses or not _run(subject):
        return False
    if _POLICIES.search(question.text):
        return True
    known = len(_run(subject)) > 1 or _WHO.match(question.text) is not None
    return known and _MAY.search(question.text) is not None


def reach(asked: Asked) -> FirstLook:
    """Return whether NetworkPolicies allow the connection of the question, who may connect, or which of them apply."""
    gaps = unread(asked.state, ("NetworkPolicy", "Pod"), ())
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    run = _run(asked.subject)
    if _POLICIES.search(asked.question.text):
        return _restricting(asked, run[-1])
    return _between(asked, run[0], run[1]) if len(run) > 1 else _clients(asked, run[0])


def _run(subject: Subject) -> tuple[_Run, ...]:
    """Return the named things that have pods, in the order of the question."""
    kinds = (*WORKLOADS, "Pod", "Service")
    return tuple(
        (named.name, named.objects) for named in subject.named if any(each.kind in kinds for each in named.objects)
    )


def _pods(state: ClusterState, objects: Sequence[ClusterObject]) -> tuple[ClusterObject, ...]:
    """Return one pod of each workload."""
    every = (each for one in objects for each in (workloads_behind(state, one) if one.kind == "Service" else (one,)))
    found = (each if each.kind == "Pod" else next(iter(state.pods_of(each)), None) for each in dict.fromkeys(every))
    return tuple(dict.fromkeys(each for each in found if each is not None))


def _blocked(state: ClusterState, client: ClusterObject, server: ClusterObject) -> tuple[bool, tuple[str, ...]]:
    """Return whether every port of a pod is closed for another one, and the policies that decide."""
    ports = [port.number for port in container_ports(server.child("spec"))] or [0]
    closed, deciding = [], []
    for port in dict.fromkeys(ports):
        connection = Connection(client=client, server=server, port=port)
        closed.append(any(is_blocked(state, connection, each) for each in _DIRECTIONS))
        for direction in _DIRECTIONS:
            policies = policies_of(state).restricting(connection.here(direction), direction)
            blocked = is_blocked(state, connection, direction)
            deciding += [str(each.ref) for each in policies if blocked or allows(state, each, connection, direction)]
    return all(closed), tuple(dict.fromkeys(deciding))


def _between(asked: Asked, client: _Run, server: _Run) -> FirstLook:
    clients, servers = _pods(asked.state, client[1]), _pods(asked.state, server[1])
    if not clients or not servers:
        without = client[0] if not clients else server[0]
        return fact(asked, f"`{without}` has no pods, so no connection can be examined.", None, "inconclusive")
    blocked, deciding = _blocked(asked.state, clients[0], servers[0])
    policies = some_of(deciding, _MOST_TOLD)
    verb = "does not allow" if blocked else "allows"
    told = f"{policies} {verb} connections" if deciding else "no NetworkPolicy restricts connections"
    may = "No: " if blocked else "Yes: " if _ALLOWED.search(asked.question.text) else ""
    told = f"{may}{told}" if may else f"{told[0].upper()}{told[1:]}"
    summary = f"{told} from `{client[0]}` to `{server[0]}`."
    return fact(asked, f"{summary} Nothing but NetworkPolicies was examined, so it is not known if they succeed.")


def _clients(asked: Asked, server: _Run) -> FirstLook:
    """Answer which workloads may connect to the server."""
    servers = _pods(asked.state, server[1])
    if not servers:
        return fact(asked, f"`{server[0]}` has no pods, so no connection can be examined.", None, "inconclusive")
    policies = [str(each.ref) for each in policies_of(asked.state).restricting(servers[0], "Ingress")]
    if not policies:
        return fact(asked, f"Every pod may connect to `{server[0]}`: no NetworkPolicy restricts its ingress.")
    rows = [(str(each.ref),) for each in _workloads(asked.state) if _may(asked.state, each, servers[0])]
    told = some_of([row[0] for row in rows], _MOST_TOLD) if rows else "no workload of the cluster"
    summary = f"{told} may connect to `{server[0]}`: {some_of(policies, _MOST_TOLD)} restricts its ingress."
    return fact(asked, summary, table_of(("workload",), rows) if len(rows) > _MOST_TOLD else None)


def _may(state: ClusterState, workload: ClusterObject, server: ClusterObject) -> bool:
    pod = next(iter(state.pods_of(workload)), None)
    return pod is not None and state.workload_of(server) is not workload and not _blocked(state, pod, server)[0]


def _workloads(state: ClusterState) -> Iterator[ClusterObject]:
    yield from (each for kind in ("Deployment", "StatefulSet", "DaemonSet", "CronJob") for each in state.of(kind))


def _restricting(asked: Asked, about: _Run) -> FirstLook:
    """Answer which NetworkPolicies restrict the pods of a workload."""
    found = {
        str(each.ref): direction
        for pod in _pods(asked.state, about[1])
        for direction in _DIRECTIONS
        for each in policies_of(asked.state).restricting(pod, direction)
    }
    if not found:
        return fact(asked, f"No NetworkPolicy selects the pods of `{about[0]}`.")
    told = ", ".join(f"{ref} ({direction.lower()})" for ref, direction in found.items())
    return fact(asked, f"{told} restricts the pods of `{about[0]}`.")
