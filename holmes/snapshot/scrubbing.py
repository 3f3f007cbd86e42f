"""What an object or a log loses before it is written: the values of Secrets, recognised secrets, and bookkeeping.

Called by the recorder for everything, before anything touches the disk. A value of a Secret becomes the base64 of
`(REDACTED)`, so that readers still decode it and nothing tells its length; an empty value stays empty, because a key
without a value is a fault worth seeing. Of `managedFields` who changed the object and when is kept, not what.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, text_map
from holmes.kubernetes.object_masking import REMOVED, ObjectMasker
from holmes.snapshot.logs import without_timestamp

if TYPE_CHECKING:
    from holmes.redaction.redactor import Redactor
    from holmes.snapshot.known_secrets import KnownSecrets
    from holmes.values.json_types import JsonObject, JsonValue

REMOVED_BASE64: Final = base64.b64encode(REMOVED.encode()).decode()
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ENCODED: Final = ("data", "binaryData")
_MANAGED_FIELDS: Final = ("apiVersion", "manager", "operation", "subresource", "time")


class Scrubber:
    """Takes secrets out. Without a redactor only the values of Secrets are taken out, wherever they are."""

    def __init__(self, redactor: Redactor | None, known: KnownSecrets) -> None:
        self._redactor = redactor
        self._known = known

    def scrubbed(self, item: JsonObject, *, secret: bool) -> JsonObject:
        """A copy of `item` that may be written. `secret` says that it is a Secret. CPU-bound: 1 ms for 16 KB."""
        item = {**item, "metadata": _metadata(child(item, "metadata"))}
        if secret:
            item = without_values(item)
        # Placeholders that must stay base64 are kept from the redactor, which would put its own there. What a
        # ConfigMap holds in binary are key stores and the like, which no pattern can look into.
        encoded = {key: item[key] for key in _ENCODED if key in item and (secret or key == "binaryData")}
        rest = {key: value for key, value in item.items() if key not in encoded}
        kept = {key: _placeholders(value, REMOVED_BASE64) for key, value in encoded.items()}
        return {**child(ObjectMasker(self._text).masked(rest)), **kept}

    def scrubbed_log(self, content: bytes) -> bytes:
        """The log that may be written; each line keeps the moment before it, which is not part of what is judged."""
        stamped = content.decode("utf-8", "replace").split("\n")
        plain = [without_timestamp(line.encode()).decode() for line in stamped]
        before = "\n".join(plain)
        after = self._text(before)
        if after is before:
            return content
        masked = after.split("\n")
        if len(masked) != len(stamped):
            return self._text("\n".join(stamped)).encode()
        stamps = (line[: len(line) - len(text)] for line, text in zip(stamped, plain, strict=True))
        return "\n".join(stamp + text for stamp, text in zip(stamps, masked, strict=True)).encode()

    def _text(self, text: str) -> str:
        known = self._known.masked(text)
        return known if self._redactor is None else self._redactor.redact(known)


def without_values(secret: JsonObject) -> JsonObject:
    """The Secret without values, also in the copy of itself that `kubectl apply` leaves in an annotation."""
    kept: dict[str, JsonValue] = dict(secret)
    for key, removed in (("data", REMOVED_BASE64), ("stringData", REMOVED)):
        if key in kept:
            kept[key] = _placeholders(kept[key], removed)
    annotations = text_map(secret, "metadata", "annotations")
    if _LAST_APPLIED in annotations:
        annotations[_LAST_APPLIED] = _applied_without_values(annotations[_LAST_APPLIED])
        kept["metadata"] = {**child(secret, "metadata"), "annotations": annotations}
    return kept


def _metadata(metadata: JsonObject) -> JsonObject:
    if "managedFields" not in metadata:
        return metadata
    changes = [
        {key: change[key] for key in _MANAGED_FIELDS if key in change} for change in children(metadata, "managedFields")
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
