"""Reads JSON of any size into a `Tree`, in pieces.

A value that ends within the next 64 KB is decoded in one call. The members of a larger object or list are read one by
one. Therefore no call blocks the interpreter for long, and a large document is never completely in memory as objects.
If a text is invalid or truncated, the part before the error is read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.previews.tree import node_path
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.previews.tree import Location, Node, Tree
    from holmes.values.json_types import JsonValue

_WINDOW_CHARACTERS = 65_536
_MAX_DEPTH = 100
_FIRST_ITEMS = 40
_FIRST_ITEMS_CHARACTERS = 40_000
_COUNTED_NUMBERS = 50_000
_NUMBERS = expression(r"[-+.\deE,\s]*,")
_SPACE = expression(r"\s*")


class BrokenJsonError(ValueError):
    """The text contains invalid JSON at `position`."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


@dataclass(slots=True, kw_only=True)
class FirstItems:
    """The first items of a list, and its length."""

    path: str = "."
    items: list[JsonValue] = field(default_factory=list)
    characters: int = 0
    total: int = 0


class JsonWalk:
    """Reads `text` once. If the text is invalid, `broken_at` is the position of the error after `run`."""

    def __init__(self, text: str, tree: Tree) -> None:
        self._text = text
        self._tree = tree
        self._decoder = json.JSONDecoder()
        self._window = ""
        self._base = 0
        self.has_lines = 0 <= text.find("\n") < len(text) - 2
        self._line, self._line_at = 1, 0
        self.broken_at: int | None = None
        self.documents = 0
        self._lists: list[FirstItems] = []

    @property
    def first_items(self) -> FirstItems:
        """The first items of the longest list that is not part of an item."""
        return max(self._lists, key=lambda each: each.total, default=FirstItems())

    def run(self) -> None:
        """Read every document in the text."""
        position = self._skip(0)
        while position < len(self._text):
            try:
                position = self._skip(self._value(position, self._tree.root, None, 0))
            except (BrokenJsonError, RecursionError) as error:
                self.broken_at = error.position if isinstance(error, BrokenJsonError) else position
                return
            self.documents += 1

    def _value(self, position: int, node: Node, location: Location, depth: int) -> int:
        """Add the value at `position`. Returns the end of the value."""
        symbol = self._text[position : position + 1]
        entered = symbol and symbol in "{[" and (depth == 0 or (depth < 4 and self._about_items(node, symbol)))
        if not entered:
            decoded = self._decode(position)
            if decoded is not None:
                self._tree.add(node, decoded[0], location)
                return decoded[1]
        if depth > _MAX_DEPTH:
            raise BrokenJsonError(position)
        node.count += 1
        if symbol == "{":
            return self._object(position, node, location, depth)
        if symbol == "[":
            return self._list(position, node, location, depth)
        return self._huge_string(position, node, location)

    def _about_items(self, node: Node, symbol: str) -> bool:
        """Return whether to read the members of a value one by one, so that the position of each item is known."""
        return self._tree.item is None and (symbol == "[" or node.key in {"data", "status", "result", "spec", "body"})

    def _decode(self, position: int) -> tuple[JsonValue, int] | None:
        """Decode the value at `position`, and return it with its end.

        Returns None if the value does not end within the next window.
        """
        for _ in range(2):
            start = position - self._base
            if 0 <= start < len(self._window):
                try:
                    value, end = self._decoder.raw_decode(self._window, start)
                except (ValueError, RecursionError):
                    pass
                else:
                    if end < len(self._window) or self._base + end == len(self._text):
                        return value, self._base + end
                if start == 0 and len(self._window) == min(_WINDOW_CHARACTERS, len(self._text) - position):
                    return None
            self._base, self._window = position, self._text[position : position + _WINDOW_CHARACTERS]
        return None

    def _object(self, position: int, node: Node, location: Location, depth: int) -> int:
        self._tree.enter_object(node, location)
        position = self._skip(position + 1)
        while self._text[position : position + 1] != "}":
            key, position = self._key(position)
            child = self._tree.child(node, key)
            child.missing += max(0, node.objects - 1 - child.last_parent)
            child.last_parent = node.objects
            position = self._comma(self._value(position, child, (location, key), depth + 1), "}")
        return position + 1

    def _list(self, position: int, node: Node, location: Location, depth: int) -> int:
        tree, outside = self._tree, self._tree.item is None
        node.lists += 1
        child = tree.child(node, "[]")
        first = FirstItems(path=node_path(node))
        position = self._skip(position + 1)
        if outside:
            self._lists.append(first)
        while self._text[position : position + 1] != "]":
            skipped = self._skipped_numbers(position) if first.total >= _COUNTED_NUMBERS else 0
            if skipped:
                passed = self._text.count(",", position, position + skipped)
                first.total += passed
                node.list_items += passed
                child.many = True
                position = self._skip(position + skipped)
                continue
            here = (location, first.total)
            decoded = self._decode(position)
            if outside:
                tree.enter_item(decoded[0] if decoded else None, here, self._line_of(position))
            if decoded is None:
                end = self._value(position, child, here, depth + 1)
            else:
                tree.add(child, decoded[0], here)
                end = decoded[1]
                self._keep(first, decoded[0], end - position)
            first.total += 1
            node.list_items += 1
            position = self._comma(end, "]")
        if outside:
            tree.item = None
        return position + 1

    def _skipped_numbers(self, position: int) -> int:
        """Return the length of a sequence of numbers at `position`, including the last comma, or 0 for other values."""
        run = _NUMBERS.match(self._text, position, position + _WINDOW_CHARACTERS)
        return run.end() - position if run else 0

    @staticmethod
    def _keep(first: FirstItems, value: JsonValue, characters: int) -> None:
        if len(first.items) == first.total < _FIRST_ITEMS and first.characters + characters <= _FIRST_ITEMS_CHARACTERS:
            first.items.append(value)
            first.characters += characters

    def _key(self, position: int) -> tuple[str, int]:
        decoded = self._decode(position)
        if decoded is None or not isinstance(decoded[0], str):
            raise BrokenJsonError(position)
        position = self._skip(decoded[1])
        if self._text[position : position + 1] != ":":
            raise BrokenJsonError(position)
        return decoded[0], self._skip(position + 1)

    def _comma(self, position: int, closing: str) -> int:
        position = self._skip(position)
        symbol = self._text[position : position + 1]
        if symbol == ",":
            return self._skip(position + 1)
        if symbol != closing:
            raise BrokenJsonError(position)
        return position

    def _huge_string(self, position: int, node: Node, location: Location) -> int:
        if self._text[position : position + 1] != '"':
            raise BrokenJsonError(position)
        start = position + 1
        while True:
            quote = self._text.find('"', start)
            if quote < 0:
                raise BrokenJsonError(position)
            before = self._text[max(position, quote - 1_000) : quote]
            if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
                break
            start = quote + 1
        node.count -= 1
        self._tree.add(node, self._text[position + 1 : position + 200], location)
        return quote + 1

    def _skip(self, position: int) -> int:
        text = self._text
        if text[position : position + 1] > " ":
            return position
        match = _SPACE.match(text, position)
        return match.end() if match else position

    def _line_of(self, position: int) -> int:
        """Return the line number of `position`, or 0 for one-line JSON, which is formatted later."""
        if not self.has_lines:
            return 0
        self._line += self._text.count("\n", self._line_at, position)
        self._line_at = position
        return self._line
