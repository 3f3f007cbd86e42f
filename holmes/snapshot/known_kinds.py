"""The built-in kinds of Kubernetes, for sources that do not say what their cluster could be asked for.

Called by `assembly`. Kinds that are in no list here get a plausible path: see `guessed_kind`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKind:
    """How a kind is named in paths and on the command line."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


# Group and version, then `Kind plural short,names`; an asterisk marks what belongs to no namespace, a plus `get all`.
_TABLE: Final = {
    "v1": (
        "ConfigMap configmaps cm", "Endpoints endpoints ep", "Event events ev", "LimitRange limitranges limits",
        "Namespace* namespaces ns", "Node* nodes no", "PersistentVolumeClaim persistentvolumeclaims pvc",
        "PersistentVolume* persistentvolumes pv", "Pod+ pods po", "PodTemplate podtemplates",
        "ReplicationController+ replicationcontrollers rc", "ResourceQuota resourcequotas quota", "Secret secrets",
        "ServiceAccount serviceaccounts sa", "Service+ services svc",
    ),
    "apiregistration.k8s.io/v1": ("APIService* apiservices",),
    "apps/v1": (
        "ControllerRevision controllerrevisions", "DaemonSet+ daemonsets ds", "Deployment+ deployments deploy",
        "ReplicaSet+ replicasets rs", "StatefulSet+ statefulsets sts",
    ),
    "events.k8s.io/v1": ("Event events ev",),
    "autoscaling/v2": ("HorizontalPodAutoscaler+ horizontalpodautoscalers hpa",),
    "batch/v1": ("CronJob+ cronjobs cj", "Job+ jobs"),
    "certificates.k8s.io/v1": ("CertificateSigningRequest* certificatesigningrequests csr",),
    "networking.k8s.io/v1": (
        "IngressClass* ingressclasses", "Ingress ingresses ing", "IPAddress* ipaddresses ip",
        "NetworkPolicy networkpolicies netpol", "ServiceCIDR* servicecidrs",
    ),
    "policy/v1": ("PodDisruptionBudget poddisruptionbudgets pdb",),
    "rbac.authorization.k8s.io/v1": (
        "ClusterRoleBinding* clusterrolebindings", "ClusterRole* clusterroles", "RoleBinding rolebindings",
        "Role roles",
    ),
    "storage.k8s.io/v1": (
        "CSIDriver* csidrivers", "CSINode* csinodes", "CSIStorageCapacity csistoragecapacities",
        "StorageClass* storageclasses sc", "VolumeAttachment* volumeattachments",
        "VolumeAttributesClass* volumeattributesclasses vac",
    ),
    "admissionregistration.k8s.io/v1": (
        "MutatingWebhookConfiguration* mutatingwebhookconfigurations",
        "ValidatingAdmissionPolicy* validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding* validatingadmissionpolicybindings",
        "ValidatingWebhookConfiguration* validatingwebhookconfigurations",
    ),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition* customresourcedefinitions crd,crds",),
    "scheduling.k8s.io/v1": ("PriorityClass* priorityclasses pc",),
    "coordination.k8s.io/v1": ("Lease leases",),
    "node.k8s.io/v1": ("RuntimeClass* runtimeclasses",),
    "discovery.k8s.io/v1": ("EndpointSlice endpointslices",),
    "flowcontrol.apiserver.k8s.io/v1": (
        "FlowSchema* flowschemas", "PriorityLevelConfiguration* prioritylevelconfigurations",
    ),
}  # fmt: skip


def _known(group_version: str, row: str) -> KnownKind:
    marked, plural, *short = row.split()
    group, _, version = group_version.rpartition("/")
    return KnownKind(
        group=group,
        version=version,
        kind=marked.rstrip("*+"),
        plural=plural,
        namespaced=not marked.endswith("*"),
        short_names=tuple(short[0].split(",")) if short else (),
        categories=("all",) if marked.endswith("+") else (),
    )


KNOWN_KINDS: Final = tuple(_known(group_version, row) for group_version, rows in _TABLE.items() for row in rows)


def guessed_kind(group_version: str, kind: str) -> KnownKind:
    """A kind that nobody described: its plural by the rules of English, cluster-wide when its name says so."""
    group, _, version = group_version.rpartition("/")
    lower = kind.lower()
    if lower.endswith(("s", "x", "z", "ch", "sh")):
        plural = f"{lower}es"
    elif lower.endswith("y") and lower[-2:-1] not in {"a", "e", "i", "o", "u"}:
        plural = f"{lower[:-1]}ies"
    else:
        plural = f"{lower}s"
    return KnownKind(group=group, version=version, kind=kind, plural=plural, namespaced=not kind.startswith("Cluster"))
