"""The values that a source of metrics returns."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PAIR: Final = re.compile(
    r"""(?:^|(?<=[{,\s]))(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<name>[A-Za-z_]\w*))\s*[=:]\s*"(?P<value>(?:[^"\\]|\\.)*)\""""
)

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""The labels of a series, sorted by name, without `__name__`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A series with the times of its samples in seconds since 1970, ascending, and their values.

    An instant result has one sample. `name` is the metric's name, which functions remove.
    """

    name: str
    labels: Labels
    times: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The series of a query, and the remarks of the source about the query."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric with its type (`counter`, `gauge`, …), unit and help text, as far as the source knows them."""

    name: str
    type: str = ""
    unit: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An address that the source scrapes. `state` is `up`, `down` or `unknown`."""

    job: str
    instance: str
    state: str
    error: str = ""
    labels: Labels = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An alerting or recording rule. `alerts` has the labels of each active alert and its state."""

    name: str
    group: str
    query: str
    kind: str
    state: str = ""
    hold_seconds: float = 0.0
    error: str = ""
    alerts: tuple[ActiveAlert, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveAlert:
    """An alert that is `pending` or `firing`, since a time in RFC 3339."""

    state: str
    labels: Labels
    since: str = ""
    value: str = ""


def finite(series: Series) -> Series:
    """Return the series without samples such as NaN, for example of 0 divided by 0."""
    kept = [pair for pair in zip(series.times, series.values, strict=True) if math.isfinite(pair[1])]
    return replace(series, times=tuple(time for time, _ in kept), values=tuple(value for _, value in kept))


def selector(labels: Iterable[tuple[str, str]]) -> str:
    """Return labels as a selector of PromQL writes them, for example `{job="api", pod="a"}`."""
    return "{" + ", ".join(f'{_name(name)}="{escaped(value)}"' for name, value in labels) + "}"


def _name(name: str) -> str:
    """Return the name of a label, quoted if PromQL requires it."""
    return name if _PLAIN.fullmatch(name) else f'"{escaped(name)}"'


def labels_of(written: str) -> dict[str, str]:
    """Read labels as `selector` writes them, with or without braces. Other text has none."""
    found = (match.group("quoted", "name", "value") for match in _PAIR.finditer(written))
    return {quoted or name: re.sub(r"\\(.)", _unescaped, value) for quoted, name, value in found}


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
