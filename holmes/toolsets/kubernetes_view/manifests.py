"""Reads the YAML of a Helm manifest as Kubernetes reads it. One of the forms.

PyYAML knows kinds of values that Kubernetes' own reader does not: dates, `22:30` as a number in base 60, and `=`,
which it refuses. Here all of these stay the texts that the cluster got.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

import yaml

from holmes.toolsets.kubernetes_view.contract import ViewError
from holmes.yaml_documents import MAX_NODES, expanded_size, refuse_deep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.toolsets.kubernetes_view.contract import Json

_TAG = "tag:yaml.org,2002:"


def parse_manifest(text: str) -> list[Json]:
    """The documents of `text` that are not empty. Raises `ViewError`."""
    try:
        refuse_deep(text.encode(), source="")
        return [_json_like(document) for document in _documents(text) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ViewError("this is not valid YAML, and Secrets cannot be found in it: it is not shown") from error


def _documents(text: str) -> Iterator[object]:
    """The documents, none of which is larger than it looks. Raises `ValueError`."""
    loader = _LOADER(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None and expanded_size(node, {}) > MAX_NODES:
                raise ValueError("too many values once its aliases are put in place")
            yield loader.construct_document(node) if node is not None else None
    finally:
        loader.dispose()


def _json_like(value: object) -> Json:
    """YAML has more types than JSON: keys become texts (`on` becomes "true"), bytes too."""
    if isinstance(value, dict):
        return {_key(key): _json_like(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_like(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def _key(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | str:
    return _text(loader, node) if ":" in node.value else loader.construct_yaml_int(node)


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float | str:
    return _text(loader, node) if ":" in node.value else loader.construct_yaml_float(node)


def _loader() -> type[yaml.SafeLoader]:
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = cast("type[yaml.SafeLoader]", type("ManifestLoader", (base,), {}))
    loader.add_constructor(f"{_TAG}value", _text)
    loader.add_constructor(f"{_TAG}timestamp", _text)
    loader.add_constructor(f"{_TAG}int", _integer)
    loader.add_constructor(f"{_TAG}float", _number)
    return loader


_LOADER: Final = _loader()
