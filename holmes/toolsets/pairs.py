"""Parses names with values that a model writes, for example `status=500, user="a b"`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.values.errors import ToolError
from holmes.values.tool_arguments import text_argument

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject

_PAIR: Final = re.compile(r"""\s*([^\s=,"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*))\s*(?:,|\Z)""")
_MOST_CHARACTERS: Final = 1_000


def pairs_argument(arguments: JsonObject, name: str, example: str) -> tuple[tuple[str, str], ...]:
    """Return the names with their values, sorted. Raises `ToolError` for text that has another form than `example`."""
    written = text_argument(arguments, name)
    if len(written) > _MOST_CHARACTERS:
        raise ToolError(f"{name} has more than {_MOST_CHARACTERS:,} characters; write fewer")
    pairs, position = dict[str, str](), 0
    while position < len(written):
        found = _PAIR.match(written, position)
        if found is None:
            raise ToolError(f"{name} {written!r} is not valid; expected for example {example}")
        pairs[found[1]] = re.sub(r"\\(.)", r"\1", found[2]) if found[2] is not None else found[3].strip()
        position = found.end()
    return tuple(sorted(pairs.items()))
