"""The commands at the end of a report: what to look at next, and the change that probably helps.

Called by `report`. Nothing here is ever run; values of the cluster are quoted for the shell.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from holmes.triage.markdown import one_line
from holmes.triage.words import KIND_BY_NAME

if TYPE_CHECKING:
    from holmes.values.findings import Incident, ObjectRef

_ROLLED_OUT: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
_CONTAINER = re.compile(r"(initContainers|containers)\[(?:name=)?['\"]?([a-z0-9-]{1,63})['\"]?\]")
_SPOKEN_CONTAINER = re.compile(r"\bcontainer ([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?) of ")
_COMMAND = re.compile(r"(?:kubectl|helm) (?=\S)")


def resource_path(ref: ObjectRef) -> str:
    """`deployment/checkout`, as kubectl and the tools take it."""
    kind = ref.kind.lower() if not ref.group or ref.kind in KIND_BY_NAME else f"{ref.kind.lower()}.{ref.group}"
    return f"{kind}/{ref.name}"


def namespace_option(ref: ObjectRef) -> str:
    """` -n shop`, or nothing for what has no namespace."""
    return f" -n {shlex.quote(ref.namespace)}" if ref.namespace else ""


def look_commands(incident: Incident) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the rules say to look at next: commands, and looks that are no command."""
    checks = tuple(one_line(check, 400) for check in incident.next_checks[:4])
    commands = [check for check in checks if _COMMAND.match(check)]
    if not commands:
        culprit = incident.culprit
        commands = [f"kubectl describe {shlex.quote(resource_path(culprit))}{namespace_option(culprit)}"]
    return tuple(commands[:4]), tuple(check for check in checks if not _COMMAND.match(check))


def fix_commands(incident: Incident) -> tuple[str, ...]:
    """The change that probably helps: back to what was before, or an edit of the field that is wrong."""
    culprit = incident.culprit
    target, place = shlex.quote(resource_path(culprit)), namespace_option(culprit)
    commands: list[str] = []
    first = incident.evidence[0] if incident.evidence else None
    path = first.path if first is not None and first.object == culprit else ""
    changed = any(each.object == culprit and "created" not in each.what for each in incident.changed_before)
    if changed and culprit.kind in _ROLLED_OUT:
        commands.append(f"kubectl rollout undo {target}{place}")
    if _is_missing(incident):
        commands.append(f"# create {culprit.kind} {culprit.path}, or correct what refers to it")
    elif path.endswith("limits.memory") and culprit.kind in _ROLLED_OUT:
        commands.append(
            f"kubectl set resources {target}{place}{_container_option(path, incident.cause)} --limits=memory=<more>"
        )
    elif path.endswith(".image") and culprit.kind in _ROLLED_OUT:
        container = _container_of(path, incident.cause) or "<container>"
        commands.append(f"kubectl set image {target}{place} {container}=<image that exists>")
    elif path == "spec.replicas" and culprit.kind in _ROLLED_OUT | {"ReplicaSet"}:
        commands.append(f"kubectl scale {target}{place} --replicas=<wanted>")
    elif path == "spec.unschedulable" and culprit.kind == "Node":
        commands.append(f"kubectl uncordon {shlex.quote(culprit.name)}")
    elif path and culprit.kind not in ("Pod", "Node", "Event"):
        commands.append(f"kubectl edit {target}{place}  # {one_line(path, 120)}")
    return tuple(commands)


def _is_missing(incident: Incident) -> bool:
    """Whether the culprit is an object that does not exist: nothing was read from it, and nothing shows at it."""
    culprit = incident.culprit
    says_so = any(word in f"{incident.title} {incident.cause}".lower() for word in ("missing", "does not exist"))
    return says_so and all(
        finding.subject != culprit and all(each.object != culprit for each in finding.evidence)
        for finding in incident.findings
    )


def _container_of(path: str, cause: str) -> str:
    """The container's name, where the path or the sentence of the rule has it."""
    match = _CONTAINER.search(path)
    if match and not match[2].isdigit():
        return match[2]
    spoken = _SPOKEN_CONTAINER.search(cause)
    return spoken[1] if spoken else ""


def _container_option(path: str, cause: str) -> str:
    container = _container_of(path, cause)
    return f" --containers={shlex.quote(container)}" if container else ""
