"""Answers whether an object can be reached from outside of the cluster, and where: Ingresses, node ports, addresses."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import services_selecting
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.cluster_state import DEFINITION_KIND
from holmes.kubernetes.fields import children, text, texts
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.ledger import unread
from holmes.triage.users import backends_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_ENTERED: Final = frozenset({*WORKLOADS, "Service", "Pod"})
_HOST: Final = r"(?:hosts?|host ?names?|domains?|domain names?|urls?|dominio|domaine|hote|domane)"
_EXPOSED: Final = expression(
    r"\bbehind (?:an?|the|any|which) (?:ingress|load ?balancer)\b"
    r"|\b(?:hinter|detras de|derriere) (?:eine[mr]|un|une) ingress"
    r"|\b(?:is|are|does|do|ist|sind|esta|estan|est|sont)\b.{1,60}\b(?:exposed|public|publicly|expuest\w+|exponiert"
    r"|expose[es]?|offentlich|public[ao]s?|publique)\b"
    r"|\b(?:reach\w*|accessible|available|visible|open|erreichbar|zuganglich|accesible\w*|alcanzable|joignable|exposed)\b"
    r".{0,20}\b(?:from|to|von|desde|depuis|de) (?:the )?(?:outside|internet|world|public|aussen|fuera|exterior"
    r"|l'exterieur)\b|\bvon aussen (?:erreichbar|zuganglich)\b|\bfrom outside\b|\bexternally\b|\bexternamente\b"
    r"|\b(?:which|what|welche[mrn]?|que|quel) node ?port\b|\bhow (?:is|are) .{1,40} exposed\b"
    r"|\b(?:which|what|what's the|was ist die|unter welche[mr]|welche[rn]?|cual es (?:la|el)|que|quel(?:le)?) "
    rf"(?:public |external |externe |publica )?{_HOST}\b"
    rf"|\b(?:{_HOST}|(?:public|external|externe) (?:urls?|ip|address)) (?:of|for|von|fur|de|du)\b"
)
_ROUTES: Final = ("HTTPRoute.", "GRPCRoute.", "TCPRoute.", "TLSRoute.", "VirtualService.", "IngressRoute.",
    "Route.route.", "HTTPProxy.", "Mapping.")  # fmt: skip
"""The beginnings of custom kinds that lead requests from outside to Services."""
_ROUTED: Final = expression(
    r"(?:which|what|who|where|wer|wohin|welche[rs]?|was|donde|que|quien|ou|qui|quel)\b.{0,60}\b(?:behind|serves?|gets?|go"
    r"|goes|leads?|points?|rout(?:es?|ed)|handles?|hinter|fuhrt|geht|bedient|detras|va|sirve|derriere|mene|sert)\b"
)
_PATH: Final = expression(r"(?<![\w.])/[\w/-]+")
_MOST_TOLD: Final = 4
_OTHER: Final = ("why", "trouble", "count", "logs", "changes", "when", "events", "permission", "change_order")


def asks_exposure(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if or where the named workloads or Services can be reached from outside."""
    entered = any(each.kind in _ENTERED for each in subject.objects)
    complains = question.complains or question.asks(*_OTHER)
    return entered and not complains and _EXPOSED.search(question.text) is not None


def exposure(asked: Asked) -> FirstLook:
    """List the Ingresses, routes, node ports and outer addresses that lead to the named objects."""
    services = services_of(asked)
    found = (row for each in services for row in (*_entries(asked.state, each), *_routes(asked.state, each)))
    rows = list(dict.fromkeys((*found, *_host_ports(asked))))
    unknown = (gap.kind for gap in asked.state.reading.gaps if gap.category != "absent")
    routes = {kind for kind in unknown if kind.startswith((*_ROUTES, DEFINITION_KIND))}
    gaps = (*unread(asked.state, ("Ingress", "Service"), asked.subject.namespaces), *sorted(routes))
    about = place_of(asked).removeprefix("of ")
    if not rows and gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    if not rows:
        return fact(asked, f"No Ingress, route, node port or outer address that was read leads to {about}.")
    told = "; ".join(f"{name}: {where}" for name, where in rows[:_MOST_TOLD])
    table = table_of(("entry", "where"), rows) if len(rows) > _MOST_TOLD else None
    notes = (f"{', '.join(gaps)} could not be read completely.",) if gaps else ()
    return fact(asked, f"From outside, {about} has: {told}.", table, notes=notes)


def asks_route(question: Question, subject: Subject) -> bool:
    """Return whether a question asks what serves a host: "which service is behind /cart on shop.example"."""
    hosts = any("." in named.name and named.objects[0].kind == "Ingress" for named in subject.named)
    complains = question.complains or question.asks(*_OTHER, "health")
    return hosts and not complains and _ROUTED.match(question.text) is not None


def route(asked: Asked) -> FirstLook:
    """Return the Services behind the named hosts, only for the path of the question if it has one."""
    hosts = {named.name for named in asked.subject.named if "." in named.name}
    path = _PATH.search(asked.question.text)
    every = [
        (f"{host}{text(one, 'path') or '/'}", f"Service {each.namespace}/{text(one, 'backend', 'service', 'name')}")
        for each in asked.subject.objects
        if each.kind == "Ingress"
        for rule in each.children("spec", "rules")
        if (host := text(rule, "host")) in hosts
        for one in children(rule, "http", "paths")
    ]
    rows = [row for row in every if path is not None and row[0].endswith(path[0])] or every
    if not rows:
        return fact(asked, f"No rule that was read leads {' and '.join(sorted(hosts))} anywhere.", None, "inconclusive")
    told = "; ".join(f"{where} leads to {service}" for where, service in rows[:_MOST_TOLD])
    return fact(asked, f"{told}.", table_of(("path", "service"), rows) if len(rows) > _MOST_TOLD else None)


def services_of(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return the named Services, and those in front of the named workloads and pods."""
    return tuple(dict.fromkeys(one for each in asked.subject.objects for one in _services(asked.state, each)))


def _services(state: ClusterState, each: ClusterObject) -> tuple[ClusterObject, ...]:
    labels = each.labels if each.kind == "Pod" else template_of(each).labels  # also without any pod
    return (each,) if each.kind == "Service" else services_selecting(state, each.namespace, labels)


def ingresses_of(state: ClusterState, service: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the Ingresses that lead to a Service."""
    return tuple(each for each in state.of("Ingress", service.namespace) if service.name in backends_of(each))


def _entries(state: ClusterState, service: ClusterObject) -> Iterator[tuple[str, str]]:
    """Yield each entry with its addresses: `Ingress shop/front` and `shop.example/cart`."""
    for each in ingresses_of(state, service):
        tls = {host for one in each.children("spec", "tls") for host in texts(one, "hosts")}
        found = [
            _url(text(rule, "host"), text(path, "path"), encrypted=text(rule, "host") in tls)
            for rule in each.children("spec", "rules")
            for path in children(rule, "http", "paths")
            if text(path, "backend", "service", "name") == service.name
        ]
        yield str(each.ref), ", ".join(dict.fromkeys(found)) or "all other requests"
    balancers = [
        text(one, "ip") or text(one, "hostname") for one in service.children("status", "loadBalancer", "ingress")
    ]
    outer = (*filter(None, balancers), *texts(service.body, "spec", "externalIPs"))
    if outer:
        yield str(service.ref), ", ".join(outer)
    ports = [str(one["nodePort"]) for one in service.children("spec", "ports") if one.get("nodePort")]
    if ports and service.text("spec", "type") in ("NodePort", "LoadBalancer"):
        yield str(service.ref), f"port {', '.join(ports)} of each node"


def _url(host: str, path: str, *, encrypted: bool) -> str:
    return f"{'https' if encrypted else 'http'}://{host or '*'}{path or '/'}"


def _routes(state: ClusterState, service: ClusterObject) -> Iterator[tuple[str, str]]:
    """Yield the routes of gateways and meshes that name a Service, with their hosts."""
    for kind in state.kinds:
        if kind.startswith(_ROUTES):
            for each in state.of(kind):
                spec = json.dumps(each.body.get("spec"))
                near = each.namespace == service.namespace or f"{service.name}.{service.namespace}" in spec
                if near and re.search(rf'"{re.escape(service.name)}(?:\.[\w.-]+)?"', spec):
                    hosts = (*texts(each.body, "spec", "hostnames"), *texts(each.body, "spec", "hosts"))
                    yield str(each.ref), ", ".join((*hosts, each.text("spec", "host"))).strip(", ") or "its gateway"


def _host_ports(asked: Asked) -> Iterator[tuple[str, str]]:
    """Yield the ports of its nodes that a pod of the named objects takes."""
    for pod in dict.fromkeys(pod for each in asked.subject.objects for pod in asked.state.pods_of(each)):
        ports = [
            str(port.get("hostPort") or port.get("containerPort"))
            for one in pod.children("spec", "containers")
            for port in children(one, "ports")
            if port.get("hostPort") or pod.boolean("spec", "hostNetwork")
        ]
        if ports:
            yield (
                str(asked.state.workload_of(pod).ref),
                f"port {', '.join(dict.fromkeys(ports))} of the nodes of its pods",
            )
