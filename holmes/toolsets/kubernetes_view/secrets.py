"""Removes what is secret: values of Secrets in Kubernetes objects and messages, and what sounds secret in Helm values.

Called before anything else looks at the objects.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.toolsets.kubernetes_view.contract import Json

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_HIDDEN = "(hidden)"
# Other tools keep copies of what they applied under names of their own; a short text is no copy of an object.
_LONGEST_SECRET_ANNOTATION = 256
_SECRET_KEY = re.compile(
    r"passw|passphrase|secret|token|api[-_]?key|private[-_]?key|credential|access[-_]?key|auth$|dsn$|connection[-_]?string"
    r"|license|cert$|\.key$|webhook[-_]?url|salt$",
    re.IGNORECASE,
)
# `.stringData.password: expected string, got &value.valueUnstructured{Value:12345}`: one value to a line.
_QUOTED_VALUE = re.compile(r"&?value\.value[A-Z]\w*\{.*")
_CREDENTIALS_IN_URL = re.compile(r"(\w+://[^/\s:@]*):[^/\s@]+@")


def without_secrets(value: Json) -> Json:
    """A copy without the values of Secrets, without `last-applied` copies and without `managedFields`."""
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    if isinstance(value, str):
        return masked_text(value)
    if not isinstance(value, dict):
        return value
    kept = {key: without_secrets(item) for key, item in value.items()}
    secret = value.get("kind") == "Secret"
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        _clean_metadata(metadata, secret=secret)
    if secret:
        names = sorted({name for field in ("data", "stringData") for name in _names(kept.pop(field, None))})
        if names:
            kept["dataKeys"] = list(names)
    return kept


def masked_text(text: str) -> str:
    """`text` without the value that the API server quotes when it has the wrong type, as an unquoted password has."""
    return _QUOTED_VALUE.sub(_HIDDEN, text) if "value.value" in text else text


def masked_status(text: str) -> str:
    """What `helm status` says, without the notes of the chart, which may print a password."""
    kept, _, _ = f"\n{text}".partition("\nNOTES:")
    return masked_text(f"{kept.strip()}\n")


def _clean_metadata(metadata: dict[str, Json], *, secret: bool) -> None:
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        if secret:
            metadata.pop("annotations", None)
        return
    annotations.pop(LAST_APPLIED, None)
    for name, text in list(annotations.items()):
        if (secret and _may_be_copy(text)) or _holds_secret(text):
            annotations[name] = _HIDDEN
    if not annotations:
        del metadata["annotations"]


def _may_be_copy(text: Json) -> bool:
    return not isinstance(text, str) or "data" in text.lower() or len(text) > _LONGEST_SECRET_ANNOTATION


def _holds_secret(text: Json) -> bool:
    """Whether an annotation of another object carries a Secret, as bundles of some tools do."""
    return not isinstance(text, str) or re.search(r"[\"']?kind[\"']?\s*:\s*[\"']?Secret\b", text) is not None


def _names(data: Json) -> Iterator[str]:
    if isinstance(data, dict):
        yield from data


def masked_values(value: Json, *, hide: bool = False) -> Json:
    """Helm values with everything hidden whose key sounds like a secret, and passwords inside URLs."""
    if isinstance(value, dict):
        # The form of a container's variables: {name: DB_PASSWORD, value: …}.
        named = value.get("name")
        secret_value = isinstance(named, str) and _SECRET_KEY.search(named) is not None
        return {
            key: masked_values(item, hide=hide or _sounds_secret(key, item) or (secret_value and key == "value"))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [masked_values(item, hide=hide) for item in value]
    if hide and isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
        return _HIDDEN
    return _CREDENTIALS_IN_URL.sub(rf"\1:{_HIDDEN}@", value) if isinstance(value, str) else value


def _sounds_secret(key: str, item: Json) -> bool:
    """`existingSecret: name` and the like say where a secret is and not what it is."""
    if re.search(r"^existing|name$|ref$|^create$|^enabled$|path$|^mount|^use", key, re.IGNORECASE):
        return False
    if isinstance(item, dict) and key.lower().endswith("auth"):
        return False
    return _SECRET_KEY.search(key) is not None and not isinstance(item, bool)
