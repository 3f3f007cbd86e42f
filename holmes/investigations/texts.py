"""Texts of models, tools and people as every database can keep them. Used by everything that writes records."""

from __future__ import annotations

from typing import overload

from holmes.values.characters import whole_characters


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
def storable(text: str | None) -> str | None:
    """`text` without zero bytes and halves of characters, which PostgreSQL and UTF-8 have no place for."""
    if text is None:
        return None
    return whole_characters(text.replace("\0", "\ufffd"))
