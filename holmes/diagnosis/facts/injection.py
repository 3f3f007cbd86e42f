"""Finds pods that ask an injector for a sidecar or files but were created without them, and why.

The API server creates such a pod if the injector's webhook cannot be called and may be ignored, or does not select it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.actors import last_write
from holmes.diagnosis.facts.admission import backends, webhooks
from holmes.diagnosis.facts.evidence import field, value
from holmes.diagnosis.facts.templates import workloads_behind
from holmes.kubernetes.fields import child, children, matches_selector, moment, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.admission import Webhook
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef
    from holmes.values.json_types import JsonObject

_NO: Final = frozenset({"", "false", "no", "disabled", "off"})
_ABSENT: Final = expression(r"(?i)\bno such (?:file|directory)|\bnot found\b|\bdoes(?: not|n't) exist\b|\bENOENT\b")
_REFUSED: Final = expression(r"(?i)\bconnection refused\b(?! because)|\bECONNREFUSED\b|\brefused to connect\b")
_LOCAL_PORT: Final = expression(
    r"(?<![\w.:-])(localhost|\[[0-9a-fA-F:]{2,39}\]|\d{1,3}(?:\.\d{1,3}){3})(:\d{2,5})(?![\w.:]\d|\d)"
)
_NEAR: Final = 80
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Injector:
    """A product that adds containers to pods.

    `asks` are annotations or labels of a pod that ask for it, also as the beginning of a name, and `space_asks` those
    of a namespace. `adds` are beginnings of the names of the containers and volumes that it adds. `gives` are parts of
    paths, and ports of the pod itself, that only exist in a pod with them. `webhook` is a part of its webhook's name.
    """

    name: str
    asks: tuple[str, ...]
    adds: tuple[str, ...]
    gives: tuple[str, ...]
    webhook: str
    space_asks: tuple[str, ...] = ()


_INJECTORS: Final = (
    _Injector(
        name="the Vault agent",
        asks=("vault.hashicorp.com/agent-inject",),
        adds=("vault-agent", "vault-secrets", "home-init"),
        gives=("/vault/secrets",),
        webhook="vault",
    ),
    _Injector(
        name="the Istio proxy",
        asks=("sidecar.istio.io/inject",),
        adds=("istio-proxy", "istio-init"),
        gives=(
            ":15000",
            ":15001",
            ":15006",
            ":15010",
            ":15020",
            ":15021",
            "/etc/istio/proxy",
            "/var/run/secrets/istio",
        ),
        webhook="istio",
        space_asks=("istio-injection", "istio.io/rev"),
    ),
    _Injector(
        name="the Linkerd proxy",
        asks=("linkerd.io/inject",),
        adds=("linkerd-proxy", "linkerd-init"),
        gives=(":4140", ":4143", ":4191"),
        webhook="linkerd",
        space_asks=("linkerd.io/inject",),
    ),
    _Injector(
        name="the OpenTelemetry instrumentation",
        asks=("instrumentation.opentelemetry.io/inject-",),
        adds=("opentelemetry-auto-instrumentation",),
        gives=("/otel-auto-instrumentation",),
        webhook="opentelemetry",
    ),
    _Injector(
        name="the Dapr sidecar",
        asks=("dapr.io/enabled",),
        adds=("daprd",),
        gives=(":3500", ":50001"),
        webhook="dapr",
    ),
    _Injector(
        name="the Conjur sidecar",
        asks=("conjur.org/inject",),
        adds=("conjur", "secretless", "cyberark"),
        gives=("/conjur", "/run/secretless"),
        webhook="conjur",
    ),
    _Injector(
        name="the secrets of Bank-Vaults",
        asks=("vault.security.banzaicloud.io/vault-addr",),
        adds=("copy-vault-env", "vault-env", "vault-agent"),
        gives=("/vault/vault-env", "vault:secret/"),
        webhook="vault",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The product that a pod asks for and was created without.

    `asked` is where the pod asks, and `gives` are signs in a log that it is missing. `webhook` is the webhook that was
    not called, `why` says why, and `backends` are the Service and the workloads behind it if they cannot respond.
    `is_proven` is false if what cannot respond now may have responded when the pod was created.
    """

    name: str
    asked: Evidence
    gives: tuple[str, ...]
    webhook: Webhook
    why: str
    backends: tuple[ObjectRef, ...]
    is_proven: bool

    @property
    def culprit(self) -> ObjectRef:
        """The workload that does not respond, else its Service, else the configuration that does not select the pod."""
        return self.backends[-1] if self.backends else self.webhook.configuration.ref


def injectors_blamed(line: str, pod: ClusterObject, state: ClusterState) -> tuple[ObjectRef, ...]:
    """Return the injectors whose files or ports a line misses, if the pod was created without them."""
    found = (each for each in missed_injections(state, pod) if each.is_proven)
    return tuple(each.culprit for each in found if is_lacking(line, pod, each))


def is_lacking(line: str, pod: ClusterObject, missed: Missed) -> bool:
    """Return whether a line says that a file is absent, or a port of the pod refuses, which the injector provides.

    A file below a mount of the pod comes from its volume, not from the injector.
    """
    mounts = [
        text(mount, "mountPath").rstrip("/") for each in _containers(pod) for mount in children(each, "volumeMounts")
    ]
    own = {*_LOCAL, pod.text("status", "podIP")}
    ports = {port for host, port in _LOCAL_PORT.findall(line) if host in own} if _REFUSED.search(line) else set()
    for sign in missed.gives:
        if sign.startswith(":") and sign in ports:
            return True
        covered = any(sign == each or sign.startswith(f"{each}/") or each.startswith(f"{sign}/") for each in mounts)
        if not sign.startswith(":") and not covered and _says_absent(line, sign):
            return True
    return False


def _says_absent(line: str, sign: str) -> bool:
    """Return whether a line says, beside a path and in the same clause, that it is absent."""
    before, found, after = line.partition(sign)
    longer = before[-1:].isalnum() or before.endswith(("/", ".", "_", "-")) or after[:1].isalnum() or after[:1] == "-"
    if not found or (longer and not sign.endswith("/")):
        return False
    near = f"{before[-_NEAR:].split('; ')[-1].split(', ')[-1]}{sign}{after[:_NEAR].split('; ')[0].split(', ')[0]}"
    return _ABSENT.search(near) is not None


def _containers(pod: ClusterObject) -> Iterator[JsonObject]:
    yield from (*pod.children("spec", "containers"), *pod.children("spec", "initContainers"))


def missed_injections(state: ClusterState, pod: ClusterObject) -> Iterator[Missed]:
    """Yield what the pod asks injectors for and was created without, if it is known why."""
    for injector in _INJECTORS:
        asked = _asked(state, pod, injector)
        found = _uncalled(state, pod, injector) if asked is not None and not _has(pod, injector) else None
        if asked is None or found is None:
            continue
        webhook, why = found
        yield Missed(
            name=injector.name,
            asked=asked,
            gives=injector.gives,
            webhook=webhook,
            why=why,
            backends=backends(state, webhook),
            is_proven=not webhook.trouble(state) or _was_down(state, webhook, pod.created),
        )


def _asked(state: ClusterState, pod: ClusterObject, injector: _Injector) -> Evidence | None:
    """Return the annotation or label that asks for the injector. That of the pod decides before its namespace's."""
    for part, told in (("annotations", pod.annotations), ("labels", pod.labels)):
        for key, said in told.items():
            if any(key == ask or (ask.endswith("-") and key.startswith(ask)) for ask in injector.asks):
                return value(pod, f"metadata.{part}[{key}]", said) if said.lower() not in _NO else None
    space = state.get("Namespace", "", pod.namespace) if injector.space_asks else None
    if space is None or pod.at("spec", "hostNetwork") is True or pod.created < space.created:
        return None
    for part, told in (("annotations", space.annotations), ("labels", space.labels)):
        for key in injector.space_asks:
            if told.get(key, "").lower() not in _NO:
                return value(space, f"metadata.{part}[{key}]", told[key])
    return None


def _has(pod: ClusterObject, injector: _Injector) -> bool:
    """Return whether the pod has a container or a volume of the injector."""
    kinds = ("containers", "initContainers", "volumes")
    names = (text(each, "name") for kind in kinds for each in pod.children("spec", kind))
    return any(name.startswith(injector.adds) for name in names)


def _uncalled(state: ClusterState, pod: ClusterObject, injector: _Injector) -> tuple[Webhook, str] | None:
    """Return the webhook that was not called and why, or None if one of the injector's webhooks can respond."""
    space, found = state.get("Namespace", "", pod.namespace), None
    for webhook in webhooks(state):
        configuration = webhook.configuration
        called = webhook.service.name if webhook.service is not None else ""
        named = any(injector.webhook in each for each in (configuration.name, webhook.name, called))
        if not named or not webhook.changes_new_pods or configuration.created > pod.created:
            continue
        selects = space is not None and webhook.covers_namespace(space) and _selects(webhook, pod)
        trouble = webhook.trouble(state)
        if selects and not trouble:
            return None
        if selects and webhook.failure_policy == "Ignore":
            return webhook, f"its failurePolicy is Ignore and it cannot be called because {trouble}"
        if space is not None and not selects and not trouble and found is None:
            found = webhook, "its selectors do not match the namespace and the labels of the pod"
    return found


def _was_down(state: ClusterState, webhook: Webhook, at: float) -> bool:
    """Return whether the workloads behind the webhook's Service are known to have had no ready pod at a time."""
    service = state.find(webhook.service) if webhook.service is not None else None
    found = workloads_behind(state, service) if service is not None else ()
    since = [_down_since(state, each) for each in found]
    return bool(since) and all(each is not None and each <= at for each in since)


def _down_since(state: ClusterState, workload: ClusterObject) -> float | None:
    """Return since when a workload has no ready pod, or None if this is not known."""
    if workload.at("spec", "replicas") == 0:
        return last_write(workload, "f:replicas")[0] or None
    available = workload.condition("Available")
    if text(available, "status") == "False" and workload.at("spec", "replicas") in (None, 1):
        return moment(text(available, "lastTransitionTime"))
    ready = [each.condition("Ready") for each in state.pods_of(workload)]
    if not ready or any(text(each, "status") != "False" for each in ready):
        return None
    times = [moment(text(each, "lastTransitionTime")) for each in ready]
    known = [each for each in times if each is not None]
    return max(known) if len(known) == len(times) else None


def _selects(webhook: Webhook, pod: ClusterObject) -> bool:
    return matches_selector(child(webhook.body, "objectSelector"), pod.labels)


def selector_evidence(state: ClusterState, missed: Missed, pod: ClusterObject) -> tuple[Evidence, ...]:
    """Return why the webhook was not called: its Service and policy, or its selectors and the namespace's labels."""
    if missed.backends or missed.webhook.trouble(state):
        return missed.webhook.evidence(state)
    of, space = missed.webhook, state.get("Namespace", "", pod.namespace)
    selectors = (key for key in ("namespaceSelector", "objectSelector") if of.body.get(key))
    told = (value(of.configuration, f"{of.path}.{key}", of.body[key]) for key in selectors)
    return (*told, *((field(space, "metadata", "labels"),) if space is not None else ()))
