"""Text that UTF-8 can hold: whole characters, and none of the halves that JSON and command lines can write."""

from __future__ import annotations

import re

_HALF = re.compile("[\ud800-\udfff]")


def whole_characters(text: str) -> str:
    """`text` with U+FFFD in place of each half of a character; two that belong together become one."""
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
