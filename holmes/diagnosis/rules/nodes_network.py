"""Rule for pods that reach nothing because a network component of their node fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import failures
from holmes.diagnosis.facts.evidence import field, value
from holmes.diagnosis.facts.producers import is_network_plugin
from holmes.diagnosis.facts.services import has_ready_endpoints, unready_seconds
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.rule import Fault, Row
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.edges import Failure
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_COMPONENTS: Final = expression(r"^(?:kube-proxy|node-?local-?dns|nodelocaldns)(?:$|-)")


@Row(
    id="N09",
    title="Pods reach nothing because a network component of their node fails",
    severity="critical",
    kinds=("DaemonSet", "Pod"),
    needs=("Service",),
    reads=("status.conditions[Ready] of kube-proxy, network plugins and node-local DNS", "logs of clients"),
    explanation="Each node runs components that connect its pods: the network plugin, kube-proxy, and often a DNS "
    "cache. If one of them fails on a node, pods on this node cannot reach Services, while pods on other nodes can. "
    "Repair the component, or move the pods to another node.",
)
def unconnected(state: ClusterState) -> Iterator[Fault]:
    broken = {pod.text("spec", "nodeName"): pod for pod in _broken(state)}
    told: set[str] = set()
    for ref, failed in failures(state).items() if broken else ():
        service = state.find(ref)
        if service is None or not has_ready_endpoints(state, service) or _fails_elsewhere(failed, broken):
            continue
        for each in failed:
            component = broken.get(each.pod.text("spec", "nodeName"))
            if component is None or each.pod.uid in told:
                continue
            told.add(each.pod.uid)
            workload = state.workload_of(component)
            yield Fault(
                subject=each.pod.ref,
                culprit=workload.ref,
                cause=f"{each.pod.ref} on Node {component.text('spec', 'nodeName')} cannot reach {each.use.service}, "
                f"because {component.ref} of {workload.ref} is not ready on this node",
                evidence=(
                    value(component, "status.conditions[type=Ready]", component.condition("Ready")),
                    each.line,
                    field(each.pod, "spec", "nodeName"),
                ),
                next_check=f"kubectl -n {component.namespace} describe pod {component.name}",
                role="symptom",
                because=(component.ref,),
            )


def _broken(state: ClusterState) -> Iterator[ClusterObject]:
    """Yield the pods of network components that are not ready for longer than the grace period."""
    for plugin in state.of("DaemonSet"):
        if _COMPONENTS.match(plugin.name) or is_network_plugin(plugin):
            for pod in state.pods_of(plugin):
                if pod.deleted is None and not pod_ready(pod) and unready_seconds(state, pod) >= state.patience_seconds:
                    yield pod


def _fails_elsewhere(failed: tuple[Failure, ...], broken: Mapping[str, ClusterObject]) -> bool:
    """Return whether pods on nodes without a broken component fail, too."""
    return any(each.pod.text("spec", "nodeName") not in broken for each in failed)
