"""The values in the columns of lists, by kind and column. `columns.py` chooses the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.status import status_of
from holmes.kubernetes.fields import at, child, children, duration, integer, text, written
from holmes.kubernetes.kinds import SCALED
from holmes.triage.filters import WITH_TEMPLATE, pod_spec
from holmes.triage.image_filters import images_of
from holmes.triage.states import restarts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject

    Cell: TypeAlias = Callable[[ClusterState, ClusterObject], str]

_LONGEST_USUAL: Final = 3
OPTIONAL: Final = frozenset({"taints", "zone", "labels", "selector", "tls", "owner", "time zone"})
"""Columns of what not every object has: "Nodes with taints" are those that have some."""
_OWNERS: Final = frozenset({"owner", "owners", "team", "contact", "maintainer", "squad", "oncall"})
"""The last parts of the keys of labels and annotations that name who is responsible."""
_ROLE: Final = "node-role.kubernetes.io/"
_OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"


def has_cell(kind: str, column: str) -> bool:
    """Return whether objects of a kind have a column."""
    return (kind, column) in _CELLS or column in _ANY


def titles_of(kinds: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """Return the titles of the columns for objects: those that are asked for, then the usual ones of their kind."""
    usual = _USUAL.get(kinds[0], _OTHERS) if len(kinds) == 1 else _OTHERS
    usual = tuple(title for title in usual if title != "status" or "replicas" not in asked)
    return tuple(dict.fromkeys((*asked, *(usual if len(asked) < _LONGEST_USUAL else ()))))


def cell_of(state: ClusterState, each: ClusterObject, title: str) -> str:
    """Return the value of a column, or an empty string for an object that has no such column."""
    for kind in (each.kind, f"{each.kind}.{each.group}"):
        if (kind, title) in _CELLS:
            return _CELLS[kind, title](state, each)
    return _ANY[title](state, each) if title in _ANY else ""


def _of(*path: str, otherwise: str = "") -> Cell:
    """Return the value of one field."""
    return lambda _state, each: _shown(at(each.body, *path)) or otherwise


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={_shown(item)}" for key, item in value.items())
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _every(*path: str, key: str) -> Cell:
    """Return a field of each entry of a list, for example the host of each rule."""
    return lambda _state, each: ", ".join(
        dict.fromkeys(filter(None, (_shown(one.get(key)) for one in each.children(*path))))
    )


def _ports(_state: ClusterState, each: ClusterObject) -> str:
    return ", ".join(
        f"{integer(one, 'port')}→{one.get('targetPort', integer(one, 'port'))}"
        for one in each.children("spec", "ports")
    )


def _service_address(_state: ClusterState, each: ClusterObject) -> str:
    """Return the address of a Service, for an alias the name that it leads to."""
    return each.text("spec", "externalName") or each.text("spec", "clusterIP")


def _container_ports(_state: ClusterState, each: ClusterObject) -> str:
    containers = children(pod_spec(each), "containers")
    return ", ".join(str(integer(port, "containerPort")) for one in containers for port in children(one, "ports"))


def _paths(_state: ClusterState, each: ClusterObject) -> str:
    rules = each.children("spec", "rules")
    return ", ".join(text(one, "path") for rule in rules for one in children(rule, "http", "paths"))


def _backends(_state: ClusterState, each: ClusterObject) -> str:
    return ", ".join(dict.fromkeys(text(one, "backend", "service", "name") for one in _http_paths(each)))


def _backend_ports(state: ClusterState, each: ClusterObject) -> str:
    """Return the ports that an Ingress leads to, with those of a Service that does not have the port."""
    return ", ".join(dict.fromkeys(_backend_port(state, each, one) for one in _http_paths(each)))


def _backend_port(state: ClusterState, ingress: ClusterObject, path: JsonObject) -> str:
    name, port = text(path, "backend", "service", "name"), child(path, "backend", "service", "port")
    wanted = str(port.get("number") or port.get("name") or "")
    service = state.get("Service", ingress.namespace, name)
    ports = service.children("spec", "ports") if service is not None else ()
    has = not ports or any(wanted in (str(one.get("port")), text(one, "name")) for one in ports)
    own = "" if has else f" (the Service has {', '.join(str(one.get('port')) for one in ports)})"
    return f"{name}:{wanted}{own}"


def _http_paths(each: ClusterObject) -> tuple[JsonObject, ...]:
    return tuple(one for rule in each.children("spec", "rules") for one in children(rule, "http", "paths"))


def _addresses(_state: ClusterState, each: ClusterObject) -> str:
    return ", ".join(
        text(one, "address") for one in each.children("status", "addresses") if text(one, "type") != "Hostname"
    )


def _roles(_state: ClusterState, each: ClusterObject) -> str:
    return ", ".join(key.removeprefix(_ROLE) for key in each.labels if key.startswith(_ROLE))


def _zone(_state: ClusterState, each: ClusterObject) -> str:
    return each.labels.get("topology.kubernetes.io/zone") or each.labels.get(_OLD_ZONE, "")


def _taints(_state: ClusterState, each: ClusterObject) -> str:
    return ", ".join(f"{text(one, 'key')}:{text(one, 'effect')}" for one in each.children("spec", "taints"))


def _completions(_state: ClusterState, each: ClusterObject) -> str:
    return f"{each.integer('status', 'succeeded')}/{_shown(at(each.body, 'spec', 'completions')) or '1'}"


def _scaled(_state: ClusterState, each: ClusterObject) -> str:
    return f"{each.text('spec', 'scaleTargetRef', 'kind')} {each.text('spec', 'scaleTargetRef', 'name')}"


def _metrics(_state: ClusterState, each: ClusterObject) -> str:
    """Return the targets of an autoscaler, for example `cpu 70%`."""
    return ", ".join(" ".join(one) for one in metric_targets(each))


def metric_targets(each: ClusterObject) -> tuple[tuple[str, str], ...]:
    """Return the names and the targets of the metrics of an autoscaler."""
    return tuple(map(_metric, each.children("spec", "metrics")))


def _metric(one: JsonObject) -> tuple[str, str]:
    found = next((value for value in one.values() if isinstance(value, dict) and "target" in value), {})
    target = child(found, "target")
    share = f"{integer(target, 'averageUtilization')}%" if "averageUtilization" in target else ""
    name = text(found, "name") or text(found, "metric", "name")
    return name, share or text(target, "averageValue") or text(target, "value")


def _class(_state: ClusterState, each: ClusterObject) -> str:
    return each.text("spec", "ingressClassName") or each.annotations.get("kubernetes.io/ingress.class", "")


def _age(state: ClusterState, each: ClusterObject) -> str:
    return duration(state.age_seconds(each))


def _owner(state: ClusterState, each: ClusterObject) -> str:
    owner = state.workload_of(each).ref
    return str(owner) if owner != each.ref else told_owner(each)


def told_owner(each: ClusterObject) -> str:
    """Return the person or team that labels or annotations name, for example `team: money`, or an empty string."""
    marks = {**each.labels, **each.annotations}
    found = (f"{key}: {value}" for key, value in marks.items() if key.rpartition("/")[2].lower() in _OWNERS)
    return ", ".join(found)


def _count_of_pods(state: ClusterState, each: ClusterObject) -> str:
    return str(sum(pod.text("spec", "nodeName") == each.name for pod in state.of("Pod")))


_OTHERS: Final = ("status", "age")
_USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": ("status", "restarts", "age", "node"),
    "Node": ("status", "age", "version"),
    "Service": ("type", "address", "ports", "age"),
    "CronJob": ("schedule", "last run", "status"),
    "PersistentVolumeClaim": ("status", "size", "class", "volume"),
    "Ingress": ("hosts", "age"),
    "HorizontalPodAutoscaler": ("target", "min", "max", "current", "metrics"),
    "Certificate": ("status", "expiry", "age"),
}
_ANY: Final[Mapping[str, Cell]] = {
    "status": lambda _state, each: status_of(each),
    "age": _age,
    "created": lambda _state, each: written(each.created),
    "namespace": lambda _state, each: each.namespace,
    "labels": lambda _state, each: _shown(dict(each.labels)),
    "owner": _owner,
}
"""The columns of all kinds."""
_OF_TEMPLATES: Final[Mapping[str, Cell]] = {
    "images": lambda _state, each: ", ".join(images_of(each)),
    "service account": lambda _state, each: text(pod_spec(each), "serviceAccountName") or "default",
    "ports": _container_ports,
}
_CELLS: Final[Mapping[tuple[str, str], Cell]] = {
    **{(kind, name): cell for kind in WITH_TEMPLATE for name, cell in _OF_TEMPLATES.items()},
    **{(kind, "replicas"): lambda _state, each: status_of(each) for kind in (*SCALED, "DaemonSet")},
    ("Deployment", "strategy"): _of("spec", "strategy", "type", otherwise="RollingUpdate"),
    ("Pod", "status"): lambda _state, each: status_of(each).rpartition(",")[0],
    ("Pod", "restarts"): lambda _state, each: str(restarts(each)),
    ("Pod", "node"): _of("spec", "nodeName"),
    ("Pod", "address"): _of("status", "podIP"),
    ("Node", "version"): _of("status", "nodeInfo", "kubeletVersion"),
    ("Node", "runtime"): _of("status", "nodeInfo", "containerRuntimeVersion"),
    ("Node", "os"): _of("status", "nodeInfo", "osImage"),
    ("Node", "kernel"): _of("status", "nodeInfo", "kernelVersion"),
    ("Node", "zone"): _zone,
    ("Node", "address"): _addresses,
    ("Node", "roles"): _roles,
    ("Node", "taints"): _taints,
    ("Node", "pods"): _count_of_pods,
    ("Service", "type"): _of("spec", "type", otherwise="ClusterIP"),
    ("Service", "address"): _service_address,
    ("Service", "ports"): _ports,
    ("Service", "selector"): _of("spec", "selector"),
    ("CronJob", "schedule"): _of("spec", "schedule"),
    ("CronJob", "last run"): _of("status", "lastScheduleTime"),
    ("CronJob", "time zone"): _of("spec", "timeZone"),
    ("Job", "completions"): _completions,
    ("PersistentVolumeClaim", "size"): _of("spec", "resources", "requests", "storage"),
    ("PersistentVolumeClaim", "class"): _of("spec", "storageClassName"),
    ("PersistentVolumeClaim", "volume"): _of("spec", "volumeName"),
    ("PersistentVolumeClaim", "access modes"): _of("spec", "accessModes"),
    ("PersistentVolume", "size"): _of("spec", "capacity", "storage"),
    ("PersistentVolume", "class"): _of("spec", "storageClassName"),
    ("PersistentVolume", "access modes"): _of("spec", "accessModes"),
    ("PersistentVolume", "reclaim policy"): _of("spec", "persistentVolumeReclaimPolicy"),
    ("PersistentVolume", "claim"): _of("spec", "claimRef", "name"),
    ("StorageClass", "provisioner"): _of("provisioner"),
    ("StorageClass", "reclaim policy"): _of("reclaimPolicy", otherwise="Delete"),
    ("Ingress", "hosts"): _every("spec", "rules", key="host"),
    ("Ingress", "paths"): _paths,
    ("Ingress", "backends"): _backends,
    ("Ingress", "ports"): _backend_ports,
    ("Ingress", "class"): _class,
    ("Ingress", "tls"): _every("spec", "tls", key="secretName"),
    ("HorizontalPodAutoscaler", "min"): _of("spec", "minReplicas", otherwise="1"),
    ("HorizontalPodAutoscaler", "max"): _of("spec", "maxReplicas"),
    ("HorizontalPodAutoscaler", "current"): _of("status", "currentReplicas"),
    ("HorizontalPodAutoscaler", "replicas"): _of("status", "currentReplicas"),
    ("HorizontalPodAutoscaler", "target"): _scaled,
    ("HorizontalPodAutoscaler", "metrics"): _metrics,
    ("PodDisruptionBudget", "min"): _of("spec", "minAvailable"),
    ("PodDisruptionBudget", "max"): _of("spec", "maxUnavailable"),
    ("PodDisruptionBudget", "selector"): _of("spec", "selector", "matchLabels"),
    ("NetworkPolicy", "selector"): _of("spec", "podSelector", "matchLabels"),
    ("NetworkPolicy", "type"): _of("spec", "policyTypes"),
    ("PriorityClass", "value"): _of("value"),
    ("Certificate.cert-manager.io", "expiry"): _of("status", "notAfter"),
    ("Certificate.cert-manager.io", "hosts"): _of("spec", "dnsNames"),
    ("Certificate.cert-manager.io", "issuer"): _of("spec", "issuerRef", "name"),
    ("Certificate.cert-manager.io", "secret"): _of("spec", "secretName"),
}  # fmt: skip
