"""Rule for proxy settings that also catch requests to Services of the cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import consumer_logs, host_uses, newest_lines, workload_hosts
from holmes.diagnosis.facts.evidence import log_line
from holmes.diagnosis.facts.host_mentions import settings_of
from holmes.diagnosis.facts.services import pods_behind
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.edges import HostUse
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_PROXY: Final = expression(r"(?i)^(?P<scheme>https?|all)_proxy=[\"']?(?P<url>\S{3,300}?)[\"']?$")
_NO_PROXY: Final = expression(r"(?i)^no_proxy=(?P<hosts>.*)$")
_JAVA: Final = expression(r"-D(?P<scheme>https?)\.proxyHost=(?P<url>[\w.-]{1,253})")
_JAVA_NO_PROXY: Final = expression(r"-Dhttp\.nonProxyHosts=[\"']?(?P<hosts>[^\s\"']{1,500})")
_OF_PROXY: Final = expression(r"(?i)proxy|\btunnel\b|\bsquid\b|\bCONNECT\b.{0,120}\b[45]\d\d\b|\bvia[:=] ?1\.[01]\b")
_DENIED: Final = expression(
    r"(?i)\bdenied\b|\bTCP_DENIED|\bforbidden\b|\bblocked\b|\bnot allowed\b|[/ ](?:403|407|50[234])\b"
)
_FAILED: Final = expression(
    r"(?i)(?<![\d.:/-])(?:403|407|50[234])(?![\w.:/-])|fail|error|refused|time[d-]? ?out|unable|cannot|denied"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proxies:
    """The proxy of each scheme with its setting, and the hosts that are excepted."""

    of: dict[str, tuple[str, Evidence]]
    excepted: tuple[str, ...]

    def catching(self, scheme: str, host: str) -> tuple[str, Evidence] | None:
        """Return the proxy for requests of a scheme to a host, or None."""
        found = self.of.get(scheme) or self.of.get("all")
        return None if any(_covers(each, host) for each in self.excepted) else found


def _covers(entry: str, host: str) -> bool:
    """Return whether an entry of NO_PROXY excepts the host. It can be a name, a domain or `*`."""
    plain = entry.partition(":")[0].removeprefix("*").removeprefix(".").lower()
    return entry == "*" or (bool(plain) and (host == plain or host.endswith(f".{plain}")))


@Row(
    id="D05",
    title="Proxy settings catch requests to a Service",
    severity="critical",
    kinds=("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Pod"),
    needs=("Service", "ConfigMap"),
    reads=("variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY", "logs of the workload"),
    explanation="A workload sends its requests through a proxy, and NO_PROXY does not except the name under which it "
    "uses a Service of the cluster. The rule reports it if the log shows that a request to this Service failed at the "
    "proxy. Add the name, or the domains .svc and .cluster.local, to NO_PROXY.",
)
def proxy_catches_service(state: ClusterState) -> Iterator[Fault]:
    for template in pod_templates(state):
        workload = template.workload
        proxies = _proxies_of(state, workload) if workload.at("spec", "replicas") != 0 else None
        if proxies is None or not proxies.of:
            continue
        for use, named in workload_hosts(state, workload):
            scheme = next((each for each in ("https", "http") if f"{each}://{use.host}" in named.value), "")
            caught = proxies.catching(scheme, use.host) if scheme and state.find(use.service) is not None else None
            line = _failed_line(state, workload, use, caught[0]) if caught is not None else None
            if caught is not None and line is not None:
                yield _fault(state, workload, use, caught, (proxies, named, line))
                break


def _proxies_of(state: ClusterState, workload: ClusterObject) -> _Proxies:
    of: dict[str, tuple[str, Evidence]] = {}
    excepted: list[str] = []
    for setting in settings_of(state, workload):
        for pattern in (_PROXY, _JAVA):
            for found in pattern.finditer(setting.text):
                of.setdefault(found["scheme"].lower(), (found["url"], setting.evidence))
        for pattern in (_NO_PROXY, _JAVA_NO_PROXY):
            for found in pattern.finditer(setting.text):
                excepted += [each.strip() for each in re.split(r"[,|\s]+", found["hosts"].strip("\"'"))]
    return _Proxies(of=of, excepted=tuple(filter(None, excepted)))


def _failed_line(state: ClusterState, workload: ClusterObject, use: HostUse, url: str) -> Evidence | None:
    """Return the newest line about the Service that speaks of a failure at a proxy.

    If the log of a proxy in the cluster tells that it refused the host, any failure with the Service's name counts.
    """
    refused = _refused_by_proxy(state, workload, use, url)
    for pod, key, line in _lines(state, workload):
        if not _FAILED.search(line) or not (_OF_PROXY.search(line) or refused):
            continue
        if use.host in line and any(each.service == use.service for each in host_uses(line, pod.namespace, state)):
            return log_line(pod, key.container, line.strip(), previous=False)
    return refused


def _refused_by_proxy(state: ClusterState, workload: ClusterObject, use: HostUse, url: str) -> Evidence | None:
    """Return the line in which a proxy in the cluster refuses the host of the Service, or None."""
    written = url if "://" in url else f"http://{url}"
    for proxy in host_uses(written, workload.namespace, state):
        service = state.find(proxy.service)
        for pod in pods_behind(state, service) if service is not None else ():
            for _, key, line in _lines(state, state.workload_of(pod)):
                if use.host in line and _DENIED.search(line):
                    return log_line(pod, key.container, line.strip(), previous=False)
    return None


def _lines(state: ClusterState, workload: ClusterObject) -> Iterator[tuple[ClusterObject, LogKey, str]]:
    """Yield the newest lines of the current containers of a workload."""
    for pod in state.pods_of(workload):
        for container in pod.children("spec", "containers"):
            key = LogKey(pod=pod.ref, container=text(container, "name"), previous=False)
            for line in newest_lines(state.timed_logs.get(key, ""), state.now):
                yield pod, key, line


def _fault(
    state: ClusterState,
    workload: ClusterObject,
    use: HostUse,
    caught: tuple[str, Evidence],
    seen: tuple[_Proxies, Evidence, Evidence],
) -> Fault:
    proxies, named, line = seen
    url, setting = caught
    excepted = ", ".join(proxies.excepted) or "not set"
    return Fault(
        subject=workload.ref,
        culprit=setting.object,
        cause=f"{workload.ref} sends its requests for {use.host} ({use.service}) to the proxy {url}, where they fail, "
        f"because NO_PROXY ({excepted}) does not except this name",
        evidence=(setting, line, named),
        next_check=f"kubectl -n {workload.namespace} get {workload.kind.lower()} {workload.name} -o yaml",
        logs=consumer_logs(state, [workload]),
    )
