"""Finds the volume behind a log line that says there is no space left. Called by rules about volumes and crashes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.fields import children, text
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject

_NO_SPACE: Final = re.compile(r"no space left on device|\bENOSPC\b|disk quota exceeded", re.IGNORECASE)
_FILE: Final = re.compile(r"(?<![\w/.:])/[\w.@+-]+(?:/[\w.@+-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class FullMount:
    """A mount without space. `index` is its position among the mounts, `position` that of its volume in the pod.

    `claim` is None for a volume that is not a claim's.
    """

    file: str
    path: str
    index: int
    volume: str
    position: int
    claim: ObjectRef | None


def says_full(line: str) -> bool:
    """Whether the line says that a disk is full."""
    return _NO_SPACE.search(line) is not None


def files_in(line: str) -> tuple[str, ...]:
    """The absolute paths in a line."""
    return tuple(_FILE.findall(line))


def full_claims(line: str, pod: ClusterObject) -> tuple[ObjectRef, ...]:
    """The claims whose mounts a line about a full disk names."""
    if not says_full(line):
        return ()
    found = (full_mount(container, line) for container in containers_of(pod))
    return tuple(dict.fromkeys(mount.claim for mount in found if mount is not None and mount.claim is not None))


def full_mount(container: Container, line: str) -> FullMount | None:
    """The innermost mount that a file in the line lies in."""
    for file in files_in(line):
        found = [
            (len(path), index, path, text(mount, "name"))
            for index, mount in enumerate(children(container.spec, "volumeMounts"))
            for path in [text(mount, "mountPath").rstrip("/")]
            if path and (file == path or file.startswith(f"{path}/"))
        ]
        if found:
            _, index, path, name = max(found)
            return _mount(container.pod, name, (file, path, index))
    return None


def _mount(pod: ClusterObject, name: str, place: tuple[str, str, int]) -> FullMount:
    volumes = pod.children("spec", "volumes")
    position = next((at for at, each in enumerate(volumes) if text(each, "name") == name), 0)
    claim = text(volumes[position], "persistentVolumeClaim", "claimName") if volumes else ""
    file, path, index = place
    return FullMount(
        file=file,
        path=path,
        index=index,
        volume=name,
        position=position,
        claim=ObjectRef(kind="PersistentVolumeClaim", namespace=pod.namespace, name=claim) if claim else None,
    )
