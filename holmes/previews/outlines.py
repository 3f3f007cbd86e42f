"""The preview of JSON and YAML: odd items with their paths, values of repeated fields, outline, first items.

Called by `structured_preview`. Lists of Kubernetes events are shown as events.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holmes.previews.budget import Block, Composed, Layout, compose, guess_tokens
from holmes.previews.findings import Finding, describe, find_odd
from holmes.previews.json_walk import JsonWalk
from holmes.previews.model import StructuredPreview
from holmes.previews.pieces import clip_around
from holmes.previews.tree import Tree, path_of
from holmes.previews.yaml_lines import large_yaml_preview
from holmes.previews.yaml_read import YamlReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.previews.json_walk import FirstItems
    from holmes.previews.tree import Item, Location, Node
    from holmes.tokens import TokenCounter

_HEADINGS = (
    "Odd items (path, value, how the others look):",
    "Values of repeated fields:",
    "Outline:",
    "First items:",
)
_MAX_ITEMS_SHOWN = 60
_MAX_YAML_CHARACTERS = 4_000_000
_PER_ITEM = 3
_SHARE_FOR_FIRST_ITEMS = 0.35
_STATE_KEYS = frozenset({"phase", "status", "state", "reason", "ready", "kind", "health", "result", "level", "code"})


def json_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview | None:
    """The preview and the clause about what it shows; None when the text is not JSON from the start."""
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
        f" NOT valid JSON after character {walk.broken_at:,}; what is before it:" if walk.broken_at is not None else ""
    )
    opening = f"JSON, {len(text):,} characters{documents}: {what}.{broken}"
    blocks = _blocks(tree, cap_tokens) + _first_items(walk.first_items, cap_tokens)
    composed = compose(_layout(opening), blocks, cap_tokens, counter)
    shown = _shown_items(composed)
    clause = f"{shown:,} of {items:,} items" if items else f"{shown:,} odd fields of {_members(tree.root)}"
    return StructuredPreview(kind="json", text=composed.text, shown=clause)


def yaml_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview | None:
    """The preview and the clause about what it shows; None when nothing was found that is YAML."""
    tree = Tree()
    if len(text) > _MAX_YAML_CHARACTERS:
        return large_yaml_preview(text, cap_tokens, counter)
    reader = YamlReader(text, tree)
    reader.run()
    if not tree.root.children:
        return None
    if _are_events(tree):
        return tree.events.preview(cap_tokens, counter, places="line")
    units = reader.items or reader.documents
    name = "items" if reader.items else "documents" if reader.documents > 1 else "document"
    left_out = f" {reader.left_out_lines:,} lines were not read." if reader.left_out_lines else ""
    opening = f"YAML, {len(text):,} characters, {units:,} {name}; line numbers are where an item begins.{left_out}"
    composed = compose(_layout(opening), _blocks(tree, cap_tokens), cap_tokens, counter)
    shown = f"{_shown_items(composed):,} of {units:,} {name}"
    return StructuredPreview(kind="yaml", text=composed.text, shown=shown)


def _are_events(tree: Tree) -> bool:
    return tree.events.total * 2 > tree.items


def _layout(opening: str) -> Layout:
    def closing(taken: tuple[Block, ...]) -> str:
        return "Not shown: usual items, and fields without anything odd." if taken else "Not shown: everything else."

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
    """The fields, one line per member at the top, deeper ones in braces as far as there is room."""
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
    """Type of a node and the names of what is in it; `budget` is how many names may still be written."""
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
    """As many of the first items as fit into a third of the cap, as valid JSON."""
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
