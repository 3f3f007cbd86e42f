"""Quotes text from the cluster in Markdown and writes the commands at the end of an answer.

Quoted text cannot change the layout of an answer. Commands are never run, and their values are quoted for the shell.
Functions that format text return one line, except `fenced` and `table`.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import KINDS
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.values.findings import Incident, ObjectRef

_BUILT_IN: Final = frozenset(kind.name for kind in KINDS)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_BACKTICKS = re.compile(r"`+")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_MARKER = re.compile(r"\[(?=\[)")
_ROLLED_OUT: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
_OWNERS: Final = _ROLLED_OUT | {"ReplicaSet", "Job", "CronJob"}
_CONTAINER = re.compile(r"(initContainers|containers)\[(?:name=)?['\"]?([a-z0-9-]{1,63})['\"]?\]")
_SPOKEN_CONTAINER = re.compile(r"\bcontainer ([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?) of ")


def one_line(text: str, most_characters: int = 0) -> str:
    """Return `text` on one line without control characters, optionally shortened to `most_characters`."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return shortened(line, most_characters) if most_characters else line


def plain(text: str, most_characters: int = 600) -> str:
    """Return `text` as running text. Code, emphasis, links, tags and citations are escaped."""
    line = one_line(text, most_characters).replace("`", "'").replace("*", r"\*").replace("](", r"]\(")
    return _MARKER.sub("[ ", _TAG.sub(r"\\<", line))


def sentence(text: str) -> str:
    """Add a full stop to `text` unless it ends with punctuation."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def code(text: str, most_characters: int = 240) -> str:
    """Format `text` as a code span, even if it contains backticks."""
    line = _MARKER.sub("[ ", one_line(text, most_characters)) or " "
    longest = max((len(run) for run in _BACKTICKS.findall(line)), default=0)
    if not longest:
        return f"`{line}`"
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}"


def fenced(lines: Iterable[str], language: str = "") -> str:
    """Format `lines` as a code block that none of the lines can close."""
    shown = [_MARKER.sub("[ ", _CONTROL.sub(" ", line).rstrip()) for line in lines]
    longest = max((len(run) for line in shown for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}{language}", *shown, fence))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table with single-line cells. Vertical bars in cells are escaped."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return plain(text, 160).replace("|", r"\|") or "-"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 pod`, `3 pods`, `2 Ingresses`."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith(('s', 'x', 'ch')) else 's'}"


def resource_path(ref: ObjectRef) -> str:
    """Return the object in the form that kubectl and the tools accept: `deployment/checkout`."""
    kind = ref.kind.lower() if not ref.group or ref.kind in _BUILT_IN else f"{ref.kind.lower()}.{ref.group}"
    return f"{kind}/{ref.name}"


def namespace_option(ref: ObjectRef) -> str:
    """Return the option ` -n shop`, or an empty string for objects without a namespace."""
    return f" -n {shlex.quote(ref.namespace)}" if ref.namespace else ""


def fix_commands(incident: Incident) -> tuple[str, ...]:
    """Return the commands for the likely fix: a rollback, or an edit of the wrong field."""
    culprit = incident.culprit
    target, place = shlex.quote(resource_path(culprit)), namespace_option(culprit)
    commands: list[str] = []
    first = incident.evidence[0] if incident.evidence else None
    path = first.path if first is not None and first.object == culprit else ""
    changed = any(each.object == culprit and "created" not in each.what for each in incident.changed_before)
    if changed and culprit.kind in _ROLLED_OUT:
        commands.append(f"kubectl rollout undo {target}{place}")
    if _is_missing(incident):
        commands.append(f"# create {culprit.kind} {culprit.path}, or correct the reference to it")
    elif path.endswith("limits.memory") and culprit.kind in _ROLLED_OUT:
        commands.append(
            f"kubectl set resources {target}{place}{_container_option(path, incident.cause)} --limits=memory=<limit>"
        )
    elif path.endswith(".image") and culprit.kind in _ROLLED_OUT:
        container = _container_of(path, incident.cause) or "<container>"
        commands.append(f"kubectl set image {target}{place} {container}=<existing image>")
    elif path == "spec.replicas" and culprit.kind in _ROLLED_OUT | {"ReplicaSet"}:
        commands.append(f"kubectl scale {target}{place} --replicas=<number>")
    elif path == "spec.unschedulable" and culprit.kind == "Node":
        commands.append(f"kubectl uncordon {shlex.quote(culprit.name)}")
    elif path and culprit.kind not in ("Pod", "Node", "Event"):
        commands.append(f"kubectl edit {target}{place}  # {one_line(path, 120)}")
    return tuple(commands)


def _is_missing(incident: Incident) -> bool:
    """Return whether the culprit does not exist.

    The culprit does not exist if the incident reports it as missing and contains no evidence from it. A workload that
    has pods exists. For example, a missing file that crashes a pod does not mean that its Deployment is missing.
    """
    culprit = incident.culprit
    if culprit.kind in _OWNERS and any(finding.subject.kind in ("Pod", "ReplicaSet") for finding in incident.findings):
        return False
    says_so = any(
        word in f"{incident.title} {incident.cause}".lower()
        for word in ("missing", "does not exist", "no longer exists")
    )
    return says_so and all(
        finding.subject != culprit and all(each.object != culprit for each in finding.evidence)
        for finding in incident.findings
    )


def _container_of(path: str, cause: str) -> str:
    """Return the container name from the path or, if the path has none, from the cause."""
    match = _CONTAINER.search(path)
    if match and not match[2].isdigit():
        return match[2]
    spoken = _SPOKEN_CONTAINER.search(cause)
    return spoken[1] if spoken else ""


def _container_option(path: str, cause: str) -> str:
    container = _container_of(path, cause)
    return f" --containers={shlex.quote(container)}" if container else ""
