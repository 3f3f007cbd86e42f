"""Answers the HTTP API of Prometheus from the metrics of a recording."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from holmes.observability.access import QueryRejectedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.observability.metrics.recorded import RecordedMetrics, RecordedSeries
    from holmes.values.json_types import JsonValue

METRICS_PATH: Final = "metrics"
"""The first part of the paths at which this API is served, before the number of the source."""
_MOST_SAMPLES: Final = 11_000
"""The limit of Prometheus for the samples of a series."""


def metrics_answer(metrics: RecordedMetrics, path: tuple[str, ...], given: Mapping[str, str]) -> tuple[int, bytes]:
    """Return the status and body for a path below `/api/v1`."""
    try:
        document: JsonValue = {"status": "success", "data": _data(metrics, path, given)}
        status = 200
    except QueryRejectedError as error:
        document, status = {"status": "error", "errorType": "execution", "error": str(error)}, 422
    return status, json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def _data(metrics: RecordedMetrics, path: tuple[str, ...], given: Mapping[str, str]) -> JsonValue:
    match path:
        case ("query",):
            at = _time(given, "time")
            return {"resultType": "vector", "result": list(_instant(metrics, given.get("query", ""), at))}
        case ("query_range",):
            return {"resultType": "matrix", "result": list(_range(metrics, given))}
        case ("labels",):
            return list(metrics.label_names(given.get("match[]", "")))
        case ("label", label, "values"):
            return list(metrics.label_values(label, given.get("match[]", "")))
        case ("metadata",):
            return {
                name: [{"type": kind, "unit": unit, "help": about}] for name, kind, unit, about in metrics.described
            }
        case ("status", "buildinfo"):
            return {"application": "recorded metrics of", "version": metrics.product}
        case _:
            raise QueryRejectedError(f"{'/'.join(path)} is not part of the recording")


def _instant(metrics: RecordedMetrics, query: str, at: float) -> Iterator[JsonValue]:
    for series in metrics.answer(query):
        value = _value(metrics, series, at)
        if value is not None:
            yield {"metric": dict(series.labels), "value": [at, f"{value:.15g}"]}


def _range(metrics: RecordedMetrics, given: Mapping[str, str]) -> Iterator[JsonValue]:
    start, end, step = (_time(given, name) for name in ("start", "end", "step"))
    if step <= 0 or not 0 <= (end - start) / step <= _MOST_SAMPLES:
        raise QueryRejectedError("the range is empty, or has too many samples")
    times = [start + place * step for place in range(int((end - start) / step) + 1)]
    for series in metrics.answer(given.get("query", "")):
        values: list[JsonValue] = [
            [at, f"{value:.15g}"] for at in times if (value := _value(metrics, series, at)) is not None
        ]
        if values:
            yield {"metric": dict(series.labels), "values": values}


def _value(metrics: RecordedMetrics, series: RecordedSeries, at: float) -> float | None:
    """Return the last value that is younger than a step, as Prometheus does it within five minutes."""
    place = math.floor((at - metrics.start) / metrics.step_seconds)
    return series.values[place] if 0 <= place < len(series.values) else None


def _time(given: Mapping[str, str], name: str) -> float:
    try:
        value = float(given.get(name, ""))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise QueryRejectedError(f"{name} is not a number of seconds")
    return value
