"""Detects JSON, and formats one-line JSON with one value per line.

All readers of stored results use this format, so that their line numbers agree.
"""

from __future__ import annotations

import json

from holmes.values.expressions import expression

MAX_JSON_VIEW_CHARACTERS = 5_000_000
_PIECE_CHARACTERS = 65_536
_JOINED_PIECES = 8_192
_DEEPEST = 200
_MOST_GROWTH = 8
_MAX_DEPTH = 500

_JSON_TOKEN = expression(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')


def is_json(text: str) -> bool:
    """Return whether `text` is a JSON object or array.

    If the text is larger than 5 MB, only its ends are checked. A large text is parsed in pieces, because `json.loads`
    would block the interpreter.
    """
    start, end = text[:64].lstrip()[:1], text[-64:].rstrip()[-1:]
    if (start, end) not in {("{", "}"), ("[", "]")}:
        return False
    if len(text) > MAX_JSON_VIEW_CHARACTERS:
        return _parses(text[:_PIECE_CHARACTERS], whole=False)
    if len(text) > _PIECE_CHARACTERS:
        return _parses(text, whole=True)
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parses(text: str, *, whole: bool) -> bool:
    import ijson

    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events)
    try:
        for start in range(0, len(text), _PIECE_CHARACTERS):
            parser.send(text[start : start + _PIECE_CHARACTERS].encode("utf-8", "replace"))
            del events[:]
        if whole:
            parser.close()
    except (ijson.JSONError, ValueError):  # also raised for valid JSON with half a surrogate pair
        return False
    return True


def readable_json(text: str) -> str:
    """Format one-line JSON with one value per line.

    Other texts, JSON larger than 5 MB and deeply nested JSON are returned unchanged. The format changes only
    whitespace, not numbers, escapes or repeated keys.
    """
    if len(text) > MAX_JSON_VIEW_CHARACTERS or "\n" in text.strip() or not is_json(text):
        return text
    chunks: list[str] = []
    pieces: list[str] = []
    depth = length = 0
    previous = ""
    for match in _JSON_TOKEN.finditer(text):
        symbol = match.group()
        if symbol in "]}":
            depth -= 1
            if previous not in ("[", "{"):
                pieces.append("\n" + "  " * depth)
        elif previous in ("[", "{", ","):
            pieces.append("\n" + "  " * depth)
        pieces.append(": " if symbol == ":" else symbol)
        if symbol in "[{":
            depth += 1
            if depth > _MAX_DEPTH:  # the size of the indentation is quadratic in the depth
                return text
        previous = symbol
        if depth > _DEEPEST or length > _MOST_GROWTH * len(text):
            return text
        if len(pieces) > _JOINED_PIECES:
            chunks.append("".join(pieces))
            length += len(chunks[-1])
            pieces.clear()
    return "".join((*chunks, *pieces))
