"""Answers by which name pods reach a Service, and what has a port: "dns name of web", "what listens on port 5432".

No connection is tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, integer, text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.cells import cell_of
from holmes.triage.facts import fact, table_of
from holmes.triage.filters import pod_spec
from holmes.triage.ledger import unread
from holmes.triage.markdown import some_of
from holmes.triage.states import lives
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_INSIDE: Final = (
    r"(?:(?:inside|within|in) (?:of )?(?:the |our |this )?cluster|(?:an)?other namespaces?|(?:an)?other pods?"
    r"|in-cluster|cluster[- ]?intern\w*|im cluster|innerhalb des clusters|anderen? (?:namespaces?|namensraum)"
    r"|dentro del cluster|otro (?:namespace|espacio de nombres)|dans le cluster|autre (?:namespace|espace de noms))"
)
_NAME_INSIDE: Final = expression(
    rf"\b(?:url|dns|dns[- ]names?|host ?names?|internal (?:address|name|url)|nombre dns|nom dns)\b.{{0,60}}\b{_INSIDE}"
    rf"|\b(?:how|wie|como|comment) .{{0,40}}\b(?:reach|connect to|call|access|erreiche|acced\w+|joindre)\b"
    rf".{{0,60}}\bfrom {_INSIDE}"
    rf"|\b(?:wie) erreiche .{{0,60}}\baus (?:einem |dem )?{_INSIDE}"
    r"|^(?:what(?:'s| is) the |what is )?(?:cluster |internal )?dns[- ]name (?:of|for)\b"
    r"|\b(?:dns-name|nombre dns|nom dns) (?:von|de|du)\b"
)
_ON_PORT: Final = expression(
    r"^\W*(?:what|who|which (?:service|workload|pod)s?|was|wer|que|quien|qu'est-ce qui|qui)"
    r"(?:'s| is| are| runs?| listens?| listening| lauft| lauscht| hort| escucha| ecoute| hay| has| is listening)+"
    r" (?:on |at |auf |en |sur |behind )?(?:the )?(?P<node>node ?port|node-port|nodeport)?"
    r"(?:(?<=port)|port|puerto) ?(?P<port>\d{2,5})\W*$"
)
_MOST_NAMED: Final = 6


def asks_service_name(question: Question, subject: Subject) -> bool:
    """Return whether a question asks by which name pods of the cluster reach a named Service."""
    served = bool(subject.named) and all(any(each.kind == "Service" for each in one.objects) for one in subject.named)
    plain = subject.without_names(question.text)
    complains = question.complains and _NAME_INSIDE.match(plain.strip()) is None  # "url to reach web from inside"
    other = complains or question.asks("why", "trouble", "logs", "count", "when", "permission")
    return served and not other and _NAME_INSIDE.search(plain) is not None


def service_name(asked: Asked) -> FirstLook:
    """Return the DNS names of the named Services with their ports."""
    told = [
        f"{each.ref}: {each.name}.{each.namespace}.svc, port {cell_of(asked.state, each, 'ports') or 'none'}"
        for each in asked.subject.objects
        if each.kind == "Service"
    ]
    note = "With the usual cluster domain, the name ends with .svc.cluster.local. No connection was tested."
    return fact(asked, f"{'; '.join(told)}.", notes=(note,))


def asks_port(question: Question, subject: Subject) -> bool:
    """Return whether a question only asks what listens on a port."""
    return not subject.named and _ON_PORT.search(question.text) is not None


def port(asked: Asked) -> FirstLook:
    """Return the Services and the workloads that state the port."""
    match = _ON_PORT.search(asked.question.text)
    number, node = (int(match["port"]), bool(match["node"])) if match is not None else (0, False)
    gaps = unread(asked.state, ("Service", "Pod", *WORKLOADS), asked.subject.namespaces)
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    rows = list(_on_port(asked, number, node=node))
    if not rows:
        what = "node port" if node else "port"
        return fact(asked, f"No Service or workload {asked.subject.place} states {what} {number}.", None, "answered")
    told = some_of([f"{name} ({what})" for name, what in rows], _MOST_NAMED)
    return fact(asked, f"{told}.", table_of(("object", "port"), rows) if len(rows) > 1 else None)


def _on_port(asked: Asked, number: int, *, node: bool) -> Iterator[tuple[str, str]]:
    for each in filter(asked.subject.contains, asked.state.of("Service")):
        for one in each.children("spec", "ports"):
            if integer(one, "nodePort") == number:
                yield str(each.ref), f"node port {number}, port {integer(one, 'port')}"
            elif not node and number in (integer(one, "port"), one.get("targetPort")):
                yield str(each.ref), f"port {integer(one, 'port')}→{one.get('targetPort', integer(one, 'port'))}"
    if not node:
        yield from dict.fromkeys(_containers_on_port(asked, number))


def _containers_on_port(asked: Asked, number: int) -> Iterator[tuple[str, str]]:
    """Yield the containers that state a port, also those that something added to the pods of a workload."""
    workloads = (one for kind in WORKLOADS for one in asked.state.of(kind) if one.owner is None)
    for each in filter(asked.subject.contains, (*workloads, *filter(lives, asked.state.of("Pod")))):
        spec, owner = pod_spec(each), asked.state.workload_of(each)
        for container in (*children(spec, "initContainers"), *children(spec, "containers")):
            if any(integer(one, "containerPort") == number for one in children(container, "ports")):
                yield str(owner.ref), f"container {text(container, 'name')}"
