"""The paths of kubectl's custom columns: `.metadata.name`, `.spec.containers[*].image`, `[?(@.type=="Ready")]`.

Used by the layouts, which applies them to objects whose secrets are removed already. Understands names with
escaped dots, quoted names, indices, `*` and comparisons with one constant; refuses anything else with a hint to jq.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from holmes.toolsets.kubernetes_view.contract import ViewError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.toolsets.kubernetes_view.contract import Json

_STEP = re.compile(
    r"""\.?\[\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<index>-?\d+)|(?P<all>\*)
    |\?\(\s*@(?P<path>\.[^=!<>\s]+)\s*(?P<operator>==|!=)\s*(?:'(?P<value1>[^']*)'|"(?P<value2>[^"]*)"|(?P<value3>[\w.-]+))\s*\)
    )\s*\]
    |\.(?P<name>\*|(?:\\.|[^.\[\]\\\s])+)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    path: Path
    equal: bool
    value: str

    def holds(self, item: Json) -> bool:
        found = {_text(value) for value in self.path.find(item)}
        return (self.value in found) == self.equal


class _Everything:
    """The step `*`."""


_Step: TypeAlias = str | int | _Condition | _Everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A parsed path."""

    steps: tuple[_Step, ...]

    def find(self, value: Json) -> list[Json]:
        """All values at this path; empty when there is none. A JSON null is no value."""
        found = [value]
        for step in self.steps:
            found = [child for parent in found for child in _children(parent, step)]
        return [value for value in found if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    title: str
    path: Path


def parse_columns(specification: str) -> tuple[Column, ...]:
    """Parse `TITLE:path,TITLE:path`. Raises `ViewError`."""
    columns: list[Column] = []
    for part in re.split(r",(?=[^,:\[\]]+:)", specification.strip()):
        title, separator, path = part.partition(":")
        if not separator or not title.strip():
            raise ViewError(f"columns are written NAME:.metadata.name,PHASE:.status.phase, not {part!r}")
        columns.append(Column(title=title.strip(), path=parse_path(path.strip())))
    return tuple(columns)


def parse_path(text: str) -> Path:
    """Parse one path. Raises `ViewError`."""
    rest = text.strip().removeprefix("{").removesuffix("}")
    if not rest.startswith((".", "[")):
        rest = f".{rest}"
    steps: list[_Step] = []
    position = 0
    while position < len(rest):
        found = _STEP.match(rest, position)
        if found is None:
            raise ViewError(f"the path {text!r} is not understood at {rest[position:]!r}: use jq for it")
        steps.append(_step(found))
        position = found.end()
    return Path(steps=tuple(steps))


def _step(found: re.Match[str]) -> _Step:
    parts = found.groupdict()
    if parts["all"] or parts["name"] == "*":
        return _Everything()
    if parts["index"] is not None:
        return int(parts["index"])
    if parts["path"] is not None:
        value = next(parts[name] for name in ("value1", "value2", "value3") if parts[name] is not None)
        return _Condition(path=parse_path(parts["path"]), equal=parts["operator"] == "==", value=value)
    if parts["name"] is not None:
        return re.sub(r"\\(.)", r"\1", parts["name"])
    return str(parts["single"] if parts["single"] is not None else parts["double"])


def _children(parent: Json, step: _Step) -> Iterator[Json]:
    match step:
        case str():
            if isinstance(parent, dict) and step in parent:
                yield parent[step]
        case int():
            if isinstance(parent, list) and -len(parent) <= step < len(parent):
                yield parent[step]
        case _Condition():
            if isinstance(parent, list):
                yield from (item for item in parent if step.holds(item))
        case _Everything():
            if isinstance(parent, list):
                yield from parent
            elif isinstance(parent, dict):
                yield from parent.values()


def _text(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
