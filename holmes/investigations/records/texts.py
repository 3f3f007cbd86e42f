"""Texts of models, tools and people as every database can keep them, and the cause that an answer names."""

from __future__ import annotations

import re
from typing import overload

from holmes.evidence.markers import without_markers
from holmes.values.texts import shortened, whole_characters

_CAUSE = re.compile(r"root cause\b(?: \([^)]{1,40}\))?:? ?", re.IGNORECASE)
_ROOT_CAUSE_CHARACTERS = 400


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
def storable(text: str | None) -> str | None:
    """`text` without zero bytes and halves of characters, which PostgreSQL and UTF-8 have no place for."""
    if text is None:
        return None
    return whole_characters(text.replace("\0", "\ufffd"))


def root_cause(answer: str) -> str | None:
    """The line of an answer that names the cause: the one that says so, else the first one that is no heading.

    Markers and the words "root cause" themselves are left out: whoever shows it, labels it. What was not checked stays
    as words.
    """
    lines = [line.strip().lstrip("#>*-0123456789. ").replace("**", "").rstrip("* ") for line in answer.splitlines()]
    said = next((line for line in lines if _CAUSE.match(line) and not line.endswith(":")), None)
    chosen = said or next((line for line in lines if line and not line.endswith(":")), None)
    if chosen is None:
        return None
    plain = without_markers(_CAUSE.sub("", chosen))
    return shortened(" ".join(plain.split()), _ROOT_CAUSE_CHARACTERS, mark="")
