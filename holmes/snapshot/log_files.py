"""Finds out of which container a log file is, by the names of the file and its folders.

People and tools name logs in many ways: `NAMESPACE/POD/CONTAINER.log`, `POD_CONTAINER.log`, or the folders of the
kubelet in `/var/log`. If the pods are known, their names decide. Otherwise, pods are made up for the logs, which say
nothing about the state of the pods.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, text
from holmes.snapshot.recorded_logs import LogKey
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Collection as Files
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import PurePosixPath

    from holmes.snapshot.collection import Collection
    from holmes.snapshot.layouts import FileTree
    from holmes.values.json_types import JsonObject, JsonValue

_POD: Final = ("v1", "Pod")
_INSTANCE: Final = expression(r"[-._]?(?P<word>previous|prev|current)$")
_OF_KUBELET: Final = expression(r"(?P<namespace>[a-z0-9-]+)_(?P<pod>[a-z0-9.-]+)_[0-9a-f-]{32,36}$")
_OF_RUNTIME: Final = expression(
    r"(?P<pod>[a-z0-9.-]+)_(?P<namespace>[a-z0-9-]+)_(?P<container>[a-z0-9-]+)-[0-9a-f]{64}$"
)
_GENERATED: Final = expression(
    r"(?:(?:-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}|-\d{1,3})$"
)
"""The end of a name that a controller gave to a pod, in the letters that Kubernetes uses for it."""

_NAME: Final = expression(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$")
_NO_TIME: Final = {"startedAt": None}
_ONLY_LOGS: Final = "the pods are known only from the names of their logs"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pod:
    namespace: str
    name: str
    containers: tuple[str, ...]


def log_files(tree: FileTree, leave: Files[PurePosixPath] = ()) -> Iterator[PurePosixPath]:
    """Yield the files that are logs by their names, except those in `leave`."""
    left = frozenset(leave)
    return (file for file in tree.files if file.suffix == ".log" and file not in left)


def add_logs(collection: Collection, files: Iterable[PurePosixPath]) -> None:
    """Add the logs in `files` to the collection. Adds pods for them if the collection has none."""
    pods = [_pod(item) for item in collection.objects if text(item, "kind") == "Pod"]
    unknown: list[str] = []
    files = list(files)
    collection.ignore(files)  # of many instances only two are read, and logs without a pod have a note of their own
    for file, names, previous in _instances(files):
        key = _key_of_known(names, pods, previous=previous) if pods else _key(names, previous=previous)
        if key is None:
            unknown.append(str(file))
        else:
            collection.add_log(file, key)
    if unknown:
        count = "1 log is" if len(unknown) == 1 else f"{len(unknown):,} logs are"
        why = "of a pod that is not part of this source" if pods else "not named after a pod"
        collection.notes.append(f"{count} {why} and cannot be used (for example {unknown[0]!r})")
    if not pods and collection.logs:
        collection.objects += _made_up(collection.logs)
        collection.coverage.add_fault(_POD, "", _ONLY_LOGS)


def _pod(item: JsonObject) -> _Pod:
    groups = ("containers", "initContainers", "ephemeralContainers")
    containers = tuple(text(each, "name") for group in groups for each in children(item, "spec", group))
    return _Pod(
        namespace=text(item, "metadata", "namespace") or "default",
        name=text(item, "metadata", "name"),
        containers=containers,
    )


def _instances(files: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, tuple[str, ...], bool]]:
    """Yield each file with the names in its path, and whether it is the log of the previous instance.

    The kubelet numbers the instances of a container: `0.log`, `1.log`. Of these, the newest two are used.
    """
    numbered: dict[PurePosixPath, list[PurePosixPath]] = defaultdict(list)
    for file in files:
        if file.stem.isdecimal() and len(file.parts) > 2:
            numbered[file.parent].append(file)
        else:
            yield file, _stem(file), _is_previous(file)
    for parent, group in numbered.items():
        newest = sorted(group, key=lambda file: int(file.stem))[-2:]
        for file in newest:
            yield file, (*parent.parts[:-1], parent.name), file != newest[-1]


def _is_previous(file: PurePosixPath) -> bool:
    found = _INSTANCE.search(file.stem)
    return found is not None and found["word"] != "current"


def _stem(file: PurePosixPath) -> tuple[str, ...]:
    """Return the folders and the name of a file, without what only says which instance it is."""
    stem = _INSTANCE.sub("", file.stem)
    folders = tuple(part for part in file.parts[:-1] if part not in ("logs", "pods"))
    return (*folders, stem) if stem else folders


def _key_of_known(names: Sequence[str], pods: Sequence[_Pod], *, previous: bool) -> LogKey | None:
    """Return the log of the pod that the names contain. A name can also start with the pod: `POD-CONTAINER.log`."""
    parts = [part for name in names for part in (name, *name.split("_"))]
    found = [pod for pod in pods if pod.name in parts or any(part.startswith(f"{pod.name}-") for part in parts)]
    found.sort(key=lambda pod: (pod.namespace in parts, len(pod.name)), reverse=True)
    if not found or (len(found) > 1 and _is_ambiguous(found[0], found[1], parts)):
        return None
    pod = found[0]
    named = [each for each in pod.containers if any(part == each or part.endswith(f"-{each}") for part in parts)]
    # The beginning alone is not enough: `api-worker-7d9f` is not a log of pod `api`.
    if pod.name not in parts and not any(part == f"{pod.name}-{each}" for part in parts for each in pod.containers):
        return None
    if pod.namespace not in parts and any(other.namespace in parts for other in pods):
        return None
    choices = [each for each in named if each in parts] or named or list(pod.containers)
    if len(choices) != 1:
        return None
    return LogKey(namespace=pod.namespace, pod=pod.name, container=choices[0], previous=previous)


def _is_ambiguous(first: _Pod, second: _Pod, parts: Sequence[str]) -> bool:
    return first.name == second.name and (first.namespace in parts) == (second.namespace in parts)


def _key(names: Sequence[str], *, previous: bool) -> LogKey | None:
    """Return the log that the names mean if no pod is known."""
    namespace, pod, container = _by_kubelet(names) or _by_parts([part for name in names for part in name.split("_")])
    if not all(_NAME.match(name) for name in (namespace, pod, container)):
        return None
    return LogKey(namespace=namespace, pod=pod, container=container, previous=previous)


def _by_kubelet(names: Sequence[str]) -> tuple[str, str, str] | None:
    """Return namespace, pod and container if the names are those of `/var/log/pods` or `/var/log/containers`."""
    runtime = _OF_RUNTIME.match(names[-1]) if names else None
    if runtime is not None:
        return runtime["namespace"], runtime["pod"], runtime["container"]
    folder = _OF_KUBELET.match(names[-2]) if len(names) > 1 else None
    return (folder["namespace"], folder["pod"], names[-1]) if folder is not None else None


def _by_parts(parts: Sequence[str]) -> tuple[str, str, str]:
    """Return namespace, pod and container. Two names are a pod and its container if the first is a generated name."""
    match parts:
        case [*_, namespace, pod, container]:
            return namespace, pod, container
        case [pod, container] if _GENERATED.search(pod) and not _GENERATED.search(container):
            return "default", pod, container
        case [namespace, pod]:
            return namespace, pod, _workload(pod)
        case [pod]:
            return "default", pod, _workload(pod)
        case _:
            return "", "", ""


def _workload(pod: str) -> str:
    """Return the name of the workload, which most pods with one container use for it."""
    return _GENERATED.sub("", pod) or pod


def _made_up(logs: Mapping[LogKey, object]) -> Iterator[JsonObject]:
    """Yield a pod for each pod that has logs. Only its names are known."""
    containers: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for key in logs:
        of_pod = containers[key.namespace, key.pod]
        of_pod[key.container] = of_pod.get(key.container, False) or key.previous
    for (namespace, pod), restarted in containers.items():
        statuses: list[JsonValue] = [
            {"name": name, "state": {"running": _NO_TIME}, "lastState": {"terminated": _NO_TIME} if again else {}}
            for name, again in restarted.items()
        ]
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": namespace, "name": pod},
            "spec": {"nodeName": "unknown", "containers": [{"name": name} for name in restarted]},
            "status": {"phase": "Running", "containerStatuses": statuses},
        }
