"""Objects in YAML or JSON: what `kubectl get -o yaml` or `-o json` printed, or manifests, with logs beside them.

Objects of a cluster have a `uid`. A kind is complete only where a list of it was printed: a list with several
namespaces is taken for the whole cluster, and any other list for the namespaces in it. Manifests have no such lists,
and are taken for everything that there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text
from holmes.snapshot.archives import OBJECT_ENDINGS
from holmes.snapshot.collection import Collection, Content
from holmes.snapshot.layouts import SnapshotFormat
from holmes.snapshot.log_files import add_logs, log_files
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import PurePosixPath

    from holmes.snapshot.coverage import GroupKind
    from holmes.snapshot.layouts import FileTree
    from holmes.snapshot.recording import Recording

_PRINTED: Final = (".txt", ".out", "")
"""Endings of files into which people also redirect what kubectl prints."""

_HEAD_BYTES: Final = 512
_STARTS: Final = ("apiVersion:", "kind:", "---", "{", "items:")


def _recognises(tree: FileTree) -> bool:
    return any(_has_objects(tree, file) for file in tree.files)


def _has_objects(tree: FileTree, file: PurePosixPath) -> bool:
    suffix = file.suffix.lower()
    if suffix in OBJECT_ENDINGS or suffix not in _PRINTED:
        return suffix in OBJECT_ENDINGS
    try:
        with tree.path(file).open("rb") as opened:
            head = opened.read(_HEAD_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return False
    return head.lstrip().startswith(_STARTS) and "apiVersion" in head


def _load(tree: FileTree) -> Recording:
    collection = Collection(tree)
    files = [file for file in tree.files if _has_objects(tree, file)]
    contents = [content for file in files if (content := collection.read(file)) is not None]
    has_objects = bool(collection.objects)
    live = any(text(item, "metadata", "uid") for item in collection.objects)
    add_logs(collection, log_files(tree, leave=files))
    if not has_objects and not collection.logs and not collection.broken:
        why = "; ".join((f"{len(files)} files were read", *collection.content_notes()))
        raise ConfigError(f"{str(tree.source)!r} contains neither a recording nor Kubernetes objects: {why}")
    if has_objects and not live:
        return collection.recording("manifests", complete=True)
    for each in (one for content in contents for one in content.lists):
        _add_lists(collection, each)
    namespaces = {name for item in collection.objects if (name := text(item, "metadata", "namespace"))}
    return collection.recording("kubectl output" if has_objects else "logs", namespaces)


def _add_lists(collection: Collection, content: Content) -> None:
    """Record one list. kubectl prints the objects of several kinds as one list."""
    found: dict[GroupKind, set[str]] = {kind: set() for kind in content.listed}
    for item in content.objects:
        kind = text(item, "apiVersion"), text(item, "kind")
        if kind in found:
            found[kind].add(text(item, "metadata", "namespace"))
    everywhere = len(set().union(*found.values()) - {""}) > 1
    for kind, namespaces in found.items():
        for namespace in {""} if everywhere else namespaces:
            collection.coverage.add(kind, namespace)


FORMAT = SnapshotFormat(
    name="output of `kubectl get -o yaml`, manifests", precedence=50, recognises=_recognises, load=_load
)
