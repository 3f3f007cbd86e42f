"""Separates a question from the text that was pasted with it: a log, a table of kubectl, or a manifest.

Every word of a question may name an object or a time, but most words of a log are neither: of many pasted lines, only
the errors say what the question is about. A few lines stay as they are.
"""

from __future__ import annotations

import re
from typing import Final

from holmes.previews.log_lines import begins_like_a_log_line, parse_line, without_time
from holmes.previews.severity import ERROR
from holmes.values.expressions import expression

MAX_HEAD_CHARACTERS: Final = 4_000
MAX_TAIL_CHARACTERS: Final = 2_000
_FENCED: Final = expression(r"^```.*?^```[^\S\n]*$", re.MULTILINE | re.DOTALL)
_FEW_LINES: Final = 8
_MOST_ERRORS: Final = 3
_INDENTED: Final = expression(r"\s+\S")
_ROW: Final = expression(r"\S+ {2,}\S+ {2,}\S")
"""A row of a table, which has three columns or more."""
_GAP: Final = expression(r"^\[\.\.\. [\d,]+ lines, [\d,]+ characters not shown \.\.\.\]$")


_HEADER: Final = expression(r"^(?P<space>NAMESPACE\s+)?NAME\s{2,}\S.*$")
_MANIFEST: Final = expression(r"^(?:apiVersion|kind): \S+$")
_KIND: Final = expression(r"^kind: (\w+)\s*$", re.MULTILINE)
_METADATA_NAME: Final = expression(r"^metadata:\s*\n(?:^ +.*\n)*?^  name: [\"']?([\w.-]+)[\"']?\s*$", re.MULTILINE)
_DESCRIBED: Final = expression(r"^Name:\s{2,}(\S+)\s*$")
_DESCRIBED_ROW: Final = expression(r"^[A-Z][\w /-]*:(?:\s{2,}\S.*)?$|^\s+\S")
_FENCE: Final = expression(r"^```")
_POINTING: Final = expression(
    r"(?i)\b(?:this|these|those|that(?= (?:pod|deployment|job|service|node|workload)\b)|it(?! (?:seems|looks|says))"
    r"|they|them|dies(?:e[rsnm]?)?|est[aeo]s?|ce(?:s|t|tte)?)\b"
    r"(?P<kind> (?:pods?|deployments?|statefulsets?|daemonsets?|jobs?|cronjobs?|services?|nodes?|workloads?|claims?"
    r"|pvcs?)\b)?"
)
"""The word of a question that stands for what was pasted."""
_MOST_NAMES: Final = 30


def asked_text(text: str) -> str:
    """Return the question in `text`: without fenced blocks and other pasted text, at most the ends of the rest."""
    text = _with_pasted_names(text)
    shown = _without_pasted(_FENCED.sub("\n", text).strip() or text)
    if len(shown) <= MAX_HEAD_CHARACTERS + MAX_TAIL_CHARACTERS:
        return shown
    return f"{shown[:MAX_HEAD_CHARACTERS]}\n{shown[-MAX_TAIL_CHARACTERS:]}"


def _with_pasted_names(text: str) -> str:
    """Write the names of pasted objects for "these pods" and the like."""
    asked, block = _block_apart(text)
    names = _names_in(block)
    pointing = _POINTING.search(asked)
    if pointing is None or not names or len(names) > _MOST_NAMES or any(name in asked for name in names):
        return text
    kind = pointing["kind"] or ""
    manifest = _KIND.search("\n".join(block))
    kind = kind or (f" {manifest[1].lower()}" if manifest is not None else "")
    return f"{asked[: pointing.start()]}{kind.lstrip()} {', '.join(names)}{asked[pointing.end() :]}".strip()


def _block_apart(text: str) -> tuple[str, list[str]]:
    """Return the question, and the lines of the first table, manifest or description that follows or precedes it."""
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if _begins_block(lines, at, line)), len(lines))
    end = first + 1
    while end < len(lines) and lines[end].strip() and not _FENCE.match(lines[end]):
        end += 1
    outside = (line for line in (*lines[:first], *lines[end:]) if not _FENCE.match(line))
    return "\n".join(outside).strip(), lines[first:end]


def _begins_block(lines: list[str], at: int, line: str) -> bool:
    after = lines[at + 1 : at + 2]
    described = _DESCRIBED.match(line) is not None and bool(after) and _DESCRIBED_ROW.match(after[0]) is not None
    manifest = _MANIFEST.match(line) is not None and bool(after) and ":" in after[0]
    return described or manifest or (_HEADER.match(line) is not None and bool(after))


def _names_in(block: list[str]) -> list[str]:
    """Return the names of the objects in a block."""
    if not block:
        return []
    header, described = _HEADER.match(block[0]), _DESCRIBED.match(block[0])
    if described is not None:
        return [described[1]]
    if header is None:
        named = _METADATA_NAME.search("\n".join(block))
        return [named[1]] if named is not None else []
    column = 1 if header["space"] else 0
    rows = [line.split() for line in block[1:]]
    return [row[column].rpartition("/")[2] for row in rows if len(row) > column + 1]


def _without_pasted(text: str) -> str:
    """Return the question in `text`, with the errors of more than 8 lines that were pasted with it."""
    lines = text.split("\n")
    if len(lines) <= _FEW_LINES:
        return text
    asked, pasted = _apart(lines)
    if len(pasted) <= _FEW_LINES:
        return text
    errors: dict[str, str] = {}
    for line in pasted:
        parsed = parse_line(line, usual_start=True)
        if parsed.severity >= ERROR:
            errors.setdefault(parsed.pattern, without_time(line))
    return "\n".join((*asked, *list(errors.values())[:_MOST_ERRORS])).strip() or text


def _apart(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return the lines of the question, and the pasted lines."""
    asked: list[str] = []
    pasted: list[str] = []
    for line in lines:
        is_pasted = begins_like_a_log_line(line) or _INDENTED.match(line) or _ROW.match(line) or _GAP.match(line)
        (pasted if is_pasted else asked).append(line)
    return asked, pasted
