"""The folders that `kubectl cluster-info dump --output-directory` writes, in JSON or YAML.

A dump has only a few kinds of objects. Its logs are one file for each pod, without times, so they cannot be filtered by
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.snapshot.collection import NO_KIND, Collection
from holmes.snapshot.layouts import SnapshotFormat
from holmes.snapshot.recorded_logs import LOG_LIMIT_BYTES, LogKey, RecordedLog, plain_lines
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path, PurePosixPath

    from holmes.snapshot.coverage import GroupKind
    from holmes.snapshot.layouts import FileTree
    from holmes.snapshot.recording import Recording

_MARK: Final = expression(rb"==== (START|END) logs for container (\S+) of pod ([^/\s]+)/(\S+) ====\r?\n?$")
_LINE_BYTES: Final = 64 * 1024
_KINDS: Final[dict[str, GroupKind]] = {
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
    "events": ("v1", "Event"),
    "services": ("v1", "Service"),
    "replication-controllers": ("v1", "ReplicationController"),
    "deployments": ("apps/v1", "Deployment"),
    "replicasets": ("apps/v1", "ReplicaSet"),
    "daemonsets": ("apps/v1", "DaemonSet"),
}
_ENDINGS: Final = ("json", "yaml")


def _recognises(tree: FileTree) -> bool:
    """Return whether there are nodes at the top, and pods in folders of namespaces."""
    tree = tree.unwrapped()
    return all(any(_any(tree, pattern)) for pattern in ("nodes", "*/pods"))


def _any(tree: FileTree, pattern: str) -> Iterator[PurePosixPath]:
    return (file for ending in _ENDINGS for file in tree.matching(f"{pattern}.{ending}"))


def _load(tree: FileTree) -> Recording:
    collection = Collection(tree.unwrapped())
    namespaces = {file.parts[0] for file in _any(collection.tree, "*/pods")}
    for file in (*_any(collection.tree, "nodes"), *_any(collection.tree, "*/*")):
        namespace = file.parts[0] if len(file.parts) > 1 else ""
        if file.stem in _KINDS:
            collection.add_list(file, _KINDS[file.stem], namespace)
        else:
            collection.read(file, NO_KIND)
    for file in collection.tree.matching("*/*/logs.txt"):
        collection.ignore([file])
        collection.logs |= dict(_logs_in(collection.tree.path(file)))
    return collection.recording("cluster-info dump", namespaces)


def _logs_in(file: Path) -> Iterator[tuple[LogKey, RecordedLog]]:
    """Yield the container logs of a pod, which are all in one file. Reads the file in pieces."""
    key: LogKey | None = None
    start = position = 0
    with file.open("rb") as lines:
        while line := lines.readline(_LINE_BYTES):
            position += len(line)
            mark = _MARK.search(line)
            if mark is None:
                continue
            word, *names = (name.decode("utf-8", "replace") for name in mark.groups())
            container, namespace, pod = names
            if word == "START":
                key, start = LogKey(namespace=namespace, pod=pod, container=container), position
            elif key is not None and key.container == container:
                yield key, _log(file, start, position - len(line) + mark.start())
                key = None


def _log(file: Path, start: int, end: int) -> RecordedLog:
    start = max(start, end - LOG_LIMIT_BYTES)
    return RecordedLog(path=file, offset_bytes=start, size_bytes=end - start, timestamps=False, convert=plain_lines)


FORMAT = SnapshotFormat(
    name="a folder of `kubectl cluster-info dump`", precedence=40, recognises=_recognises, load=_load
)
