"""Reads the data frames with which Grafana answers queries: series of times and values, or tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeGuard

from holmes.observability.json_reading import inner, items, text
from holmes.observability.metrics.series import Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.values.json_types import JsonObject, JsonValue


_LATEST_MILLISECONDS: Final = 253_402_300_799_000
_LARGEST: Final = 1e300
"""JSON can contain integers that no float can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The columns of a frame without a time, and its rows as texts."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelResult:
    """The results of all queries of a panel. `errors` maps a query to why it failed."""

    series: tuple[Series, ...]
    tables: tuple[Table, ...]
    errors: Mapping[str, str]


def result_of(answer: JsonObject) -> PanelResult:
    """Read the answer of `/api/ds/query`."""
    series, tables, errors = list[Series](), list[Table](), dict[str, str]()
    for reference, each in inner(answer, "results").items():
        if reason := text(each, "error"):
            errors[reference] = " ".join(reason.split())[:300]
        for frame in items(each, "frames"):
            found = list(_series(frame))
            series += found
            if not found and (table := _table(frame)) is not None:
                tables.append(table)
    return PanelResult(series=tuple(series), tables=tuple(tables), errors=errors)


def _columns(frame: JsonObject) -> list[tuple[JsonObject, list[JsonValue]]]:
    """Return the fields of a frame with their values. Columns of a damaged frame end with the shortest."""
    values = inner(frame, "data").get("values")
    columns = [each if isinstance(each, list) else [] for each in values] if isinstance(values, list) else []
    return list(zip(items(inner(frame, "schema"), "fields"), columns, strict=False))


def _series(frame: JsonObject) -> Iterator[Series]:
    """Return one series for each column of numbers, if the frame has times."""
    columns = _columns(frame)
    times = next((values for field, values in columns if text(field, "type") == "time"), None)
    if times is None or any(text(field, "type") == "string" for field, _ in columns):
        return
    for field, values in columns:
        if text(field, "type") == "number":
            pairs = sorted(
                (time / 1_000, float(value))
                for time, value in zip(times, values, strict=False)
                if _is_number(time) and 0 <= time <= _LATEST_MILLISECONDS and _is_number(value)
            )
            labels = tuple(sorted((name, str(value)) for name, value in inner(field, "labels").items()))
            yield Series(
                name=text(inner(field, "config"), "displayNameFromDS") or _own_name(text(field, "name"), frame),
                labels=tuple(pair for pair in labels if pair[0] != "__name__"),
                times=tuple(time for time, _ in pairs),
                values=tuple(value for _, value in pairs),
            )


def _own_name(name: str, frame: JsonObject) -> str:
    return text(inner(frame, "schema"), "name") if name == "Value" else name


def _is_number(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _table(frame: JsonObject) -> Table | None:
    columns = _columns(frame)
    if not columns or not any(values for _, values in columns):
        return None
    rows = zip(*(map(_cell, values) for _, values in columns), strict=False)
    return Table(columns=tuple(text(field, "name") for field, _ in columns), rows=tuple(rows))


def _cell(value: JsonValue) -> str:
    return "" if value is None else str(value)
