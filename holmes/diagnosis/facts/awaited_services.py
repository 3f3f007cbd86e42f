"""The Services that an init container waits for, by its script, its variables and its log, and which cannot come.

Called by the rule about init containers. A name that the pod resolves by itself (`hostAliases`) is no Service.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.edges import failures, is_ready
from holmes.diagnosis.facts.hosts import host_uses
from holmes.kubernetes.fields import children, text, text_map, texts
from holmes.kubernetes.selectors import matches_map
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.last_words import LastWords
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_state import ClusterState

_LOOKED_UP: Final = re.compile(
    r"(?:\bnslookup|\bgetent a?hosts|\bdig|\bping(?: -\S{1,9})*|\bnc(?: -\S{1,9}| \d{1,3}(?= ))*|\btelnet) "
    r"([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)(?![\w.-])"
)
_LINK: Final = re.compile(r"\$\{?(([A-Z][A-Z0-9_]{0,62})_SERVICE_(?:HOST|PORT))\b")
_LONGEST_SCRIPT: Final = 10_000
_UNSERVED: Final[WeakKeyDictionary[ClusterState, dict[ObjectRef, bool]]] = WeakKeyDictionary()


def awaited_services(
    container: Container, words: LastWords | None, state: ClusterState, *, certain: bool
) -> tuple[ObjectRef, ...]:
    """The Services that the container's script, its variables and its log name; they need not exist.

    With `certain` only those that its command or its log waits for: a variable may be meant for later.
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


def cannot_come(service: ObjectRef, container: Container, state: ClusterState) -> bool:
    """Whether the Service does not exist, or no pod behind it is ready although all have had their time.

    A Service of the container's own pod waits for the container, not the other way round.
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
        waited = all(not is_ready(pod) and state.age_seconds(pod) >= state.grace_seconds for pod in pods)
        known[service] = state.covers("Pod", service.namespace) and waited
    return known[service]


def _script(container: Container, *, only_used: bool) -> str:
    """Everything in the container's definition that may name a host, or only what its command uses."""
    script = " ".join((*texts(container.spec, "command"), *texts(container.spec, "args")))
    variables = [(text(each, "name"), text(each, "value")) for each in children(container.spec, "env")]
    used = (f"{name}={value}" for name, value in variables if not only_used or (name and name in script))
    return "\n".join((script, *used))


def _linked(container: Container, script: str) -> Iterator[str]:
    """The Services behind `$ORDERS_DB_SERVICE_HOST`, variables that the kubelet sets for those that exist."""
    own = {text(each, "name") for each in children(container.spec, "env")}
    if children(container.spec, "envFrom"):
        return
    for variable, name in _LINK.findall(script):
        if variable not in own and name != "KUBERNETES":
            yield name.lower().replace("_", "-")
