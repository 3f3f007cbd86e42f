"""Says which Services of the cluster a text or a workload names: the dependency edges between workloads.

Called by rules about crashes, Services, network policies and DNS. External domains, image names and words of prose are
never taken for Services; a bare name counts only where a host stands (`holmes.diagnosis.facts.host_mentions`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.host_mentions import Mention, mentions
from holmes.diagnosis.facts.host_settings import settings_of
from holmes.diagnosis.facts.nearest import nearest
from holmes.diagnosis.facts.service_ports import target_ports
from holmes.kubernetes.fields import text, texts
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from holmes.diagnosis.facts.host_mentions import Form
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_DOMAINS: Final = (
    "com org net io dev app shop store cloud info biz co ai us eu de uk fr local internal example test invalid"
)
_TOP_LEVEL_DOMAINS: Final = frozenset(_DOMAINS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """A Service that is named somewhere, which need not exist. `host` and `port` are as they were written.

    `doubtful` means that the host may be an ordinary word: nothing follows from such a Service not existing.
    """

    host: str
    port: int | None
    service: ObjectRef
    form: Form = "qualified"
    doubtful: bool = False


class _Places:
    """What the cluster has under which name and address."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
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

    def service_at(self, address: str, port: int | None) -> ObjectRef | None:
        """The Service with this cluster IP, or that sends to this port of the pod with this IP."""
        service = self.services.get(address)
        if service is not None:
            return service.ref
        pod = self.pods.get(address)
        if pod is None or port is None:
            return None
        return next((each.ref for each in self.state.services_of(pod) if port in target_ports(each, pod)), None)

    def service_named(self, mention: Mention, namespace: str) -> ObjectRef | None:
        """The Service that the name stands for in a pod of the namespace, None for a name outside of the cluster."""
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


_PLACES: WeakKeyDictionary[ClusterState, _Places] = WeakKeyDictionary()


def host_uses(text: str, namespace: str, state: ClusterState) -> tuple[HostUse, ...]:
    """The Services that a text names, seen from the namespace: a log line, a setting, an argument, a ConfigMap's value.

    Write a setting as `NAME=value`: the name says whether the value is a host. What is `doubtful` is left out unless
    the Service exists.
    """
    places = _PLACES.get(state)
    if places is None:
        places = _PLACES[state] = _Places(state)
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
    """The Services that the template of a workload names, each with the place where it does.

    Looks at environment variables (also those from existing ConfigMaps), commands, arguments and mounted ConfigMaps.
    The evidence's object is the ConfigMap or the workload. `CART_HOST` and `CART_PORT` are put together.
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
