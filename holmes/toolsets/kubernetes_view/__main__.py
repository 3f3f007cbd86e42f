"""The command line of the view: reads standard input, writes what may be seen of it. See the package."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Final, cast

from holmes.toolsets.kubernetes_view.contract import ViewError
from holmes.toolsets.kubernetes_view.layouts import items_of, show_columns, show_count, show_jq, show_yaml
from holmes.toolsets.kubernetes_view.secrets import masked_status, masked_table, without_secrets
from holmes.toolsets.kubernetes_view.texts import masked_description, masked_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.kubernetes.object_masking import ObjectMasker
    from holmes.toolsets.kubernetes_view.contract import Json

_KEY: Final = "HOLMES_REDACTION_KEY"
_TEXTS: Final = {"text": masked_text, "describe": masked_description, "status": masked_status}
_USAGE: Final = (
    "usage: text | describe | status | yaml | jq EXPRESSION | columns SPECIFICATION | count [PATH] | manifest | values "
    "| table FILE"
)


def view(arguments: list[str], text: str, masker: ObjectMasker | None = None) -> str:
    """What the command line `arguments` shows of `text`; `masker` is None when redaction is off. Raises `ViewError`."""
    if len(arguments) == 1 and arguments[0] in _TEXTS:
        shown = _TEXTS[arguments[0]](text)
        return masker.masked_arguments(shown) if masker is not None and arguments == ["describe"] else shown

    def seen(objects: Json) -> Json:
        without = without_secrets(objects)
        return without if masker is None else cast("Json", masker.masked(without))

    match arguments:
        case ["table", file]:
            objects = _behind_table(file)
            shown = masked_text(masked_table(text, objects, seen(objects)))
        case ["manifest"]:
            shown = show_yaml([seen(document) for document in _manifest(text)])
        case ["values"]:
            shown = _values(text, seen)
        case ["jq", expression]:
            shown = show_jq(seen(_parsed(text, "kubectl")), expression)
        case ["count", *path] if len(path) <= 1:
            shown = show_count(seen(_parsed(text, "kubectl")), path[0] if path else None)
        case ["yaml" | "columns" as form, *rest] if len(rest) == (form == "columns"):
            objects = seen(_parsed(text, "kubectl"))
            if not items_of(objects):
                sys.stderr.write("No objects found.\n")
                return ""
            shown = show_columns(objects, rest[0]) if rest else show_yaml([objects])
        case _:
            raise ViewError(_USAGE)
    return shown


def _masker() -> ObjectMasker | None:
    """What masks by the names in objects; None without a key."""
    key = os.environ.pop(_KEY, "")
    if not key:
        return None
    # Imported here: they cost as much as the rest, and redaction may be switched off.
    from holmes.kubernetes.object_masking import ObjectMasker
    from holmes.redaction.redactor import Redactor

    return ObjectMasker(Redactor(bytes.fromhex(key)).redact)


def _manifest(text: str) -> list[Json]:
    from holmes.toolsets.kubernetes_view.manifests import parse_manifest

    return parse_manifest(text)


def _values(text: str, seen: Callable[[Json], Json]) -> str:
    from holmes.toolsets.kubernetes_view.values import masked_values

    values = seen(masked_values(without_secrets(_parsed(text, "helm"))))
    return "" if values is None else show_yaml([values])


def _behind_table(file: str) -> Json:
    from pathlib import Path

    try:
        return _parsed(Path(file).read_text(encoding="utf-8", errors="replace"), "kubectl")
    except (ViewError, OSError) as error:
        reason = "the objects of this table cannot be read, and so secrets not be found in it: it is not shown"
        raise ViewError(reason) from error


def _parsed(text: str, author: str) -> Json:
    try:
        parsed: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ViewError(f"what {author} wrote is not JSON") from error
    return parsed


def main() -> int:
    """Filter standard input to standard output. 0 done, 1 the input or the expression cannot be used."""
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        # kubectl has failed or found nothing and has said so itself.
        return 0
    try:
        shown = view(sys.argv[1:], text, _masker())
    except (ViewError, RecursionError) as error:
        sys.stderr.write(f"{str(error) or type(error).__name__}\n")
        return 1
    sys.stdout.buffer.write(shown.encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
