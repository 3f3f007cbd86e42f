"""Reads spans from the JSON of OTLP.

Ids are hexadecimal there, but base64 if the JSON is written from protobuf. Enumerations are numbers or names.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Final

from holmes.observability.json_reading import items, text, whole
from holmes.observability.traces.reading import error_message, is_time
from holmes.observability.traces.source import Span, SpanKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.json_types import JsonObject, JsonValue

_KINDS: Final[tuple[SpanKind, ...]] = ("", "internal", "server", "client", "producer", "consumer")
_ID_LENGTHS: Final = frozenset({16, 32})
_DEEPEST: Final = 20


def spans_of(resources: tuple[JsonObject, ...]) -> tuple[Span | None, ...]:
    """Return all spans of resource spans. A span that cannot be read is None."""
    return tuple(span for each in resources for span in _spans_of_resource(each))


def _spans_of_resource(written: JsonObject) -> Iterator[Span | None]:
    resource = attributes_of(written.get("resource"))
    service = resource.pop("service.name", "")
    scopes = (*items(written, "scopeSpans"), *items(written, "instrumentationLibrarySpans"))
    for scope in scopes:
        rows = scope.get("spans")
        for each in rows if isinstance(rows, list) else ():
            yield _span(each, service, resource)


def _span(written: JsonValue, service: str, resource: dict[str, str]) -> Span | None:
    start, end = whole(written, "startTimeUnixNano"), whole(written, "endTimeUnixNano")
    if not isinstance(written, dict) or start is None or end is None or end < start or not is_time(end // 1_000):
        return None
    if not is_time(start // 1_000):
        return None
    own, status = attributes_of(written), written.get("status")
    failed = isinstance(status, dict) and status.get("code") in (2, "STATUS_CODE_ERROR")
    events = [attributes_of(each) for each in items(written, "events")]
    return Span(
        id=hexadecimal(text(written, "spanId")),
        parent=hexadecimal(text(written, "parentSpanId")),
        service=service or "unknown service",
        operation=text(written, "name"),
        start_us=start // 1_000,
        duration_us=end // 1_000 - start // 1_000,
        kind=_kind(written.get("kind")),
        failed=failed,
        error=(text(status, "message") or error_message(own, events)) if failed else "",
        attributes=tuple(sorted((resource | own).items())),
    )


def _kind(written: JsonValue) -> SpanKind:
    if isinstance(written, str):
        name = written.removeprefix("SPAN_KIND_").lower()
        return name if name in _KINDS else ""
    return _KINDS[written] if isinstance(written, int) and 0 <= written < len(_KINDS) else ""


def hexadecimal(written: str) -> str:
    """Return an id in hexadecimal letters. An id of zeros means that there is none."""
    if len(written) not in _ID_LENGTHS or not set(written) <= set("0123456789abcdefABCDEF"):
        try:
            written = base64.b64decode(written, validate=True).hex()
        except (binascii.Error, ValueError):
            return written
    return written.lower() if written.strip("0") else ""


def attributes_of(written: JsonValue) -> dict[str, str]:
    return {text(each, "key"): _value(each.get("value"), _DEEPEST) for each in items(written, "attributes")}


def _value(written: JsonValue, deepest: int) -> str:
    """Return the text of an `AnyValue`, for example `{"intValue": "500"}`."""
    if not isinstance(written, dict) or not written or deepest == 0:
        return ""
    kind, value = next(iter(written.items()))
    if kind == "arrayValue":
        return ", ".join(_value(each, deepest - 1) for each in items(value, "values"))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
