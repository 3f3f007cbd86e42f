"""The folders that OpenShift's `oc adm must-gather` and `oc adm inspect` write.

Each image that gathered data has a folder of its own, and the folders together are the cluster. A namespace has one
list for each kind, and the pods have their logs, of both container instances. Cluster-scoped objects have a file each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text
from holmes.snapshot.assembly import known_kind
from holmes.snapshot.collection import Collection
from holmes.snapshot.coverage import NAMESPACE
from holmes.snapshot.layouts import SnapshotFormat
from holmes.snapshot.recorded_logs import LogKey

if TYPE_CHECKING:
    from pathlib import PurePosixPath

    from holmes.snapshot.layouts import FileTree
    from holmes.snapshot.recording import Recording
    from holmes.values.json_types import JsonObject

_CLUSTER: Final = "cluster-scoped-resources"
_NAMESPACES: Final = "namespaces"
_ALL: Final = "all"
"""The folder of lists of all namespaces."""

_OBJECTS: Final = (".yaml", ".yml", ".json")
_IDENTITY: Final = (("apiVersion",), ("kind",), ("metadata", "namespace"), ("metadata", "name"))
_LOGS: Final = {"current.log": False, "previous.log": True, "previous.insecure.log": True}


def _recognises(tree: FileTree) -> bool:
    return any(_is_of_cluster(file) or _place(file) for file in tree.files)


def _is_of_cluster(file: PurePosixPath) -> bool:
    """Return whether a path has the form `cluster-scoped-resources/GROUP/RESOURCE[/NAME].yaml`."""
    return _CLUSTER in file.parts[:-2] and file.suffix in _OBJECTS


def _place(file: PurePosixPath) -> tuple[str, ...]:
    """Return the parts of the path after `namespaces`, if the path has the form of a file of a namespace."""
    if _NAMESPACES not in file.parts[:-2]:
        return ()
    below = file.parts[file.parts.index(_NAMESPACES) + 1 :]
    if below[1] == "pods":
        return below if len(below) > 3 else ()
    is_itself = below[1:] == (f"{below[0]}.yaml",)
    return below if file.suffix in _OBJECTS and (is_itself or len(below) in (3, 4)) else ()


def _load(tree: FileTree) -> Recording:
    collection = Collection(tree)
    namespaces: set[str] = set()
    for file in tree.files:
        if _is_of_cluster(file):
            _add_of_cluster(collection, file)
        elif below := _place(file):
            namespaces |= {below[0]} - {_ALL}
            _add_of_namespace(collection, file, below)
    collection.objects = _newest(collection.objects)
    return collection.recording("must-gather", namespaces)


def _add_of_cluster(collection: Collection, file: PurePosixPath) -> None:
    content = collection.read(file)
    if content is None:
        below = file.parts[file.parts.index(_CLUSTER) + 1 :]
        _add_fault(collection, below[0], below[1].removesuffix(file.suffix), "")
        return
    single = {(text(item, "apiVersion"), text(item, "kind")) for item in content.objects}
    # Only the namespaces that were inspected have a file.
    for kind in content.listed | (single - {NAMESPACE}):
        collection.coverage.add(kind)


def _add_of_namespace(collection: Collection, file: PurePosixPath, below: tuple[str, ...]) -> None:
    """Add `NAMESPACE.yaml`, `GROUP/RESOURCE.yaml`, `GROUP/RESOURCE/NAME.yaml` or `pods/POD/...` of a namespace."""
    namespace, group = below[:2]
    if group == "pods":
        _add_of_pod(collection, file, below)
        return
    content = collection.read(file)
    if len(below) == 3 and content is not None:
        for kind in content.listed:
            collection.coverage.add(kind, "" if namespace == _ALL else namespace)
    elif content is None and len(below) > 2:
        _add_fault(collection, group, below[2].removesuffix(file.suffix), "" if namespace == _ALL else namespace)


def _add_of_pod(collection: Collection, file: PurePosixPath, below: tuple[str, ...]) -> None:
    """Add `POD.yaml` or `CONTAINER/CONTAINER/logs/current.log` of a pod. Empty logs do not replace others."""
    namespace, pod = below[0], below[2]
    if len(below) == 4 and file.suffix in _OBJECTS:
        collection.read(file)
    elif len(below) == 7 and file.name in _LOGS:
        key = LogKey(namespace=namespace, pod=pod, container=below[3], previous=_LOGS[file.name])
        collection.ignore([file])
        if key not in collection.logs or collection.tree.path(file).stat().st_size:
            collection.add_log(file, key)


def _add_fault(collection: Collection, group: str, plural: str, namespace: str) -> None:
    kind = known_kind("" if group == "core" else group, plural)
    if kind is not None:
        collection.coverage.add_fault(kind, namespace, f"the file is not valid: {collection.broken[-1]}")


def _newest(objects: list[JsonObject]) -> list[JsonObject]:
    """Keep the newest version of each object, because several images gather the same objects, and pods occur twice."""
    found: dict[tuple[str, ...], JsonObject] = {}
    for item in objects:
        key = tuple(text(item, *path) for path in _IDENTITY)
        if key not in found or _version(item) > _version(found[key]):
            found[key] = item
    return list(found.values())


def _version(item: JsonObject) -> int:
    version = text(item, "metadata", "resourceVersion")
    return int(version) if version.isdecimal() else 0


FORMAT = SnapshotFormat(name="a must-gather of OpenShift", precedence=30, recognises=_recognises, load=_load)
