"""Collects statistics of nested values: how often each path occurs or is missing, and its values with their positions.

Values are added one by one, so that a large document is never completely in memory as objects. `[]` stands for all
indexes of a list, unless its items have an identity, as conditions and environment variables do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from holmes.previews.events import EventGroups, object_event
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue

Location: TypeAlias = "tuple[Location, str | int] | None"

_MAX_DISTINCT = 400
_MAX_CHILDREN = 1_500
_MAX_NODES = 60_000
_MAX_GAPS = 4
_MAX_DEPTH = 60
_HUGE = 1e300
_VALUE_CHARACTERS = 240
_SKIPPED = frozenset({"managedFields", "kubectl.kubernetes.io/last-applied-configuration"})
_KEYED_LISTS = {"conditions": "type", "env": "name"}


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a value: its path, and the list item that contains it."""

    location: Location
    item: Item | None


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a list of objects, or one document."""

    location: Location
    name: str
    line: int


@dataclass(slots=True)
class Seen:
    """The number of occurrences of a value, and its first position."""

    count: int
    place: Place


@dataclass(slots=True)
class Node:
    """Statistics of one path. In the path, `[]` stands for all indexes of a list."""

    key: str
    parent: Node | None
    count: int = 0
    objects: int = 0
    lists: int = 0
    list_items: int = 0
    scalars: int = 0
    values: dict[str, Seen] = field(default_factory=dict)
    many: bool = False
    numbers: int = 0
    largest: float = 0.0
    largest_place: Place | None = None
    children: dict[str, Node] = field(default_factory=dict)
    last_parent: int = 0
    gaps: list[Place] = field(default_factory=list)
    missing: int = 0
    here: Place | None = None


class Tree:
    """Collects statistics of values. Call `add` once for each value, in order."""

    def __init__(self) -> None:
        self.events = EventGroups()
        self.root = Node("", None)
        self.items = 0
        self.item: Item | None = None
        self._nodes = 1

    def child(self, node: Node, key: str) -> Node:
        """Return the child of `node` for `key`. When the limit on nodes is reached, further keys share one child."""
        found = node.children.get(key)
        if found is None:
            if len(node.children) >= _MAX_CHILDREN or self._nodes >= _MAX_NODES:
                key = "*"
                found = node.children.get(key)
            if found is None:
                self._nodes += 1
                found = node.children[key] = Node(key, node)
        return found

    def enter_item(self, value: JsonValue, location: Location, line: int = 0) -> None:
        """Start an item. All values that are added next belong to this item."""
        self.items += 1
        event = object_event(value, str(line) if line else path_of(location))
        if event is not None:
            self.events.add(event)
        self.item = Item(location, _name_of(value), line)

    def add(self, node: Node, value: JsonValue, location: Location, depth: int = 0) -> None:
        """Add `value` and its members to the statistics of `node`."""
        node.count += 1
        if isinstance(value, dict):
            self._add_object(node, value, location, depth)
        elif isinstance(value, list):
            self._add_list(node, value, location, depth)
        else:
            self._add_scalar(node, value, location)

    def enter_object(self, node: Node, location: Location) -> None:
        """Add an object without its members. The caller adds the members one by one."""
        node.objects += 1
        node.here = Place(location, self.item)

    def _add_object(self, node: Node, value: dict[str, JsonValue], location: Location, depth: int) -> None:
        previous = node.here
        self.enter_object(node, location)
        if depth > _MAX_DEPTH:
            return
        for key, inner in value.items():
            if key in _SKIPPED:
                continue
            child = self.child(node, key)
            if child.last_parent != node.objects - 1:
                self._note_gap(child, node.objects - 1 - child.last_parent, previous)
            child.last_parent = node.objects
            self.add(child, inner, (location, key), depth + 1)

    def _note_gap(self, child: Node, skipped: int, previous: Place | None) -> None:
        child.missing += skipped
        if previous is not None and len(child.gaps) < _MAX_GAPS:
            child.gaps.append(previous)

    def _add_list(self, node: Node, value: list[JsonValue], location: Location, depth: int) -> None:
        node.lists += 1
        node.list_items += len(value)
        if depth > _MAX_DEPTH:
            return
        identity = _KEYED_LISTS.get(node.key)
        if identity and len(value) <= 64 and all(isinstance(each, dict) for each in value):
            self._add_keyed(node, value, location, depth, identity)
            return
        outside = self.item is None
        child = self.child(node, "[]")
        for index, inner in enumerate(value):
            place = (location, index)
            if outside and isinstance(inner, dict):
                self.enter_item(inner, place)
            self.add(child, inner, place, depth + 1)
        if outside:
            self.item = None

    def _add_keyed(self, node: Node, value: list[JsonValue], location: Location, depth: int, identity: str) -> None:
        previous = node.here
        self.enter_object(node, location)
        for index, inner in enumerate(value):
            name = inner.get(identity) if isinstance(inner, dict) else None
            child = self.child(node, f"[{identity}={name}]")
            if child.last_parent != node.objects - 1:
                self._note_gap(child, node.objects - 1 - child.last_parent, previous)
            child.last_parent = node.objects
            self.add(child, inner, (location, index), depth + 1)

    def _add_scalar(self, node: Node, value: JsonValue, location: Location) -> None:
        node.scalars += 1
        if isinstance(value, str):
            text = shortened(value, _VALUE_CHARACTERS, mark="")
        elif value is True or value is False or value is None:
            text = "null" if value is None else "true" if value else "false"
        else:
            text = self._add_number(node, value, location)
        seen = node.values.get(text)
        if seen is not None:
            seen.count += 1
        elif len(node.values) < _MAX_DISTINCT:
            node.values[text] = Seen(1, Place(location, self.item))
        else:
            node.many = True

    def _add_number(self, node: Node, value: JsonValue, location: Location) -> str:
        if not isinstance(value, int | float):
            return str(value)
        number = float(max(-_HUGE, min(_HUGE, value)))
        if node.numbers == 0 or number > node.largest:
            node.largest, node.largest_place = number, Place(location, self.item)
        node.numbers += 1
        return str(value)


def _name_of(value: JsonValue) -> str:
    """Return the display name of an object, or an empty string if the object has no name.

    The display name is the namespace and name of a Kubernetes object, or else the name or id.
    """
    if not isinstance(value, dict):
        return ""
    metadata = value.get("metadata")
    source = metadata if isinstance(metadata, dict) else value
    name = next((source[key] for key in ("name", "id", "title", "host") if isinstance(source.get(key), str | int)), "")
    namespace = source.get("namespace")
    return f"{namespace}/{name}"[:120] if isinstance(namespace, str) and name else str(name)[:120]


def path_of(location: Location) -> str:
    """Return the path in jq syntax."""
    steps: list[str] = []
    while location is not None:
        location, step = location
        if isinstance(step, int):
            steps.append(f"[{step}]")
        elif step.isidentifier() and step.isascii():
            steps.append(f".{step}")
        else:
            steps.append(f'["{step}"]')
    text = "".join(reversed(steps))
    return text if text.startswith(".") else f".{text}"


def node_path(node: Node) -> str:
    """Return the path of `node`. In the path, `[]` stands for all indexes of a list."""
    keys: list[str] = []
    current: Node | None = node
    while current is not None and current.parent is not None:
        key = current.key
        plain = key.isidentifier() and key.isascii()
        keys.append(key if key.startswith("[") else f".{key}" if plain else f'["{key}"]')
        current = current.parent
    text = "".join(reversed(keys))
    return text if text.startswith(".") else f".{text}"
