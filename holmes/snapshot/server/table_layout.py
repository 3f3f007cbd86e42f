"""Defines table layouts, and the cells that many tables share: ages, containers, and lists with `+ 2 more...`.

The cells are the same as those of a real API server, because users compare the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from holmes.kubernetes.fields import at, instant, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from holmes.values.json_types import JsonObject, JsonScalar, JsonValue

Cells: TypeAlias = "list[JsonScalar]"

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table column. `wide` columns are shown only with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The table of one kind. `cells` creates the row of an object at the recording time.

    `order` is set only for the kinds that are not sorted by name.
    """

    columns: tuple[Column, ...]
    cells: Callable[[JsonObject, datetime], Cells]
    order: Callable[[JsonObject], tuple[int, str]] | None = None


def columns(*names: str, wide: Sequence[str] = ()) -> tuple[Column, ...]:
    """Create columns with these names. A name can include its type: `Desired:integer`."""
    return tuple(
        Column(
            name=name.partition(":")[0],
            type=name.partition(":")[2] or "string",
            format="name" if name == "Name" else "",
            wide=is_wide,
        )
        for is_wide, group in ((False, names), (True, wide))
        for name in group
    )


def name_of(item: JsonObject) -> str:
    return text(item, "metadata", "name")


def age(item: JsonObject, now: datetime) -> str:
    return since(text(item, "metadata", "creationTimestamp"), now)


def since(timestamp: str, now: datetime) -> str:
    """Format the time since `timestamp` like kubectl."""
    then = instant(timestamp)
    return UNKNOWN if then is None else human_duration((now - then).total_seconds())


def human_duration(seconds: float) -> str:
    """Format a duration with one or two units: `95s`, `4m10s`, `3h5m`, `2d3h`, `64d`, `2y7d`."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    for limit, shown in (
        (0, "0s"),
        (120, f"{whole}s"),
        (600, _two(minutes, "m", whole % 60, "s")),
        (3 * 3600, f"{minutes}m"),
        (8 * 3600, _two(hours, "h", minutes % 60, "m")),
        (48 * 3600, f"{hours}h"),
        (8 * 86400, _two(days, "d", hours % 24, "h")),
        (2 * 365 * 86400, f"{days}d"),
        (8 * 365 * 86400, _two(days // 365, "y", days % 365, "d")),
    ):
        if whole < limit:
            return shown
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def container_cells(containers: Iterable[JsonObject]) -> Cells:
    """Create two cells with the names and the images of containers."""
    listed = list(containers)
    return [",".join(text(each, "name") for each in listed), ",".join(text(each, "image") for each in listed)]


def limited(shown: Sequence[str], *, separator: str = ",", limit: int = 3, empty: str = UNSET) -> str:
    """Join the first `limit` texts, and append the number of remaining texts."""
    if len(shown) > limit:
        return f"{separator.join(shown[:limit])} + {len(shown) - limit} more..."
    return separator.join(shown) or empty


def flag(value: JsonValue) -> str:
    """Format a boolean. A missing value is shown as `<unset>`."""
    return {True: "True", False: "False"}.get(value, UNSET) if isinstance(value, bool) else UNSET


def scalar(item: JsonValue, *path: str, default: JsonScalar = "") -> JsonScalar:
    """Return the text, number or boolean at `path`, or `default`."""
    found = at(item, *path)
    return found if isinstance(found, str | int | float | bool) else default


def partial(item: JsonObject) -> JsonObject:
    """Return only the metadata of an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item.get("metadata", {})}
