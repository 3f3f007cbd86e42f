"""Shows Helm releases: values without secrets, and manifests parsed as Kubernetes parses them.

Secrets in values are recognised by their names, in multi-line texts (`config: |`), in container arguments and
variables, in URLs, and as private keys. Recognition is heuristic, so a secret with a harmless name remains visible.

PyYAML has types that the YAML parser of Kubernetes lacks: dates, `22:30` as a number in base 60, and `=`, which PyYAML
rejects. In this module, these values remain strings, as in the cluster.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, cast

import yaml

from holmes.toolsets.kubernetes_view import ViewError
from holmes.toolsets.kubernetes_view.layouts import show_yaml
from holmes.toolsets.kubernetes_view.secret_names import sounds_secret, words_of
from holmes.toolsets.kubernetes_view.secrets import HIDDEN
from holmes.values.expressions import expression
from holmes.yaml_documents import MAX_NODES, expanded_size, refuse_deep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.toolsets.kubernetes_view import Json

# A name must start at a word boundary, because otherwise the search would be slow in long words.
_SCHEME: Final = r"(?<![\w+.-])([a-z][\w+.-]{0,30}://"
# The user name may be empty, and the password may contain a slash. `host:443/image@sha256:` is not a password.
_PASSWORD_IN_URL: Final = expression(
    rf"{_SCHEME}[^/\s:@\"'<>]{{0,200}}):(?!\d{{1,5}}/[^\s@]{{0,300}}@sha256:)[^\s\"'<>]{{0,300}}@", re.IGNORECASE
)
_TOKEN_IN_URL: Final = expression(rf"{_SCHEME})[^/\s:@\"'<>]{{20,300}}@", re.IGNORECASE)
_PRIVATE_KEY: Final = expression(r"-----BEGIN [A-Z ]*PRIVATE KEY.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL)
_AUTHORIZATION: Final = expression(r"\b(Bearer|bearer|Basic|basic)(\s+)(?=[\w.~+/-]*[A-Z\d=])[\w.~+/=-]{6,}")
_NAME_AND_SIGN: Final = expression(
    r"""(?<![\w.-])(?P<name>[\w.-]+)\\*["']?(?:\s*[=:]>?(?P<wide>[ \t]+)|[=:]|[ \t]+(?=["']))"""
)
_QUOTED: Final = expression(r"""(?P<escape>\\+)["'].*?(?P=escape)["']|"(?:[^"\\]|\\.)*"?|'[^']*'?""")
_END_OF_WORD: Final = expression(r"[\s&;,\"'}\])]|$")
_BLOCK: Final = expression(r"\s*[|>][-+\d]*\s*")
_ARGUMENT: Final = expression(r"(?<!\S)(?P<name>-{1,2}[A-Za-z][\w.-]*|requirepass|masterauth)[ \t]+(?P<value>(?!-)\S+)")
_ELEMENT: Final = expression(r"<(?P<name>[\w.-]+)>(?P<value>[^<\n]+)</")
_ALIAS: Final = expression(r"(?:^|[\s\[{,:-])\*\w", re.MULTILINE)
_LONGEST_PARSED: Final = 200_000
_DEEPEST_PARSED: Final = 100
_BRACKET: Final = expression(r"[{}\[\]]")
_NESTED_ITEMS: Final = expression(rf"(?:[-?:][ \t]+){{{_DEEPEST_PARSED}}}")
# `authorization: {mode: RBAC}` is a group of settings, not a secret.
_GROUPS: Final = frozenset({"auth", "authorization", "cert", "cookie", "jwt", "license"})
_TAG = "tag:yaml.org,2002:"


def masked_values(value: Json, *, hide: bool = False) -> Json:
    """Hide Helm values with names that suggest secrets, and secrets inside texts."""
    if isinstance(value, dict):
        # Container variables have the format {name: DB_PASSWORD, value: …}.
        named = value.get("name", value.get("key"))
        secret_value = isinstance(named, str) and sounds_secret(named)
        return {
            key: masked_values(item, hide=hide or _is_secret(key, item) or (secret_value and key == "value"))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return _masked_list(value, hide=hide)
    if isinstance(value, str):
        return (HIDDEN if _says_something(value) else value) if hide else _masked_text(value)
    return HIDDEN if hide and isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _masked_list(items: list[Json], *, hide: bool) -> Json:
    """Hide the values of secret options, as in `["--password", "x"]`."""
    before = [None, *items]
    return [
        masked_values(item, hide=hide or (isinstance(option, str) and _is_secret_option(option)))
        for option, item in zip(before, items, strict=False)
    ]


def _is_secret_option(text: str) -> bool:
    return re.fullmatch(r"-{1,2}[A-Za-z][\w.-]*", text) is not None and sounds_secret(text)


def _is_secret(key: str, item: Json) -> bool:
    words = words_of(key)
    if isinstance(item, dict) and words and words[-1] in _GROUPS:
        return "basic" in words
    return sounds_secret(key)


def _says_something(text: str) -> bool:
    return text.strip().lower() not in {"", "true", "false", "null", "none", "{}", "[]"}


def _masked_text(text: str) -> str:
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    if "://" in text:
        text = _TOKEN_IN_URL.sub(rf"\1{HIDDEN}@", _PASSWORD_IN_URL.sub(rf"\1:{HIDDEN}@", text))
    text = _AUTHORIZATION.sub(rf"\1\2{HIDDEN}", text)
    parsed = _structure(text)
    if parsed is not None:
        masked = masked_values(parsed)
        return text if masked == parsed else _written(masked, as_json=text.lstrip().startswith(("{", "[")))
    text = _ELEMENT.sub(lambda found: _without_value(found, found["value"]), text)
    text = _ARGUMENT.sub(lambda found: _without_value(found, found["value"]), text)
    return "\n".join(_masked_lines(text.split("\n")))


def _structure(text: str) -> Json:
    """Parse a text that has several lines or begins with a bracket as YAML or JSON. Returns None for any other text.

    Rejects aliases, because they can expand a small text into a large value. Rejects deep nesting, because the YAML
    parser (written in C) crashes on thousands of nested collections.
    """
    if not ("\n" in text.strip() or text.lstrip().startswith(("{", "["))):
        return None
    if len(text) > _LONGEST_PARSED or _ALIAS.search(text) is not None or _is_deep(text):
        return None
    try:
        documents = parse_manifest(text)
    except (ViewError, RecursionError):
        return None
    if not documents or not all(isinstance(document, (dict, list)) for document in documents):
        return None
    return documents[0] if len(documents) == 1 else documents


def _is_deep(text: str) -> bool:
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket in "{[" else -1
        if depth > _DEEPEST_PARSED:
            return True
    return _NESTED_ITEMS.search(text) is not None


def _written(value: Json, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(value, ensure_ascii=False)
    return show_yaml([value])


def _without_value(found: re.Match[str], value: str) -> str:
    """Return the matched text. If the name suggests a secret, the value is hidden."""
    return found.group().replace(value, HIDDEN) if sounds_secret(found["name"]) and value != HIDDEN else found.group()


def _masked_lines(lines: Sequence[str]) -> Iterator[str]:
    """Hide the values of names that suggest secrets, and the indented lines below `name: |`."""
    block: int | None = None
    for line in lines:
        indentation = len(line) - len(line.lstrip())
        if block is not None and (indentation > block or not line.strip()):
            yield f"{line[:indentation]}{HIDDEN}" if line.strip() else line
            continue
        masked, opens_block = _masked_line(line)
        block = indentation if opens_block else None
        yield masked


def _masked_line(line: str) -> tuple[str, bool]:
    """Return the line without its secrets, and whether a block of secret text begins on the next line."""
    shown: list[str] = []
    position = 0
    while found := _NAME_AND_SIGN.search(line, position):
        shown.append(line[position : found.end()])
        position = found.end()
        if not sounds_secret(found["name"]):
            continue
        if _BLOCK.fullmatch(line, position):
            return line, True
        end = _end_of_value(line, position, wide=found["wide"] is not None)
        value = line[position:end]
        shown.append(HIDDEN if _says_something(value) and not value.startswith(HIDDEN) else value)
        position = end
    return "".join((*shown, line[position:])), False


def _end_of_value(line: str, position: int, *, wide: bool) -> int:
    """Find the end of the value.

    The value in `password: x` and `password = x` extends to the end of the line. The value in `--password=x` and
    `?token=x&` extends to the end of the word.
    """
    quoted = _QUOTED.match(line, position)
    if quoted is not None:
        return quoted.end()
    end = None if wide else _END_OF_WORD.search(line, position)
    return len(line) if end is None else end.start()


def parse_manifest(text: str) -> list[Json]:
    """Return the non-empty documents of `text`. Raises `ViewError`."""
    try:
        refuse_deep(text.encode(), source="")
        return [_json_like(document) for document in _documents(text) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ViewError("the output is not shown: it is not valid YAML, so Secrets cannot be detected") from error


def _documents(text: str) -> Iterator[object]:
    """Parse the documents. Raises `ValueError` if a document is too large after alias expansion."""
    loader = _LOADER(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None and expanded_size(node, {}) > MAX_NODES:
                raise ValueError("too many values after alias expansion")
            yield loader.construct_document(node) if node is not None else None
    finally:
        loader.dispose()


def _json_like(value: object) -> Json:
    """Convert a value to JSON types. Bytes and keys become strings. For example, the key `on` becomes "true"."""
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
