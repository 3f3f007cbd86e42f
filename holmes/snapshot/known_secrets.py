"""Recognises the values of the cluster's own Secrets wherever else they turn up, above all in logs.

Called by the scrubber. What patterns cannot know (a random word in the middle of a line) is known here, because the
Secrets were read. Values are compared piece by piece, so that the time does not grow with their number.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text_map
from holmes.kubernetes.object_masking import REMOVED
from holmes.redaction.kubernetes_secrets import may_be_shown
from holmes.redaction.values import looks_random

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.values.json_types import JsonObject

# Whole archives (the releases of helm) turn up nowhere else.
_LONGEST_CHARACTERS: Final = 16 * 1024
# A value is cut where texts are likely to be cut: `user:VALUE@host`, `token=VALUE,`, the parts of a web token.
_PIECE: Final = re.compile(r"[A-Za-z0-9_+\-!#$%^*~]{12,4096}")


class KnownSecrets:
    """The values of some Secrets. Pieces that people could have written are left alone: names, hosts, words.

    Certificates are no secrets: the same ones stand in ConfigMaps and webhooks.
    """

    def __init__(self, secrets: Iterable[JsonObject] = ()) -> None:
        self._pieces = frozenset(
            piece
            for secret in secrets
            for value in text_map(secret, "data").values()
            if len(value) <= _LONGEST_CHARACTERS and not may_be_shown(value)
            for form in _forms(value)
            for piece in _PIECE.findall(form)
            if looks_random(piece)
        )

    def masked(self, text: str) -> str:
        """`text` with `(REDACTED)` in place of every value; the same object when there is none."""
        if not self._pieces or self._pieces.isdisjoint(_PIECE.findall(text)):
            return text
        return _PIECE.sub(lambda found: REMOVED if found[0] in self._pieces else found[0], text)


def _forms(encoded: str) -> Iterator[str]:
    """The value as the API holds it and as programs see it."""
    yield encoded
    try:
        yield base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return
