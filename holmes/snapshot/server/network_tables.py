"""Defines the tables of Services, endpoints, ingresses, network policies and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import at, child, children, integer, text, texts
from holmes.snapshot.server.selectors import shown_labels, shown_selector
from holmes.snapshot.server.table_layout import NONE, Cells, Layout, age, columns, limited, name_of, scalar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from holmes.values.json_types import JsonObject


def _service(item: JsonObject, now: datetime) -> Cells:
    addresses = texts(item, "spec", "clusterIPs") or ((text(item, "spec", "clusterIP"),))
    return [
        name_of(item),
        text(item, "spec", "type") or "ClusterIP",
        addresses[0] or NONE,
        _external_address(item),
        ",".join(_port(each) for each in children(item, "spec", "ports")) or NONE,
        age(item, now),
        shown_labels(at(item, "spec", "selector")),
    ]


def _port(port: JsonObject) -> str:
    node_port = f":{integer(port, 'nodePort')}" if integer(port, "nodePort") else ""
    return f"{integer(port, 'port')}{node_port}/{text(port, 'protocol') or 'TCP'}"


def _external_address(item: JsonObject) -> str:
    external = ",".join(texts(item, "spec", "externalIPs"))
    kind = text(item, "spec", "type")
    if kind == "LoadBalancer":
        return ",".join(part for part in (_balancer(item), external) if part) or "<pending>"
    return text(item, "spec", "externalName") if kind == "ExternalName" else external or NONE


def _balancer(item: JsonObject) -> str:
    points = children(item, "status", "loadBalancer", "ingress")
    return ",".join(sorted({text(each, "ip") or text(each, "hostname") for each in points} - {""}))


def _endpoints(item: JsonObject, now: datetime) -> Cells:
    shown: list[str] = []
    for subset in children(item, "subsets"):
        addresses = [text(each, "ip") for each in children(subset, "addresses")]
        ports = [integer(each, "port") for each in children(subset, "ports")]
        if not ports:
            shown += addresses
        shown += [f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for port in ports for ip in addresses]
    empty = "" if children(item, "subsets") else NONE
    return [name_of(item), limited(shown, empty=empty), age(item, now)]


def _endpoint_slice(item: JsonObject, now: datetime) -> Cells:
    ports = [str(scalar(each, "port", default=text(each, "name") or "*")) for each in children(item, "ports")]
    addresses = [address for each in children(item, "endpoints") for address in texts(each, "addresses")]
    return [name_of(item), text(item, "addressType"), limited(ports), limited(addresses), age(item, now)]


def _ingress(item: JsonObject, now: datetime) -> Cells:
    return [
        name_of(item),
        text(item, "spec", "ingressClassName") or NONE,
        _hosts(children(item, "spec", "rules")),
        _balancer(item),
        "80, 443" if children(item, "spec", "tls") else "80",
        age(item, now),
    ]


def _hosts(rules: Sequence[JsonObject]) -> str:
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..."
        hosts += [text(rule, "host")] if text(rule, "host") else []
    return ",".join(hosts) or "*"


def _ingress_class(item: JsonObject, now: datetime) -> Cells:
    parameters = child(item, "spec", "parameters")
    group = f".{text(parameters, 'apiGroup')}" if "apiGroup" in parameters else ""
    shown = f"{text(parameters, 'kind')}{group}/{text(parameters, 'name')}" if parameters else NONE
    return [name_of(item), text(item, "spec", "controller"), shown, age(item, now)]


def _network_policy(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), shown_selector(at(item, "spec", "podSelector")), age(item, now)]


def _service_range(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), ",".join(texts(item, "spec", "cidrs")), age(item, now)]


def _address(item: JsonObject, _: datetime) -> Cells:
    parent = child(item, "spec", "parentRef")
    group = f".{text(parent, 'group')}" if text(parent, "group") else ""
    parts = [f"{text(parent, 'resource')}{group}".lower(), text(parent, "namespace"), text(parent, "name")]
    return [name_of(item), "/".join(part for part in parts if part) or NONE]


LAYOUTS: Final = {
    ("", "services"): Layout(
        columns=columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)),
        cells=_service,
    ),
    ("", "endpoints"): Layout(columns=columns("Name", "Endpoints", "Age"), cells=_endpoints),
    ("discovery.k8s.io", "endpointslices"): Layout(
        columns=columns("Name", "AddressType", "Ports", "Endpoints", "Age"), cells=_endpoint_slice
    ),
    ("networking.k8s.io", "ingresses"): Layout(
        columns=columns("Name", "Class", "Hosts", "Address", "Ports", "Age"), cells=_ingress
    ),
    ("networking.k8s.io", "ingressclasses"): Layout(
        columns=columns("Name", "Controller", "Parameters", "Age"), cells=_ingress_class
    ),
    ("networking.k8s.io", "networkpolicies"): Layout(
        columns=columns("Name", "Pod-Selector", "Age"), cells=_network_policy
    ),
    ("networking.k8s.io", "servicecidrs"): Layout(columns=columns("Name", "CIDRs", "Age"), cells=_service_range),
    ("networking.k8s.io", "ipaddresses"): Layout(columns=columns("Name", "ParentRef"), cells=_address),
}
