"""Defines the kinds that a scan lists, and creates the API paths of resources.

The names in a path can come from a model, so a name that could change the path is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holmes.values.errors import ToolError
from holmes.values.expressions import expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of object. If `metadata_only` is true, only metadata is read, so that Secret values are never read."""

    name: str
    group_version: str
    resource: str
    namespaced: bool = True
    metadata_only: bool = False

    @property
    def group(self) -> str:
        """The API group. It is empty for the core group."""
        return self.group_version.partition("/")[0] if "/" in self.group_version else ""


def _core(name: str, resource: str, *, namespaced: bool = True, metadata_only: bool = False) -> Kind:
    return Kind(name=name, group_version="v1", resource=resource, namespaced=namespaced, metadata_only=metadata_only)


def _in(group_version: str, name: str, resource: str, *, namespaced: bool = True) -> Kind:
    return Kind(name=name, group_version=group_version, resource=resource, namespaced=namespaced)


EVENT: Final = _core("Event", "events")
_POD: Final = _core("Pod", "pods")

KINDS: Final = (
    _POD,
    _core("Node", "nodes", namespaced=False),
    _core("Namespace", "namespaces", namespaced=False),
    _core("Service", "services"),
    _core("ConfigMap", "configmaps"),
    _core("Secret", "secrets", metadata_only=True),
    _core("ServiceAccount", "serviceaccounts"),
    _core("PersistentVolumeClaim", "persistentvolumeclaims"),
    _core("PersistentVolume", "persistentvolumes", namespaced=False),
    _core("ResourceQuota", "resourcequotas"),
    _core("LimitRange", "limitranges"),
    _in("apps/v1", "Deployment", "deployments"),
    _in("apps/v1", "ReplicaSet", "replicasets"),
    _in("apps/v1", "StatefulSet", "statefulsets"),
    _in("apps/v1", "DaemonSet", "daemonsets"),
    _in("batch/v1", "Job", "jobs"),
    _in("batch/v1", "CronJob", "cronjobs"),
    _in("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    _in("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    _in("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    _in("networking.k8s.io/v1", "Ingress", "ingresses"),
    _in("networking.k8s.io/v1", "IngressClass", "ingressclasses", namespaced=False),
    _in("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    _in("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False),
    _in("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", namespaced=False),
    _in("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False),
    _in("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", namespaced=False),
    _in("rbac.authorization.k8s.io/v1", "Role", "roles"),
    _in("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    _in("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False),
    _in("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _in(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        namespaced=False,
    ),
    _in(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        namespaced=False,
    ),
    _in("apiregistration.k8s.io/v1", "APIService", "apiservices", namespaced=False),
    _in("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False),
    _in("coordination.k8s.io/v1", "Lease", "leases"),
)
"""All built-in kinds that a scan lists, except events."""

WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "ReplicaSet")
"""The kinds that create pods, owners first."""
SCALED: Final = ("Deployment", "StatefulSet", "ReplicaSet")
"""The kinds with a number of replicas."""


_NAME = expression(r"[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")


def api_path(
    group_version: str, resource: str, *, namespace: str | None = None, name: str | None = None, subresource: str = ""
) -> str:
    """Create the path of a resource, for example `api_path("apps/v1", "deployments", namespace="shop", name="cart")`.

    Raises `ToolError` for a name that is empty or has characters that Kubernetes names cannot contain.
    """
    root = "api" if "/" not in group_version else "apis"
    parts = [root, group_version]
    if namespace is not None:
        parts += ["namespaces", checked_name(namespace, "namespace")]
    parts.append(resource)
    if name is not None:
        parts.append(checked_name(name, "name"))
    if subresource:
        parts.append(subresource)
    return "/" + "/".join(parts)


def checked_name(name: str, what: str) -> str:
    """Return `name` if Kubernetes accepts it. Otherwise, raise `ToolError`."""
    if not _NAME.fullmatch(name):
        raise ToolError(f"{name!r} is not a valid Kubernetes {what}: use only letters, digits, '-' and '.'")
    return name
