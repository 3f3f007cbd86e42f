"""Finds the object of an alert whose labels name it indirectly: by a router, a mesh, an objective or by its parts.

A name without its namespace counts only if one object of the cluster has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.alert_subjects import namespace_of
from holmes.triage.states import is_ready

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.alert_subjects import Subject
    from holmes.triage.names import Names


def of_routers(labels: Mapping[str, str], names: Names) -> tuple[ClusterObject, ...]:
    """Return the object that labels name in the way of Traefik, of a mesh, or of a resource without own labels."""
    routed = labels.get("exported_service") or labels.get("service", "")
    if routed.endswith("@kubernetes"):  # web-basket-8080@kubernetes
        return _only(each for each in names.state.of("Service") if routed.startswith(f"{each.namespace}-{each.name}-"))
    space = labels.get("destination_workload_namespace", "")
    if space and labels.get("destination_workload"):
        found = names.named(labels["destination_workload"], "", (space,))
        return tuple(each for each in found if each.kind in WORKLOADS)
    title = labels.get("alertname", "").lower()
    if "namespace" in title and "terminating" in f"{title} {labels.get('phase', '').lower()}":
        return names.named(namespace_of(labels), "Namespace")
    return names.named(labels.get("name", ""), "APIService") if "api" in title else ()


def of_objectives(labels: Mapping[str, str], names: Names, spaces: tuple[str, ...]) -> tuple[ClusterObject, ...]:
    """Return the Service or workload of an objective. Its `namespace` may be that of the rules.

    A namespace that does not exist shows that the alert is about another cluster, or about objects that were deleted.
    """
    service = labels.get("sloth_service") or (labels.get("service", "") if "slo" in labels else "")
    found = [each for each in names.named(service) if each.kind in (*WORKLOADS, "Service")]
    near = [each for each in found if each.namespace in spaces]
    spread = {each.namespace for each in found}
    if near or len(spread) != 1 or any(names.state.is_missing("Namespace", "", each) for each in spaces):
        return tuple(near)
    return tuple(found)


def of_parts(labels: Mapping[str, str], names: Names, spaces: tuple[str, ...]) -> tuple[ClusterObject, ...]:
    """Return the only workload whose labels are the `service` or `app` and the `component` of an alert."""
    whole = labels.get("service") or labels.get("app", "")
    if not whole or not labels.get("component"):
        return ()
    parts = names.labelled(labels["component"], spaces)
    return _only(each for each in names.labelled(whole, spaces) if each in parts and each.name != whole)


def of_scrape_job(labels: Mapping[str, str], names: Names, spaces: tuple[str, ...]) -> tuple[ClusterObject, ...]:
    """Return the workload that the scrape job is named after, or a pod of the control plane, one in trouble first."""
    job = labels.get("job", "").rpartition("/")[2]
    if not job or "exporter" in job or "kube-state-metrics" in job:
        return ()
    own = tuple(each for each in names.named(job, "", spaces) if each.kind in WORKLOADS) if spaces else ()
    system = names.state.of("Pod", "kube-system") if labels.get("alertname", "").endswith("Down") else ()
    pods = [each for each in system if job in (each.labels.get("component"), each.labels.get("k8s-app"))]
    return own or tuple(sorted(pods, key=is_ready))[:1]


def may_be_foreign(subject: Subject, labels: Mapping[str, str], *, of_node: bool) -> bool:
    """Return whether the labels of a subject can mean something outside of Kubernetes, or of a scrape target.

    This is a node of Jenkins, a deployment of Azure without a namespace, or the service of an on-call schedule.
    """
    if subject.kind == "Node":
        return not of_node and "kube-state-metrics" not in labels.get("job", "")
    renamed_job = subject.kind == "Job" and "job_name" not in labels
    cluster_wide = subject.kind in ("PersistentVolume", "StorageClass")
    return subject.kind == "Service" or renamed_job or not (subject.namespace or cluster_wide)


def _only(found: Iterable[ClusterObject]) -> tuple[ClusterObject, ...]:
    every = tuple(found)
    return every if len(every) == 1 else ()
