"""Takes out of an object what no rule reads, so that a large cluster fits into memory. Called by the state reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, text
from holmes.values.texts import without_last_word

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_LONGEST_VALUE_CHARACTERS: Final = 16_384


def slim(body: JsonObject, kind: str) -> JsonObject:
    """The object without bulk.

    Of `managedFields` the manager, operation and time stay (who changed it when); of a ConfigMap every key, but at most
    16,384 characters of a value; of a CustomResourceDefinition no schema; the last applied configuration goes.
    """
    slimmer: dict[str, JsonValue] = dict(body)
    metadata: dict[str, JsonValue] = dict(child(body, "metadata"))
    annotations = child(metadata, "annotations")
    if LAST_APPLIED in annotations:
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    if "managedFields" in metadata:
        metadata["managedFields"] = [
            {key: entry[key] for key in ("manager", "operation", "time", "subresource") if key in entry}
            for entry in children(metadata, "managedFields")
        ]
    slimmer["metadata"] = metadata
    if kind == "ConfigMap":
        slimmer["data"] = {key: _cut(value) for key, value in child(body, "data").items()}
        slimmer["binaryData"] = dict.fromkeys(child(body, "binaryData"), "")
    elif kind == "CustomResourceDefinition":
        slimmer["spec"] = _without_schemas(child(body, "spec"))
    return slimmer


def _cut(value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or len(value) <= _LONGEST_VALUE_CHARACTERS:
        return value
    return without_last_word(value[:_LONGEST_VALUE_CHARACTERS])


def _without_schemas(spec: JsonObject) -> dict[str, JsonValue]:
    versions: list[JsonValue] = [
        {key: value for key, value in version.items() if key != "schema"} for version in children(spec, "versions")
    ]
    kept: dict[str, JsonValue] = {key: value for key, value in spec.items() if key != "conversion"}
    return {**kept, "versions": versions, "group": text(spec, "group")}
