"""Uses the labels of an alert to find the Kubernetes object that the alert is about.

Labels may identify the scrape target instead of the measured object. Labels that Prometheus renamed to `exported_…`
take precedence. The pod of an exporter is not the subject of its metrics. Values that are not valid Kubernetes names
are ignored, so that the question contains no untrusted text.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.values.expressions import expression
from holmes.values.pod_names import cron_job_of, deployment_of, owners_of_pod
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_KEY_CHARACTERS: Final = 400
_NAME = expression(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_NAMESPACE = expression(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_HEARTBEATS: Final = frozenset({"watchdog", "deadmansswitch", "infoinhibitor", "alwaysfiring"})
HEARTBEAT: Final = "The alert only shows that alerting works. There is nothing to investigate."
_EXPORTERS: Final = ("kube-state-metrics", "node-exporter")
_OF_THE_TARGET: Final = frozenset({"namespace", "pod", "container", "service", "node", "job", "instance"})
_OWN_LABELS: Final = (
    ("deployment", "Deployment"),
    ("statefulset", "StatefulSet"),
    ("daemonset", "DaemonSet"),
    ("cronjob", "CronJob"),
    ("job_name", "Job"),
    ("replicaset", "ReplicaSet"),
    ("horizontalpodautoscaler", "HorizontalPodAutoscaler"),
    ("persistentvolumeclaim", "PersistentVolumeClaim"),
    ("poddisruptionbudget", "PodDisruptionBudget"),
    ("ingress", "Ingress"),
    ("resourcequota", "ResourceQuota"),
    ("replicationcontroller", "ReplicationController"),
    ("networkpolicy", "NetworkPolicy"),
    ("persistentvolume", "PersistentVolume"),
    ("storageclass", "StorageClass"),
    ("configmap", "ConfigMap"),
    ("secret", "Secret"),
)
"""Labels that always identify the measured object and its kind, most reliable first."""
_OF_THE_CLUSTER: Final = frozenset({"PersistentVolume", "StorageClass"})
_WORKLOAD_TYPES: Final = {kind.lower(): kind for kind in ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job")}
_RUN_PODS: Final = frozenset({"Pod", "ReplicaSet", *_WORKLOAD_TYPES.values()})
_RENAMED: Final = (
    ("destination_workload", "workload", "destination_workload_namespace"),
    ("deployment_name", "deployment", "kube_namespace"),
    ("kube_deployment", "deployment", "kube_namespace"),
    ("kube_stateful_set", "statefulset", "kube_namespace"),
    ("kube_daemon_set", "daemonset", "kube_namespace"),
    ("pod_name", "pod", "kube_namespace"),
    ("kubernetes_pod_name", "pod", "namespace"),
)
"""Labels of Istio, Datadog and Strimzi, the usual labels for them, and the labels of their namespaces."""
_ABOUT_EXPORTERS: Final = expression(r"^(?:TargetDown|TargetMissing|PrometheusTarget|KubeStateMetrics|NodeExporter)")
"""Names of alerts whose subject is the scraped exporter itself."""
_NODE_LABELS: Final = ("node", "nodename", "kubernetes_node")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The object that an alert is about. `namespace` is empty for cluster-scoped objects.

    `workload` is the name of the owner, guessed from the name of the object. Use `workload` only to group alerts.
    """

    kind: str
    name: str
    namespace: str = ""
    workload: str = ""

    @property
    def path(self) -> str:
        """The namespace and the owner, for example `shop/checkout`."""
        owner = self.workload or self.name
        return f"{self.namespace}/{owner}" if self.namespace else owner

    @property
    def key(self) -> str:
        """A key that is the same for a workload, its pods and its ReplicaSets."""
        return f"{'workload' if self.kind in _RUN_PODS else self.kind} {self.path}"


def namespace_of(labels: Mapping[str, str]) -> str:
    """Return the namespace of the measured object, or an empty string if the labels contain no valid namespace."""
    return _namespace(_measured(labels))


def subject_of(labels: Mapping[str, str]) -> Subject | None:
    """Return the object that the labels identify, or None if they do not identify a valid object."""
    measured = _measured(labels)
    namespace = _namespace(measured)
    for label, kind in _OWN_LABELS:
        if label in measured and _NAME.fullmatch(name := measured[label]):
            place = "" if kind in _OF_THE_CLUSTER else namespace  # then it is that of the exporter
            return Subject(kind=kind, name=name, namespace=place, workload=_owner(kind, name))
    kind = _WORKLOAD_TYPES.get(labels.get("workload_type", "").lower(), "")
    if kind and _NAME.fullmatch(name := labels.get("workload", "")):
        return Subject(kind=kind, name=name, namespace=namespace, workload=name)
    renamed_job = "exported_job" in labels and "exported_pod" not in labels
    if renamed_job and _NAME.fullmatch(name := labels["exported_job"]):
        return Subject(kind="Job", name=name, namespace=namespace, workload=_owner("Job", name))
    return _of_scraped(labels, measured)


def is_heartbeat(labels: Mapping[str, str]) -> bool:
    """Return whether an alert only shows that alerting works, so that there is nothing to investigate."""
    return labels.get("alertname", "").lower() in _HEARTBEATS or labels.get("severity", "").lower() == "none"


def subject_key(labels: Mapping[str, str]) -> str:
    """Return a key that identifies the subject of an alert.

    If the labels do not identify an object, the alert name is the subject.
    """
    subject = subject_of(labels)
    return bounded_key(subject.key if subject else f"alert {namespace_of(labels)}/{labels.get('alertname', '')}")


def incident_key(group_key: str, labels: Mapping[str, str]) -> str:
    """Return the key of an alert's incident: the group key, or the key of the subject if the group has no key."""
    return group_key or subject_key(labels)


def bounded_key(key: str) -> str:
    """Shorten a key so that every database can index it. PostgreSQL rejects indexed text larger than 2.7 kB."""
    if len(key) <= _MOST_KEY_CHARACTERS:
        return key
    return f"{shortened(key, _MOST_KEY_CHARACTERS, mark='')}…{hashlib.sha256(key.encode()).hexdigest()}"


def workload_of_pod(pod: str) -> str:
    """Guess the name of a pod's owner from the pod name. Returns the pod name if no pattern matches."""
    return next((name for name, _ in owners_of_pod(pod)), pod)


def _measured(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return the labels of the measured object. Labels that Prometheus renamed replace the target's labels."""
    for label, usual, space in _RENAMED:
        if label in labels and space in labels:
            return {usual: labels[label], "namespace": labels[space]}
    renamed = {name.removeprefix("exported_"): value for name, value in labels.items() if name.startswith("exported_")}
    if not renamed:
        return labels
    hidden = _OF_THE_TARGET if "namespace" in renamed else frozenset[str]()
    return {**{name: value for name, value in labels.items() if name not in hidden}, **renamed}


def _namespace(measured: Mapping[str, str]) -> str:
    text = measured.get("namespace") or measured.get("kubernetes_namespace", "")
    return text if _NAMESPACE.fullmatch(text) else ""


def _of_scraped(labels: Mapping[str, str], measured: Mapping[str, str]) -> Subject | None:
    """Return the pod, node or Service that the scrape target's labels identify, or None.

    Ignores the pod and the Service of a metrics exporter.
    """
    scraped_by = f"{labels.get('job', '')} {labels.get('container', '')}"
    of_exporter = any(exporter in scraped_by for exporter in _EXPORTERS) and "exported_pod" not in labels
    of_exporter = of_exporter and not _ABOUT_EXPORTERS.search(labels.get("alertname", ""))
    pod = measured.get("pod") or measured.get("pod_name", "")
    is_exporters_own = of_exporter and any(exporter in pod for exporter in _EXPORTERS)
    if _NAME.fullmatch(pod) and not is_exporters_own:
        return Subject(kind="Pod", name=pod, namespace=_namespace(measured), workload=workload_of_pod(pod))
    node = next((measured[label] for label in _NODE_LABELS if measured.get(label)), "")
    if not node and "node-exporter" in scraped_by:
        node = labels.get("instance", "").partition(":")[0]
    if _NAME.fullmatch(node):
        return Subject(kind="Node", name=node)
    service = measured.get("service", "")
    if _NAME.fullmatch(service) and not of_exporter:
        return Subject(kind="Service", name=service, namespace=_namespace(measured))
    return None


def _owner(kind: str, name: str) -> str:
    maker = {"ReplicaSet": deployment_of, "Job": cron_job_of}.get(kind)
    return (maker(name) if maker is not None else "") or name
