"""Reads a YAML file and records the line of each key.

All files that users write are read with this module. Invalid YAML, duplicate keys, and files that need too much memory
or stack are rejected with an error that states the file and line. Keys are not interpreted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import yaml

from holmes.input_files import read_input_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# The loader that is written in C is five times faster and reports the same positions.
_Loader: type[yaml.CSafeLoader | yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

KeyPath: TypeAlias = tuple[str | int, ...]


MAX_BYTES = 10_000_000
MAX_NODES = 1_000_000
_MAX_LEVELS = 100
"""Maximum nesting depth of user files.

The C parser is recursive, and tens of thousands of levels overflow its stack.
"""


class YamlError(ValueError):
    """The file cannot be read or is not valid YAML. Callers convert this error into their own error."""


class UnreadableFile(YamlError):
    """The file does not exist or cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """A parsed file. `lines` maps the path of a value to its line number, starting at 1.

    `source` is the name of the file in messages.
    """

    source: str
    content: object
    lines: Mapping[KeyPath, int]

    def place(self, path: KeyPath) -> str:
        """Return `file:line` of the value at `path`, or of its nearest parent."""
        for length in range(len(path), -1, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return f"{self.source}:{line}"
        return self.source


def read_document(path: Path, *, unique_keys: bool = True) -> YamlDocument:
    """Read and parse the file.

    Raises `UnreadableFile` if it cannot be read, and `YamlError` if it is not valid YAML.
    """
    try:
        data = read_input_file(path, MAX_BYTES)
    except FileNotFoundError as error:
        raise UnreadableFile(f"{path}: file not found") from error
    except (OSError, ValueError) as error:  # ValueError: the path contains NUL
        raise UnreadableFile(f"{path}: the file cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > MAX_BYTES:
        raise YamlError(f"{path}: the file is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlError(f"{path}: the file is not UTF-8 text (byte {error.start})") from error
    return parse_document(text, source=str(path), unique_keys=unique_keys)


def refuse_deep(content: bytes, *, source: str, max_levels: int = _MAX_LEVELS) -> None:
    """Raise `YamlError` for YAML with too many levels, and the errors from PyYAML for invalid YAML."""
    columns = max(map(len, content.splitlines()), default=0)
    # Quick check: each level takes at least a bracket or a column of indentation, and two levels may share a column.
    if content.count(b"[") + content.count(b"{") + 2 * columns <= max_levels:
        return
    depth = 0
    for event in yaml.parse(content, _Loader):  # this parser keeps its levels in a list, not on the stack
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > max_levels:
            raise YamlError(f"{source}: the file has more than {max_levels:,} nested levels")


def parse_document(text: str, *, source: str, unique_keys: bool = True) -> YamlDocument:
    """Parse YAML.

    Raises `YamlError` with the file and line for invalid YAML, and for duplicate keys if `unique_keys` is true.
    """
    try:
        refuse_deep(text.encode(), source=source)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is not None and expanded_size(node, {}) > MAX_NODES:
                raise YamlError(f"{source}: the file has too many values after alias expansion")
            lines = dict(_lines(node, (), set(), source if unique_keys else "")) if node is not None else {}
            content = loader.construct_document(node) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{source}:{mark.line + 1}" if mark is not None else source
        raise YamlError(f"{place}: the file is not valid YAML: {error.problem or error}") from error
    except YamlError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(f"{source}: the file is not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise YamlError(f"{source}: the file is nested too deeply") from error
    return YamlDocument(source=source, content=content, lines=lines)


def expanded_size(node: yaml.Node, sizes: dict[int, float]) -> float:
    """Count the values of a node after alias expansion. Returns infinity for a node that contains itself."""
    known = sizes.get(id(node))
    if known is not None:
        return known
    sizes[id(node)] = math.inf  # a node that contains itself is visited again before its size is known
    children = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    below = () if isinstance(node, yaml.ScalarNode) else children
    sizes[id(node)] = 1 + sum(expanded_size(child, sizes) for child in below)
    return sizes[id(node)]


def _lines(node: yaml.Node, path: KeyPath, seen: set[int], source: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the paths and lines of a node and its content.

    Each alias is followed only once, so the time is limited. If `source` is empty, duplicate keys are allowed.
    """
    yield path, node.start_mark.line + 1
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, (*path, index), seen, source)
    elif isinstance(node, yaml.MappingNode):
        keys: dict[str, int] = {}
        for key, value in node.value:
            name = str(key.value)
            line = key.start_mark.line + 1
            if source and name in keys and name != "<<":
                raise YamlError(f"{source}:{line}: duplicate key {name!r}; first defined in line {keys[name]}")
            keys[name] = line
            yield from _lines(value, (*path, name), seen, source)
            yield (*path, name), line
