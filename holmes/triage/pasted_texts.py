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


def asked_text(text: str) -> str:
    """Return the question in `text`: without fenced blocks and other pasted text, at most the ends of the rest."""
    shown = _without_pasted(_FENCED.sub("\n", text).strip() or text)
    if len(shown) <= MAX_HEAD_CHARACTERS + MAX_TAIL_CHARACTERS:
        return shown
    return f"{shown[:MAX_HEAD_CHARACTERS]}\n{shown[-MAX_TAIL_CHARACTERS:]}"


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
