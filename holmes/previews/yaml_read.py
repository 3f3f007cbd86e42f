"""Reads block YAML from kubectl into a `Tree`, line by line.

This is not a full YAML parser: anchors, tags and flow collections remain text. The reader never fails, and reads
invalid documents as far as possible. Only one item at a time is in memory. The line number of every item is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.previews.excerpts import lines_in_pieces
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.previews.tree import Tree
    from holmes.values.json_types import JsonValue

_NUMBER = expression(r"-?(?:0|[1-9]\d*)(?:\.\d+)?$")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_MAX_BLOCK_LINES = 60_000
_MAX_LEVELS = 80
_TEXT_CHARACTERS = 2_000


class YamlReader:
    """Reads `text` once, and adds documents and top-level list items to the tree one at a time."""

    def __init__(self, text: str, tree: Tree) -> None:
        self._text = text
        self._tree = tree
        self._list_key = ""
        self._index = 0
        self._block: list[str] = []
        self._block_line = 1
        self._in_item = False
        self._item_indent = 0
        self._item_start = "- "
        self.documents = 0
        self.left_out_lines = 0
        self.items = 0

    def run(self) -> None:
        started = False
        for first, lines in lines_in_pieces(self._text):
            for number, line in enumerate(lines, start=first):
                if line[:3] == "---" and not line[3:].strip():
                    self._end_document(started=started)
                    started = False
                    continue
                started = started or bool(line.strip())
                self._line(number, line)
        self._end_document(started=started)

    def _line(self, number: int, line: str) -> None:
        start = line[: self._item_indent + 2]
        if self._in_item and start == self._item_start:
            self._flush()
            self._begin_item(number, line)
            return
        if not self._in_item and self._block and line.lstrip(" ")[:2] == "- ":
            key = self._block[-1].rstrip()
            if key[:1] not in (" ", "#") and key.endswith(":"):
                self._block.pop()
                self._flush()
                self._list_key = key[:-1].strip("\"'")
                self._begin_item(number, line)
                return
        if not self._in_item and not self._block and line[:2] == "- ":
            self._begin_item(number, line)
            return
        if self._in_item and line[:1] not in (" ", "-", "#", "", "\t", "\r"):
            self._flush()
        if not self._block:
            self._block_line = number
        if len(self._block) < _MAX_BLOCK_LINES:
            self._block.append(line)
        else:
            self.left_out_lines += 1

    def _begin_item(self, number: int, line: str) -> None:
        self._in_item = True
        self._item_indent = len(line) - len(line.lstrip(" "))
        self._item_start = " " * self._item_indent + "- "
        self._block, self._block_line = [line], number

    def _flush(self) -> None:
        block, self._block = self._block, []
        if not self._in_item:
            if block:
                self._add_document(_parse_block(block), self._block_line)
            return
        self._in_item = False
        value = _parse_block(block)
        items = value if isinstance(value, list) else [value]
        tree = self._tree
        key = self._list_key
        node, location = (tree.child(tree.root, key), (None, key)) if key else (tree.root, None)
        for item in items:
            here = (location, self._index)
            tree.enter_item(item, here, self._block_line)
            tree.add(tree.child(node, "[]"), item, here)
            self._index += 1
            self.items += 1
            node.list_items += 1
        node.lists = max(1, node.lists)
        tree.item = None

    def _add_document(self, value: JsonValue, line: int) -> None:
        """Add the top-level members of a document. If the text has several documents, each document is an item."""
        tree = self._tree
        if not isinstance(value, dict) or not value:
            return
        tree.enter_item(value, (None, f"document {self.documents + 1}"), line)
        tree.enter_object(tree.root, None)
        for key, inner in value.items():
            child = tree.child(tree.root, key)
            tree.add(child, inner, (None, key))
        tree.item = None

    def _end_document(self, *, started: bool) -> None:
        self._flush()
        self._list_key, self._index = "", 0
        self.documents += started


def _parse_block(lines: list[str]) -> JsonValue:
    """Parse a block of lines as far as possible."""
    parser = _Parser(lines)
    return parser.value(0, 0)


class _Parser:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._count = len(lines)

    def value(self, minimum: int, level: int) -> JsonValue:
        """Parse the mapping, list or scalar that starts on the next line, indented by at least `minimum`."""
        indent = self._next_indent()
        if indent < minimum or level > _MAX_LEVELS:
            return None
        body = self._lines[self._at][indent:]
        if body.startswith("- ") or body.rstrip() == "-":
            return self._list(indent, level)
        return self._mapping(indent, level)

    def _next_indent(self) -> int:
        """Return the indentation of the next line with content, or -1 at the end."""
        lines = self._lines
        while self._at < self._count:
            line = lines[self._at]
            body = line.lstrip(" ")
            if body and body[0] not in "#\r\t\n":
                return len(line) - len(body)
            self._at += 1
        return -1

    def _list(self, indent: int, level: int) -> list[JsonValue]:
        items: list[JsonValue] = []
        while self._next_indent() == indent:
            line = self._lines[self._at]
            body = line[indent:]
            if not (body.startswith("- ") or body.rstrip() == "-"):
                break
            rest = body[1:].lstrip(" ")
            if not rest.strip():
                self._at += 1
                items.append(self.value(indent + 1, level + 1))
            elif rest[0] in "\"'" and not _looks_like_entry(rest):
                self._at += 1
                items.append(scalar(rest))
            elif _looks_like_entry(rest) or rest.startswith("- "):
                self._lines[self._at] = " " * (len(line) - len(rest)) + rest
                items.append(self.value(indent + 1, level + 1))
            else:
                self._at += 1
                items.append(self._text_of(rest, indent + 1))
        return items

    def _mapping(self, indent: int, level: int) -> JsonValue:
        members: dict[str, JsonValue] = {}
        while (following := self._next_indent()) >= indent:
            line = self._lines[self._at]
            if following == indent and line[indent : indent + 2] == "- ":
                break
            self._at += 1
            if following > indent:
                continue
            key, found, rest = _split_entry(line[indent:])
            if not found:
                continue
            if not rest or rest[0] == "#":
                members[key] = self._below(indent, level)
            elif rest[0] in "|>" and len(rest) <= 3:
                members[key] = self._text_of("", indent + 1)
            else:
                members[key] = self._text_of(rest, indent + 1)
        return members

    def _below(self, indent: int, level: int) -> JsonValue:
        """Parse the value that starts on a line after its key. A list may start at the indentation of the key."""
        following = self._next_indent()
        if following > indent:
            return self.value(indent + 1, level + 1)
        if following == indent and self._lines[self._at][indent : indent + 2] in ("- ", "-"):
            return self._list(indent, level + 1)
        return None

    def _text_of(self, first: str, minimum: int) -> JsonValue:
        """Parse a scalar with its continuation lines."""
        parts = [first] if first else []
        length = len(first)
        while self._at < self._count:
            line = self._lines[self._at]
            stripped = line.lstrip(" ")
            if stripped and len(line) - len(stripped) < minimum:
                break
            if length < _TEXT_CHARACTERS and stripped:
                parts.append(stripped.rstrip())
                length += len(stripped)
            self._at += 1
        return scalar(" ".join(parts)) if len(parts) == 1 and first else " ".join(parts)


def _looks_like_entry(text: str) -> bool:
    return _split_entry(text)[1]


def _split_entry(body: str) -> tuple[str, bool, str]:
    """Return the key of a line, whether the line has a key, and the text after the key."""
    if body[0] in "\"'":
        end = body.find(body[0], 1)
        if end < 0 or body[end + 1 : end + 2] != ":":
            return "", False, ""
        return body[1:end], True, body[end + 2 :].strip()
    key, colon, rest = body.partition(": ")
    if not colon:
        stripped = body.rstrip()
        if not stripped.endswith(":"):
            return "", False, ""
        key, rest = stripped[:-1], ""
    if len(key) > 300 or key[0] in "[{" or key.startswith("- "):
        return "", False, ""
    return key, True, rest.strip()


def scalar(text: str) -> JsonValue:
    """Return the JSON value that the scalar `text` represents."""
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "\"'" and text[-1] == first and len(text) > 1:
        return text[1:-1]
    if (first.isdigit() or first == "-") and len(text) < 20 and _NUMBER.match(text):
        return float(text) if "." in text else int(text)
    if text == "{}":
        return {}
    if text == "[]":
        return []
    return text
