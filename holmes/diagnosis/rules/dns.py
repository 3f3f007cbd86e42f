"""Rules for the cluster DNS: CoreDNS, its Corefile, and pods that use another DNS server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import consumer_logs, edges, failures
from holmes.diagnosis.facts.evidence import field, log_line, value
from holmes.diagnosis.facts.fixes import changed
from holmes.diagnosis.facts.pods import is_sick
from holmes.diagnosis.facts.services import has_ready_endpoints
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.facts.typos import meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import boolean, children, text, texts
from holmes.values.expressions import expression
from holmes.values.findings import FixStep, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.edges import Edge
    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence


_NAMES: Final = (
    "acl any auto autopath azure bind bufsize cache cancel chaos clouddns debug dns64 dnssec dnstap erratic errors "
    "etcd file forward geoip grpc grpc_server header health hosts import k8s_external k8s_gateway kubernetes "
    "kubernetai loadbalance local log loop metadata minimal multisocket nomad nsid on pprof prometheus proxy quic "
    "ready records reload rewrite root route53 secondary sign template timeouts tls trace transfer tsig view "
    "whoami federation nodecache pdsql redisc unbound alternate fanout"
)
_PLUGINS: Final = frozenset(_NAMES.split())
"""Directives of CoreDNS and of well-known external plugins.

An unknown name that is similar to one of these names is probably a misspelling.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Directive:
    """A directive of a server block. `line` is its source line. `inner` contains the lines of its nested block."""

    name: str
    arguments: tuple[str, ...]
    line: str
    inner: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerBlock:
    """A server block of a Corefile, with zones such as `.:53`."""

    zones: tuple[str, ...]
    directives: tuple[_Directive, ...]

    def named(self, name: str) -> tuple[_Directive, ...]:
        return tuple(each for each in self.directives if each.name == name)


def _server_blocks(corefile: str) -> tuple[_ServerBlock, ...]:
    """Parse a Corefile and skip invalid lines. Snippets such as `(name)` are returned as blocks."""
    blocks: list[_ServerBlock] = []
    zones: tuple[str, ...] = ()
    directives: list[_Directive] = []
    inner: list[str] = []
    depth = 0
    for raw in corefile.splitlines():
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        words = tuple(word for word in line.replace("{", " { ").replace("}", " } ").split() if word not in "{}")
        if depth == 0 and words:
            zones, directives = words, []
        elif depth == 1 and words:
            directives.append(_Directive(name=words[0], arguments=words[1:], line=line))
            inner = []
        elif depth > 1 and words:
            inner.append(line)
        depth += line.count("{") - line.count("}")
        if depth == 1 and inner and directives:
            last = directives[-1]
            directives[-1] = _Directive(name=last.name, arguments=last.arguments, line=last.line, inner=tuple(inner))
            inner = []
        if depth <= 0 and zones:
            blocks.append(_ServerBlock(zones=zones, directives=tuple(directives)))
            zones, depth = (), 0
    return tuple(blocks)


_PLACE: Final = "kube-system"
_LABEL: Final = "k8s-app"
_DNS_LABELS: Final = frozenset({"kube-dns", "coredns"})
_SERVICES: Final = ("kube-dns", "coredns", "rke2-coredns-rke2-coredns")
_DOMAIN: Final = "cluster.local"
_NODE_LOCAL: Final = "169.254.20.10"
_LOG_FAULTS: Final = expression(
    r"(?i)Error during parsing|Loop .*detected for zone|plugin/errors.*(?:SERVFAIL|i/o timeout|refused)"
)
_SEVERAL_QUERIES: Final = 3
"""Single failed queries for outside domains are usual for a name server that works."""


def _service(state: ClusterState) -> ClusterObject | None:
    """Return the Service of the cluster DNS, or None if no Service has one of the usual names."""
    return next((found for name in _SERVICES if (found := state.get("Service", _PLACE, name))), None)


def _workloads(state: ClusterState) -> tuple[ClusterObject, ...]:
    """Return the Deployments and DaemonSets that run the cluster DNS."""
    return tuple(
        each
        for kind in ("Deployment", "DaemonSet")
        for each in state.of(kind, _PLACE)
        if each.name in {"coredns", "kube-dns"} or each.labels.get(_LABEL) in _DNS_LABELS
    )


@Row(
    id="D01",
    title="Cluster DNS is not running",
    severity="critical",
    kinds=("Deployment", "Service"),
    needs=("DaemonSet", "Pod"),
    reads=("status.readyReplicas and spec.replicas of CoreDNS", "endpoints of the Service kube-dns"),
    explanation=(
        "CoreDNS has no ready replica, or the Service kube-dns does not exist or has no endpoints. Names cannot be "
        "resolved in the cluster, which causes many kinds of errors in all workloads. The rule ignores clusters "
        "without DNS, and clusters in which the DNS workload and its Service have unusual names."
    ),
)
def dns_is_down(state: ClusterState) -> Iterator[Fault]:
    service, workloads = _service(state), _workloads(state)
    subject = service.ref if service is not None else None
    for workload in workloads:
        if workload.kind != "Deployment" or state.age_seconds(workload) < state.grace_seconds:
            continue
        if workload.integer("status", "readyReplicas"):
            continue
        stopped = workload.at("spec", "replicas") == 0
        why = "is scaled to 0 replicas" if stopped else "has no ready replica"
        yield Fault(
            subject=subject or workload.ref,
            culprit=workload.ref,
            cause=f"{workload.ref}, the cluster DNS, {why}, so names cannot be resolved",
            evidence=(
                field(workload, "spec", "replicas"),
                value(workload, "status.readyReplicas", workload.integer("status", "readyReplicas")),
            ),
            next_check=f"kubectl -n {_PLACE} get pods -l {_LABEL}=kube-dns -o wide",
            role="cause" if stopped else "symptom",
            because=(workload.ref,),
        )
    if workloads and service is None and not any(state.get("Service", _PLACE, name) for name in _SERVICES):
        if state.covers("Service", _PLACE) and any(each.name == "coredns" for each in workloads):
            yield from _without_service(state, workloads[0])
    elif service is not None and not workloads and not has_ready_endpoints(state, service):
        alone = all(state.covers(kind, _PLACE) for kind in ("Deployment", "DaemonSet"))
        behind = ", and no Deployment or DaemonSet runs it" if alone else ""
        yield Fault(
            subject=service.ref,
            cause=f"{service.ref}, the cluster DNS, has no ready endpoints{behind}",
            evidence=(field(service, "spec", "selector"),),
            next_check=f"kubectl -n {_PLACE} get pods,deployments,daemonsets",
        )


def _without_service(state: ClusterState, workload: ClusterObject) -> Iterator[Fault]:
    """Report the missing Service, unless a Service with any name selects the DNS pods."""
    if any(state.services_of(pod) for pod in state.pods_of(workload)) or not state.pods_of(workload):
        return
    yield Fault(
        subject=workload.ref,
        culprit=ObjectRef(kind="Service", namespace=_PLACE, name="kube-dns"),
        title="Service of the cluster DNS is missing",
        cause=f"No Service selects the pods of {workload.ref}, the cluster DNS, so clients cannot reach it",
        evidence=(field(workload, "spec", "selector"),),
        next_check=f"kubectl -n {_PLACE} get services",
    )


@Row(
    id="D02",
    title="Configuration of CoreDNS is wrong",
    severity="critical",
    kinds=("ConfigMap", "Deployment"),
    needs=("Service", "Pod"),
    reads=("data.Corefile of ConfigMap kube-system/coredns", "logs of CoreDNS"),
    explanation=(
        "The Corefile lacks the kubernetes plugin (which resolves Service names), contains a misspelled directive or "
        "domain, or does not forward other names. It may also override the names of existing Services with rewrite, "
        "hosts or template. The rule also reports a parse error, a query loop or failed queries in the CoreDNS logs."
    ),
)
def corefile_is_wrong(state: ClusterState) -> Iterator[Fault]:
    if _service(state) is None and not _workloads(state):
        return
    logs = tuple(_logs(state))
    for config in state.of("ConfigMap", _PLACE):
        corefile = config.text("data", "Corefile")
        if not corefile or "coredns" not in config.name or config.deleted is not None:
            continue
        blocks = _server_blocks(corefile)
        for severe, why, line in (*_missing_parts(blocks), *_misspelt(blocks), *_overridden(state, blocks)):
            yield Fault(
                subject=config.ref,
                cause=f"The Corefile of {config.ref} {why}",
                evidence=(value(config, "data.Corefile", line or corefile), *(proof for _, proof in logs[:2])),
                next_check=f"kubectl -n {_PLACE} get configmap {config.name} -o yaml",
                severity="critical" if severe else "warning",
                logs=tuple(key for each in _workloads(state) for key in consumer_logs(state, [each])),
            )
    for pod, proof in logs:
        yield Fault(
            subject=pod.ref,
            title="CoreDNS reports an error",
            cause=f"CoreDNS reports: {proof.value}",
            evidence=(proof,),
            next_check=f"kubectl -n {_PLACE} logs -l {_LABEL}=kube-dns --tail=50",
            severity="warning",
        )


def _missing_parts(blocks: tuple[_ServerBlock, ...]) -> Iterator[tuple[bool, str, str]]:
    """Yield, for each fault, whether it is critical, its description, and the wrong line or an empty string."""
    imports = any(block.named("import") and not block.named("forward") for block in blocks)
    kubernetes = [each for block in blocks for each in block.named("kubernetes")]
    if not kubernetes and blocks and not imports:
        yield True, "does not load the kubernetes plugin, so Service names cannot be resolved", ""
    for each in kubernetes:
        if _DOMAIN in each.arguments or "cluster_domain" in each.line.lower():
            continue
        wrong = [zone for zone in each.arguments if meant(zone, [_DOMAIN])]
        if wrong:
            yield (
                True,
                f"serves {wrong[0]!r} instead of {_DOMAIN!r}, so Service names cannot be resolved",
                each.line,
            )
    everything = [block for block in blocks if any(zone.partition(":")[0] == "." for zone in block.zones)]
    if everything and not imports and not any(block.named("forward") or block.named("proxy") for block in everything):
        yield False, "does not forward other names, so names outside the cluster cannot be resolved", ""


def _misspelt(blocks: tuple[_ServerBlock, ...]) -> Iterator[tuple[bool, str, str]]:
    for block in blocks:
        for each in block.directives:
            right = meant(each.name, _PLUGINS) if each.name not in _PLUGINS else None
            if right is not None:
                yield (
                    True,
                    f"has the unknown directive {each.name!r} instead of {right!r}, so CoreDNS cannot start",
                    each.line,
                )


def _overridden(state: ClusterState, blocks: tuple[_ServerBlock, ...]) -> Iterator[tuple[bool, str, str]]:
    """Yield a fault for each line that overrides the full name of an existing Service."""
    names = {f"{each.name}.{each.namespace}.svc.{_DOMAIN}": each.ref for each in state.of("Service")}
    for block in blocks:
        own = next((names[zone] for zone in (_zone(each) for each in block.zones) if zone in names), None)
        if own is not None:
            yield True, f"has a separate server block for the DNS name of {own}", " ".join(block.zones)
        for each in block.directives:
            if each.name not in {"rewrite", "hosts", "template"}:
                continue
            for line in (each.line, *each.inner):
                target = _rewritten(line) if each.name == "rewrite" else line
                hit = next((names[word] for word in (_zone(word) for word in target.split()) if word in names), None)
                if hit is not None:
                    yield True, f"overrides the DNS name of {hit} ({each.name})", line


def _zone(word: str) -> str:
    return word.partition(":")[0].rstrip(".").lower()


def _rewritten(line: str) -> str:
    """Return the name that a `rewrite` line matches, without the replacement."""
    words = [word for word in line.split() if word not in {"rewrite", "name", "exact", "stop", "continue", "{", "}"}]
    return words[0] if words else ""


def _logs(state: ClusterState) -> Iterator[tuple[ClusterObject, Evidence]]:
    """Yield each CoreDNS pod with an error in its log, and the newest line that reports an error."""
    for workload in _workloads(state):
        for pod in state.pods_of(workload):
            for container in pod.children("spec", "containers"):
                for previous in (False, True):
                    name = text(container, "name")
                    log = state.logs.get(LogKey(pod=pod.ref, container=name, previous=previous), "")
                    told = [line for line in log.splitlines() if _LOG_FAULTS.search(line)]
                    line = told[-1] if told else ""
                    if told and (len(told) >= _SEVERAL_QUERIES or "plugin/errors" not in line):
                        yield pod, log_line(pod, name, line.strip(), previous=previous)


@Row(
    id="D03",
    title="Pods need Service names but do not use the cluster DNS",
    severity="warning",
    kinds=("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Pod"),
    needs=("Service", "ConfigMap"),
    reads=("dnsPolicy", "hostNetwork", "dnsConfig.nameservers and searches", "settings of the workload"),
    explanation=(
        "With dnsPolicy Default, or with ClusterFirst in the host network, pods query the node's DNS server, which "
        "cannot resolve Service names. With dnsPolicy None, pods query only dnsConfig.nameservers. The rule checks "
        "only workloads that name existing Services. Usually dnsPolicy must be ClusterFirst, or "
        "ClusterFirstWithHostNet if hostNetwork is true."
    ),
)
def other_dns(state: ClusterState) -> Iterator[Fault]:
    named: dict[str, Edge] = {}
    for ref, group in edges(state).items():
        if state.find(ref) is not None:
            named |= {edge.consumer.uid: edge for edge in group if edge.use.form != "ip"}
    for template in pod_templates(state):
        edge = named.get(template.workload.uid)
        found = _why_not_asked(state, template, edge) if edge is not None else None
        if edge is None or found is None:
            continue
        key, why = found
        workload = template.workload
        lines = [
            each.line
            for each in failures(state).get(edge.use.service, ())
            if each.kind == "unresolved" and each.consumer is workload
        ]
        yield Fault(
            subject=workload.ref,
            cause=f"{workload.ref} uses the name {edge.use.host!r} of {edge.use.service}, but {why}",
            evidence=(
                value(workload, f"{template.path}.{key}", template.spec.get(key)),
                value(workload, f"{template.path}.hostNetwork", boolean(template.spec, "hostNetwork")),
                edge.named,
                *lines[:2],
            ),
            next_check=f"kubectl -n {workload.namespace} get {workload.kind.lower()} {workload.name} -o yaml",
            severity="critical" if lines and is_sick(state, workload) else "warning",
            logs=consumer_logs(state, [workload]),
            fix=(_policy_fix(template),) if key == "dnsPolicy" else (),
        )


def _policy_fix(template: PodTemplate) -> FixStep:
    right = "ClusterFirstWithHostNet" if boolean(template.spec, "hostNetwork") else "ClusterFirst"
    return changed(template.workload.ref, f"{template.path}.dnsPolicy", right)


def _why_not_asked(state: ClusterState, template: PodTemplate, edge: Edge) -> tuple[str, str] | None:
    """Return the field that prevents the use of the cluster DNS and an explanation, or None if no field prevents it."""
    policy = text(template.spec, "dnsPolicy") or "ClusterFirst"
    if policy == "Default":
        return (
            "dnsPolicy",
            "with dnsPolicy Default, its pods use the node's DNS server, which cannot resolve Service names",
        )
    if policy == "ClusterFirst" and boolean(template.spec, "hostNetwork"):
        why = (
            "with dnsPolicy ClusterFirst and hostNetwork, its pods use the node's DNS server, which cannot resolve "
            "Service names; set dnsPolicy to ClusterFirstWithHostNet"
        )
        return "dnsPolicy", why
    if policy != "None":
        return None
    servers = set(texts(template.spec, "dnsConfig", "nameservers"))
    service = _service(state)
    known = {service.text("spec", "clusterIP"), _NODE_LOCAL} if service is not None else set()
    if known and not servers & known and not _is_service_address(state, servers):
        return "dnsConfig", f"its pods query only {', '.join(sorted(servers))}, not the cluster DNS"
    searches = texts(template.spec, "dnsConfig", "searches")
    if "." not in edge.use.host and not any(".svc" in each for each in searches):
        return "dnsConfig", "its dnsConfig.searches contains no cluster domain, so the short name cannot be resolved"
    return None


def _is_service_address(state: ClusterState, servers: set[str]) -> bool:
    """Return whether a name server has the address of a Service, which may forward queries to the cluster DNS."""
    return any(
        each.text("spec", "clusterIP") in servers
        for each in state.of("Service")
        if children(each.body, "spec", "ports")
    )
