"""Makes evidence: the values that prove a fault, with the path where they stand. Called by the rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holmes.redaction.names import strength_of
from holmes.values.findings import Evidence
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject

_LONGEST_CHARACTERS = 600


def shown(value: object) -> str:
    """A value as evidence shows it: text as it is, everything else as JSON; cut when it is very long."""
    written = value if isinstance(value, str) else json.dumps(value, default=str)
    return excerpt(written, _LONGEST_CHARACTERS)


def has_secret_name(name: str) -> bool:
    """Whether the value under a name is a secret: a sentence about it loses the form by which others would see that."""
    return strength_of(name) != "none"


def field(each: ClusterObject, *path: str) -> Evidence:
    """A field of an object: `field(pod, "status", "phase")`."""
    return Evidence(object=each.ref, path=".".join(path), value=shown(each.at(*path)))


def value(each: ClusterObject, path: str, found: object) -> Evidence:
    """A value that was found under a path with list positions: `value(pod, "spec.volumes[2].configMap.name", name)`."""
    return Evidence(object=each.ref, path=path, value=shown(found))


def event(found: ClusterEvent) -> Evidence:
    """An event, with how often it was seen."""
    times = f" (x{found.count})" if found.count > 1 else ""
    return Evidence(object=found.ref, path=f"event {found.reason}{times}", value=shown(found.message))


def log_line(pod: ClusterObject, container: str, line: str, *, previous: bool) -> Evidence:
    """A line of a log."""
    instance = " (previous)" if previous else ""
    return Evidence(object=pod.ref, path=f"log of container {container}{instance}", value=shown(line))
