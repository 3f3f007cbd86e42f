"""The forms of the transformer `kubernetes_view`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from holmes.kubernetes.object_masking import ObjectMasker
from holmes.toolsets.kubernetes_view import ViewError
from holmes.toolsets.kubernetes_view.helm import masked_values, parse_manifest
from holmes.toolsets.kubernetes_view.layouts import items_of, show_columns, show_count, show_yaml
from holmes.toolsets.kubernetes_view.secrets import (
    masked_description,
    masked_status,
    masked_table,
    masked_text,
    without_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.redaction.redactor import Redactor
    from holmes.toolsets.kubernetes_view import Json, ViewRequest

_TEXTS: Final = {"text": masked_text, "describe": masked_description, "status": masked_status}


def view(request: ViewRequest, redactor: Redactor | None = None) -> str:
    """Return the text without secrets or, for `jq`, the input of the jq program.

    The text is empty if `yaml` or `columns` finds no objects. If `redactor` is None (redaction is off), only the values
    of Secrets are hidden. CPU-bound: about 1 s for 1 MB. Raises `ViewError`, and `RecursionError` for objects that are
    nested too deeply.
    """
    # The masker caches texts, so each view creates a new masker.
    masker = ObjectMasker(redactor.redact) if redactor is not None else None
    if request.form in _TEXTS:
        shown = _TEXTS[request.form](request.text)
        return masker.masked_arguments(shown) if masker is not None and request.form == "describe" else shown

    def seen(objects: Json) -> Json:
        without = without_secrets(objects)
        return without if masker is None else cast("Json", masker.masked(without))

    match request.form:
        case "table":
            objects = _behind_table(request.objects)
            return masked_text(masked_table(request.text, objects, seen(objects)))
        case "manifest":
            return show_yaml([seen(document) for document in parse_manifest(request.text)])
        case "values":
            values = seen(masked_values(without_secrets(_parsed(request.text, "helm"))))
            return "" if values is None else show_yaml([values])
        case _:
            return _laid_out(request, seen)


def _laid_out(request: ViewRequest, seen: Callable[[Json], Json]) -> str:
    objects = seen(_parsed(request.text, "kubectl"))
    if request.form == "jq":
        return json.dumps(objects, ensure_ascii=False)
    if request.form == "count":
        return show_count(objects, request.argument or None)
    if not items_of(objects):
        return ""
    return show_columns(objects, request.argument) if request.form == "columns" else show_yaml([objects])


def _behind_table(text: str) -> Json:
    try:
        return _parsed(text, "kubectl")
    except ViewError as error:
        reason = "the table is not shown: its objects cannot be parsed, so secrets cannot be detected"
        raise ViewError(reason) from error


def _parsed(text: str, author: str) -> Json:
    try:
        parsed: Json = json.loads(text, object_pairs_hook=_of_one_kind)
    except (ValueError, RecursionError) as error:
        raise ViewError(f"the output of {author} is not JSON") from error
    # JSON can contain half of a surrogate pair, which cannot be encoded as UTF-8.
    if "\\ud" in text or "\\uD" in text:
        parsed = json.loads(json.dumps(parsed, ensure_ascii=False).encode("utf-8", "replace"))
    return parsed


def _of_one_kind(pairs: list[tuple[str, Json]]) -> Json:
    """Build an object.

    Raises `ViewError` for a duplicate key 'kind', because JSON parsers disagree on which value is valid.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs) and sum(key == "kind" for key, _ in pairs) > 1:
        raise ViewError("the output is not shown: duplicate key 'kind', so Secrets cannot be detected")
    return fields
