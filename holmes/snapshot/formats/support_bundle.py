"""The support bundles of troubleshoot.sh: lists of objects by kind and namespace in `cluster-resources`.

A bundle has the logs of pods that are not healthy, of both container instances, and of the pods that its specification
names. Values of Secrets are not part of it. With the collector for node metrics, it has the current usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import at, child, text
from holmes.snapshot.collection import Collection
from holmes.snapshot.documents import documents_of
from holmes.snapshot.layouts import SnapshotFormat, some
from holmes.snapshot.node_metrics import NODE_METRICS, POD_METRICS, usage_objects
from holmes.snapshot.recorded_logs import LogKey
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet
    from pathlib import PurePosixPath

    from holmes.snapshot.coverage import GroupKind
    from holmes.snapshot.layouts import FileTree
    from holmes.snapshot.recording import Recording
    from holmes.values.json_types import JsonObject

_RESOURCES: Final = "cluster-resources"
_METRICS: Final = "node-metrics"
_LOGS: Final = ("pods", "logs")
_CUSTOM: Final = "custom-resources"
_NO_OBJECTS: Final = frozenset({"auth-cani-list", "image-pull-secrets", "groups", "resources", "license"})
_KINDS: Final[dict[str, GroupKind]] = {
    "namespaces": ("v1", "Namespace"),
    "nodes": ("v1", "Node"),
    "pvs": ("v1", "PersistentVolume"),
    "pods": ("v1", "Pod"),
    "events": ("v1", "Event"),
    "services": ("v1", "Service"),
    "endpoints": ("v1", "Endpoints"),
    "configmaps": ("v1", "ConfigMap"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "limitranges": ("v1", "LimitRange"),
    "resource-quota": ("v1", "ResourceQuota"),
    "serviceaccounts": ("v1", "ServiceAccount"),
    "deployments": ("apps/v1", "Deployment"),
    "replicasets": ("apps/v1", "ReplicaSet"),
    "statefulsets": ("apps/v1", "StatefulSet"),
    "daemonsets": ("apps/v1", "DaemonSet"),
    "jobs": ("batch/v1", "Job"),
    "cronjobs": ("batch/v1", "CronJob"),
    "ingress": ("networking.k8s.io/v1", "Ingress"),
    "ingress-classes": ("networking.k8s.io/v1", "IngressClass"),
    "network-policy": ("networking.k8s.io/v1", "NetworkPolicy"),
    "pod-disruption-budgets": ("policy/v1", "PodDisruptionBudget"),
    "endpointslices": ("discovery.k8s.io/v1", "EndpointSlice"),
    "leases": ("coordination.k8s.io/v1", "Lease"),
    "storage-classes": ("storage.k8s.io/v1", "StorageClass"),
    "volumeattachments": ("storage.k8s.io/v1", "VolumeAttachment"),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "roles": ("rbac.authorization.k8s.io/v1", "Role"),
    "rolebindings": ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    "clusterroles": ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    "clusterrolebindings": ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    "certificatesigningrequests": ("certificates.k8s.io/v1", "CertificateSigningRequest"),
    "custom-resource-definitions": ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "validating-webhook-configurations": ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    "mutating-webhook-configurations": ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
}
_ERRORS: Final = "-errors"
_LOG_ERRORS: Final = "-logs-errors"
_PREVIOUS: Final = "-previous"


def _recognises(tree: FileTree) -> bool:
    return bool(tree.parents_of(_RESOURCES))


def _load(tree: FileTree) -> Recording:
    roots = tree.parents_of(_RESOURCES)
    if len(roots) > 1:
        names = some([str(root) for root in roots], 3)
        raise ConfigError(f"{tree.source}: the folder has {len(roots)} support bundles ({names}); choose one of them")
    root = tree.below(roots[0])
    collection = Collection(root)
    namespaces: set[str] = set()
    for file in root.files:
        if file.parts[0] != _RESOURCES:
            continue
        parts = file.parts[1:]
        if parts[:2] == _LOGS:
            _add_log(collection, file)
        elif file.suffix in (".json", ".yaml"):
            namespaces |= _add_objects(collection, file)
    _add_usage(collection, root.matching(f"{_METRICS}/*.json"), namespaces)
    version = _version(root)
    collection.ignore(root.matching("cluster-info/cluster_version.json"))
    return collection.recording("support bundle", namespaces, version=version)


def _add_objects(collection: Collection, file: PurePosixPath) -> set[str]:
    """Add the objects of a file `KIND.json` or `KIND/NAMESPACE.json`. Returns the namespace, if any."""
    name = file.parts[1] if len(file.parts) > 2 else file.stem
    collection.ignore([file])
    if name.endswith(_ERRORS):
        _add_faults(collection, file, name.removesuffix(_ERRORS))
    elif name == _CUSTOM:
        _add_custom_objects(collection, file)
    elif name in _KINDS:
        namespace = file.stem if len(file.parts) > 2 else ""
        collection.add_list(file, _KINDS[name], namespace)
        return {namespace} - {""}
    elif name not in _NO_OBJECTS:
        collection.read(file)
    return set()


def _add_custom_objects(collection: Collection, file: PurePosixPath) -> None:
    """Add the objects of a file `custom-resources/RESOURCE[/NAMESPACE]`. Most are written as JSON and as YAML."""
    if file.stem.endswith(_ERRORS) or (file.suffix == ".yaml" and file.with_suffix(".json") in collection.tree.files):
        return
    content = collection.read(file)
    for kind in content.listed if content is not None else ():
        collection.coverage.add(kind, file.stem if len(file.parts) > 3 else "")


def _add_faults(collection: Collection, file: PurePosixPath, name: str) -> None:
    """Record why lists could not be collected: a text for each namespace, or a list of texts."""
    kind = _KINDS.get(name)
    try:
        (document,) = documents_of(collection.tree.path(file), collection.tree.shown(file)) or (None,)
    except (ConfigError, ValueError):
        return
    if kind is None or not document:
        return
    if isinstance(document, dict):
        for namespace, why in document.items():
            collection.coverage.add_fault(kind, namespace, str(why))
    elif isinstance(document, list):
        collection.coverage.add_fault(kind, "", "; ".join(map(str, document)))


def _add_usage(collection: Collection, files: Iterable[PurePosixPath], namespaces: AbstractSet[str]) -> None:
    """Add the usage in the files `node-metrics/NODE.json`, for the pods of the bundle's namespaces."""
    usage: list[JsonObject] = []
    for file in files:
        collection.ignore([file])
        try:
            documents = documents_of(collection.tree.path(file), collection.tree.shown(file))
        except ConfigError as error:
            collection.broken.append(error)
            continue
        usage += [each for document in documents for each in usage_objects(document)]
    if not usage:
        return
    nodes = {text(item, "metadata", "name") for item in collection.objects if text(item, "kind") == "Node"}
    missing = sorted(nodes - {text(each, "metadata", "name") for each in usage if text(each, "kind") == "NodeMetrics"})
    for kind in (NODE_METRICS, POD_METRICS):
        collection.coverage.add(kind)
        if missing:
            collection.coverage.add_fault(kind, "", f"the usage of node {missing[0]!r} was not collected")
    known = {""} | namespaces
    collection.objects += [each for each in usage if text(each, "metadata", "namespace") in known]


def _add_log(collection: Collection, file: PurePosixPath) -> None:
    """Add a log `cluster-resources/pods/logs/NAMESPACE/POD/CONTAINER[-previous].log`."""
    if len(file.parts) != 6 or file.suffix != ".log":
        return
    namespace, pod = file.parts[3:5]
    collection.ignore([file])
    if file.stem.endswith(_LOG_ERRORS):
        key = LogKey(namespace=namespace, pod=pod, container=file.stem.removesuffix(_LOG_ERRORS))
        why = collection.tree.path(file).read_bytes()[:1_000].decode("utf-8", "replace")
        collection.add_unread_log(key, why)
        return
    container = file.stem.removesuffix(_PREVIOUS)
    previous = container != file.stem
    collection.add_log(file, LogKey(namespace=namespace, pod=pod, container=container, previous=previous))


def _version(root: FileTree) -> JsonObject:
    """Return the version of the API server, which the collector for the cluster's information writes."""
    for file in root.matching("cluster-info/cluster_version.json"):
        try:
            (document,) = documents_of(root.path(file), root.shown(file))
        except ConfigError:
            break
        return child(document, "info") if isinstance(at(document, "info"), dict) else {}
    return {}


FORMAT = SnapshotFormat(name="a support bundle of troubleshoot.sh", precedence=20, recognises=_recognises, load=_load)
