"""Creates a recording from the objects in manifests and cluster dumps.

Adds the namespace, uid and creation time that a cluster would set, always with the same values. Values of Secrets are
removed. These sources do not contain the discovery documents of the API, so this module lists the built-in kinds and
guesses the paths of other kinds.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, instant, text, text_map, texts, timestamp
from holmes.snapshot.coverage import NAMESPACE
from holmes.snapshot.discovery import Discovery, ResourceType
from holmes.snapshot.recording import RecordedObjects, Recording
from holmes.snapshot.scrubbing import REMOVED_BASE64, KnownSecrets, Scrubber, without_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from holmes.redaction.redactor import Redactor
    from holmes.snapshot.coverage import Coverage, GroupKind
    from holmes.snapshot.recorded_logs import LogKey, RecordedLog
    from holmes.snapshot.recording import Unread
    from holmes.values.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKind:
    """The names of a kind in API paths and on the command line."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


# Maps each group version to its kinds, in the form `Kind plural short,names`.
# `*` marks cluster-scoped kinds, and `+` marks the kinds that `get all` lists.
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


_KNOWN_KINDS: Final = tuple(_known(group_version, row) for group_version, rows in _TABLE.items() for row in rows)


_METRICS: Final = {"NodeMetrics": "nodes", "PodMetrics": "pods"}


def guessed_kind(group_version: str, kind: str) -> KnownKind:
    """Guess the plural and the scope of an unknown kind. A kind that starts with `Cluster` is cluster-scoped."""
    group, _, version = group_version.rpartition("/")
    if group == "metrics.k8s.io" and kind in _METRICS:
        plural = _METRICS[kind]
        return KnownKind(group=group, version=version, kind=kind, plural=plural, namespaced=kind == "PodMetrics")
    lower = kind.lower()
    if lower.endswith(("s", "x", "z", "ch", "sh")):
        plural = f"{lower}es"
    elif lower.endswith("y") and lower[-2:-1] not in {"a", "e", "i", "o", "u"}:
        plural = f"{lower[:-1]}ies"
    else:
        plural = f"{lower}s"
    return KnownKind(group=group, version=version, kind=kind, plural=plural, namespaced=not kind.startswith("Cluster"))


def known_kind(group: str, plural: str) -> GroupKind | None:
    """Return the `apiVersion` and `kind` of a built-in resource, or None if it is not built in."""
    for kind in _KNOWN_KINDS:
        if (kind.group, kind.plural) == (group, plural):
            return (f"{group}/{kind.version}" if group else kind.version), kind.kind
    return None


_IDS: Final = uuid.UUID("6f0f3a52-8f0e-5a53-9a0c-5f3d1f6f2b11")
_PAST_FIELDS: Final = frozenset(
    {
        "completionTime", "creationTimestamp", "eventTime", "finishedAt", "firstTimestamp", "lastHeartbeatTime",
        "lastObservedTime", "lastProbeTime", "lastScheduleTime", "lastSuccessfulTime", "lastTimestamp",
        "lastTransitionTime", "lastUpdateTime", "renewTime", "startTime", "startedAt", "time",
    }
)  # fmt: skip
_VERBS: Final = ("get", "list", "watch")
_BUILT_IN: Final = frozenset(_KNOWN_KINDS)
_DEFAULT_VERSION: Final = "v1.34.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """Objects and logs that a loader read. `changed_at` is the newest modification time of the files.

    This time becomes the recording time if the objects contain no time. `namespaces` contains the completely loaded
    namespaces, and is empty if they are unknown. `notes` are the warnings of the loader. Without `coverage`, the
    objects are taken for all objects of their kinds. `version` is the version of the server, if it is known.
    """

    source: Path
    context: str
    objects: Sequence[JsonObject]
    changed_at: datetime
    namespaces: tuple[str, ...] = ()
    logs: Mapping[LogKey, RecordedLog] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    coverage: Coverage | None = None
    version: JsonObject = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()


def assemble(found: Assembly, redactor: Redactor | None = None) -> Recording:
    """Create a recording of the loaded objects. The recording time is the newest time in any object.

    Secrets are masked as in own recordings. Without a redactor, only values of Secrets are.
    """
    kinds = _kinds(found.objects, found.coverage.kinds() if found.coverage else ())
    known = KnownSecrets(item for item in found.objects if _gvk(item) == ("v1", "Secret"))
    scrubber = Scrubber(redactor, known)
    now = datetime.now(UTC)  # plans of the future are in specs
    past = (each for each in _past_times(found.objects) if each <= now)
    recorded_at = max(past, default=found.changed_at).astimezone(UTC)
    by_kind: dict[tuple[str, str], dict[tuple[str, str], JsonObject]] = {}
    repeated: list[str] = []
    for item in found.objects:
        kind = kinds[_gvk(item)]
        filled = _filled(item, kind, recorded_at)
        filled = scrubber.scrubbed(filled, secret=_gvk(item) == ("v1", "Secret")) if redactor else filled
        place = text(filled, "metadata", "namespace"), text(filled, "metadata", "name")
        same_kind = by_kind.setdefault((kind.group, kind.plural), {})
        if place in same_kind:
            repeated.append(f"{kind.kind} {'/'.join(filter(None, place))!r}")
        same_kind[place] = filled
    _add_namespaces(by_kind, recorded_at)
    namespaces = found.namespaces
    unread = (*found.unread, *_gaps(found.coverage, kinds, {*map(_gvk, found.objects)}, namespaces))
    for listed in found.coverage.lists if found.coverage else ():
        by_kind.setdefault((kinds[listed].group, kinds[listed].plural), {})
    types = {(kind.group, kind.plural): kind for kind in (*_KNOWN_KINDS, *kinds.values())}
    # A kind without objects is omitted instead of recorded as empty, because the cluster may contain such objects.
    objects = {
        key: RecordedObjects(type=_type(types[key]), items=tuple(items[place] for place in sorted(items)))
        for key, items in by_kind.items()
    }
    return Recording(
        source=found.source,
        recorded_at=recorded_at,
        version=found.version or _version(objects),
        context=found.context,
        namespace=_default_namespace(by_kind),
        namespaces=namespaces,
        discovery=_discovery(types),
        objects=objects,
        logs={key: replace(log, mask=scrubber.scrubbed_log) for key, log in found.logs.items()},
        unread=unread,
        notes=(*found.notes, *_repetitions(repeated)),
    )


def _gaps(
    coverage: Coverage | None,
    kinds: Mapping[GroupKind, KnownKind],
    present: AbstractSet[GroupKind],
    namespaces: Sequence[str],
) -> Iterator[Unread]:
    if coverage is not None:
        types = {group_kind: _type(kind) for group_kind, kind in kinds.items()}
        created = {NAMESPACE} & coverage.kinds()  # namespaces are created for the objects in them
        yield from coverage.gaps(types, present | created, {*namespaces})


def _repetitions(names: Sequence[str]) -> Iterator[str]:
    """Yield a line about objects that were defined again, the first of them by name."""
    if names:
        what = "definition was" if len(names) == 1 else "definitions were"
        yield f"{len(names):,} {what} replaced by a later definition of the same object (for example {names[0]})"


def _gvk(item: JsonObject) -> tuple[str, str]:
    return text(item, "apiVersion"), text(item, "kind")


def _kinds(objects: Sequence[JsonObject], listed: Iterable[GroupKind]) -> dict[GroupKind, KnownKind]:
    """Return the kinds of all `objects`, and the `listed` kinds.

    A kind is built-in, defined by a loaded CustomResourceDefinition, or guessed.
    """
    known = {(f"{kind.group}/{kind.version}" if kind.group else kind.version, kind.kind): kind for kind in _KNOWN_KINDS}
    for item in objects:
        if text(item, "kind") == "CustomResourceDefinition":
            known.update(_defined(item))
    return {key: known.get(key) or guessed_kind(*key) for key in (*map(_gvk, objects), *listed)}


def _defined(definition: JsonObject) -> Iterator[tuple[tuple[str, str], KnownKind]]:
    group, names = text(definition, "spec", "group"), child(definition, "spec", "names")
    for version in children(definition, "spec", "versions"):
        kind = KnownKind(
            group=group,
            version=text(version, "name"),
            kind=text(names, "kind"),
            plural=text(names, "plural"),
            namespaced=text(definition, "spec", "scope") != "Cluster",
            short_names=texts(names, "shortNames"),
            categories=texts(names, "categories"),
        )
        yield (f"{group}/{kind.version}", kind.kind), kind


def _filled(item: JsonObject, kind: KnownKind, recorded_at: datetime) -> JsonObject:
    metadata: dict[str, JsonValue] = dict(child(item, "metadata"))
    name = text(metadata, "name")
    if kind.namespaced:
        metadata["namespace"] = text(metadata, "namespace") or "default"
    else:
        metadata.pop("namespace", None)
    identity = f"{kind.group}/{kind.kind}/{metadata.get('namespace', '')}/{name}"
    metadata["uid"] = text(metadata, "uid") or str(uuid.uuid5(_IDS, identity))
    metadata["creationTimestamp"] = text(metadata, "creationTimestamp") or timestamp(recorded_at)
    metadata["resourceVersion"] = text(metadata, "resourceVersion") or "1"
    filled: JsonObject = {**item, "metadata": metadata}
    if kind.kind == "Secret" and not kind.group:
        filled = _stored_secret(filled)
    if kind not in _BUILT_IN:
        return filled
    return {key: value for key, value in filled.items() if key not in {"apiVersion", "kind"}}


def _stored_secret(secret: JsonObject) -> JsonObject:
    """Return the Secret in the form that a cluster stores, but without its values."""
    stored = dict(without_values(secret))
    plain = text_map(stored.pop("stringData", {}))
    stored["data"] = {**text_map(stored, "data"), **{key: REMOVED_BASE64 if plain[key] else "" for key in plain}}
    stored.setdefault("type", "Opaque")
    return stored


def _add_namespaces(by_kind: dict[tuple[str, str], dict[tuple[str, str], JsonObject]], recorded_at: datetime) -> None:
    """Add a Namespace object for each namespace that contains objects."""
    used = {namespace for items in by_kind.values() for namespace, _ in items if namespace}
    there = by_kind.setdefault(("", "namespaces"), {})
    kind = next(kind for kind in _KNOWN_KINDS if kind.kind == "Namespace")
    for name in sorted(used):
        if ("", name) not in there:
            item = {"metadata": {"name": name}, "spec": {}, "status": {"phase": "Active"}}
            there["", name] = _filled(item, kind, recorded_at)


def _default_namespace(by_kind: Mapping[tuple[str, str], Mapping[tuple[str, str], JsonObject]]) -> str:
    """Return the namespace that all objects share, or `default` if they do not share one."""
    used = {namespace for items in by_kind.values() for namespace, _ in items if namespace}
    return used.pop() if len(used) == 1 else "default"


def _past_times(objects: Sequence[JsonObject]) -> Iterator[datetime]:
    """Yield the times in all fields that record past events, such as creation times."""
    waiting: list[JsonValue] = list(objects)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for key, each in value.items():
                if isinstance(each, dict | list):
                    waiting.append(each)
                elif key in _PAST_FIELDS and isinstance(each, str) and (named := instant(each)) is not None:
                    yield named
        elif isinstance(value, list):
            waiting.extend(value)


def _type(kind: KnownKind) -> ResourceType:
    return ResourceType(
        group=kind.group, version=kind.version, plural=kind.plural, kind=kind.kind, namespaced=kind.namespaced
    )


def _version(objects: Mapping[tuple[str, str], RecordedObjects]) -> JsonObject:
    """Return the Kubernetes version that a kubelet reports, or a default version if no node is known."""
    nodes = objects.get(("", "nodes"))
    kubelets = [text(node, "status", "nodeInfo", "kubeletVersion") for node in (nodes.items if nodes else ())]
    version = next((each for each in kubelets if each), _DEFAULT_VERSION)
    major, _, rest = version.removeprefix("v").partition(".")
    return {"major": major, "minor": rest.partition(".")[0], "gitVersion": version, "platform": "linux/amd64"}


def _discovery(types: Mapping[tuple[str, str], KnownKind]) -> Discovery:
    by_version: dict[tuple[str, str], list[KnownKind]] = {}
    for kind in types.values():
        by_version.setdefault((kind.group, kind.version), []).append(kind)
    groups: list[JsonValue] = []
    for group, version in by_version:
        if group:
            entry = {"groupVersion": f"{group}/{version}", "version": version}
            groups.append({"name": group, "versions": [entry], "preferredVersion": entry})
    return Discovery(
        groups={"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        resources=tuple(_resource_list(*key, kinds) for key, kinds in by_version.items()),
    )


def _resource_list(group: str, version: str, kinds: Sequence[KnownKind]) -> JsonObject:
    entries: list[JsonValue] = []
    for kind in sorted(kinds, key=lambda kind: kind.plural):
        entry: dict[str, JsonValue] = {"name": kind.plural, "singularName": kind.kind.lower(), "kind": kind.kind}
        entry |= {"namespaced": kind.namespaced, "verbs": list(_VERBS)}
        entries.append({**entry, "shortNames": list(kind.short_names), "categories": list(kind.categories)})
        if kind.kind == "Pod":
            entries.append({**entry, "name": "pods/log", "singularName": "", "verbs": ["get"]})
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}
