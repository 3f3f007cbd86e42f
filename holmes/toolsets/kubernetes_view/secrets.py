"""Removes what is secret: values of Secrets in Kubernetes objects and messages, and from their tables.

Called before anything else looks at the objects.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from holmes.redaction.views import strip_escape_sequences
from holmes.toolsets.kubernetes_view.secret_names import sounds_secret
from holmes.toolsets.kubernetes_view.texts import HIDDEN, holds_secret, masked_text, may_be_copy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.toolsets.kubernetes_view.contract import Json

# The columns of these kinds are kubectl's own and point into no Secret.
_HARMLESS_KINDS = re.compile(
    r"po|pods?|svc|services?|ep|endpoints|no|nodes?|ns|namespaces?|ev|events?|cm|configmaps?|secrets?|sa|serviceaccounts?"
    r"|pvc?|persistentvolume(claim)?s?|rc|replicationcontrollers?|quota|resourcequotas?|limits|limitranges?"
    r"|deploy|deployments?|rs|replicasets?|sts|statefulsets?|ds|daemonsets?|jobs?|cj|cronjobs?"
    r"|hpa|horizontalpodautoscalers?|ing|ingress(es)?|netpol|networkpolic(y|ies)|pdb|poddisruptionbudgets?"
    r"|sc|storageclass(es)?|(cluster)?role(binding)?s?|crds?|customresourcedefinitions?"
)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# A shorter value is hidden in a table only where it is a word of its own.
_SHORT_VALUE = 6
_BEFORE_WORD = r"""(?<![^\s"':,\[{(])"""
_AFTER_WORD = r"""(?![^\s"',\]})])"""


def without_secrets(value: Json, *, of_secret_list: bool = False) -> Json:
    """A copy without the values of Secrets, without `last-applied` copies and without `managedFields`."""
    if isinstance(value, list):
        return [without_secrets(item, of_secret_list=of_secret_list) for item in value]
    if isinstance(value, str):
        return masked_text(value)
    if not isinstance(value, dict):
        return value
    # The API server leaves out the kind of an item; only a Secret, or a template of one, has `stringData`.
    items_are = value.get("kind") == "SecretList"
    kept = {key: without_secrets(item, of_secret_list=items_are and key == "items") for key, item in value.items()}
    secret = of_secret_list or value.get("kind") == "Secret" or isinstance(value.get("stringData"), dict)
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        _clean_metadata(metadata, value["metadata"], secret=secret)
    if secret:
        names = sorted({name for field in ("data", "stringData") for name in _names(kept.pop(field, None))})
        if names:
            kept["dataKeys"] = list(names)
    return kept


def masked_status(text: str) -> str:
    """What `helm status` says, without the notes of the chart, which may print a password."""
    kept, _, _ = f"\n{text}".partition("\nNOTES:")
    return masked_text(f"{kept.strip()}\n")


def _clean_metadata(metadata: dict[str, Json], original: Json, *, secret: bool) -> None:
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations")
    written = original.get("annotations") if isinstance(original, dict) else None
    if not isinstance(annotations, dict) or not isinstance(written, dict):
        if secret:
            metadata.pop("annotations", None)
        return
    annotations.pop(LAST_APPLIED, None)
    # Other tools keep copies of what they applied under names of their own.
    for name in annotations:
        text = written.get(name)
        copied = not isinstance(text, str) or holds_secret(text) or (secret and may_be_copy(text))
        if copied or (secret and sounds_secret(name)):
            annotations[name] = HIDDEN
    if not annotations:
        del metadata["annotations"]


def is_harmless_table(kinds: str) -> bool:
    """Whether a table of `kinds`, as kubectl takes them, can be shown without a look at its objects."""
    return all(_HARMLESS_KINDS.fullmatch(kind.partition("/")[0]) for kind in kinds.split(","))


def masked_table(table: str, objects: Json, shown_objects: Json) -> str:
    """`table` without what `objects` has and `shown_objects` has not: a custom resource chooses its columns itself."""
    table = strip_escape_sequences(table)
    for value in sorted(_hidden_values(objects, shown_objects), key=len, reverse=True):
        if value not in table:
            continue
        shown = HIDDEN.ljust(len(value))
        if len(value) >= _SHORT_VALUE:
            table = table.replace(value, shown)
        else:
            table = re.sub(rf"{_BEFORE_WORD}{re.escape(value)}{_AFTER_WORD}", shown, table)
    return table


def _hidden_values(objects: Json, shown_objects: Json) -> set[str]:
    """The values of `objects` that are not in `shown_objects`, as the column of a table would print them."""
    hidden = {strip_escape_sequences(value) for value in _values(objects)} - set(_values(shown_objects))
    lines = {line.strip() for value in hidden for line in value.splitlines()}
    # A column that shows an object prints JSON as Go writes it.
    as_json = {json.dumps(value, ensure_ascii=False)[1:-1] for value in hidden | lines}
    for character in "<>&":
        as_json |= {value.replace(character, f"\\u{ord(character):04x}") for value in as_json}
    return (hidden | lines | as_json) - {"", HIDDEN}


def _values(value: Json) -> Iterator[str]:
    """The texts and numbers in `value`, without what is left out only because it says nothing."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in {"managedFields", LAST_APPLIED}:
                yield from _values(item)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)


def _names(data: Json) -> Iterator[str]:
    if isinstance(data, dict):
        yield from data
