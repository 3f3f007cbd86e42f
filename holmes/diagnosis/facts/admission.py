"""Determines why the API server refused to create pods, and reads the admission webhooks that the API server calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.fixes import instruction
from holmes.diagnosis.facts.templates import template_of, workloads_behind
from holmes.diagnosis.facts.typos import hint
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import (
    SERVICE_NAME,
    at,
    child,
    children,
    integer,
    matches_selector,
    moment,
    text,
    text_map,
    texts,
)
from holmes.values.expressions import expression
from holmes.values.findings import Evidence, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import FixStep, Severity
    from holmes.values.json_types import JsonObject


_CONFIGURATIONS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_HTTPS: Final = 443
_DEFAULT_TIMEOUT_SECONDS: Final = 10
_REQUEST_SECONDS: Final = 30
"""The minimum time after which a client or the API server gives up on a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook in a webhook configuration. `path` is its field in the configuration, for example `webhooks[0]`."""

    configuration: ClusterObject
    path: str
    body: JsonObject

    @property
    def name(self) -> str:
        return text(self.body, "name")

    @property
    def failure_policy(self) -> str:
        return text(self.body, "failurePolicy") or "Fail"

    @property
    def service(self) -> ObjectRef | None:
        """The Service that the webhook calls, or None if it calls a URL."""
        service = child(self.body, "clientConfig", "service")
        if not text(service, "name"):
            return None
        return ObjectRef(kind="Service", namespace=text(service, "namespace"), name=text(service, "name"))

    @property
    def port(self) -> int:
        return integer(self.body, "clientConfig", "service", "port") or _HTTPS

    @property
    def timeout_seconds(self) -> int:
        """The time that the API server waits for the webhook."""
        return integer(self.body, "timeoutSeconds") or _DEFAULT_TIMEOUT_SECONDS

    @property
    def changes_new_pods(self) -> bool:
        """Whether the API server calls the webhook to change pods that are created."""
        return self.changes_new("", "pods")

    def changes_new(self, group: str, resource: str) -> bool:
        """Return whether the API server calls the webhook to change new objects of a namespaced resource."""
        return self.configuration.kind == "MutatingWebhookConfiguration" and any(
            {"CREATE", "*"} & {*texts(rule, "operations")}
            and {group, "*"} & _listed(rule, "apiGroups")
            and {resource, "*", "*/*"} & {*texts(rule, "resources")}
            and text(rule, "scope") in {"", "*", "Namespaced"}
            for rule in children(self.body, "rules")
        )

    def covers_namespace(self, namespace: ClusterObject) -> bool:
        """Return whether the webhook is called for objects in the namespace."""
        return matches_selector(child(self.body, "namespaceSelector"), namespace.labels)

    def trouble(self, state: ClusterState) -> str:
        """Explain why the webhook's Service cannot respond, according to the objects that were read.

        Returns an empty string if the Service can respond, or if this is unknown.
        """
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
            return f"{ref} has no port {self.port}; available: {', '.join(map(str, ports))}"
        if text(service.body, "spec", "type") != "ExternalName" and _has_no_ready_endpoint(state, service):
            return f"{ref} has no ready endpoints{_idle_behind(state, service)}"
        return ""

    def evidence(self, state: ClusterState) -> tuple[Evidence, ...]:
        """Return the Service or URL that the webhook calls, its failure policy, and the selector of the Service.

        The selector is included only if the Service exists.
        """
        of = self.configuration
        asked = self.body.get("clientConfig")
        service = child(asked, "service")
        values = [evidence.value(of, f"{self.path}.clientConfig.service", service or text(asked, "url"))]
        values.append(evidence.value(of, f"{self.path}.failurePolicy", self.failure_policy))
        found = state.find(self.service) if self.service is not None else None
        if found is not None:
            values.append(evidence.field(found, "spec", "selector"))
        return tuple(values)


def _listed(rule: JsonObject, key: str) -> set[str]:
    """Return a list of a rule with its empty texts, which stand for the core group."""
    found = rule.get(key)
    return {each for each in found if isinstance(each, str)} if isinstance(found, list) else set()


def webhooks(state: ClusterState) -> Iterator[Webhook]:
    for kind in _CONFIGURATIONS:
        for configuration in state.of(kind):
            if configuration.deleted is None:
                for index, body in enumerate(configuration.children("webhooks")):
                    yield Webhook(configuration=configuration, path=f"webhooks[{index}]", body=body)


def webhook_named(state: ClusterState, name: str, message: str = "") -> Webhook | None:
    """Return the webhook with this name, or None. Prefers a webhook whose Service appears in `message`."""
    named = [each for each in webhooks(state) if each.name == name]
    called = [each for each in named if each.service and f"{each.service.name}.{each.service.namespace}.svc" in message]
    return next(iter((*called, *named)), None)


def _has_no_ready_endpoint(state: ClusterState, service: ClusterObject) -> bool:
    """Return whether the EndpointSlices of the Service could be read and contain no ready endpoint."""
    if not state.covers("EndpointSlice", service.namespace):
        return False
    slices = state.selected("EndpointSlice", service.namespace, {SERVICE_NAME: service.name})
    return not any(
        at(endpoint, "conditions", "ready") is not False for each in slices for endpoint in each.children("endpoints")
    )


def _idle_behind(state: ClusterState, service: ClusterObject) -> str:
    """Return the workloads behind a Service that are scaled to zero, as the end of a sentence, or an empty string."""
    idle = [str(each.ref) for each in workloads_behind(state, service) if each.at("spec", "replicas") == 0]
    return f", because {' and '.join(idle)} behind it is scaled to zero" if idle else ""


def unblocked(webhook: Webhook) -> FixStep:
    """Say how requests pass a webhook again. Whether its checks may be left out is for a person to decide."""
    target, configuration = webhook.service or "the server that it calls", webhook.configuration.ref
    sentence = f"Repair {target}, or, if pods may be created without this check meanwhile, set {webhook.path}"
    return instruction(configuration, f"{sentence}.failurePolicy of {configuration} to Ignore.")


def backends(state: ClusterState, webhook: Webhook) -> tuple[ObjectRef, ...]:
    """Return the webhook's Service and the workloads behind it.

    Returns an empty tuple unless the Service exists and cannot respond.
    """
    service = state.find(webhook.service) if webhook.service is not None else None
    if service is None or not webhook.trouble(state):
        return ()
    return (service.ref, *(each.ref for each in workloads_behind(state, service)))


_MAKERS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")
QUOTA: Final = expression(
    r"exceeded quota: (?P<quota>[^\s,]+), requested: (?P<requested>.+?),"
    r" used: (?P<used>.+?), limited: (?P<limited>\S+)",
    re.IGNORECASE,
)
MUST_SPECIFY: Final = expression(r"failed quota: (?P<quota>[^\s:]+): must specify (?P<what>.+)", re.IGNORECASE)
BOUNDS: Final = expression(
    r"(?P<bound>maximum|minimum) (?P<resource>\S+) usage per (?P<type>\w+) is (?P<allowed>\S+?),"
    r" but (?:(?P<part>limit|request) is (?P<value>[^\s,]+)|no (?P<absent>limit|request) is specified)",
    re.IGNORECASE,
)
RATIO: Final = expression(
    r"(?P<resource>\S+) max limit to request ratio per (?P<type>\w+) is (?P<allowed>\S+?),", re.IGNORECASE
)
SERVICE_ACCOUNT: Final = expression(
    r"service ?account (?:(?P<namespace>[^\s/\"]+)/(?P<plain>[^\s:\"]+)|\"(?P<quoted>[^\"]+)\").*not found",
    re.IGNORECASE,
)
POD_SECURITY: Final = expression(r"violates PodSecurity \"(?P<level>[^\"]+)\": (?P<violations>.+)", re.IGNORECASE)
WEBHOOK_FAILED: Final = expression(
    r"failed (?:calling|to call) webhook:? \"(?P<webhook>[^\"]+)\":?(?P<why>.*)", re.IGNORECASE
)
WEBHOOK_DENIED: Final = expression(
    r"admission webhook \"(?P<webhook>[^\"]+)\" denied the request(?: without explanation)?:?\s*(?P<why>.*)",
    re.IGNORECASE,
)
POLICY_DENIED: Final = expression(
    r"ValidatingAdmissionPolicy '(?P<policy>[^']+)' with binding '[^']+' denied request:?\s*(?P<why>.*)", re.IGNORECASE
)
_TIMED_OUT: Final = expression(
    r"request did not complete within (?:the )?(?:requested|allotted) timeout", re.IGNORECASE
)
_KNOWN: Final = (
    QUOTA, MUST_SPECIFY, BOUNDS, RATIO, SERVICE_ACCOUNT, POD_SECURITY, WEBHOOK_FAILED, WEBHOOK_DENIED, POLICY_DENIED,
)  # fmt: skip
_RETRIES_SECONDS: Final = 1200.0
"""A controller that cannot create a pod tries again after at most about 17 minutes."""
_PREFIX: Final = expression(r"^(\(combined from similar events\): )?(Error creating(?: job)?: )?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The API server's refusal to create the pods of a controller, or the Jobs of a CronJob.

    `maker` is the controller that requested them. `message` is the newest error message, and `proof` is the event
    or condition that contains this message. `running` is the number of ready pods of the workload.
    """

    maker: ClusterObject
    workload: ClusterObject
    message: str
    proof: Evidence
    since: float
    running: int

    @property
    def severity(self) -> Severity:
        """Severity of the refusal: critical if no pod of the workload is ready, otherwise warning."""
        return "warning" if self.running else "critical"

    @property
    def what(self) -> str:
        """The object that the API server did not create."""
        claim = "persistentvolumeclaims" in self.message or self.message.startswith("create Claim ")
        return "claim" if claim else "Job" if self.maker.kind == "CronJob" else "pod"

    @property
    def is_known(self) -> bool:
        """Whether a more specific rule covers this kind of refusal."""
        return any(pattern.search(self.message) for pattern in _KNOWN)


@once_per_state
def refusals(state: ClusterState) -> tuple[Refusal, ...]:
    """Return the current refusals, at most one for each controller. The result is cached for each state."""
    return tuple(_refusals(state))


def _refusals(state: ClusterState) -> Iterator[Refusal]:
    for kind in _MAKERS:
        for maker in state.of(kind):
            if maker.deleted is None and _lacks_pods(state, maker):
                refusal = _refusal(state, maker)
                if refusal is not None:
                    yield refusal


def refused_with(state: ClusterState, pattern: re.Pattern[str]) -> Iterator[tuple[Refusal, re.Match[str]]]:
    """Yield the refusals whose message matches `pattern`, each with its match."""
    for refusal in refusals(state):
        found = pattern.search(refusal.message)
        if found is not None:
            yield refusal, found


def _lacks_pods(state: ClusterState, maker: ClusterObject) -> bool:
    match maker.kind:
        case "ReplicaSet":
            pods = state.owned_by(maker, "Pod") if state.events_of(maker, "FailedCreate") else ()
            return maker.integer("spec", "replicas") > (len(pods) or maker.integer("status", "replicas"))
        case "StatefulSet":
            wanted = maker.at("spec", "replicas")
            return (wanted if isinstance(wanted, int) else 1) > maker.integer("status", "replicas")
        case "DaemonSet":
            return maker.integer("status", "desiredNumberScheduled") > maker.integer("status", "currentNumberScheduled")
        case "CronJob":
            last = moment(maker.text("status", "lastScheduleTime")) or 0.0
            made = max((job.created for job in state.owned_by(maker, "Job")), default=last)
            refused = state.events_of(maker, "FailedCreate")
            known = state.covers("Job", maker.namespace) and not maker.boolean("spec", "suspend")
            return known and bool(refused) and refused[-1].last > made
        case _:
            return (
                not maker.integer("status", "active") and not _is_over(maker) and not maker.boolean("spec", "suspend")
            )


def _is_over(job: ClusterObject) -> bool:
    return any(text(job.condition(kind), "status") == "True" for kind in ("Complete", "Failed", "SuccessCriteriaMet"))


def _refusal(state: ClusterState, maker: ClusterObject) -> Refusal | None:
    """Return the current refusal for a controller, or None.

    The message is from the newest event if one exists, because the condition keeps the first message.
    """
    condition = maker.condition("ReplicaFailure")
    stands = text(condition, "status") == "True" and text(condition, "reason") == "FailedCreate"
    events = state.events_of(maker, "FailedCreate")
    made = max((each.last for each in state.events_of(maker, "SuccessfulCreate")), default=0.0)
    repeated = bool(events) and events[-1].last > max(made, state.now - _RETRIES_SECONDS)
    if maker.kind == "ReplicaSet" and not stands and not repeated:
        return None
    if not events and not stands:
        return None
    workload = state.workload_of(maker)
    since = (moment(text(condition, "lastTransitionTime")) if stands else None) or maker.created
    if events:
        message, proof = events[-1].message, evidence.event(events[-1])
        since = since if stands else events[0].first
    else:
        message = " ".join(text(condition, "message").split())
        proof = evidence.value(maker, "status.conditions[type=ReplicaFailure].message", message)
    return Refusal(
        maker=maker,
        workload=workload,
        message=_PREFIX.sub("", message),
        proof=proof,
        since=since,
        running=_ready_pods(workload),
    )


def _ready_pods(workload: ClusterObject) -> int:
    return max(workload.integer("status", key) for key in ("readyReplicas", "numberReady", "ready", "succeeded"))


def slow_webhooks(state: ClusterState, refusal: Refusal) -> tuple[Webhook, ...]:
    """Return the webhooks that may together take longer than the request of a refusal, the most patient first.

    Webhooks that change a new object are called one after another. Empty if the request did not time out, or if a
    request also times out for which too few webhooks are called: the API server is slow then.
    """
    called = _called_late(state)
    enough = (
        len(each) > 1 and sum(one.timeout_seconds for one in each) >= _REQUEST_SECONDS for each in called.values()
    )
    if refusal.maker.ref not in called or not all(enough):
        return ()
    return tuple(sorted(called[refusal.maker.ref], key=lambda each: -each.timeout_seconds))


@once_per_state
def _called_late(state: ClusterState) -> dict[ObjectRef, tuple[Webhook, ...]]:
    """Return the webhooks called for each request that timed out, by its maker. The result is cached for each state."""
    late = (each for each in refusals(state) if _TIMED_OUT.search(each.message))
    return {each.maker.ref: tuple(_called(state, each)) for each in late}


_RESOURCES: Final = {"pod": ("", "pods"), "Job": ("batch", "jobs"), "claim": ("", "persistentvolumeclaims")}


def _called(state: ClusterState, refusal: Refusal) -> Iterator[Webhook]:
    """Yield the webhooks that the API server surely calls for the refused request, since before the first refusal."""
    space = state.get("Namespace", "", refusal.maker.namespace)
    for each in webhooks(state) if space is not None else ():
        asked = each.changes_new(*_RESOURCES[refusal.what]) and each.configuration.created <= refusal.since
        if asked and space is not None and each.covers_namespace(space) and _selects(each, refusal):
            yield each


def _selects(webhook: Webhook, refusal: Refusal) -> bool:
    """Return whether the webhook is called for the refused object, according to the labels of its template.

    The labels of a claim and the result of a condition are not known.
    """
    selector = child(webhook.body, "objectSelector")
    if children(webhook.body, "matchConditions") or (selector and refusal.what == "claim"):
        return False
    if refusal.what == "Job":
        labels = text_map(refusal.maker.body, "spec", "jobTemplate", "metadata", "labels")
    else:
        labels = template_of(refusal.maker).labels
    return matches_selector(selector, labels)
