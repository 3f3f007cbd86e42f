"""Reads `custom_kinds.yaml`, which describes where well-known operators write the health of their objects.

The file is loaded when the first custom resource is judged. The general reading of a status is in `custom_health`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import yaml

from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.values.findings import Severity
    from holmes.values.json_types import JsonValue

_FILE: Final = Path(__file__).with_name("custom_kinds.yaml")
Health: TypeAlias = Literal["skipped", "suspended", "failed", "degraded", "active", "progressing", "healthy"]
HEALTHS: Final[tuple[Health, ...]] = get_args(Health)
"""All states of health. If the fields of an object contradict each other, the first of these states counts."""
_SEVERITIES: Final[dict[str, Severity]] = {"": "critical", "critical": "critical", "warning": "warning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateField:
    """A field of the status, and the values that stand for each state of health."""

    path: str
    values: tuple[tuple[Health, re.Pattern[str]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """How to read the health of one kind.

    `good` and `bad` are condition types that are False and True on failure, in addition to the general ones. `ignored`
    are condition types that say nothing about the health; `*` ignores all. An object may be progressing for
    `grace_seconds`, or for the general time if this is None. A `run` ends: its failure is reported for one day.
    """

    fields: tuple[StateField, ...] = ()
    good: Mapping[str, Severity]
    bad: Mapping[str, Severity]
    ignored: frozenset[str] = frozenset()
    messages: tuple[str, ...] = ()
    grace_seconds: float | None = None
    run: bool = False


def row_of(kind: str, group: str) -> KindRow:
    """Return the row of a kind. It is empty if the table does not contain the kind."""
    rows = table()
    if (group, kind) in rows:
        return rows[group, kind]
    patterns = (key for key in rows if "*" in key[0] or key[1] == "*")
    found = (key for key in patterns if fnmatchcase(group, key[0]) and key[1] in {"*", kind})
    return rows[key] if (key := next(found, None)) is not None else _EMPTY


_EMPTY: Final = KindRow(good={}, bad={})


def known_kinds() -> frozenset[str]:
    """Return the kinds of the table in the form `Kind.group`."""
    return frozenset(f"{kind}.{group}" for group, kind in table())


def values_at(value: JsonValue, path: str) -> Iterator[str]:
    """Yield the scalars at a dotted path as text. `*` stands for every item of a list or object.

    A list or an object at the end of the path yields its texts, and the texts under `message` or `description` of its
    items.
    """
    key, _, rest = path.partition(".")
    if not path:
        yield from _texts(value)
    elif key == "*":
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for item in items:
            yield from values_at(item, rest)
    elif isinstance(value, dict) and key in value:
        yield from values_at(value[key], rest)


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, str | int | float):
        yield str(value)
    elif isinstance(value, dict):
        yield from _texts(value.get("message") or value.get("description"))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


@cache
def table() -> dict[tuple[str, str], KindRow]:
    """Return the rows of the table by group and kind."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    groups = yaml.load(_FILE.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506  both are safe
    return {(group, name): _row(raw) for group, kinds in groups.items() for name, raw in _named(kinds)}


def _named(kinds: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield every kind of a group with its row. Kinds that are read alike share one row: `VMAgent VMAlert`."""
    for names, raw in kinds.items():
        for name in names.split():
            yield name, raw


def _row(raw: Mapping[str, object]) -> KindRow:
    words = {key: str(value).split() for key, value in raw.items() if not isinstance(value, dict)}
    grace = next(iter(words.get("grace", ())), None)
    return KindRow(
        fields=tuple(_field(path, value) for path, value in raw.items() if isinstance(value, dict)),
        good=_severities(words.get("good", [])),
        bad=_severities(words.get("bad", [])),
        ignored=frozenset(words.get("ignore", ())),
        messages=tuple(words.get("message", ())),
        grace_seconds=None if grace is None else 60.0 * float(grace),
        run="run" in words,
    )


def _field(path: str, values: Mapping[Health, object]) -> StateField:
    unknown = values.keys() - set(HEALTHS)
    if unknown:
        raise ValueError(f"{path}: unknown states {sorted(unknown)}")
    patterns = tuple((health, expression(str(value), re.IGNORECASE | re.DOTALL)) for health, value in values.items())
    return StateField(path=path, values=patterns)


def _severities(words: list[str]) -> dict[str, Severity]:
    return {name: _SEVERITIES[severity] for name, _, severity in (word.partition("=") for word in words)}
