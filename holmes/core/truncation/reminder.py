"""What a compacted history says about the tools at hand (K8). Called by every stage that removes messages.

Pure; at most 150 tokens for names that are made of words, and never more than 450 characters.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.tools import Tool

MAX_LISTED_TOOLS = 20
_MAX_CHARACTERS = 360
_FIRST_WORD = re.compile(r"[^A-Za-z0-9]*([A-Z]?[a-z0-9]+|[A-Z0-9]+)")


def reminder_text(tools: Sequence[Tool]) -> str:
    """One line: all names when there are at most 20, else their first words with counts. Empty without tools."""
    if not tools:
        return ""
    names = [tool.name for tool in tools]
    listed = ", ".join(names)
    if len(names) <= MAX_LISTED_TOOLS and len(listed) <= _MAX_CHARACTERS:
        return f"Tools at hand, as before: {listed}."
    counts = Counter(map(_family, names))
    families = [f"{family} ({count})" for family, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    shown: list[str] = []
    for family in families:
        if sum(map(len, shown)) + 2 * len(shown) + len(family) > _MAX_CHARACTERS:
            break
        shown.append(family)
    rest = len(families) - len(shown)
    more = f" and {rest:,} more kinds" if rest else ""
    return (
        f"Tools at hand, as before, {len(names):,} in all: {', '.join(shown)}{more}. Their schemas are in the request."
    )


def _family(name: str) -> str:
    """`kubectl_get` and `kubectlDescribe` are both `kubectl`."""
    match = _FIRST_WORD.match(name)
    return match[1].lower()[:24] if match else name[:24]
