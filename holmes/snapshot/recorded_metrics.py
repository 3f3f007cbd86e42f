"""Reads and writes the metrics of a recording: one JSON file for each source, one series per line."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.recorded import RecordedAnswer, RecordedMetrics, RecordedSeries
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from holmes.values.json_types import JsonObject, JsonValue

LIMIT_BYTES: Final = 64 * 1024 * 1024
_MOST_SAMPLES: Final = 2_000


def metrics_document(metrics: RecordedMetrics) -> bytes:
    """Return the content of the file. Values have six significant digits."""
    head: JsonObject = {
        "product": metrics.product,
        "start": metrics.start,
        "stepSeconds": metrics.step_seconds,
        "samples": metrics.samples,
        "metrics": [list(each) for each in metrics.described],
    }
    parts: dict[str, Sequence[object]] = {
        "answers": [
            {"query": each.query, "namespace": each.namespace, "labels": dict(row.labels), "values": _written(row)}
            for each in metrics.answers
            for row in each.series
        ],
        "empty": [[each.query, each.namespace] for each in metrics.answers if not each.series],
        "known": metrics.known,
        "current": metrics.current,
    }
    written = ",\n".join(f"{json.dumps(name)}: [\n{_lines(rows)}\n]" for name, rows in parts.items())
    return f"{json.dumps(head, ensure_ascii=False)[:-1]},\n{written}}}\n".encode()


def read_metrics(path: Path, document: JsonObject) -> RecordedMetrics:
    """Read the content of the file at `path`. Raises `ConfigError` for content of another form."""
    try:
        return _metrics(document)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{path}: not the metrics of a recording ({reason}); record the cluster again") from error


def _metrics(document: JsonObject) -> RecordedMetrics:
    samples, step = int(_number(document["samples"])), _number(document["stepSeconds"])
    if not (0 < samples <= _MOST_SAMPLES and step > 0):
        message = f"'samples' must be from 1 to {_MOST_SAMPLES}, and 'stepSeconds' positive"
        raise ValueError(message)
    rows: dict[tuple[str, str], list[RecordedSeries]] = {}
    for query, namespace in map(_texts, _list(document["empty"])):
        rows[query, namespace] = []
    for each in map(_object, _list(document["answers"])):
        values = tuple(None if value is None else _number(value) for value in _list(each["values"]))
        if len(values) != samples:
            message = "a series has another number of values than 'samples'"
            raise ValueError(message)
        row = RecordedSeries(labels=_labels(each["labels"]), values=values)
        rows.setdefault((str(each["query"]), str(each["namespace"])), []).append(row)
    return RecordedMetrics(
        product=str(document["product"]),
        start=_number(document["start"]),
        step_seconds=step,
        samples=samples,
        answers=tuple(
            RecordedAnswer(query=query, namespace=namespace, series=tuple(series))
            for (query, namespace), series in rows.items()
        ),
        known=tuple(map(_labels, _list(document["known"]))),
        current=tuple(map(_labels, _list(document["current"]))),
        described=tuple(
            (name, kind, unit, about) for name, kind, unit, about in map(_texts, _list(document["metrics"]))
        ),
    )


def _written(series: RecordedSeries) -> list[JsonValue]:
    return [None if value is None else _short(value) for value in series.values]


def _short(value: float) -> float | int:
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _lines(rows: Iterable[object]) -> str:
    return ",\n".join(json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in rows)


def _number(written: JsonValue) -> float:
    if isinstance(written, bool) or not isinstance(written, int | float) or not math.isfinite(written):
        message = f"{written!r} is not a number"
        raise ValueError(message)
    return float(written)


def _list(written: JsonValue) -> list[JsonValue]:
    if not isinstance(written, list):
        message = "expected a list"
        raise TypeError(message)
    return written


def _object(written: JsonValue) -> JsonObject:
    if not isinstance(written, dict):
        message = "expected an object"
        raise TypeError(message)
    return written


def _texts(written: JsonValue) -> list[str]:
    return [str(each) for each in _list(written)]


def _labels(written: JsonValue) -> dict[str, str]:
    return {str(name): str(value) for name, value in _object(written).items()}
