"""The command line of the view: reads standard input, writes what may be seen of it. See the package."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from holmes.toolsets.kubernetes_view.contract import ViewError
from holmes.toolsets.kubernetes_view.layouts import items_of, show_columns, show_count, show_jq, show_yaml
from holmes.toolsets.kubernetes_view.secrets import masked_values, without_secrets

if TYPE_CHECKING:
    from holmes.toolsets.kubernetes_view.contract import Json


def view(arguments: list[str], text: str) -> str:
    """What the command line `arguments` shows of `text`. Raises `ViewError`."""
    if arguments[:1] in (["yaml"], ["columns"]) and not items_of(_objects(text)):
        sys.stderr.write("No objects found.\n")
        return ""
    match arguments:
        case ["manifest"]:
            shown = show_yaml([without_secrets(document) for document in _documents(text)])
        case ["values"]:
            shown = show_yaml([masked_values(document) for document in _documents(text)])
        case ["yaml"]:
            shown = show_yaml([_objects(text)])
        case ["jq", expression]:
            shown = show_jq(_objects(text), expression)
        case ["columns", specification]:
            shown = show_columns(_objects(text), specification)
        case ["count"]:
            shown = show_count(_objects(text), None)
        case ["count", path]:
            shown = show_count(_objects(text), path)
        case _:
            raise ViewError("usage: yaml | jq EXPRESSION | columns SPECIFICATION | count [PATH] | manifest | values")
    return shown


def _documents(text: str) -> list[Json]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return [_json_like(document) for document in yaml.load_all(text, Loader=loader) if document is not None]
    except (yaml.YAMLError, ValueError) as error:
        raise ViewError("this is not valid YAML, and Secrets cannot be found in it: it is not shown") from error


def _json_like(value: object) -> Json:
    """YAML has more types than JSON: keys become texts, dates and bytes too."""
    if isinstance(value, dict):
        return {str(key): _json_like(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_like(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def _objects(text: str) -> Json:
    try:
        return without_secrets(json.loads(text))
    except ValueError as error:
        raise ViewError("what kubectl wrote is not JSON") from error


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
