"""Finds the Services and objects that an init container waits for, and which of them cannot come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.edges import failures, host_uses
from holmes.diagnosis.facts.object_mentions import existing_in
from holmes.diagnosis.facts.status import pod_ready
from holmes.kubernetes.fields import children, matches_map, text, text_map, texts
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.logs import LastWords
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_state import ClusterState

_LOOKED_UP: Final = expression(
    r"(?:\bnslookup|\bgetent a?hosts|\bdig|\bping(?: -\S{1,9})*|\bnc(?: -\S{1,9}| \d{1,3}(?= ))*|\btelnet) "
    r"([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)(?![\w.-])"
)
_LINK: Final = expression(r"\$\{?(([A-Z][A-Z0-9_]{0,62})_SERVICE_(?:HOST|PORT))\b")
_LONGEST_SCRIPT: Final = 10_000
_UNSERVED: Final[WeakKeyDictionary[ClusterState, dict[ObjectRef, bool]]] = WeakKeyDictionary()


def awaited_services(
    container: Container, words: LastWords | None, state: ClusterState, *, certain: bool
) -> tuple[ObjectRef, ...]:
    """Return the Services that are mentioned in the container's command, variables or log.

    The Services might not exist. If `certain` is true, Services in variables that the command does not use are
    excluded, because the application may use them only later.
    """
    pod, script = container.pod, _script(container, only_used=certain)
    services = {use.service: None for use in host_uses(script, pod.namespace, state)}
    for name in (*_LOOKED_UP.findall(script[:_LONGEST_SCRIPT]), *_linked(container, script[:_LONGEST_SCRIPT])):
        services[ObjectRef(kind="Service", namespace=pod.namespace, name=name)] = None
    for service, failed in failures(state).items():
        if any(each.blocks and each.pod is pod for each in failed):
            services[service] = None
    told = words.blamed if words else ()
    services |= dict.fromkeys(each for each in told if each.kind == "Service")
    aliases = {name for alias in pod.children("spec", "hostAliases") for name in texts(alias, "hostnames")}
    return tuple(each for each in services if each.name not in aliases)


def awaited_objects(container: Container, words: LastWords | None, state: ClusterState) -> tuple[ObjectRef, ...]:
    """Return the objects other than Services that kubectl in the container's command, or its log, waits for."""
    script = _script(container, only_used=True)[:_LONGEST_SCRIPT]
    said = (script if "kubectl" in script else "", *(each.line for each in (words.signatures if words else ())))
    found = (ref for line in said for ref in existing_in(line, container.pod.namespace, state))
    return tuple(dict.fromkeys(ref for ref in found if ref.kind != "Service"))


def cannot_come(service: ObjectRef, container: Container, state: ClusterState) -> bool:
    """Return whether the Service does not exist, or none of its pods is ready after the grace period.

    Returns False if the Service selects the container's own pod, because the readiness of that pod depends on the
    container.
    """
    if state.is_missing("Service", service.namespace, service.name):
        return True
    found = state.find(service)
    selector = text_map(found.body, "spec", "selector") if found is not None else {}
    if found is None or not selector or found.boolean("spec", "publishNotReadyAddresses"):
        return False
    if found.namespace == container.pod.namespace and matches_map(selector, container.pod.labels):
        return False
    known = _UNSERVED.setdefault(state, {})
    if service not in known:
        pods = state.selected("Pod", service.namespace, selector)
        waited = all(not pod_ready(pod) and state.age_seconds(pod) >= state.grace_seconds for pod in pods)
        known[service] = state.covers("Pod", service.namespace) and waited
    return known[service]


def _script(container: Container, *, only_used: bool) -> str:
    """Return the command, arguments and variables of the container as one string.

    If `only_used` is true, variables that the command does not use are omitted.
    """
    script = " ".join((*texts(container.spec, "command"), *texts(container.spec, "args")))
    variables = [(text(each, "name"), text(each, "value")) for each in children(container.spec, "env")]
    used = (f"{name}={value}" for name, value in variables if not only_used or (name and name in script))
    return "\n".join((script, *used))


def _linked(container: Container, script: str) -> Iterator[str]:
    """Yield the Services to which variables such as `$ORDERS_DB_SERVICE_HOST` refer.

    The kubelet sets these variables for existing Services.
    """
    own = {text(each, "name") for each in children(container.spec, "env")}
    if children(container.spec, "envFrom"):
        return
    for variable, name in _LINK.findall(script):
        if variable not in own and name != "KUBERNETES":
            yield name.lower().replace("_", "-")
