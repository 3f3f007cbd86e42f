"""Reads the simple JSONPath of printer columns: fields, indexes, `[*]` and filters like `[?(@.type=="Ready")]`.

Called by `custom`. The API server accepts no more than that in a definition; anything else finds nothing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.json_types import JsonValue

_STEP = re.compile(
    r"\.(?P<field>(?:[^.\[\]\\]|\\.)+)"
    r"|\[(?:'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")\]"
    r"|\[(?P<index>-?\d+)\]"
    r"|(?P<every>\[\*\])"
    r"|\[\?\(\s*@(?P<path>[^=!<>\s]*)\s*(?:(?P<operator>[=!<>]=?)\s*(?P<literal>[^)]+?)\s*)?\)\]"
)


def find(path: str, value: JsonValue) -> list[JsonValue]:
    """All values under `path`, which begins with a dot, in order."""
    found = [value]
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return []
        found = [result for each in found for result in _taken(step, each)]
        position = step.end()
    return found


def _taken(step: re.Match[str], value: JsonValue) -> Iterator[JsonValue]:
    field = step["single"] if step["single"] is not None else step["double"]
    if step["field"] is not None:
        field = re.sub(r"\\(.)", r"\1", step["field"])
    if field == "*" or step["every"]:
        yield from _members(value)
    elif field is not None:
        if isinstance(value, dict) and field in value:
            yield value[field]
    elif step["index"] is not None:
        if isinstance(value, list) and -len(value) <= int(step["index"]) < len(value):
            yield value[int(step["index"])]
    else:
        yield from (each for each in _members(value) if _passes(step, each))


def _members(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _passes(step: re.Match[str], value: JsonValue) -> bool:
    results = find(step["path"], value)
    if step["operator"] is None:
        return bool(results)
    if not results:
        return False
    wanted = _literal(step["literal"])
    if step["operator"] in {"=", "=="}:
        return results[0] == wanted
    if step["operator"] == "!=":
        return results[0] != wanted
    left, right = results[0], wanted
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return False
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[step["operator"]]


def _literal(text: str) -> JsonValue:
    if text[:1] in {"'", '"'}:
        return text[1:-1]
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, str | int | float | bool) else text
