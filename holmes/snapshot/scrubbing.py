"""Removes secrets and bookkeeping fields from objects and logs before they are written.

A Secret value becomes the base64 of `(REDACTED)`, so that it can still be decoded and does not reveal the length of the
value. An empty value is kept, because it is a fault that users should see. `managedFields` keeps the client, the
time and the fields of the spec of each change.

Texts are also searched for the values of Secrets, because patterns do not recognise every value, for example a random
word in a line. Values are compared in parts, so the search time does not depend on the number of values.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import LAST_APPLIED, child, children, text_map
from holmes.kubernetes.object_masking import REMOVED, ObjectMasker
from holmes.kubernetes.one_list import written_fields
from holmes.redaction.kubernetes_secrets import may_be_shown
from holmes.redaction.values import looks_random
from holmes.snapshot.recorded_logs import without_timestamp
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.redaction.redactor import Redactor
    from holmes.values.json_types import JsonObject, JsonValue

# Texts are not searched for longer values. These are whole archives (Helm releases), which no other text contains.
_LONGEST_CHARACTERS: Final = 16 * 1024
# A value is split at the characters that delimit it in texts such as `user:VALUE@host`, `token=VALUE,` or web tokens.
_PIECE: Final = expression(r"[A-Za-z0-9_+\-!#$%^*~]{12,4096}")


class KnownSecrets:
    """Masks the values of some Secrets in texts.

    Parts that people could have chosen, such as names, hosts and words, are not masked. Certificates are not masked,
    because they are not secret and also occur in ConfigMaps and webhooks.
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
        """Replace every value in `text` with `(REDACTED)`. Returns `text` itself if it contains no value."""
        if not self._pieces or self._pieces.isdisjoint(_PIECE.findall(text)):
            return text
        return _PIECE.sub(lambda found: REMOVED if found[0] in self._pieces else found[0], text)


def _forms(encoded: str) -> Iterator[str]:
    """Return the value in the base64 form that the API stores, and the decoded value."""
    yield encoded
    try:
        yield base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return


REMOVED_BASE64: Final = base64.b64encode(REMOVED.encode()).decode()
_ENCODED: Final = ("data", "binaryData")
_MANAGED_FIELDS: Final = ("apiVersion", "manager", "operation", "subresource", "time")


class Scrubber:
    """Removes secrets from objects and logs. Without a redactor, it removes only values of Secrets."""

    def __init__(self, redactor: Redactor | None, known: KnownSecrets) -> None:
        self._redactor = redactor
        self._known = known

    def scrubbed(self, item: JsonObject, *, secret: bool) -> JsonObject:
        """Return a copy of `item` for the recording. `secret` is true for a Secret. CPU-bound: 1 ms for 16 KB."""
        item = {**item, "metadata": _metadata(child(item, "metadata"))}
        if secret:
            item = without_values(item)
        # The redactor must not replace placeholders, which must stay base64.
        # The binary data of a ConfigMap can be a key store, which no pattern can check.
        encoded = {key: item[key] for key in _ENCODED if key in item and (secret or key == "binaryData")}
        rest = {key: value for key, value in item.items() if key not in encoded}
        kept = {key: _placeholders(value, REMOVED_BASE64) for key, value in encoded.items()}
        return {**child(ObjectMasker(self.scrubbed_text).masked(rest)), **kept}

    def scrubbed_log(self, content: bytes) -> bytes:
        """Return the log for the recording. The timestamp of each line is kept and not scrubbed."""
        stamped = content.decode("utf-8", "replace").split("\n")
        plain = [without_timestamp(line.encode()).decode() for line in stamped]
        before = "\n".join(plain)
        after = self.scrubbed_text(before)
        if after is before:
            return content
        masked = after.split("\n")
        if len(masked) != len(stamped):
            return self.scrubbed_text("\n".join(stamped)).encode()
        stamps = (line[: len(line) - len(text)] for line, text in zip(stamped, plain, strict=True))
        return "\n".join(stamp + text for stamp, text in zip(stamps, masked, strict=True)).encode()

    def scrubbed_text(self, text: str) -> str:
        known = self._known.masked(text)
        return known if self._redactor is None else self._redactor.redact(known)


def without_values(secret: JsonObject) -> JsonObject:
    """Remove the values of a Secret, including those in the annotation that `kubectl apply` writes."""
    kept: dict[str, JsonValue] = dict(secret)
    for key, removed in (("data", REMOVED_BASE64), ("stringData", REMOVED)):
        if key in kept:
            kept[key] = _placeholders(kept[key], removed)
    annotations = text_map(secret, "metadata", "annotations")
    if LAST_APPLIED in annotations:
        annotations[LAST_APPLIED] = _applied_without_values(annotations[LAST_APPLIED])
        kept["metadata"] = {**child(secret, "metadata"), "annotations": annotations}
    return kept


def _metadata(metadata: JsonObject) -> JsonObject:
    if "managedFields" not in metadata:
        return metadata
    changes = [
        {key: change[key] for key in _MANAGED_FIELDS if key in change} | written_fields(change)
        for change in children(metadata, "managedFields")
    ]
    return {**metadata, "managedFields": changes}


def _placeholders(values: JsonValue, removed: str) -> JsonValue:
    if values is None:
        return None
    return {key: removed if value else value for key, value in child(values).items()}


def _applied_without_values(applied: str) -> str:
    try:
        document = json.loads(applied)
    except (ValueError, RecursionError):
        return REMOVED
    if not isinstance(document, dict):
        return REMOVED
    return json.dumps(without_values(document), separators=(",", ":")) + "\n"
