"""Leaves out the words that only ask for confirmation: ", right?", "is it true that", "oder?".

The rest is a statement, which the answer checks.
"""

from __future__ import annotations

from typing import Final

from holmes.values.expressions import expression

_TAG: Final = expression(
    r"\s*,\s*(?:right|correct|true|yes|no|eh|huh|or not|am i right|is that (?:right|correct|true)|oder|oder nicht"
    r"|gell|stimmt(?:'?s| das)?|richtig|ja|verdad|cierto|si|correcto|non|oui|hein|pas vrai|c'est (?:vrai|ca))\s*[?!.]*$"
    r"|,?\s+(?:(?:is|does|do|are|has|have|was|did)n'?t (?:it|they|he|she)|nicht wahr|no es (?:asi|cierto)"
    r"|n'est-ce pas)\s*[?!.]*$"
    r"|(?<!\ball)\s+right\s*\?+$"
)
_TRUE_THAT: Final = expression(
    r"^\s*(?:is it (?:true|right|correct) that|am i right that|stimmt es,? dass|ist es (?:wahr|richtig),? dass"
    r"|es (?:verdad|cierto) que|est-ce (?:vrai|exact) que|est-il vrai que)\s+"
)


def without_tag(text: str) -> str:
    """Return a folded question as the statement whose confirmation it asks for, or unchanged."""
    return _TRUE_THAT.sub("", _TAG.sub("?", text)) if asks_to_confirm(text) else text


def asks_to_confirm(text: str) -> bool:
    """Return whether a folded question asks to confirm a statement."""
    return _TAG.search(text) is not None or _TRUE_THAT.search(text) is not None
