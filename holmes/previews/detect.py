"""Tells what a text is from its content."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holmes.previews.log_lines import begins_like_a_log_line

if TYPE_CHECKING:
    from holmes.previews.budget import PreviewKind

_SAMPLE_CHARACTERS = 60_000
_SAMPLE_LINES = 300
_HEADER_WORD = r"[A-Z][A-Z0-9_%/.-]*(?:\([A-Za-z%]+\))?"
_TABLE_HEADER = re.compile(rf"{_HEADER_WORD}(?: {_HEADER_WORD})*(?: {{2,}}{_HEADER_WORD}(?: {_HEADER_WORD})*)+ *$")
_EVENT_HEADER = re.compile(r"(?=.*\bTYPE\b)(?=.*\bREASON\b)(?=.*\bMESSAGE\b)")
_YAML_LINE = re.compile(r"\s*(?:- )*(?:\"[^\"]+\"|'[^']+'|[\w.$/@*-][\w .$/@()-]*):(?: |$)|\s*- \S|---|\s*#|\s*$")
_YAML_START = re.compile(r"(?m)^(?:apiVersion|kind|items|metadata): ?|^- \w+:")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\ud800-\udfff\ufffd]")


def detect(text: str) -> PreviewKind:
    """The kind of `text`, from samples at its start, in its middle and before its end."""
    start = text[:_SAMPLE_CHARACTERS]
    if len(_CONTROL.findall(start[:8_192])) * 20 > len(start[:8_192]):
        return "binary"
    if _looks_like_json(text):
        return "json"
    lines = [line for line in start.split("\n")[:_SAMPLE_LINES] if line.strip()]
    if not lines:
        return "text"
    header = next((line for line in lines[:5] if table_header(line)), None)
    if header is not None and len(lines) > 1:
        return "events" if _EVENT_HEADER.match(header) else "table"
    if _YAML_START.search(start) and sum(_YAML_LINE.match(line) is not None for line in lines) * 10 > len(lines) * 6:
        return "yaml"
    middle = text[len(text) // 2 : len(text) // 2 + _SAMPLE_CHARACTERS // 4].split("\n")[1:-1]
    sample = lines + [line for line in middle if line.strip()]
    heads = [line for line in sample if not line[0].isspace()]
    starts = sum(begins_like_a_log_line(line) for line in heads)
    return "logs" if starts * 3 >= len(heads) and starts >= 3 else "text"


def table_header(line: str) -> bool:
    """Whether `line` is the header of a kubectl table."""
    return len(line) < 2_000 and _TABLE_HEADER.match(line.rstrip()) is not None


def _looks_like_json(text: str) -> bool:
    """A JSON document; several lines that each are an object are a log."""
    first = text[:4_096].lstrip()
    if first[:1] == "[":
        return re.match(r'\[\s*(?:[\[{"\]]|-?\d|true|false|null)', first) is not None and not begins_like_a_log_line(
            first.split("\n")[0]
        )
    if first[:1] != "{" or not re.match(r'\{\s*(?:"|\})', first):
        return False
    lines = [line for line in text[:_SAMPLE_CHARACTERS].split("\n")[:20] if line.strip()]
    return not (len(lines) > 1 and all(line.startswith("{") for line in lines[1:3]) and lines[0].rstrip().endswith("}"))
