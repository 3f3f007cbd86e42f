"""The preview of YAML that is too large to read as objects: its rare lines. Called by `outlines`.

Two passes over the lines. A line is rare when few lines look like it once digits and the letters a to f are dropped,
although its key stands there often, or when its key is rare itself.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews.budget import Block, Layout, compose
from holmes.previews.model import StructuredPreview
from holmes.previews.pieces import clip_around, lines_in_pieces
from holmes.previews.severity import word_severity
from holmes.previews.statuses import badness_of

if TYPE_CHECKING:
    from holmes.tokens import TokenCounter

_DROPPED = b"0123456789abcdefABCDEF"
_MAX_SHAPES = 200_000
_SHAPE_BYTES = 200
_MAX_CANDIDATES = 3_000
_SHOWN = 60
_FEW = 3
_MANY_VALUES = 40
_FAILED_EXIT = re.compile(r"exitCode: [1-9]")
_NAME = "\n    name: "


@dataclass(frozen=True, slots=True)
class _Rare:
    score: float
    number: int
    line: str
    note: str


def large_yaml_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview:
    """The preview and the clause about what it shows."""
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

    opening = f"YAML, {len(text):,} characters, {total:,} lines, {items:,} list items at the top; read line by line."
    headings = ("Rare lines (line number| line, how often, item):", "Keys at the top:")
    composed = compose(Layout(opening=opening, headings=headings, closing=closing), blocks, cap_tokens, counter)
    return StructuredPreview(kind="yaml", text=composed.text, shown=f"{composed.units:,} of {total:,} lines")


def _shapes(lines: list[str]) -> list[bytes]:
    dropped = "\n".join(lines).encode("utf-8", "surrogatepass").translate(None, _DROPPED)
    return [shape[:_SHAPE_BYTES] for shape in dropped.split(b"\n")]


def _key(shape: bytes) -> bytes:
    return shape.partition(b":")[0].lstrip(b"- ")


def _keys(shapes: Counter[bytes]) -> dict[bytes, tuple[int, int]]:
    """For each key how many lines have it, and how many values look different."""
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
    """The last name of an object before each of the lines."""
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
    """The first keys without indentation."""
    start = text[:20_000].split("\n")
    return [clip_around(line, 80) for line in start if line[:1].isalpha()][:12]
