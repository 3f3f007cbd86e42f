"""Admission webhooks and what serves them: which exist, and why one cannot be asked. Called by rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.nearest import hint
from holmes.kubernetes.fields import at, child, integer, text, text_map
from holmes.kubernetes.kinds import WORKLOADS
from holmes.kubernetes.selectors import matches_map, matches_selector
from holmes.values.findings import Evidence, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject

_CONFIGURATIONS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_SLICE_LABEL: Final = "kubernetes.io/service-name"
_HTTPS: Final = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One webhook of a configuration; `path` is where it lies in it: `webhooks[0]`."""

    configuration: ClusterObject
    path: str
    body: JsonObject

    @property
    def name(self) -> str:
        """Its name."""
        return text(self.body, "name")

    @property
    def failure_policy(self) -> str:
        """`Fail` or `Ignore`."""
        return text(self.body, "failurePolicy") or "Fail"

    @property
    def service(self) -> ObjectRef | None:
        """The Service that is asked; None when it is an address outside of the cluster."""
        service = child(self.body, "clientConfig", "service")
        if not text(service, "name"):
            return None
        return ObjectRef(kind="Service", namespace=text(service, "namespace"), name=text(service, "name"))

    @property
    def port(self) -> int:
        """The port of the Service that is asked."""
        return integer(self.body, "clientConfig", "service", "port") or _HTTPS

    def covers_namespace(self, namespace: ClusterObject) -> bool:
        """Whether it is asked about objects of the namespace."""
        return matches_selector(child(self.body, "namespaceSelector"), namespace.labels)

    def trouble(self, state: ClusterState) -> str:
        """Why its Service cannot answer, as far as lists can tell; empty when it can or when nobody knows."""
        ref = self.service
        if ref is None:
            return ""
        service = state.find(ref)
        if service is None:
            if not state.is_missing("Service", ref.namespace, ref.name):
                return ""
            return f"{ref} does not exist{hint(ref.name, (each.name for each in state.of('Service', ref.namespace)))}"
        ports = [integer(port, "port") for port in service.children("spec", "ports")]
        if ports and self.port not in ports:
            return f"{ref} has no port {self.port}, only {', '.join(map(str, ports))}"
        if text(service.body, "spec", "type") != "ExternalName" and has_no_ready_endpoint(state, service):
            return f"{ref} has no ready endpoint"
        return ""

    def evidence(self, state: ClusterState) -> tuple[Evidence, ...]:
        """What is asked, what happens when it does not answer, and what is known of the Service."""
        of = self.configuration
        asked = self.body.get("clientConfig")
        service = child(asked, "service")
        values = [evidence.value(of, f"{self.path}.clientConfig.service", service or text(asked, "url"))]
        values.append(evidence.value(of, f"{self.path}.failurePolicy", self.failure_policy))
        found = state.find(self.service) if self.service is not None else None
        if found is not None:
            values.append(evidence.field(found, "spec", "selector"))
        return tuple(values)


def webhooks(state: ClusterState) -> Iterator[Webhook]:
    """All webhooks."""
    for kind in _CONFIGURATIONS:
        for configuration in state.of(kind):
            if configuration.deleted is None:
                for index, body in enumerate(configuration.children("webhooks")):
                    yield Webhook(configuration=configuration, path=f"webhooks[{index}]", body=body)


def webhook_named(state: ClusterState, name: str, message: str = "") -> Webhook | None:
    """The webhook with this name; of several the one whose Service the message of a failed call names."""
    named = [each for each in webhooks(state) if each.name == name]
    called = [each for each in named if each.service and f"{each.service.name}.{each.service.namespace}.svc" in message]
    return next(iter((*called, *named)), None)


def has_no_ready_endpoint(state: ClusterState, service: ClusterObject) -> bool:
    """Whether certainly no pod answers for the Service."""
    if not state.covers("EndpointSlice", service.namespace):
        return False
    slices = state.selected("EndpointSlice", service.namespace, {_SLICE_LABEL: service.name})
    return not any(
        at(endpoint, "conditions", "ready") is not False for each in slices for endpoint in each.children("endpoints")
    )


def backends(state: ClusterState, webhook: Webhook) -> tuple[ObjectRef, ...]:
    """What serves the webhook, when it exists and does not answer: its Service and the workloads behind it."""
    service = state.find(webhook.service) if webhook.service is not None else None
    if service is None or not webhook.trouble(state):
        return ()
    return (service.ref, *workloads_behind(state, service))


def workloads_behind(state: ClusterState, service: ClusterObject) -> tuple[ObjectRef, ...]:
    """The outermost workloads whose pods the Service selects, also those that have no pod."""
    selector = text_map(service.body, "spec", "selector")
    return tuple(
        workload.ref
        for kind in WORKLOADS
        for workload in state.of(kind, service.namespace)
        if workload.owner is None
        and matches_map(selector, text_map(workload.body, "spec", "template", "metadata", "labels"))
    )
