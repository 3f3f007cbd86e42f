"""The command line of the view: reads standard input, writes what may be seen of it. See the package."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from holmes.toolsets.kubernetes_view.contract import ViewError
from holmes.toolsets.kubernetes_view.layouts import items_of, show_columns, show_count, show_jq, show_yaml
from holmes.toolsets.kubernetes_view.secrets import masked_status, masked_table, without_secrets
from holmes.toolsets.kubernetes_view.texts import masked_description, masked_text

if TYPE_CHECKING:
    from holmes.toolsets.kubernetes_view.contract import Json

_TEXTS: Final = {"text": masked_text, "describe": masked_description, "status": masked_status}


def view(arguments: list[str], text: str) -> str:
    """What the command line `arguments` shows of `text`. Raises `ViewError`."""
    if len(arguments) == 1 and arguments[0] in _TEXTS:
        return _TEXTS[arguments[0]](text)
    if arguments[:1] in (["yaml"], ["columns"]) and not items_of(_objects(text)):
        sys.stderr.write("No objects found.\n")
        return ""
    match arguments:
        case ["table", file]:
            shown = masked_text(masked_table(text, _behind_table(file)))
        case ["manifest"]:
            shown = show_yaml(_manifest(text))
        case ["values"]:
            shown = _values(text)
        case ["yaml"]:
            shown = show_yaml([_objects(text)])
        case ["jq", expression]:
            shown = show_jq(_objects(text), expression)
        case ["columns", specification]:
            shown = show_columns(_objects(text), specification)
        case ["count", *path] if len(path) <= 1:
            shown = show_count(_objects(text), path[0] if path else None)
        case _:
            objects = "yaml | jq EXPRESSION | columns SPECIFICATION | count [PATH] | manifest | values | table FILE"
            raise ViewError(f"usage: {' | '.join(_TEXTS)} | {objects}")
    return shown


def _manifest(text: str) -> list[Json]:
    from holmes.toolsets.kubernetes_view.manifests import parse_manifest

    return [without_secrets(document) for document in parse_manifest(text)]


def _values(text: str) -> str:
    from holmes.toolsets.kubernetes_view.values import masked_values

    values = masked_values(without_secrets(_parsed(text, "helm")))
    return "" if values is None else show_yaml([values])


def _behind_table(file: str) -> Json:
    from pathlib import Path

    try:
        return _parsed(Path(file).read_text(encoding="utf-8", errors="replace"), "kubectl")
    except (ViewError, OSError) as error:
        reason = "the objects of this table cannot be read, and so secrets not be found in it: it is not shown"
        raise ViewError(reason) from error


def _objects(text: str) -> Json:
    return without_secrets(_parsed(text, "kubectl"))


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
        shown = view(sys.argv[1:], text)
    except (ViewError, RecursionError) as error:
        sys.stderr.write(f"{str(error) or type(error).__name__}\n")
        return 1
    sys.stdout.buffer.write(shown.encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
