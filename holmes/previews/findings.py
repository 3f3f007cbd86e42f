"""Selects unusual values in a `Tree`: bad states, rare values, missing fields, different image tags.

The preview quotes each unusual value with its path and with typical values for comparison.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews.excerpts import clip_around
from holmes.previews.severity import (
    Spread,
    badness_of,
    condition_is_bad,
    image_parts,
    number_of,
    severe_position,
    word_severity,
)
from holmes.previews.tables import rare_values
from holmes.previews.tree import Place, node_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.previews.tree import Node, Seen, Tree

_MAX_FINDINGS = 300
_FEW = 8
_STATE_KEYS = frozenset(
    {
        "phase", "state", "status", "health", "healthStatus", "result", "conclusion", "reason", "syncStatus", "sync",
        "level", "severity", "type",
    }
)  # fmt: skip
_BETTER_TRUE = frozenset({"ready", "healthy", "available", "connected", "started"})
_BETTER_FALSE = frozenset({"unschedulable", "suspend", "paused", "stalled"})
_SENTENCE_KEYS = frozenset(
    {"message", "error", "err", "msg", "lastError", "stderr", "log", "detail", "details", "note"}
)
_TIME_KEYS = ("Time", "Timestamp", "timestamp", "time", "Seconds", "generation", "Generation", "resourceVersion", "uid")
_QUIET_PARTS = ("annotations", "ownerReferences", "labels", "matchLabels", "initialDelaySeconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An unusual value, its position, and its score from about 2 to 30. `text` does not contain the path."""

    score: float
    place: Place
    text: str


def find_odd(tree: Tree) -> list[Finding]:
    """Find the unusual values with the highest scores."""
    found: list[Finding] = []
    for node in _nodes(tree.root):
        if node.key.endswith(_TIME_KEYS):
            continue
        quiet = 0.35 if _is_quiet(node) else 1.0
        for finding in _of_node(node):
            score = finding.score * quiet
            if score >= 2:
                found.append(Finding(score=score, place=finding.place, text=finding.text))
        if len(found) > _MAX_FINDINGS * 8:
            found = _oddest(found)
    return _oddest(found)


def _oddest(found: list[Finding]) -> list[Finding]:
    order = sorted(range(len(found)), key=lambda index: (-found[index].score, index))
    return [found[index] for index in order[:_MAX_FINDINGS]]


def _nodes(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children.values()))


def _is_quiet(node: Node) -> bool:
    current: Node | None = node
    while current is not None:
        if current.key in _QUIET_PARTS:
            return True
        current = current.parent
    return False


def _of_node(node: Node) -> Iterator[Finding]:
    if node.scalars:
        yield from _odd_values(node)
        yield from _odd_numbers(node)
    if node.key in ("image", "images", "imageID") and node.key != "imageID":
        yield from _odd_images(node)
    if node.parent is not None and node.parent.objects > _FEW and not node.parent.key.endswith(_QUIET_PARTS):
        yield from _rare_or_missing(node)


def _odd_values(node: Node) -> Iterator[Finding]:
    total = node.scalars
    counts = Counter({value: seen.count for value, seen in node.values.items()})
    rare = rare_values(counts) if total >= _FEW and not node.many and len(counts) > 1 and _repeats(node) else {}
    for value, seen in node.values.items():
        bad = _badness(node, value, seen.count, total)
        points = rare.get(value, 0.0) + bad
        if points >= 2:
            yield Finding(score=points, place=seen.place, text=f"= {_shown(value)}{_others(node, value, seen)}")


def _repeats(node: Node) -> bool:
    """Return whether most values of a field occur several times, so that a single occurrence is significant."""
    return len(node.values) <= 12 or node.scalars > 6 * len(node.values)


def _badness(node: Node, value: str, count: int, total: int) -> float:
    """Return the severity of a value if it is in a field that Kubernetes defines, or 0 otherwise."""
    key, parent = node.key, node.parent
    above = parent.key if parent is not None else ""
    rare = count * 10 <= total or count <= 2
    points = 0.0
    if key == "status" and above.startswith("[type="):
        points = (18.0 if rare else 6.0) if condition_is_bad(above[6:-1], value) else 0.0
    elif key == "exitCode":
        points = 16.0 if value != "0" else 0.0
    elif key in _BETTER_TRUE:
        points = (10.0 if rare or total < _FEW else 5.0) if value == "false" else 0.0
    elif key in _BETTER_FALSE:
        points = 9.0 if value == "true" else 0.0
    elif key == "reason" and above == "waiting":
        points = 12.0 if value in ("ContainerCreating", "PodInitializing") else 20.0
    elif key == "deletionTimestamp":
        points = 6.0
    elif key in _SENTENCE_KEYS and len(value) > 8:
        points = min(14.0, 3.0 * word_severity(value)) / (1 + count * 10 // max(10, total))
    elif key in _STATE_KEYS and len(value) <= 60 and value not in ("null", "true"):
        points = badness_of(value, total=total, count=count)
    return points


def _others(node: Node, value: str, seen: Seen) -> str:
    """Return a note with typical other values of the field, for comparison."""
    total = node.scalars
    if total == 1:
        return ""
    others = sorted(
        ((other.count, text) for text, other in node.values.items() if text != value),
        key=lambda item: (-item[0], item[1]),
    )
    if not others or node.many or len(others) > 40:
        return f" ({seen.count:,} of {total:,})"
    shown = ", ".join(f"{clip_around(text, 40)} {count:,}" for count, text in others[:2])
    more = f" and {len(others) - 2:,} more values" if len(others) > 2 else ""
    return f" ({seen.count:,} of {total:,}; others: {shown}{more})"


def _shown(value: str) -> str:
    return f'"{clip_around(value, 160, severe_position(value) if len(value) > 160 else 0)}"'


def _odd_numbers(node: Node) -> Iterator[Finding]:
    if node.many or node.numbers < _FEW or node.numbers * 2 < node.scalars or node.largest_place is None:
        return
    numbers = [
        number
        for value, seen in node.values.items()
        if (number := number_of(value)) is not None
        for _ in range(min(seen.count, 50))
    ]
    if len(numbers) < _FEW:
        return
    spread = Spread.of(numbers)
    distance = spread.distance(node.largest)
    if distance and (not _repeats(node) or f"{node.largest:g}" not in node.values or node.key == "restartCount"):
        weight = 1.5 if node.key == "restartCount" else 1.0
        text = f"= {node.largest:g} (largest; median {spread.median:g})"
        yield Finding(score=weight * distance, place=node.largest_place, text=text)


def _odd_images(node: Node) -> Iterator[Finding]:
    tags: Counter[str] = Counter()
    tags_of: dict[str, Counter[str]] = {}
    for image, seen in node.values.items():
        for repository, tag in image_parts(image):
            tags[tag] += seen.count
            tags_of.setdefault(repository, Counter())[tag] += seen.count
    rare = rare_values(tags)
    for image, seen in node.values.items():
        for repository, tag in image_parts(image):
            same = tags_of[repository]
            minority = same.total() >= 3 and same[tag] * 3 <= same.total()
            score = max(10.0 if minority else 0.0, rare.get(tag, 0.0))
            if score:
                usual = (same if minority else tags).most_common(1)[0]
                yield Finding(
                    score=score,
                    place=seen.place,
                    text=f'= "{clip_around(image, 160)}" (usual tag: {usual[0]}, {usual[1]:,} times)',
                )


def _rare_or_missing(node: Node) -> Iterator[Finding]:
    parent = node.parent
    if parent is None or node.key == "[]":
        return
    total = parent.objects
    present = total - _missing(node)
    if present and 0 < total - present <= max(1, min(total // 20, 10)):
        gaps = list(node.gaps)
        if node.last_parent < total and parent.here is not None:
            gaps.append(parent.here)
        if gaps:
            few = 9.0 / (total - present) ** 0.5
            score = few if node.key.startswith("[name=") or node.children else few * 0.9
            text = f"has no {node.key.lstrip('[').rstrip(']')} ({present:,} of {total:,} have it)"
            yield Finding(score=score, place=gaps[0], text=text)
    elif 0 < present <= max(1, min(total // 50, 4)):
        first = _first_place(node)
        if first is not None and len(parent.children) < 60:
            value = f"= {_shown(next(iter(node.values)))}" if node.values else "is present"
            yield Finding(
                score=5.0 / present**0.5, place=first, text=f"{value} (only {present:,} of {total:,} have it)"
            )


def _missing(node: Node) -> int:
    parent = node.parent
    return node.missing + (parent.objects - node.last_parent if parent is not None else 0)


def _first_place(node: Node) -> Place | None:
    if node.values:
        return next(iter(node.values.values())).place
    return node.here


def describe(node: Node) -> str:
    """Return one line with the path of a field and its most frequent values with their counts."""
    ordered = sorted(node.values.items(), key=lambda item: (-item[1].count, item[0]))
    shown = ", ".join(f"{clip_around(value, 48)} {seen.count:,}" for value, seen in ordered[:6])
    more = f", {len(ordered) - 6:,} more values" if len(ordered) > 6 else ""
    return f"{node_path(node)}: {shown}{more}"
