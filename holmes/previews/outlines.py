"""Previews JSON and YAML: unusual items with paths, values of repeated fields, outline, first items.

A list of Kubernetes events is previewed as events. If YAML is too large to parse, two passes find its rare lines. A
line is rare if its key is rare, or if few lines with this key have the same shape. The shape of a line is the line
without digits and the letters a to f.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews.budget import Block, Composed, Layout, StructuredPreview, compose, guess_tokens
from holmes.previews.excerpts import clip_around, lines_in_pieces
from holmes.previews.findings import Finding, describe, find_odd
from holmes.previews.json_walk import JsonWalk
from holmes.previews.severity import badness_of, word_severity
from holmes.previews.tree import Tree, path_of
from holmes.previews.yaml_read import YamlReader
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.previews.json_walk import FirstItems
    from holmes.previews.tree import Item, Location, Node
    from holmes.tokens import TokenCounter

_DROPPED = b"0123456789abcdefABCDEF"
_MAX_SHAPES = 200_000
_SHAPE_BYTES = 200
_MAX_CANDIDATES = 3_000
_SHOWN = 60
_FEW = 3
_MANY_VALUES = 40
_FAILED_EXIT = expression(r"exitCode: [1-9]")
_NAME = "\n    name: "
_HEADINGS = (
    "Unusual items (path, value, typical values):",
    "Values of repeated fields:",
    "Outline:",
    "First items:",
)
_MAX_ITEMS_SHOWN = 60
_MAX_YAML_CHARACTERS = 4_000_000
_PER_ITEM = 3
_SHARE_FOR_FIRST_ITEMS = 0.35
_STATE_KEYS = frozenset({"phase", "status", "state", "reason", "ready", "kind", "health", "result", "level", "code"})


@dataclass(frozen=True, slots=True)
class _Rare:
    score: float
    number: int
    line: str
    note: str


def _large_yaml_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview:
    """Preview YAML that is too large to parse. Shows its rare lines."""
    shapes: Counter[bytes] = Counter()
    total = items = 0
    for number, lines in lines_in_pieces(text):
        found = _shapes(lines)
        if len(shapes) < _MAX_SHAPES:
            shapes.update(found)
        total = number + len(lines) - 1
        items += sum(line[:2] == "- " for line in lines)
    keys = _keys(shapes)
    rare = _rare_lines(text, shapes, keys)
    names = _names(text, rare)
    blocks = [
        Block(section=0, order=each.number, value=4 * each.score, text=_line(each, names.get(each.number, "")), units=1)
        for each in rare
    ]
    blocks += [Block(section=1, order=order, value=3.0, text=key) for order, key in enumerate(_outline(text))]

    def closing(taken: tuple[Block, ...]) -> str:
        return f"Not shown: {total - sum(block.units for block in taken):,} of {total:,} lines."

    opening = f"YAML, {len(text):,} characters, {total:,} lines, {items:,} top-level list items; read line by line."
    headings = ("Rare lines (line number| line, count, item):", "Top-level keys:")
    composed = compose(Layout(opening=opening, headings=headings, closing=closing), blocks, cap_tokens, counter)
    return StructuredPreview(kind="yaml", text=composed.text, shown=f"{composed.units:,} of {total:,} lines")


def _shapes(lines: list[str]) -> list[bytes]:
    dropped = "\n".join(lines).encode("utf-8", "surrogatepass").translate(None, _DROPPED)
    return [shape[:_SHAPE_BYTES] for shape in dropped.split(b"\n")]


def _key(shape: bytes) -> bytes:
    return shape.partition(b":")[0].lstrip(b"- ")


def _keys(shapes: Counter[bytes]) -> dict[bytes, tuple[int, int]]:
    """Return the number of lines and the number of shapes for each key."""
    keys: dict[bytes, tuple[int, int]] = {}
    for shape, count in shapes.items():
        lines, distinct = keys.get(_key(shape), (0, 0))
        keys[_key(shape)] = (lines + count, distinct + 1)
    return keys


def _rare_lines(text: str, shapes: Counter[bytes], keys: dict[bytes, tuple[int, int]]) -> list[_Rare]:
    rare = {shape for shape, count in shapes.items() if count <= _FEW and keys[_key(shape)][1] <= _MANY_VALUES}
    found: list[_Rare] = []
    for first, lines in lines_in_pieces(text):
        for place, shape in enumerate(_shapes(lines)):
            line = lines[place]
            if shape in rare or (b"xitCo: " in shape and _FAILED_EXIT.search(line)):
                found.append(_judged(first + place, line, shapes[shape], keys[_key(shape)]))
        if len(found) > _MAX_CANDIDATES:
            found = _worst(found)
    return _worst(found)


def _judged(number: int, line: str, count: int, key: tuple[int, int]) -> _Rare:
    name, _, value = line.strip(" -").partition(": ")
    value = value.strip().strip("\"'")
    score = 5.0 / count**0.5 + word_severity(value)
    if name in ("phase", "reason", "status", "state", "type") and len(value) <= 60:
        score += badness_of(value, total=key[0], count=count)
    if name == "exitCode":
        score += 12.0
    note = f"{count:,} of {key[0]:,} such keys" if count <= _FEW else ""
    return _Rare(score, number, line.strip(), note)


def _worst(found: list[_Rare]) -> list[_Rare]:
    return sorted(found, key=lambda each: (-each.score, each.number))[:_SHOWN]


def _names(text: str, rare: list[_Rare]) -> dict[int, str]:
    """Return the last object name before each rare line, by line number."""
    wanted = sorted(each.number for each in rare)
    names: dict[int, str] = {}
    name = ""
    for first, lines in lines_in_pieces(text):
        while wanted and wanted[0] < first + len(lines):
            number = wanted.pop(0)
            before = (line for line in reversed(lines[: number - first + 1]) if line.startswith(_NAME[1:]))
            names[number] = next(before, name)[len(_NAME) - 1 :].strip()
        name = next((line for line in reversed(lines) if line.startswith(_NAME[1:])), name)
    return names


def _line(rare: _Rare, name: str) -> str:
    notes = "; ".join(note for note in (rare.note, f"in {name}" if name else "") if note)
    return f"{rare.number}| {clip_around(rare.line, 200)}" + (f"  <- {notes}" if notes else "")


def _outline(text: str) -> list[str]:
    """Return the first top-level keys with their values."""
    start = text[:20_000].split("\n")
    return [clip_around(line, 80) for line in start if line[:1].isalpha()][:12]


def json_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview | None:
    """Preview JSON. Returns None if the text does not start with valid JSON."""
    tree = Tree()
    walk = JsonWalk(text, tree)
    walk.run()
    if not tree.root.count or (walk.broken_at is not None and tree.root.count < 2 and not tree.root.children):
        return None
    if _are_events(tree):
        return tree.events.preview(cap_tokens, counter, places="line" if walk.has_lines else "at")
    items = walk.first_items.total
    what = f"{items:,} items in {walk.first_items.path}" if items else _members(tree.root)
    documents = f", {walk.documents:,} documents" if walk.documents > 1 else ""
    broken = (
        f" NOT valid JSON after character {walk.broken_at:,}; this preview covers the part before it."
        if walk.broken_at is not None
        else ""
    )
    opening = f"JSON, {len(text):,} characters{documents}: {what}.{broken}"
    blocks = _blocks(tree, cap_tokens) + _first_items(walk.first_items, cap_tokens)
    composed = compose(_layout(opening), blocks, cap_tokens, counter)
    shown = _shown_items(composed)
    clause = f"{shown:,} of {items:,} items" if items else f"{shown:,} unusual fields of {_members(tree.root)}"
    return StructuredPreview(kind="json", text=composed.text, shown=clause)


def yaml_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview | None:
    """Preview YAML. Returns None if the text does not contain YAML."""
    tree = Tree()
    if len(text) > _MAX_YAML_CHARACTERS:
        return _large_yaml_preview(text, cap_tokens, counter)
    reader = YamlReader(text, tree)
    reader.run()
    if not tree.root.children:
        return None
    if _are_events(tree):
        return tree.events.preview(cap_tokens, counter, places="line")
    units = reader.items or reader.documents
    name = "items" if reader.items else "documents" if reader.documents > 1 else "document"
    left_out = f" {reader.left_out_lines:,} lines were not read." if reader.left_out_lines else ""
    opening = f"YAML, {len(text):,} characters, {units:,} {name}; line numbers mark the start of an item.{left_out}"
    composed = compose(_layout(opening), _blocks(tree, cap_tokens), cap_tokens, counter)
    shown = f"{_shown_items(composed):,} of {units:,} {name}"
    return StructuredPreview(kind="yaml", text=composed.text, shown=shown)


def _are_events(tree: Tree) -> bool:
    return tree.events.total * 2 > tree.items


def _layout(opening: str) -> Layout:
    def closing(taken: tuple[Block, ...]) -> str:
        return "Not shown: typical items and fields." if taken else "Not shown: everything else."

    return Layout(opening=opening, headings=_HEADINGS, closing=closing)


def _shown_items(composed: Composed) -> int:
    return sum(block.units for block in composed.taken)


def _members(root: Node) -> str:
    return f"an object with {len(root.children):,} members" if root.objects else "a single value"


def _blocks(tree: Tree, cap_tokens: int) -> list[Block]:
    findings = find_odd(tree)
    return [*_finding_blocks(findings), *_value_blocks(tree), *_outline_blocks(tree, cap_tokens)]


def _finding_blocks(findings: list[Finding]) -> list[Block]:
    by_item: dict[Location, list[Finding]] = {}
    for finding in findings:
        item = finding.place.item
        by_item.setdefault(item.location if item else None, []).append(finding)
    blocks = []
    order = 0
    for group in list(by_item.values())[:_MAX_ITEMS_SHOWN]:
        item = group[0].place.item
        for rank, finding in enumerate(group[: _PER_ITEM * 4 if item is None else _PER_ITEM * 2]):
            prefix = f"{_item_title(item)} " if item and rank == 0 else "  " if item else ""
            path = path_of(finding.place.location)
            if item and rank:
                path = path.removeprefix(path_of(item.location)) or "it"
            text = f"{prefix}{path} {finding.text}"
            value = 4 * finding.score / (1 + 0.6 * rank) if item else 4 * finding.score
            blocks.append(Block(section=0, order=order, value=value, text=text, units=int(rank == 0 or item is None)))
            order += 1
    return blocks


def _item_title(item: Item) -> str:
    line = f" (line {item.line})" if item.line else ""
    return f"{item.name}{line}:" if item.name or line else ""


def _value_blocks(tree: Tree) -> list[Block]:
    blocks = []
    for order, node in enumerate(_walk(tree.root)):
        distinct = len(node.values)
        if node.many or not 1 < distinct <= 30 or node.scalars < 5 or node.scalars < 2 * distinct:
            continue
        value = 9.0 if node.key in _STATE_KEYS else 2.0
        blocks.append(Block(section=1, order=order, value=value, text=describe(node)))
        if len(blocks) >= 80:
            break
    return blocks


def _walk(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children.values()))


def _outline_blocks(tree: Tree, cap_tokens: int) -> list[Block]:
    """Return one block for each top-level member. Braces contain the names of nested fields, as many as fit."""
    budget = max(12, cap_tokens // 12)
    blocks = []
    for order, (key, node) in enumerate(list(tree.root.children.items())[:40]):
        text = f".{key}: {_shape(node, 4, [budget])}" if key != "[]" else f"items: {_shape(node, 4, [budget * 3])}"
        blocks.append(Block(section=2, order=order, value=4.0, text=text, instead=f".{key}: {_kind(node)}"))
    return blocks


def _kind(node: Node) -> str:
    if node.lists:
        return f"list of {node.list_items:,}" if node.lists == 1 else f"{node.lists:,} lists"
    if node.objects:
        return f"object with {len(node.children):,} members"
    if len(node.values) == 1:
        value = next(iter(node.values))
        return value if node.numbers or value in ("true", "false", "null") else f'"{clip_around(value, 60)}"'
    return "number" if node.numbers else "text"


def _shape(node: Node, depth: int, budget: list[int]) -> str:
    """Return the type of a node and the names of its children.

    `budget` contains the number of names that may still be listed.
    """
    if node.lists:
        inner = node.children.get("[]")
        inside = f" of {_shape(inner, depth - 1, budget)}" if inner is not None and inner.objects and depth else ""
        keyed = f" {{{', '.join(list(node.children)[:6])}}}" if inner is None and node.children else ""
        return f"{_kind(node)}{inside}{keyed}"
    if not node.objects or depth <= 0:
        return _kind(node)
    names: list[str] = []
    for key, child in node.children.items():
        if budget[0] <= 0:
            names.append(f"... {len(node.children) - len(names):,} more")
            break
        budget[0] -= 1
        deeper = child.objects or child.lists
        names.append(f"{key} {_shape(child, depth - 1, budget)}" if deeper and depth > 1 else key)
    return f"{{{', '.join(names)}}}"


def _first_items(first: FirstItems, cap_tokens: int) -> list[Block]:
    """Return a block with the first items that fit in a third of the limit, as valid JSON."""
    room = cap_tokens * _SHARE_FOR_FIRST_ITEMS
    lines: list[str] = []
    for item in first.items:
        line = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
        room -= guess_tokens(line[: 16 * cap_tokens]) + 2
        if room < 0:
            break
        lines.append(line)
    if not lines:
        return []
    text = f"{len(lines):,} of {first.total:,} of {first.path}, as JSON:\n[{','.join(lines)}]"
    return [Block(section=3, order=0, value=9.0, text=text, units=len(lines))]
